"""Plan, implement, review: three agents, typed results, and a flow that continues where it was.

    python plan_implement_review.py "add a --verbose option" --planner claude --coder codex

Each step is a session with a name, and its result is kept in `.flow/NAME`. Run it again after a
failure, and finished steps are not repeated: the one that failed continues in its session.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TypeVar

import msgspec


class Plan(msgspec.Struct):
    """What to do, in order, in one sentence each."""

    steps: list[str]


class Done(msgspec.Struct):
    """What was changed, in a sentence or two."""

    summary: str


class Verdict(msgspec.Struct):
    """Whether the work can stay as it is; if not, each thing that has to change."""

    good: bool
    findings: list[str]


Result = TypeVar("Result", Plan, Done, Verdict)


class Flow:
    def __init__(self, name: str) -> None:
        self.name = name
        self.folder = Path(".flow", name)
        self.folder.mkdir(parents=True, exist_ok=True)

    def step(self, name: str, agent: str, prompt: str, output: type[Result], *more: str) -> Result:
        """The result of a step; it is asked for once."""
        kept = self.folder / f"{name}.json"
        if not kept.exists():
            print(f"{name}: {agent} …", flush=True)
            answer = ask(f"{self.name}-{name}", agent, prompt, output, *more)
            unfinished = kept.with_suffix(".new")
            unfinished.write_bytes(answer)
            unfinished.replace(kept)
        return msgspec.json.decode(kept.read_bytes(), type=output)


def ask(session: str, agent: str, prompt: str, output: type[object], *more: str) -> bytes:
    """What the agent answers in the session of that name, as JSON of that type."""
    with tempfile.NamedTemporaryFile(suffix=".json") as schema:
        schema.write(msgspec.json.encode(msgspec.json.schema(output)))
        schema.flush()
        # An agent that has forgotten the session begins a new one, and looks at the files.
        words = ["-a", agent, "--session", session, "--on-reset", "new", "--keep-warm", "0"]
        command = ["dragoman", *words, *more, "--output-schema", schema.name, "--", prompt]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task")
    parser.add_argument("--name", default="flow", help="another name is another flow")
    parser.add_argument("--planner", default="claude")
    parser.add_argument("--coder", default="codex")
    parser.add_argument("--reviewer", default="gemini")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()

    flow = Flow(options.name)
    plan = flow.step("plan", options.planner, f"Plan this, change nothing: {options.task}", Plan)
    todo = "\n".join(plan.steps)
    for turn in range(1, options.rounds + 1):
        done = flow.step(f"implement-{turn}", options.coder, f"Do this:\n{todo}", Done, "--write")
        asked = f"Review, change nothing. The task: {options.task}\nWhat was done: {done.summary}"
        verdict = flow.step(f"review-{turn}", options.reviewer, asked, Verdict)
        if verdict.good:
            print(f"good after {turn}: {done.summary}")
            return
        todo = "\n".join(verdict.findings)
    sys.exit(f"still not good after {options.rounds}: {todo}")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"dragoman ended with code {error.returncode}; run this again to continue")

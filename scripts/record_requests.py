"""Records what real agents ask permission for: tests/recordings/requests.

python scripts/record_requests.py [NAME …]

One line per request: the tool calls that the agent told of in the turn, and the request itself, as
they came. The lab is found by $DRAGOMAN_LAB. What is kept names no folder of this machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from agent_trials.anonymous import anonymous
from agent_trials.lab import LabAgent, inside
from agent_trials.turns import run
from record_agents import FOLDER, WORKSPACE, places

from dragoman import AgentCommand, Client
from dragoman.errors import DragomanError
from dragoman.testing import Recorder

REQUESTS = FOLDER / "requests"
_SECONDS = 600.0
_PAGE = "https://example.org/page"
_TOOL_UPDATES = ("tool_call", "tool_call_update")


def _tool(name: str, **arguments: Any) -> str:
    return f"tool:{name} {json.dumps(arguments)}"


def _here(name: str) -> str:
    return str(WORKSPACE / name)


def _patch(kind: str, name: str, *lines: str) -> str:
    text = "\n".join(("*** Begin Patch", f"*** {kind} File: {name}", *lines, "*** End Patch"))
    return _tool("exec_command", cmd=f"apply_patch <<'EOF'\n{text}\nEOF")


def _risky(command: str) -> str:
    """Codex asks only for what it cannot do in its sandbox."""
    more = {"sandbox_permissions": "require_escalated", "justification": "need it"}
    return _tool("exec_command", cmd=command, **more)


_CHANGE = {"old_string": "one", "new_string": "two"}
_LONG = "git log --oneline --decorate --graph --all --max-count=20 -- README.md src"
PROMPTS: dict[str, dict[str, str]] = {
    "goose": {
        "write": _tool("write", path=_here("new.txt"), content="AAA\n"),
        "edit": _tool("edit", path=_here("README.md"), before="one", after="two"),
        "pytest": _tool("shell", command="pytest -q"),
        "line": _tool("shell", command="cd src && ls"),
        "tree": _tool("tree", path=_here("src")),
        "read": _tool("read", path=_here("README.md")),
        "todo": _tool("todo__todo_write", content="- one"),
    },
    "opencode": {
        "write": _tool("write", filePath=_here("new.txt"), content="AAA\n"),
        "edit": _tool("read", filePath=_here("README.md"))
        + "\n"
        + _tool("edit", filePath=_here("README.md"), oldString="one", newString="two"),
        "cd": _tool("bash", command="cd src && ls", description="list"),
        "and": _tool("bash", command="git status --short && echo done", description="status"),
        "status": _tool("bash", command="git status --short", description="status"),
        "workdir": _tool("bash", command="ls", workdir=_here("src"), description="list"),
        "outside": _tool("bash", command="ls", workdir="/usr", description="list"),
    },
    "gemini": {
        "write": _tool("write_file", file_path="new.txt", content="AAA\n"),
        "edit": _tool("read_file", file_path="README.md")
        + "\n"
        + _tool("replace", file_path="README.md", instruction="change it", **_CHANGE),
        "line": _tool("run_shell_command", command="ls -la && wc -l README.md", description="look"),
        "folder": _tool("run_shell_command", command="touch made", dir_path="src"),
        "long": _tool("run_shell_command", command=f"{_LONG} && touch made", description="look"),
        "fetch": _tool("web_fetch", prompt=f"Read {_PAGE}"),
    },
    "kimicode": {
        "write": _tool("Write", path=_here("new.txt"), content="AAA\n"),
        "edit": _tool("Read", path=_here("README.md"))
        + "\n"
        + _tool("Edit", path=_here("README.md"), **_CHANGE),
        "bash": _tool("Bash", command="echo one && wc -l README.md"),
        "long": _tool("Bash", command=_LONG),
        "folder": _tool("Bash", command="ls", cwd=_here("src")),
    },
    "hermes": {
        "write": _tool("write_file", path=_here("new.txt"), content="AAA\n"),
        "edit": _tool("patch", mode="replace", path=_here("README.md"), **_CHANGE),
        "risky": _tool("terminal", command="echo one && rm -rf nothing-here"),
    },
    "claude": {
        "write": _tool("Write", file_path=_here("new.txt"), content="AAA\n"),
        "edit": _tool("Read", file_path=_here("README.md"))
        + "\n"
        + _tool("Edit", file_path=_here("README.md"), **_CHANGE),
        "bash": _tool("Bash", command="touch made.txt && echo one", description="make"),
        "fetch": _tool("WebFetch", url=_PAGE, prompt="What is there?"),
        "search": _tool("WebSearch", query="what is there"),
    },
    "codex": {
        "add": _patch("Add", "new.txt", "+AAA"),
        "update": _patch("Update", "README.md", "@@", "-one", "+two"),
        "run": _risky("git status --short"),
        "line": _risky("cd src && ls"),
    },
    "qwen": {
        "write": _tool("write_file", file_path=_here("new.txt"), content="AAA\n"),
        "edit": _tool("read_file", file_path=_here("README.md"))
        + "\n"
        + _tool("edit", file_path=_here("README.md"), **_CHANGE),
        "shell": _tool(
            "run_shell_command", command="touch made.txt", description="make", is_background=False
        ),
        "fetch": _tool("web_fetch", url=_PAGE, prompt="What is there?"),
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Permission requests of real agents.")
    parser.add_argument("names", metavar="NAME", nargs="*", default=list(PROMPTS))
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not (place := os.environ.get("DRAGOMAN_LAB")):
        sys.exit("DRAGOMAN_LAB is not set; it names the folder of the lab of real agents")
    for name in options.names:
        if options.inside:
            _record(Path(place), name)
        else:
            command = [sys.executable, __file__, "--inside", name]
            lab = [Path(place, "lab"), "run", name, "--", *command]
            subprocess.run(lab, check=True, timeout=_SECONDS)


def _record(lab: Path, name: str) -> None:
    WORKSPACE.mkdir()
    try:
        agent = inside(lab, name, WORKSPACE)
        with tempfile.TemporaryDirectory(prefix="recording-") as folder:
            path = Path(folder, "recording.jsonl")
            asyncio.run(_ask(agent, path))
            recorded = anonymous(path.read_bytes(), places(agent.env))
    finally:
        shutil.rmtree(WORKSPACE)
    REQUESTS.mkdir(exist_ok=True)
    lines = [msgspec.json.encode(each) + b"\n" for each in _requests(name, recorded)]
    (REQUESTS / f"{name}.jsonl").write_bytes(b"".join(lines))


async def _ask(agent: LabAgent, path: Path) -> None:
    """Each prompt in a session of its own, with a person who allows everything.

    No repository is made of the workspace: in one, Kimi Code writes without asking."""
    command = AgentCommand(agent.command, tuple(agent.args), agent.env, str(WORKSPACE))
    with Recorder(path) as tap:
        async with Client.start(command, name=agent.name, tap=tap) as client:
            for prompt in PROMPTS[agent.name].values():
                _furnish(WORKSPACE)
                session = await client.new_session(WORKSPACE)
                if agent.asking:
                    await session.set_mode(agent.asking[-1])
                try:
                    await run(session, prompt)
                except DragomanError as error:
                    print(f"{agent.name}: {prompt}: {error}", file=sys.stderr)


def _furnish(workspace: Path) -> None:
    """A small project."""
    for path in workspace.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    (workspace / "README.md").write_text("one\n")
    (workspace / "src").mkdir()
    (workspace / "src" / "main.py").write_text("print(1)\n")


def _requests(name: str, recording: bytes) -> Iterator[dict[str, Any]]:
    """Each request of a prompt, with the tool calls of the turn before it; later ones numbered."""
    agent, turns = "", list[list[dict[str, Any]]]()
    for line in recording.splitlines():
        match msgspec.json.decode(line)["msg"]:
            case {"result": {"agentInfo": {"name": str(told)}}}:
                agent = told
            case {"method": "session/prompt"}:
                turns.append([])
            case {"method": "session/update" | "session/request_permission"} as message if turns:
                turns[-1].append(message)
            case _:
                pass
    for kind, turn in zip(PROMPTS[name], turns, strict=True):
        asked = [at for at, each in enumerate(turn) if each["method"].endswith("permission")]
        if not asked:
            print(f"{name}: it did not ask for {kind}", file=sys.stderr)
        for number, at in enumerate(asked, 1):
            told = [each["params"]["update"] for each in turn[:at] if "id" not in each]
            updates = [each for each in told if each["sessionUpdate"] in _TOOL_UPDATES]
            yield {
                "name": f"{name}-{kind}" if number == 1 else f"{name}-{kind}-{number}",
                "agent": agent,
                "updates": updates,
                "request": turn[at]["params"],
            }


if __name__ == "__main__":
    main()

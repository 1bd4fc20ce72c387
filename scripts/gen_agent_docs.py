"""Writes docs/reference/agents.md from the table of known agents; `--check` only compares.

python scripts/gen_agent_docs.py [--check]
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from dragoman.agents.known import KnownAgent, known_agents

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "agents.md"
HEAD = """\
# Agents

Made by `scripts/gen_agent_docs.py` from the table of known agents, which `dragoman agents list`
prints too. Each of these can be started by its name without any settings: `dragoman -a gemini
"…"`. The settings entry is for another version, other arguments or a key;
[set-up-agents.md](../how-to/set-up-agents.md) has all that can stand there.

**Tried** means that every feature below was tried with that version, through the command, the
library and the server, offline with a stand-in for the model (`make test-agents`): text,
thoughts, a file and a command with permission, refused permission, plan, question, mode, options,
commands, list, load, resume, fork, close, delete, cancel, a failing model, an agent that is
killed, a recording played again, and a clean end. What an agent does not offer is named.

**Started** means that this version was started by that command, shook hands, and was asked for its
ways to sign in; what else was seen of it is in its notes. Of the others it was collected from what
is published about them, or is earlier experience with the agent. Is yours different? `dragoman
agents doctor NAME` says how.

Signing in: an agent that wants it first says so, with what to type for each way it offers; on a
terminal you can choose one at once. `dragoman agents login NAME` lists them, `dragoman agents login
NAME METHOD` goes one, `dragoman agents logout NAME` signs out where that is offered. A variable
can be set for one agent alone, in `env` of its settings entry.

| agent | `-a` | tried | started | variable |
|---|---|---|---|---|
"""


def page() -> str:
    agents = [agent for agent in known_agents() if not agent.built_in]
    rows = "".join(_row(agent) for agent in agents)
    return "\n".join([HEAD + rows, *map(_section, agents)])


def _row(agent: KnownAgent) -> str:
    variable = f"`{agent.variable}`" if agent.variable else ""
    seen = f"{agent.tried} | {agent.seen}"
    return f"| [{agent.title}](#{_anchor(agent)}) | `{agent.name}` | {seen} | {variable} |\n"


def _anchor(agent: KnownAgent) -> str:
    return agent.title.lower().replace(" ", "-")


def _section(agent: KnownAgent) -> str:
    entry = {"command": agent.command, "args": list(agent.args)}
    settings = json.dumps({"agent_servers": {agent.name: entry}})
    return "\n".join(
        [
            f"## {agent.title}\n",
            f"<{agent.homepage}>. {_tried(agent)}{_needs(agent)}\n",
            f"```sh\n{agent.install}\n```\n",
            f"```json\n{settings}\n```\n",
            f"Sign in: {agent.sign_in}.",
            *_notes(agent),
        ]
    )


def _tried(agent: KnownAgent) -> str:
    if agent.tried:
        return f"Tried with {agent.tried}."
    return f"Started in {agent.seen}." if agent.seen else "Not run here."


def _needs(agent: KnownAgent) -> str:
    return f" Needs {agent.needs} or later." if agent.needs else ""


def _notes(agent: KnownAgent) -> list[str]:
    return ["", *(f"- {note}" for note in agent.notes), ""] if agent.notes else [""]


def main() -> None:
    parser = argparse.ArgumentParser(description="The page about agents.")
    parser.add_argument(
        "--check", action="store_true", help="fail when docs/reference/agents.md is stale"
    )
    fresh = page()
    if not parser.parse_args().check:
        PAGE.write_text(fresh)
    elif not PAGE.exists() or PAGE.read_text() != fresh:
        sys.exit("docs/reference/agents.md is stale: run scripts/gen_agent_docs.py")


if __name__ == "__main__":
    main()

"""When an agent acts by itself and asks nobody: how each such case is brought about.

The table of known agents says when, as part of a sentence. A trial makes it so and looks whether
the agent acts; where the table says nothing, the agent must not act, however it is started.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from pathlib import Path

import msgspec

from agent_trials.lab import LabAgent
from dragoman.agents.known import KnownAgent

LISTED = "only-the-folder-names-me.txt"
_ALLOWED = json.dumps({"edit": "allow", "bash": "allow"})


class Situation(msgspec.Struct, frozen=True):
    """How to start a turn: with more `flags`, and more variables for the agent."""

    flags: tuple[str, ...] = ()
    variables: dict[str, str] = {}


AS_ALWAYS = Situation()
WRITES = {
    "in a git repository, if Dragoman does not offer writes": AS_ALWAYS,
    "in its mode `auto`, if Dragoman does not offer writes": Situation(("--mode", "auto")),
    "unless its setting `permission` says `ask`": Situation(
        variables={"OPENCODE_PERMISSION": _ALLOWED}
    ),
}
RUNS = {
    "if its own sandbox allows the command": AS_ALWAYS,
    "if the command does not look risky to Hermes": AS_ALWAYS,
    "if the command only reads, such as `ls`": AS_ALWAYS,
    "unless its setting `permission` says `ask`": Situation(
        variables={"OPENCODE_PERMISSION": _ALLOWED}
    ),
}
"""By what the table says of commands; the command is always `ls`, in a git repository."""


def writing(agent: KnownAgent) -> Situation:
    return WRITES[agent.writes_unasked] if agent.writes_unasked else AS_ALWAYS


def running(agent: KnownAgent) -> Situation:
    return RUNS[agent.runs_unasked] if agent.runs_unasked else AS_ALWAYS


def only_looking(prompt: str) -> str:
    """The prompt that runs a command, with one that only lists a folder."""
    prompt, changed = re.subn(r'echo SHELL && pwd && touch b\.md[^"]*', "ls", prompt)
    assert changed, f"it runs another command: {prompt}"
    return prompt.replace(', "sandbox_permissions": "require_escalated"', "").replace(
        ', "justification": "need it"', ""
    )


def repository(parent: Path) -> Path:
    """A new one, with a file that only a look into its folder names."""
    folder = Path(tempfile.mkdtemp(prefix="alone-", dir=parent))
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / LISTED).write_text("")
    return folder


def in_situation(agent: LabAgent, situation: Situation) -> LabAgent:
    return msgspec.structs.replace(agent, env=agent.env | situation.variables)

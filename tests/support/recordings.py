"""Recordings of real agents, made by scripts/record_agents.py, and how they are played."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from dragoman.session import events as e
from dragoman.testing.recordings.recording import TO_AGENT, load_recording

FOLDER = Path(__file__).parents[1] / "recordings"
RECORDINGS = sorted(FOLDER.glob("*.jsonl"))
_RANDOM = re.compile(r"(?:turn-|term_|permission-)[0-9a-f]{16,32}")
"""The ids that we give; an agent's own are in its recording."""
# `size` is what an entry weighs, which depends on how long the paths of the day are.
_OF_THE_DAY = ("at", "seq", "lastSeq", "seconds", "places", "started_at", "ended_at", "size")
"""When, and between what: not what."""


def prompts(path: Path) -> list[str]:
    """What was asked in a recording."""
    sent = [msgspec.json.decode(line.frame) for line in _sent(path)]
    asked = [message for message in sent if message.get("method") == "session/prompt"]
    return ["".join(block["text"] for block in each["params"]["prompt"]) for each in asked]


def _sent(path: Path) -> list[Any]:
    return [line for line in load_recording(path).frames if line.dir == TO_AGENT]


def allowing(request: e.PermissionRequested) -> str:
    """The option that was chosen when it was recorded."""
    kinds = {option.kind: option.id for option in reversed(request.options)}
    return kinds.get("allow_once") or kinds["allow_always"]


def comparable(value: Any, workspace: Path) -> Any:
    """Builtins without what is different each time: times, places and random ids."""
    text = msgspec.json.encode(_timeless(msgspec.to_builtins(value))).decode()
    names: dict[str, str] = {}
    told = _RANDOM.sub(lambda found: names.setdefault(found[0], f"id {len(names)}"), text)
    return msgspec.json.decode(told.replace(str(workspace), "/workspace"))


def _timeless(value: Any) -> Any:
    match value:
        case {**members}:
            kept = {name: item for name, item in members.items() if name not in _OF_THE_DAY}
            return {name: _timeless(item) for name, item in kept.items()}
        case [str(), *_] if all(isinstance(item, str) for item in value):
            return "".join(value)  # a command's output comes as the system cuts it
        case [*items]:
            return [_timeless(item) for item in items]
        case _:
            return value

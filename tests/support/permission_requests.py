"""What real agents asked permission for, recorded by scripts/record_requests.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from support.recordings import FOLDER

from dragoman.agents.extensions import quirks_for
from dragoman.client.dialects.translation import permission_option
from dragoman.client.dialects.v1 import wire_format
from dragoman.host.claims.claim_reader import Claim, ClaimReader
from dragoman.host.permissions.questions import NO_SUBJECT
from dragoman.host.workspace.roots import Workspace
from dragoman.schema import codec, v1
from dragoman.session.reduce import reduce
from dragoman.session.state import SessionState

RECORDED_IN = "/tmp/project"
ALWAYS = (
    "goose-write",
    "goose-pytest",
    "opencode-cd",
    "opencode-and",
    "opencode-status",
    "opencode-write",
    "gemini-line",
    "gemini-write",
    "kimicode-bash",
    "kimicode-write",
)
"""Requests that people answered with "always"."""


class RecordedRequest(msgspec.Struct, frozen=True):
    """A request, and the tool calls of its turn that came before it."""

    name: str
    agent: str
    """What it calls itself."""
    updates: list[dict[str, Any]]
    request: dict[str, Any]

    def moved(self, cwd: Path | str) -> RecordedRequest:
        """The same in another workspace."""
        text = msgspec.json.encode(self).decode().replace(RECORDED_IN, str(cwd))
        return msgspec.json.decode(text, type=RecordedRequest)


def _load() -> dict[str, RecordedRequest]:
    files = sorted((FOLDER / "requests").glob("*.jsonl"))
    lines = [line for file in files for line in file.read_bytes().splitlines()]
    recorded = [msgspec.json.decode(line, type=RecordedRequest) for line in lines]
    return {each.name: each for each in recorded}


RECORDED = _load()


async def recorded_claim(recorded: RecordedRequest, cwd: Path | str = RECORDED_IN) -> Claim:
    """What Dragoman reads of it in that workspace."""
    moved = recorded.moved(cwd)
    state = SessionState()
    for each in moved.updates:
        frame = msgspec.json.encode({"sessionId": "s", "update": each})
        reduce(state, wire_format.update(codec.decode(frame, v1.SessionNotification).update))
    asked = codec.decode(msgspec.json.encode(moved.request), v1.RequestPermissionRequest)
    reader = ClaimReader(
        Workspace(asked.session_id, str(cwd)),
        agent=moved.agent,
        habits=quirks_for(moved.agent),
        state=state,
    )
    call = wire_format.tool_call_update(asked.tool_call)
    subject = reader.with_earlier(NO_SUBJECT, call.tool_call_id)
    reduce(state, call)
    options = [permission_option(option) for option in asked.options]
    return await reader.read(call.tool_call_id, options, subject, None)

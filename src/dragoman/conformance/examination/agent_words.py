"""What is said to an agent, and how what it says is read."""

from __future__ import annotations

from typing import Final

import msgspec

from dragoman._version import __version__
from dragoman.conformance.check import expect
from dragoman.conformance.probing.loose_json import Wire, at
from dragoman.conformance.probing.pretend_host import EVERYTHING
from dragoman.conformance.probing.probe import error_text, is_error

TINY: Final = "Reply with the single word: ready. Use no tools."
LONG: Final = "Count from 1 to 500, one number on each line. Use no tools."
WORK: Final = (
    "Do these two things with your tools, then stop. First create the file conformance.txt in the "
    "current directory, containing the word ready. Then run the command: echo ready"
)
STOP_REASONS: Final = ("end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled")


class Prompts(msgspec.Struct, frozen=True):
    """What the agent is asked to do. A stand-in for a model may need other words."""

    short: str = TINY
    """To say something."""
    long: str = LONG
    """To continue for a while, so that it can be cancelled."""
    work: str = WORK
    """To write a file and to run a command."""

    def within(self, cwd: str) -> Prompts:
        """The same for a folder, which they may name as {cwd}."""
        return Prompts(*(text.replace("{cwd}", cwd) for text in msgspec.structs.astuple(self)))


def hello(capabilities: Wire = EVERYTHING, version: int = 1) -> Wire:
    """The params of `initialize`."""
    info = {"name": "dragoman-conformance", "title": "Dragoman", "version": __version__}
    if version == 2:
        return {"protocolVersion": version, "capabilities": {}, "info": info}
    return {"protocolVersion": version, "clientCapabilities": capabilities, "clientInfo": info}


def prompt(session_id: str, *parts: str | Wire) -> Wire:
    """The params of `session/prompt`; a text is a block."""
    blocks = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
    return {"sessionId": session_id, "prompt": blocks}


def text_of(updates: list[Wire], kind: str = "agent_message_chunk") -> str:
    """The text of message chunks."""
    said = [told for told in updates if told.get("sessionUpdate") == kind]
    return "".join(str(at(told, "content", "text") or "") for told in said)


def ended(reply: Wire) -> str:
    """The stop reason of a prompt. Raises CheckFailed for an error."""
    expect(not is_error(reply), f"the turn ended with an error: {error_text(reply)}")
    return str(at(reply, "result", "stopReason"))

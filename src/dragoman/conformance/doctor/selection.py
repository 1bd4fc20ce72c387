"""What the doctor looks at: rows of the table of checks, under the names that people see.

A finding fails if a client could not work with the agent: a vital check failed, or there was no
response at all. Any other failed check is a warning.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import msgspec

from dragoman.conformance.doctor.patient import Patient
from dragoman.conformance.examination.agent_words import text_of
from dragoman.conformance.probing.loose_json import Wire, obj, objects
from dragoman.safe_text import single_line

_WORDS = 160
Tells: TypeAlias = Callable[[Patient], Awaitable[str]]


class Selected(msgspec.Struct, frozen=True):
    """Some checks as one finding."""

    name: str
    tells: str | Tells
    """What is said when all is well."""
    checks: tuple[str, ...] = ()
    vital: tuple[str, ...] = ()

    async def well(self, patient: Patient) -> str:
        """What is said of a patient whose checks have passed."""
        return self.tells if isinstance(self.tells, str) else await self.tells(patient)


async def _names(patient: Patient) -> str:
    info = obj((await patient.welcome()).get("agentInfo"))
    name = info.get("title") or info.get("name")
    return single_line(f"{name} {info.get('version')}", _WORDS)


_CAPABILITIES: Final = (
    ("load", "loadSession"),
    ("list", "sessionCapabilities", "list"),
    ("resume", "sessionCapabilities", "resume"),
    ("fork", "sessionCapabilities", "fork"),
    ("close", "sessionCapabilities", "close"),
    ("delete", "sessionCapabilities", "delete"),
    ("images", "promptCapabilities", "image"),
    ("audio", "promptCapabilities", "audio"),
    ("embedded files", "promptCapabilities", "embeddedContext"),
    ("MCP over http", "mcpCapabilities", "http"),
    ("MCP over sse", "mcpCapabilities", "sse"),
)


async def _offers(patient: Patient) -> str:
    welcome = await patient.welcome()
    names = [name for name, *path in _CAPABILITIES if _has(welcome, path)]
    return ", ".join(names) or "none beyond text prompts"


def _has(welcome: Wire, path: list[str]) -> bool:
    value: object = welcome.get("agentCapabilities")
    for name in path:
        value = obj(value).get(name)
    return value is not None and value is not False


async def _session(patient: Patient) -> str:
    session = await patient.opened(await patient.probe())
    modes = objects(obj(session.get("modes")).get("availableModes"))
    options = objects(session.get("configOptions"))
    return f"{count(len(modes), 'mode')}, {count(len(options), 'option')}"


async def _said(patient: Patient) -> str:
    said = text_of((await patient.short_turn()).updates)
    return f"said {single_line(said.strip(), 40)!r}"


def count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


BASICS: Final = (
    Selected("handshake", _names, ("initialize.agent-info",), ("initialize.answer",)),
    Selected("version", "protocol version 1", vital=("initialize.same-version",)),
    Selected("capabilities", _offers, ("initialize.flags", "initialize.session-capabilities")),
    Selected("session", _session, ("modes.current", "options.current"), ("session.new",)),
    Selected(
        "prompt",
        _said,
        ("prompt.says-something", "prompt.answer-last"),
        ("prompt.stop-reason",),
    ),
    Selected("cancel", "ended as cancelled", ("cancel.stop-reason",)),
    Selected("modes", "switched to another and back", ("modes.set", "options.set")),
    Selected(
        "list", "this session among them", ("list.has-it", "list.fields"), ("advertised.list",)
    ),
    Selected("fork", "a separate session", vital=("advertised.fork", "fork.own-id")),
    Selected("close", "closed", ("close.ends",), ("advertised.close",)),
    Selected("unknown method", "replied method not found", ("rpc.unknown-method",)),
    Selected(
        "unknown session",
        "refused a prompt for it",
        ("session.unknown-prompt", "session.unknown-code"),
    ),
    Selected("broken line", "it survives a non-JSON line", ("frames.not-json",)),
    Selected(
        "requests",
        "called only methods that were offered",
        ("offered.files", "offered.terminals", "offered.forms"),
    ),
    Selected("output", "only messages", ("frames.only-messages",)),
)
ENDS: Final = (
    Selected("exit", "exited when its input was closed", ("process.exits", "process.exit-code")),
    Selected("nothing left", "no process left running", ("process.leaves-nothing",)),
)
GREETING: Final = Selected("handshake again", _names, vital=("initialize.answer",))
LATER: Final = (
    Selected(
        "load",
        "the history was replayed",
        ("load.replays", "load.answers-last"),
        ("advertised.load",),
    ),
    Selected("resume", "resumed without replay", ("resume.no-replay",), ("advertised.resume",)),
    Selected("delete", "deleted", ("delete.unlists",), ("advertised.delete",)),
)
"""In a second process, as when someone comes back the next day."""


def is_offered_later(welcome: Wire) -> bool:
    """Whether there is anything to come back for."""
    later = {row.name for row in LATER}
    return any(_has(welcome, path) for name, *path in _CAPABILITIES if name in later)

"""Version 2 of the protocol, a draft: for agents that agree to it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from dragoman.conformance.check import Checks, expect, not_applicable, page
from dragoman.conformance.examination.examinee import (
    AgentProbe,
    Examinee,
    introduce,
    prompt,
)
from dragoman.conformance.loose_json import Wire, at, is_text, obj

checks: Checks[Examinee] = Checks("agent", page("initialization", 2), version=2)
_LIFE = page("prompt-lifecycle", 2)


@asynccontextmanager
async def _second(examinee: Examinee) -> AsyncGenerator[tuple[AgentProbe, Wire]]:
    """A connection on which version 2 was agreed on. Raises NotApplicable."""
    async with examinee.stranger() as probe:
        welcome = await introduce(probe, version=2)
        if welcome.get("protocolVersion") != 2:
            not_applicable("the agent speaks version 1")
        yield probe, welcome


async def _idle(probe: AgentProbe, session_id: str, since: int = 0) -> Wire:
    """The update that ends the turn."""

    def ends(message: Wire) -> bool:
        told = _told(message, session_id)
        return told.get("sessionUpdate") == "state_update" and told.get("state") == "idle"

    found = await probe.until(ends, "a state_update with idle", since)
    return _told(found.message, session_id)


def _told(message: Wire, session_id: str) -> Wire:
    if message.get("method") != "session/update":
        return {}
    is_its_own = at(message, "params", "sessionId") == session_id
    return obj(at(message, "params", "update")) if is_its_own else {}


@checks.must(
    "v2.info",
    "An agent says its name and its version.",
    does="asks for version 2",
    expects="`info` with both, and `capabilities`, an object",
)
async def introduces_itself(examinee: Examinee) -> None:
    async with _second(examinee) as (_, welcome):
        info = welcome.get("info")
        named = is_text(at(info, "name")) and is_text(at(info, "version"))
        expect(named, f"info is {info!r}")
        expect(isinstance(welcome.get("capabilities"), dict), "capabilities is not an object")


@checks.must(
    "v2.accepts-first",
    "A prompt is answered when it is accepted; what it brings about comes as updates.",
    page=page("prompt-lifecycle#2-prompt-accepted", 2),
    does="sends a short prompt",
    expects="an answer without a stop reason",
)
async def accepts_first(examinee: Examinee) -> None:
    async with _second(examinee) as (probe, _):
        session_id = await examinee.session(probe)
        result = await probe.result("session/prompt", prompt(session_id, examinee.prompts.short))
        expect("stopReason" not in result, "the answer to the prompt has a stop reason")


@checks.must(
    "v2.idle",
    "A turn ends when the agent reports that it is idle, and why.",
    page=page("prompt-lifecycle#session-states", 2),
    does="sends a short prompt",
    expects="a `state_update` with `idle` and a `stopReason`",
)
async def reports_the_end(examinee: Examinee) -> None:
    async with _second(examinee) as (probe, _):
        session_id = await examinee.session(probe)
        await probe.result("session/prompt", prompt(session_id, examinee.prompts.short))
        end = await _idle(probe, session_id)
        expect(isinstance(end.get("stopReason"), str), "idle does not say why")


@checks.must(
    "v2.running",
    "An agent reports that it has begun to work.",
    page=page("prompt-lifecycle#session-states", 2),
    does="sends a short prompt",
    expects="a `state_update` with `running` before that with `idle`",
)
async def reports_the_beginning(examinee: Examinee) -> None:
    async with _second(examinee) as (probe, _):
        session_id = await examinee.session(probe)
        await probe.result("session/prompt", prompt(session_id, examinee.prompts.short))
        await _idle(probe, session_id)
        states = [
            told.get("state")
            for told in probe.updates(session_id)
            if told.get("sessionUpdate") == "state_update"
        ]
        expect("running" in states[: states.index("idle")], f"the states were {states}")


@checks.must(
    "v2.cancelled",
    "A turn that is cancelled ends with the stop reason `cancelled`.",
    page=page("prompt-lifecycle#cancellation", 2),
    does="cancels a long turn",
    expects="`idle` with `cancelled`",
)
async def ends_as_cancelled(examinee: Examinee) -> None:
    async with _second(examinee) as (probe, _):
        session_id = await examinee.session(probe)
        await probe.result("session/prompt", prompt(session_id, examinee.prompts.long))
        probe.notify("session/cancel", {"sessionId": session_id})
        why = (await _idle(probe, session_id)).get("stopReason")
        expect(why == "cancelled", f"the cancelled turn ended with {why!r}")


@checks.must(
    "v2.own-tools",
    "Files and terminals are the agent's own affair.",
    page=_LIFE,
    does="has the agent use its tools",
    expects="no `fs/…` and no `terminal/…` request",
)
async def uses_its_own_tools(examinee: Examinee) -> None:
    async with _second(examinee) as (probe, _):
        session_id = await examinee.session(probe)
        await probe.result("session/prompt", prompt(session_id, examinee.prompts.work))
        await _idle(probe, session_id)
        for asked in probe.host.of("fs/", "terminal/"):
            expect(False, f"{asked.method} does not exist in version 2", asked.frame)

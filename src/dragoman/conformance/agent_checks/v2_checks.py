"""Version 2 of the protocol, a draft: for agents that agree to it."""

from __future__ import annotations

from typing import Any

from dragoman.conformance.check import Checks, NotApplicable, expect, page
from dragoman.conformance.examination.agent_words import hello, prompt
from dragoman.conformance.examination.examinee import AgentProbe, Examinee
from dragoman.conformance.probing.loose_json import Wire, at, is_text, obj

checks: Checks[Examinee] = Checks("agent", page("initialization", 2), version=2)
_LIFE = page("prompt-lifecycle", 2)
_STATES = page("prompt-lifecycle#session-states", 2)
_SHORT = "sends a short prompt"


async def _welcome(examinee: Examinee) -> Wire:
    """What an agent of version 2 says of itself. Raises NotApplicable for one of version 1."""

    async def greeted() -> Wire:
        async with examinee.stranger() as probe:
            return await _introduced(probe)

    return await examinee.once("version 2", greeted)


async def _introduced(probe: AgentProbe) -> Wire:
    welcome = await probe.result("initialize", hello(version=2))
    if welcome.get("protocolVersion") != 2:
        raise NotApplicable("the agent speaks version 1")
    if "agentCapabilities" in welcome and "capabilities" not in welcome:
        # That it repeats whatever it is asked for is another check's finding.
        raise NotApplicable("the agent agrees to version 2, and continues in version 1")
    return welcome


class _Turn:
    """A turn of version 2, with everything that came in it."""

    def __init__(self, probe: AgentProbe, session_id: str, accepted: Wire, end: Wire) -> None:
        self.probe = probe
        self.accepted = accepted
        """The result of the prompt."""
        self.end = end
        """The update that ends the turn."""
        self.states = [
            told.get("state")
            for told in probe.updates(session_id)
            if told.get("sessionUpdate") == "state_update"
        ]


async def _turn(examinee: Examinee, kind: str) -> _Turn:
    """A turn with one of the prompts; the long one is cancelled."""
    await _welcome(examinee)

    async def taken() -> _Turn:
        async with examinee.stranger() as probe:
            await _introduced(probe)
            session_id = await examinee.session(probe)
            text = getattr(examinee.prompts, kind)
            accepted = await probe.result("session/prompt", prompt(session_id, text))
            if kind == "long":
                probe.notify("session/cancel", {"sessionId": session_id})
            return _Turn(probe, session_id, accepted, await _idle(probe, session_id))

    return await examinee.once(f"version 2 {kind}", taken)


async def _idle(probe: AgentProbe, session_id: str) -> Wire:
    def ends(message: Wire) -> bool:
        told = _told(message, session_id)
        return told.get("sessionUpdate") == "state_update" and told.get("state") == "idle"

    found = await probe.until(ends, "a state_update with idle")
    return _told(found.message, session_id)


def _told(message: Wire, session_id: str) -> Wire:
    if message.get("method") != "session/update":
        return {}
    is_its_own = at(message, "params", "sessionId") == session_id
    return obj(at(message, "params", "update")) if is_its_own else {}


@checks.must(
    "v2.info",
    "An agent states its name and version.",
    does="requests version 2",
    expects="`info` with both, and `capabilities`, an object",
)
async def introduces_itself(examinee: Examinee) -> None:
    welcome = await _welcome(examinee)
    info: Any = welcome.get("info")
    named = is_text(at(info, "name")) and is_text(at(info, "version"))
    expect(named, f"info is {info!r}")
    expect(isinstance(welcome.get("capabilities"), dict), "capabilities is not an object")


@checks.must(
    "v2.accepts-first",
    "The response to a prompt only says that it was accepted; its results come as updates.",
    page=page("prompt-lifecycle#2-prompt-accepted", 2),
    does=_SHORT,
    expects="a response without a stop reason",
)
async def accepts_first(examinee: Examinee) -> None:
    result = (await _turn(examinee, "short")).accepted
    expect("stopReason" not in result, "the response to the prompt has a stop reason")


@checks.must(
    "v2.idle",
    "A turn ends when the agent reports that it is idle, with the reason.",
    page=_STATES,
    does=_SHORT,
    expects="a `state_update` with `idle` and a `stopReason`",
)
async def reports_the_end(examinee: Examinee) -> None:
    end = (await _turn(examinee, "short")).end
    expect(isinstance(end.get("stopReason"), str), "the idle state has no stop reason")


@checks.must(
    "v2.running",
    "An agent reports when it starts to work.",
    page=_STATES,
    does=_SHORT,
    expects="a `state_update` with `running` before the one with `idle`",
)
async def reports_the_beginning(examinee: Examinee) -> None:
    states = (await _turn(examinee, "short")).states
    expect("running" in states[: states.index("idle")], f"the states were {states}")


@checks.must(
    "v2.cancelled",
    "A cancelled turn ends with the stop reason `cancelled`.",
    page=page("prompt-lifecycle#cancellation", 2),
    does="cancels a long turn",
    expects="`idle` with `cancelled`",
)
async def ends_as_cancelled(examinee: Examinee) -> None:
    why = (await _turn(examinee, "long")).end.get("stopReason")
    expect(why == "cancelled", f"the cancelled turn ended with {why!r}")


@checks.must(
    "v2.own-tools",
    "An agent of version 2 uses its own files and terminals.",
    page=_LIFE,
    does="has the agent use its tools",
    expects="no `fs/…` or `terminal/…` request",
)
async def uses_its_own_tools(examinee: Examinee) -> None:
    for asked in (await _turn(examinee, "work")).probe.host.of("fs/", "terminal/"):
        expect(False, f"{asked.method} does not exist in version 2", asked.frame)

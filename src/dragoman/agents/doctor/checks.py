"""The checks of the doctor: each does something with the agent and grades the result.

A check fails when a client could not work with the agent, and warns when a client has to know
about it. Errors that reach the doctor are failures too.

That we get in ourselves has been found out already.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from ipaddress import ip_address
from typing import TypeAlias
from urllib.parse import urlsplit

import msgspec

from dragoman.agents.doctor.examined_agent import (
    CheckOutcome,
    Patient,
    WatchedTransport,
    failed,
    passed,
    skipped,
    warned,
)
from dragoman.errors import (
    AuthRequired,
    ConnectionLost,
    InternalError,
    MethodNotFound,
    RemoteError,
    RemoteLost,
    Unreachable,
)
from dragoman.safe_text import single_line
from dragoman.schema import codec, v1
from dragoman.schema.model import Unknown
from dragoman.transport.target import RemoteAgent

Switch: TypeAlias = Callable[[Patient, str], Awaitable[None]]

TINY_PROMPT = "Reply with the single word: ready. Use no tools."
LONG_PROMPT = "Count from 1 to 500, one number on each line. Use no tools."
EXIT_SECONDS = 5.0
CANCEL_SECONDS = 15.0
# What may still be on its way behind an answer.
_LATE_SECONDS = 0.3
# Some agents say nothing until the whole answer is there.
_PATIENCE_BEFORE_CANCEL = 3.0
_MOST_PAGES = 20
_STOP_REASONS = {"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"}
_WORDS = 160


async def handshake(patient: Patient) -> CheckOutcome:
    raw = await patient.introduce()
    patient.welcome = codec.decode(raw, v1.InitializeResponse)
    patient.raw_welcome = msgspec.json.decode(raw)
    info = patient.welcome.agent_info
    if info is None:
        return warned("agentInfo with name and version is missing")
    return passed(single_line(f"{info.title or info.name} {info.version}", _WORDS))


async def version(patient: Patient) -> CheckOutcome:
    answered = patient.welcome.protocol_version
    if answered != 1:
        return failed(f"requested protocol version 1, got {answered}")
    return passed("protocol version 1")


async def capabilities(patient: Patient) -> CheckOutcome:
    if "agentCapabilities" not in patient.raw_welcome:
        return warned("agentCapabilities is missing: clients must assume it supports nothing")
    offered = patient.welcome.agent_capabilities
    names = [name for name, can in _advertised(offered).items() if can]
    return passed(", ".join(names) or "none beyond text prompts")


def _advertised(offered: v1.AgentCapabilities) -> dict[str, bool]:
    session, prompts, mcp = (
        offered.session_capabilities,
        offered.prompt_capabilities,
        offered.mcp_capabilities,
    )
    return {
        "load": offered.load_session,
        "list": session.list is not None,
        "resume": session.resume is not None,
        "fork": session.fork is not None,
        "close": session.close is not None,
        "delete": session.delete is not None,
        "images": prompts.image,
        "audio": prompts.audio,
        "embedded files": prompts.embedded_context,
        "MCP over http": mcp.http,
        "MCP over sse": mcp.sse,
    }


def offers(patient: Patient, capability: str) -> bool:
    return _advertised(patient.welcome.agent_capabilities)[capability]


# ── a session and its turns ───────────────────────────────────────────────────────────────────


async def new_session(patient: Patient) -> CheckOutcome:
    request = v1.NewSessionRequest(cwd=patient.cwd, mcp_servers=[])
    try:
        patient.session = await patient.call("session/new", request, v1.NewSessionResponse)
    except AuthRequired as error:
        patient.wants_sign_in = True
        ways = [m.id for m in patient.welcome.auth_methods if not isinstance(m, Unknown)]
        how = f"offers {', '.join(ways)}" if ways else "offers no method a client can use"
        said = single_line(error.message, _WORDS)
        return warned(f"it requires a sign-in first, and {single_line(how, _WORDS)}: {said}")
    modes = patient.session.modes
    if not patient.session.session_id:
        return failed("the session id is empty")
    if modes is not None and modes.current_mode_id not in {m.id for m in modes.available_modes}:
        return warned(f"the current mode {modes.current_mode_id!r} is not among its modes")
    return passed(_offers_in_session(patient.session))


def _offers_in_session(session: v1.NewSessionResponse) -> str:
    modes = 0 if session.modes is None else len(session.modes.available_modes)
    return f"{_count(modes, 'mode')}, {_count(len(session.config_options or []), 'option')}"


async def prompt(patient: Patient) -> CheckOutcome:
    session_id = _session_id(patient)
    patient.said = ""
    reply = await patient.prompt(session_id, TINY_PROMPT)
    if reply.stop_reason not in _STOP_REASONS:
        return warned(f"the stop reason {reply.stop_reason!r} is not defined by ACP")
    if not patient.said:
        return warned(f"it sent nothing, and stopped with {reply.stop_reason}")
    if late := await _late(patient, session_id, patient.seen_at_reply(session_id)):
        return warned(f"{_count(late, 'update')} arrived after the reply that ends the turn")
    if reply.stop_reason != "end_turn":
        return warned(f"it stopped with {reply.stop_reason}")
    return passed(f"said {single_line(patient.said.strip(), 40)!r}")


async def _late(patient: Patient, session_id: str, before: int) -> int:
    """How many pieces of the conversation still come, though the turn has ended."""
    await patient.linger(_LATE_SECONDS)
    late = patient.seen(session_id)[before:]
    return sum(kind in ("agent_message_chunk", "tool_call", "tool_call_update") for kind in late)


async def cancel(patient: Patient) -> CheckOutcome:
    session_id = _session_id(patient)
    before = len(patient.seen(session_id))
    turn = asyncio.ensure_future(patient.prompt(session_id, LONG_PROMPT))
    try:
        await _first_sign(patient, session_id, before, turn)
        if turn.done() and turn.exception() is None:
            return skipped("the turn ended before it could be cancelled")
        patient.cancel(session_id)
        async with asyncio.timeout(CANCEL_SECONDS):
            reply = await turn
    except TimeoutError:
        return failed(f"the turn continued for {CANCEL_SECONDS:g} s after the cancel")
    except RemoteError as error:
        return warned(f"the cancelled prompt got an error reply, not cancelled: {error}")
    finally:
        turn.cancel()
    if reply.stop_reason == "end_turn":
        return warned("ended with end_turn: it ignored the cancel, or had just finished")
    if reply.stop_reason != "cancelled":
        return warned(f"the cancelled turn ended with {reply.stop_reason}, not as cancelled")
    return passed("ended as cancelled")


async def _first_sign(
    patient: Patient, session_id: str, before: int, turn: asyncio.Future[v1.PromptResponse]
) -> None:
    sign = asyncio.ensure_future(patient.until_updated(session_id, before))
    try:
        await asyncio.wait(
            (turn, sign), timeout=_PATIENCE_BEFORE_CANCEL, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        sign.cancel()


async def modes(patient: Patient) -> CheckOutcome:
    session = patient.session
    if session is not None and session.modes is not None:
        ids = [mode.id for mode in session.modes.available_modes]
        return await _switched(patient, _set_mode, session.modes.current_mode_id, ids)
    for option in [] if session is None else session.config_options or []:
        if isinstance(option, v1.SessionConfigSelect) and option.category == "mode":
            ids = [c.value for c in option.options if isinstance(c, v1.SessionConfigSelectOption)]
            setting = partial(_set_option, option_id=option.id)
            return await _switched(patient, setting, option.current_value, ids)
    return skipped("no modes")


async def _switched(patient: Patient, switch: Switch, current: str, ids: list[str]) -> CheckOutcome:
    others = [each for each in ids if each != current]
    if not others:
        return skipped("only one mode")
    await switch(patient, others[0])
    await switch(patient, current)
    return passed(f"switched to {others[0]} and back")


async def _set_mode(patient: Patient, mode: str) -> None:
    request = v1.SetSessionModeRequest(session_id=_session_id(patient), mode_id=mode)
    await patient.call("session/set_mode", request, v1.SetSessionModeResponse)


async def _set_option(patient: Patient, value: str, *, option_id: str) -> None:
    request = v1.SetSessionConfigOptionRequest(
        session_id=_session_id(patient), config_id=option_id, value=value
    )
    await patient.call("session/set_config_option", request, v1.SetSessionConfigOptionResponse)


# ── what it advertises ────────────────────────────────────────────────────────────────────────


async def list_sessions(patient: Patient) -> CheckOutcome:
    found: list[str] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        request = v1.ListSessionsRequest(cursor=cursor)
        page = await patient.call("session/list", request, v1.ListSessionsResponse)
        found += [info.session_id for info in page.sessions]
        cursor = page.next_cursor
        if cursor is None:
            break
    if _session_id(patient) not in found:
        return warned(f"the session just used is not among the {len(found)} listed")
    return passed(f"{len(found)} listed, this one among them")


async def load(patient: Patient) -> CheckOutcome:
    session_id, before = await _continue(patient, "session/load", v1.LoadSessionRequest)
    told = patient.seen_at_reply(session_id) - before
    if late := await _late(patient, session_id, before + told):
        return warned(f"{_count(late, 'piece')} of the history arrived after the reply")
    if not told:
        return warned("the history was not replayed")
    return passed(f"{_count(told, 'update')} replayed the history")


async def resume(patient: Patient) -> CheckOutcome:
    session_id, before = await _continue(patient, "session/resume", v1.ResumeSessionRequest)
    if late := await _late(patient, session_id, before):
        return warned(f"{_count(late, 'update')} replayed the history, which only load should do")
    return passed("resumed without replaying the history")


_Continuing: TypeAlias = type[v1.LoadSessionRequest] | type[v1.ResumeSessionRequest]


async def _continue(patient: Patient, method: str, request: _Continuing) -> tuple[str, int]:
    """The session's id, and how many of its updates had come before."""
    session_id = _session_id(patient)
    before = len(patient.seen(session_id))
    params = request(session_id=session_id, cwd=patient.cwd, mcp_servers=[])
    await patient.call(method, params, v1.LoadSessionResponse)
    return session_id, before


async def fork(patient: Patient) -> CheckOutcome:
    request = v1.ForkSessionRequest(
        session_id=_session_id(patient), cwd=patient.cwd, mcp_servers=[]
    )
    made = await patient.call("session/fork", request, v1.ForkSessionResponse)
    if made.session_id == _session_id(patient):
        return failed("the fork has the same id as its original")
    patient.forked = made.session_id
    return passed("a separate session")


async def close(patient: Patient) -> CheckOutcome:
    request = v1.CloseSessionRequest(session_id=_session_id(patient))
    await patient.call("session/close", request, v1.CloseSessionResponse)
    return passed("closed")


async def delete(patient: Patient) -> CheckOutcome:
    await _delete(patient, _session_id(patient))
    if patient.forked is not None:
        with suppress(RemoteError):  # one that was never prompted may be gone
            await _delete(patient, patient.forked)
    return passed("deleted")


async def _delete(patient: Patient, session_id: str) -> None:
    request = v1.DeleteSessionRequest(session_id=session_id)
    await patient.call("session/delete", request, v1.DeleteSessionResponse)


# ── manners ───────────────────────────────────────────────────────────────────────────────────


async def unknown_method(patient: Patient) -> CheckOutcome:
    try:
        await patient.peer.call("doctor/no_such_method", b"{}")
    except MethodNotFound:
        return passed("replied method not found")
    except RemoteError as error:
        return warned(f"answered with code {error.code}, expected -32601")
    return warned("replied with a result: clients cannot detect what it supports")


async def unknown_session(patient: Patient) -> CheckOutcome:
    try:
        await patient.prompt("no-such-session", TINY_PROMPT)
    except ConnectionLost:
        if patient.by_line:
            raise
        return passed("refused with an HTTP status, which ends the connection")
    except InternalError as error:
        said = single_line(error.message, _WORDS)
        return warned(f"refused with an internal error (-32603) instead of -32002: {said}")
    except RemoteError as error:
        return passed(single_line(f"refused: {error.message}", _WORDS))
    return warned("it accepted a prompt for a session that does not exist")


async def broken_line(patient: Patient) -> CheckOutcome:
    if not patient.by_line:
        return skipped("each HTTP message is separate")
    patient.transport.send(b"this is not JSON\n")
    try:
        await patient.peer.call("doctor/no_such_method", b"{}")
    except ConnectionLost as error:
        return warned(single_line(f"a non-JSON line ended it: {error}", _WORDS))
    except RemoteError:
        pass
    return passed("it survives a non-JSON line")


async def clean_output(patient: Patient) -> CheckOutcome:
    noise = patient.peer.noise
    where = "from it" if patient.process is None else "on standard output"
    if noise.lines:
        sample = single_line(noise.sample.strip(), 80)
        count = _count(noise.lines, "line")
        return warned(f"{count} {where}, and no message: {sample}")
    return passed(f"only messages {where}")


async def complaints(patient: Patient) -> CheckOutcome:
    lines = _process(patient).stderr.strip().split("\n")
    if lines == [""]:
        return passed("nothing on standard error")
    # The last that is a sentence: the end of a trace or a dump says nothing.
    sentences = [line for line in lines if re.match(r"\S.*\w{3}", line)]
    said = single_line((sentences or lines)[-1].strip(), 80)
    return passed(f"{_count(len(lines), 'line')} on standard error, ending with: {said}")


async def requests(patient: Patient) -> CheckOutcome:
    """We offered nothing, so the agent should only have requested permissions."""
    uncalled = [m for m in patient.asked if m.startswith(("fs/", "terminal/", "elicitation/"))]
    if uncalled:
        named = ", ".join(dict.fromkeys(uncalled))
        return warned(f"it called methods that were not offered: {named}")
    return passed("called only methods that were offered")


async def leaving(patient: Patient) -> CheckOutcome:
    ended = await _process(patient).end_input(EXIT_SECONDS)
    if ended is None:
        return warned(f"it did not exit within {EXIT_SECONDS:g} s of the end of its input")
    if ended.signal is not None:
        return warned(f"it was killed by {ended.signal}")
    return passed(f"exited with code {ended.code} when its input closed")


async def nothing_left(patient: Patient) -> CheckOutcome:
    await patient.linger(_LATE_SECONDS)
    names = patient.left_behind()
    if names:
        return warned(f"left running: {', '.join(sorted(set(names)))}")
    return passed("no process left running")


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _process(patient: Patient) -> WatchedTransport:
    assert patient.process is not None
    return patient.process


def _session_id(patient: Patient) -> str:
    assert patient.session is not None
    return patient.session.session_id


def encryption(agent: RemoteAgent) -> CheckOutcome:
    parts = urlsplit(agent.url)
    if parts.scheme in ("wss", "https"):
        return passed("TLS with a trusted certificate")
    if _is_this_machine(parts.hostname or ""):
        return passed("none, but the connection stays on this machine")
    return warned("none: anyone on the network can read and change the traffic, headers included")


async def strangers(agent: RemoteAgent, cwd: str) -> CheckOutcome:
    """Check whether the agent accepts connections without our credentials."""
    if agent.place == agent.endpoint and not agent.sent_headers:
        return warned("anyone who can reach it gets in: it requires no credentials")
    try:
        other = await Patient.admit(RemoteAgent(agent.place), cwd)
    except (Unreachable, ConnectionLost) as error:
        if isinstance(error, Unreachable | RemoteLost) and error.refused:
            return passed("it rejects connections without our headers")
        return skipped(f"could not check access without our headers: {error}")
    await other.discharge()
    return warned("anyone who can reach it gets in, even without our headers")


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False

"""Requests about a session other than turns: its settings, and stopping one thing of a turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from dragoman.client.dialects.dialect import Dialect, Meta
from dragoman.client.sessions.config_options import checked_option, option_of, with_own, with_value
from dragoman.client.sessions.session_log import SessionLog
from dragoman.client.sessions.turn import Turn
from dragoman.errors import (
    CancelIgnored,
    ConnectionClosed,
    DragomanError,
    NoProgress,
    RemoteError,
    Unsupported,
)
from dragoman.host.gate import Gate
from dragoman.public_face import names
from dragoman.session import events as e
from dragoman.session.state import OVER_STATUSES, SessionState

INTERNAL = names(
    "abandon answer_of at_work before_turn begin begin_closing begin_next cancel_turn detach "
    "dialect end fail fail_queued gate go_on has_stopped holding_queue holds_back left_at_work "
    "limit_watch log loss_is_told lost parking place send_cancel shut spawn steering stop_turn "
    "tracker turn_for went_on_unanswered"
)
"""What of a session only other parts of the library use."""

if TYPE_CHECKING:
    from dragoman.client.client import Client
    from dragoman.client.sessions.session import Session


class AskedSession(Protocol):
    """The session that is asked about."""

    id: str
    log: SessionLog
    state: SessionState
    gate: Gate

    @property
    def dialect(self) -> Dialect: ...


# ── settings ──────────────────────────────────────────────────────────────────────────────────


async def set_mode(session: AskedSession, mode_id: str, meta: Meta) -> None:
    modes = session.state.modes
    if modes is None:
        option = option_of(session.state.config_options, "mode")
        if option is None:
            raise Unsupported("modes")
        await set_config_option(session, option.id, mode_id, meta)
        return
    known = [mode.id for mode in modes.available]
    if known and mode_id not in known:
        raise ValueError(f"there is no mode {mode_id!r}; there are: {', '.join(known)}")
    await session.dialect.set_mode(session.id, mode_id, meta)
    if session.state.modes is not None and session.state.modes.current != mode_id:
        session.log.record(e.ModeChanged(mode_id))


async def set_config_option(
    session: AskedSession, option_id: str, value: str | bool, meta: Meta
) -> None:
    option = checked_option(session.state.config_options, option_id, value)
    told = await session.dialect.set_config_option(session.id, option, value, meta)
    known = with_value(session.state.config_options, option, value)
    session.log.record(e.ConfigChanged(with_own(told, known) if told else known))
    kept = {each.id: each.value for each in session.state.config_options}.get(option_id, value)
    if kept != value:
        note = f"the agent kept {option_id} at {kept} and did not accept {value}"
        session.log.record(e.Notice(note, "warning", source="client"))


async def set_model(session: AskedSession, model_id: str, meta: Meta) -> None:
    option = option_of(session.state.config_options, "model")
    if option is None:
        raise Unsupported("choosing a model")
    await set_config_option(session, option.id, model_id, meta)


# ── stopping one thing ────────────────────────────────────────────────────────────────────────


async def cancel_tool_call(session: AskedSession, tool_call_id: str) -> bool:
    call = session.state.tool_call(tool_call_id)
    if call is not None and call.status in OVER_STATUSES:
        return False
    if call is None or not call.cancellable:
        raise Unsupported(f"stopping the tool call {tool_call_id} alone")
    cancelling = session.dialect.cancel_tool_call(session.id, tool_call_id)
    return await _reached(cancelling, lambda: call.status in OVER_STATUSES)


async def cancel_terminal(session: AskedSession, terminal_id: str) -> bool:
    terminal = session.state.terminals.get(terminal_id)
    if terminal is not None and not terminal.running:
        return False
    if terminal is None or not terminal.cancellable:
        raise Unsupported(f"stopping the terminal {terminal_id} alone")
    cancelling = session.dialect.cancel_terminal(session.id, terminal_id)
    return await _reached(cancelling, lambda: not terminal.running)


def cancel_subagent(session: AskedSession, subagent_id: str) -> bool:
    """Raises KeyError for one that is unknown."""
    child = session.state.subagents[subagent_id]
    if child.state is not None and not child.is_at_work:
        return False
    if not child.can_be_cancelled:
        raise Unsupported(f"stopping the subagent {child.name} alone")
    session.dialect.cancel(subagent_id)  # first: the answers alone do not say why
    session.gate.consent.cancel_of(subagent_id, "the subagent was cancelled")
    return True


async def _reached(cancelling: Awaitable[None], is_over: Callable[[], bool]) -> bool:
    """False for what ended before the agent was asked to stop it."""
    try:
        await cancelling
    except RemoteError:
        if not is_over():
            raise
        return False
    return True


# ── a turn that does not stop, or makes no progress ───────────────────────────────────────────────


async def until_stopped(session: Session, client: Client, turn: Turn) -> None:
    """Wait for the agent to end a turn that was cancelled. Raises CancelIgnored if it takes longer
    than `Timeouts.cancel`; our own delays do not count."""
    seconds, pauses = client.timeouts.cancel, client.pauses
    while not await turn.settled_within(seconds):
        before, pauses = pauses, client.pauses
        if pauses is not None and pauses == before:
            raise CancelIgnored(session.id, seconds)


async def watch_progress(session: Session, client: Client, turn: Turn, seconds: float) -> None:
    """Give the turn up when nothing was heard for `seconds`; our own delays do not count."""
    pauses = client.pauses
    while not turn.done:
        before, pauses = pauses, client.pauses
        if session.state.pending or pauses is None or pauses != before:
            session.log.touch()
        waited = time.monotonic() - session.log.progress
        if waited >= seconds:
            session.send_cancel()
            session.fail(turn, NoProgress(session.id, seconds))
            return
        await turn.settled_within(seconds - waited)


# ── the turn, by ending the session in the agent ──────────────────────────────────────────────

CLOSED_SECONDS = 1.0
"""How long the turn may continue after the agent says that it has closed the session."""


async def stop_by_closing(session: Session, client: Client, seconds: float) -> bool:
    """Have the agent close the session, and the turn with it; here it stays, to be continued by
    `reconnect`. Queued prompts fail. False, with nothing changed here, where the agent does not
    offer that, or takes longer than `seconds`."""
    if not client.capabilities.close or client.connection_error is not None:
        return False
    stopped = False
    async with session.holding_queue():  # none must be sent to a session that is closed
        with suppress(DragomanError, TimeoutError):
            async with asyncio.timeout(seconds):
                await client.dialect.close_session(session.id)
            stopped = await session.has_stopped(min(seconds, CLOSED_SECONDS))
        if stopped:
            session.fail_queued(ConnectionClosed("the session was closed in the agent"))
    return stopped

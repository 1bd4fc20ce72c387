"""What goes into a session's log together, and what comes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from dragoman.client.log import SessionLog
from dragoman.errors import SlowConsumer
from dragoman.session import events as e
from dragoman.session.content import Text
from dragoman.stream import MAX_STREAM_BYTES, Stream

MIB = 1 << 20


def log_with(*listeners: Callable[[e.Event], None], replaying: bool = False) -> SessionLog:
    log = SessionLog([], replaying=replaying, listeners=list(listeners))
    log.record(e.TurnStarted("t", []))
    return log


def said(*words: str) -> list[e.Event]:
    return [e.AgentMessage(Text(word)) for word in words]


def text_of(log: SessionLog) -> str:
    return log.state.entries[-1].text


async def read(stream: Stream[e.Event], count: int) -> list[str]:
    return [(await anext(stream)).text for _ in range(count)]


async def test_what_is_told_together_is_numbered_folded_and_read_in_order() -> None:
    log = log_with()
    stream = log.stream()
    events = said("a", "b", "c")
    log.record_told(events, 3)
    assert [event.seq for event in events] == [2, 3, 4]
    assert (text_of(log), log.state.last_seq) == ("abc", 4)
    assert await read(stream, 3) == ["a", "b", "c"]


async def test_a_listener_sees_each_event_with_the_state_it_leads_to() -> None:
    seen: list[tuple[str, str, int]] = []

    def listen(event: e.Event) -> None:
        if isinstance(event, e.AgentMessage):
            seen.append((event.text, text_of(log), log.state.last_seq))

    log = log_with()
    log.listeners.append(listen)
    log.record_told(said("a", "b", "c"), 3)
    assert seen == [("a", "a", 2), ("b", "ab", 3), ("c", "abc", 4)]


@pytest.mark.parametrize("failure", [OSError("disk full"), asyncio.CancelledError()])
async def test_a_listener_that_fails_takes_no_event_along(failure: BaseException) -> None:
    def listen(event: e.Event) -> None:
        if event.text == "b":
            raise failure

    log = log_with(listen)
    stream = log.stream()
    log.record_told(said("a", "b", "c"), 3)
    assert (text_of(log), log.state.last_seq) == ("abc", 4)
    assert await read(stream, 3) == ["a", "b", "c"]


async def test_what_a_listener_records_stands_behind_the_events_it_had_seen() -> None:
    def listen(event: e.Event) -> None:
        if event.text == "c":
            log.record(e.Notice("in between"))

    log = log_with()
    log.listeners.append(listen)
    stream = log.stream()
    log.record_told(said("a", "b", "c", "d"), 4)
    assert await read(stream, 5) == ["a", "b", "in between", "c", "d"]


async def test_nothing_is_recorded_behind_the_end_that_a_listener_brings_about() -> None:
    seen: list[str] = []

    def listen(event: e.Event) -> None:
        seen.append(type(event).__name__)
        if event.text == "b":
            log.close("enough")

    log = SessionLog([e.SessionOpened("s", "/", "new")], replaying=False, listeners=[listen])
    log.open()
    log.record_told(said("a", "b", "c"), 3)
    assert seen == ["SessionOpened", "AgentMessage", "AgentMessage", "SessionClosed"]


async def test_the_bytes_of_what_is_told_count_once() -> None:
    log = log_with()
    stream = log.stream()
    log.record_told(said("a", "b", "c"), MAX_STREAM_BYTES - MIB)
    log.record_told([*said("d"), e.ConfigChanged([]), *said("e")], MIB)
    assert await read(stream, 6) == ["a", "b", "c", "d", "", "e"]


async def test_one_byte_too_many_among_several_events_is_noticed() -> None:
    log = log_with()
    stream = log.stream()
    log.record_told(said("a", "b", "c"), MAX_STREAM_BYTES)
    log.record_told([*said("d"), e.ConfigChanged([])], 1)
    assert await read(stream, 3) == ["a", "b", "c"]
    with pytest.raises(SlowConsumer):
        await anext(stream)


async def test_history_that_nobody_is_told_costs_no_reader() -> None:
    log = log_with(replaying=True)
    stream = log.stream()
    log.record(e.Notice("unread"))
    for _ in range(3):
        log.record_told(said("history"), MAX_STREAM_BYTES)
    log.record(e.Notice("news"))
    assert await read(stream, 2) == ["unread", "news"]


async def test_nothing_told_is_nothing_recorded() -> None:
    log = SessionLog([e.SessionOpened("s", "/", "new")], replaying=False, listeners=[])
    log.record_told([], 40 * MIB)
    assert log.state.last_seq == 0

"""What goes into a session's log together, and what comes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
import pytest
from msgspec import UNSET

from dragoman.client.sessions.config_options import OWN_OPTION
from dragoman.client.sessions.session_log import SessionLog
from dragoman.client.sessions.turn import Turn
from dragoman.errors import SlowConsumer
from dragoman.host.terminals.provider import new_terminal_id
from dragoman.session import events as e
from dragoman.session.content import ContentItem, Meta, Text
from dragoman.session.facts import ConfigOption
from dragoman.session.reduce import fold
from dragoman.session.state import SessionState
from dragoman.session.state_limits import LIMITS
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


def log_recorded_by(take: Callable[[list[e.Event]], None]) -> SessionLog:
    log = SessionLog([], replaying=False, recorder=take)
    log.record(e.TurnStarted("t", []))
    return log


async def test_a_recorder_gets_what_came_together_in_one_batch() -> None:
    batches: list[list[int]] = []
    log = log_recorded_by(lambda events: batches.append([event.seq for event in events]))
    log.record_told(said("a", "b", "c"), 3)
    log.record_told([*said("d", "e"), e.ToolCallUpdated("x"), e.PlanUpdated([])], 4)
    assert batches == [[1], [2, 3, 4], [5, 6, 7, 8]]
    assert log.state.last_seq == 8


async def test_a_recorder_sees_each_event_as_it_was_before_the_ones_after_it() -> None:
    """The state takes over parts of an event, and a later event may add to those: so the recorder
    gets a batch before the state does."""
    first, second = ContentItem(Text("one")), ContentItem(Text("two"))
    kept: list[bytes] = []
    folded: list[int] = []

    def take(events: list[e.Event]) -> None:
        kept.extend(map(msgspec.json.encode, events))
        folded.append(log.state.last_seq)

    log = SessionLog([], replaying=False, recorder=take)
    log.record(e.TurnStarted("t", []))
    events: list[e.Event] = [
        e.ToolCallUpdated("x", content=[first], meta={"one": 1}),
        e.ToolCallUpdated("x", more=[second], meta={"two": 2}),
    ]
    log.record_told(events, 2)
    assert folded == [0, 1]
    whole = log.state.tool_call("x")
    assert whole is not None
    assert (whole.content, whole.meta) == ([first, second], {"one": 1, "two": 2})
    told = [msgspec.json.decode(each, type=e.ToolCallUpdated) for each in kept[1:]]
    assert [(each.content, each.more, each.meta) for each in told] == [
        ([first], [], {"one": 1}),
        (UNSET, [second], {"two": 2}),
    ]


@pytest.mark.parametrize("failure", [OSError("disk full"), asyncio.CancelledError()])
async def test_a_recorder_that_fails_takes_no_event_along(failure: BaseException) -> None:
    def take(events: list[e.Event]) -> None:
        raise failure

    log = log_recorded_by(take)
    stream = log.stream()
    log.record_told(said("a", "b"), 2)
    assert (text_of(log), log.state.last_seq) == ("ab", 3)
    assert await read(stream, 2) == ["a", "b"]


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


async def test_what_is_told_again_goes_to_listeners_and_to_no_reader() -> None:
    heard: list[tuple[str, bool]] = []
    log = log_with(replaying=True)
    log.listeners.append(lambda event: heard.append((event.text, event.replay)))
    log.turn = Turn("t", [], timeout=None, owner=_Nobody())
    stream = log.stream()
    log.record_told([*said("history"), e.Notice("news")], 2)
    assert heard == [("history", True), ("news", False)]
    assert [entry.text for entry in log.state.entries[1:]] == ["history", "news"]
    assert await read(stream, 1) == ["news"]
    assert (await anext(log.turn)).text == "news"


async def test_what_is_told_again_of_a_known_history_goes_nowhere() -> None:
    heard: list[str] = []
    log = SessionLog(
        [],
        replaying=True,
        listeners=[lambda event: heard.append(event.text)],
        history=fold(SessionState(), said("history")),
    )
    log.record_told([*said("history"), e.Notice("news")], 2)
    assert heard == ["news"]
    assert [entry.text for entry in log.state.entries] == ["history", "news"]


async def test_what_an_agent_says_is_on_record_before_what_it_wants_done() -> None:
    log = SessionLog([], replaying=True, history=fold(SessionState(), said("On it.", " Done.")))
    log.answered("load")
    log.prompted("Again")
    stream = log.stream()
    log.record_told(said("On it."), 2)
    assert not stream.ready
    log.record_work(e.Notice("a question"))
    assert await read(stream, 2) == ["On it.", "a question"]
    assert log.replay == "no"


async def test_what_is_told_of_a_session_without_a_history_becomes_its_history() -> None:
    log = SessionLog([], replaying=True, history=SessionState())
    stream = log.stream()
    log.record_told(said("history"), 2)
    assert [entry.text for entry in log.state.entries] == ["history"]
    assert not stream.ready


@pytest.mark.parametrize(("activity", "expected"), [("running", ["", "now"]), ("idle", [""])])
async def test_what_is_said_behind_word_of_work_is_no_history(
    activity: str, expected: list[str]
) -> None:
    log = log_with(replaying=True)
    stream = log.stream()
    log.record_told([*said("history"), e.ActivityChanged(activity), *said("now")], 3)
    assert [event.text for event in stream.ready] == expected


@pytest.mark.parametrize(
    "event",
    [e.TerminalStarted("x", []), e.TerminalOutput("x", "told"), e.TerminalExited("x", 1)],
)
async def test_of_a_terminal_of_ours_the_agent_tells_nothing(event: e.Event) -> None:
    log = log_with()
    log.record(e.TerminalStarted("x", ["make"]))
    stream = log.stream()
    log.record_told([*said("a"), event, *said("b")], 3)
    assert await read(stream, 2) == ["a", "b"]
    assert (text_of(log), log.state.last_seq) == ("ab", 4)


async def test_of_a_terminal_of_ours_that_left_the_state_the_agent_tells_nothing_either() -> None:
    log = log_with()
    name = new_terminal_id()
    log.record(e.TerminalStarted(name, ["make", "test"]))
    log.record(e.TerminalExited(name, 7))
    others = [e.TerminalStarted(f"own {number}", []) for number in range(2 * LIMITS.others)]
    log.record_told([*others], 1)
    assert name not in log.state.terminals
    before = log.state.last_seq
    log.record_told([e.TerminalOutput(name, "all tests passed"), e.TerminalExited(name, 0)], 2)
    assert log.state.last_seq == before


async def test_settings_told_together_are_each_seen_in_the_light_of_the_one_before() -> None:
    own = ConfigOption(f"{OWN_OPTION}x", "X", True, category="model")
    told = ConfigOption("y", "Y", True)
    log = log_with()
    log.record_told([e.ConfigChanged([own]), e.ConfigChanged([told])], 2)
    assert log.state.config_options == [told, own]


async def test_what_an_agent_tells_of_its_terminals_is_recorded_together_with_the_rest() -> None:
    batches: list[list[int]] = []
    log = log_recorded_by(lambda events: batches.append([event.seq for event in events]))
    ours = new_terminal_id()
    shown = [
        e.TerminalStarted("own", []),
        e.TerminalOutput("own", "a"),
        e.TerminalOutput(ours, "b"),
    ]
    log.record_told([*said("a"), *shown, *said("c")], 5)
    log.record_told([*said("d"), e.ConfigChanged([]), *said("e")], 3)
    assert batches == [[1], [2, 3, 4, 5], [6], [7, 8]]
    assert list(log.state.terminals) == ["own"]


async def test_nothing_told_is_nothing_recorded() -> None:
    log = SessionLog([e.SessionOpened("s", "/", "new")], replaying=False, listeners=[])
    log.record_told([], 40 * MIB)
    assert log.state.last_seq == 0


class _Nobody:
    """The owner of a turn that nobody answers, stops or asks for its text."""

    def went_on_unanswered(self, request_id: str | None) -> None:
        pass

    def answer_of(self, turn: Turn) -> str:
        return ""

    def stop_turn(self, turn: Turn) -> None:
        pass

    async def cancel_turn(self, turn: Turn, meta: Meta = None) -> None:
        pass

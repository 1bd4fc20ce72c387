"""What holds for the fold whatever happens, in whatever order."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cost import Memory, cpu_seconds, is_done_within
from support.examples import EXAMPLES, examples
from support.folding import KINDS, a_speech, any_event, any_events, copied, fold

from dragoman.client.dialects.v1 import wire_format
from dragoman.schema import codec, v1
from dragoman.session import events as e
from dragoman.session.content import Image, Text
from dragoman.session.facts import SubagentState
from dragoman.session.reduce import fold as at_once
from dragoman.session.reduce import reduce
from dragoman.session.state import SessionState, ToolCall

MANY = examples(120)
FOLD_SECONDS = 0.5
MARGIN = 4  # a busy machine is no broken promise


def test_there_is_a_strategy_for_every_event() -> None:
    assert set(KINDS) == set(get_args(e.Event))


@MANY
@given(any_events)
def test_any_events_in_any_order_have_a_next_state(events: list[e.Event]) -> None:
    state = fold(*events)
    assert state.last_seq == len(events)


@MANY
@given(any_events, st.data())
def test_a_prefix_written_down_and_read_again_can_be_folded_on(
    events: list[e.Event], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(events)))
    whole = fold(*events)
    parts = fold(*events[cut:], onto=copied(fold(*events[:cut])))
    assert parts == whole


@MANY
@given(st.lists(any_events | a_speech, max_size=4), st.data())
def test_many_at_once_come_to_the_same_state_as_one_by_one(
    parts: list[list[e.Event]], data: st.DataObject
) -> None:
    events = [event for part in parts for event in part]
    cut = data.draw(st.integers(0, len(events)))
    whole = fold(*events)
    assert at_once(fold(*events[:cut]), events[cut:]) == whole


_begun = [e.TurnStarted("t", []), e.AgentMessage(Text("a"))]


@pytest.mark.parametrize(
    "events",
    [
        [*_begun, e.AgentMessage(Text("b")), e.AgentMessage(Text(""))],
        [*_begun, e.AgentMessage(Text("b"), replaces=True)],
        [*_begun, e.AgentMessage(Text("b"), "m"), e.AgentMessage(Text("c"), "m", replaces=True)],
        [*_begun, e.AgentMessage(Text("b", meta={"x": 1}))],
        [*_begun, e.AgentMessage(Text("b", annotations={"x": 1}))],
        [*_begun, e.AgentMessage(Image("aGk=", "image/png"))],
        [*_begun, e.AgentThought(Text("b")), e.AgentThought(Text("c")), e.AgentMessage(Text("d"))],
        [*_begun, e.TurnEnded("t", "end_turn"), e.AgentMessage(Text("b"))],
        [*_begun, e.TurnStarted("u", []), e.AgentMessage(Text("b"))],
        [*_begun, e.TurnCancelling("t"), e.AgentMessage(Text("b"))],
        [e.TurnStarted("t", []), e.AgentMessage(Text("a"), replay=True), e.AgentMessage(Text("b"))],
        [e.AgentMessage(Text("a")), e.AgentMessage(Text("b"))],
    ],
)
def test_what_goes_on_with_a_message_does_so_among_many_too(events: list[e.Event]) -> None:
    whole = fold(*events)
    for cut in range(len(events)):
        assert at_once(fold(*events[:cut]), events[cut:]) == whole


def test_events_without_a_number_leave_the_last_one_as_it_is() -> None:
    state = fold(e.TurnStarted("t", []), e.AgentMessage(Text("a")))
    at_once(state, [e.AgentMessage(Text("b")), e.Notice("n"), e.AgentMessage(Text("c"))])
    assert state.last_seq == 2


@MANY
@given(any_events)
def test_events_that_were_written_down_fold_to_the_same_state(events: list[e.Event]) -> None:
    state = fold(*events)
    records = [msgspec.json.encode(event) for event in events]
    again = fold(*(msgspec.json.decode(record, type=e.Event) for record in records))
    assert again == state


@MANY
@given(any_events)
def test_folding_changes_no_event(events: list[e.Event]) -> None:
    fold(*events)
    before = [msgspec.json.encode(event) for event in events]
    fold(*events)
    assert [msgspec.json.encode(event) for event in events] == before


@EXAMPLES
@given(any_event)
def test_every_event_has_text(event: e.Event) -> None:
    assert isinstance(event.text, str)


@MANY
@given(any_events)
def test_tool_calls_are_found_by_their_id_without_a_search(events: list[e.Event]) -> None:
    state = fold(*events)
    calls = [entry for entry in state.entries if isinstance(entry, ToolCall)]
    assert list(state.tool_calls.values()) == calls
    assert all(state.tool_call(call.id) is call for call in calls)


# ── from the wire ─────────────────────────────────────────────────────────────────────────────

NONE: list[object] = []
ODD_PLAN = {"type": "odd", "planId": "a"}
_text = st.fixed_dictionaries({"type": st.just("text"), "text": st.text(max_size=5)})
_block = _text | st.fixed_dictionaries({"type": st.just("hologram"), "x": st.integers()})
_id = st.sampled_from(["a", "b"])
_step = st.fixed_dictionaries(
    {"content": st.text(max_size=3), "priority": st.just("low"), "status": st.just("odd")}
)


def _update(
    kind: str, /, **fields: st.SearchStrategy[object]
) -> st.SearchStrategy[dict[str, object]]:
    optional = {name: value for name, value in fields.items() if name not in _REQUIRED[kind]}
    required = {name: value for name, value in fields.items() if name in _REQUIRED[kind]}
    return st.fixed_dictionaries({"sessionUpdate": st.just(kind), **required}, optional=optional)


_REQUIRED = {
    "user_message_chunk": {"content"},
    "agent_message_chunk": {"content"},
    "agent_thought_chunk": {"content"},
    "tool_call": {"toolCallId", "title"},
    "tool_call_update": {"toolCallId"},
    "plan": {"entries"},
    "available_commands_update": {"availableCommands"},
    "current_mode_update": {"currentModeId"},
    "config_option_update": {"configOptions"},
    "session_info_update": set[str](),
    "usage_update": {"used", "size"},
    "notice": {"severity", "title"},
    "compaction_update": {"compactionId", "status"},
    "compaction_summary_chunk": {"compactionId", "content"},
    "plan_update": {"plan"},
    "plan_removed": {"planId"},
    "subagent_update": {"sessionId"},
    "session_message": {"messageId"},
    "session_message_chunk": {"messageId", "content"},
}
_call = {
    "title": st.text(max_size=3),
    "kind": st.sampled_from(["read", "edit", "odd"]),
    "status": st.sampled_from(["pending", "completed", "odd"]),
    "content": st.lists(
        st.fixed_dictionaries({"type": st.just("content"), "content": _block})
        | st.just({"type": "diff", "path": "/a", "newText": "b"})
        | st.just({"type": "terminal", "terminalId": "x"})
        | st.just({"type": "odd"}),
        max_size=2,
    ),
    "locations": st.lists(st.just({"path": "/a", "line": 3}), max_size=2),
    "rawInput": st.none() | st.just({"command": "ls"}),
    "rawOutput": st.none() | st.just("out"),
}
_updates = st.one_of(
    _update("user_message_chunk", content=_block, messageId=_id),
    _update("agent_message_chunk", content=_block, messageId=_id),
    _update("agent_thought_chunk", content=_block, messageId=_id),
    _update("tool_call", toolCallId=_id, **_call),
    _update("tool_call_update", toolCallId=_id, **_call),
    _update("plan", entries=st.lists(_step, max_size=2)),
    _update(
        "available_commands_update",
        availableCommands=st.lists(
            st.just({"name": "go", "description": "", "input": {"hint": "h"}})
        ),
    ),
    _update("current_mode_update", currentModeId=_id),
    _update(
        "config_option_update",
        configOptions=st.lists(
            st.just({"type": "boolean", "id": "a", "name": "A", "currentValue": True})
            | st.just(
                {"type": "select", "id": "m", "name": "M", "currentValue": "x", "options": NONE}
            )
            | st.just({"type": "odd", "id": "o"})
        ),
    ),
    _update("session_info_update", title=st.none() | st.text(), updatedAt=st.none() | st.text()),
    _update(
        "usage_update",
        used=st.integers(0),
        size=st.integers(0),
        cost=st.just({"amount": 1, "currency": "EUR"}),
    ),
    _update("notice", severity=st.just("odd"), title=st.text(), description=st.text()),
    _update(
        "compaction_update",
        compactionId=_id,
        status=st.just("odd"),
        summary=st.none() | st.lists(_block),
    ),
    _update("compaction_summary_chunk", compactionId=_id, content=_block),
    _update(
        "plan_update",
        plan=st.just({"type": "items", "planId": "a", "entries": NONE})
        | st.just({"type": "file", "planId": "a", "uri": "file:///p"})
        | st.just({"type": "markdown", "planId": "a", "content": "# p"})
        | st.just(ODD_PLAN),
    ),
    _update("plan_removed", planId=_id),
    _update(
        "subagent_update",
        sessionId=_id,
        title=st.none() | st.text(),
        state=st.just(SubagentState("idle")),
    ),
    _update("session_message", messageId=_id, content=st.none() | st.lists(_block)),
    _update("session_message_chunk", messageId=_id, content=_block),
    st.just({"sessionUpdate": "from_the_future", "anything": [1]}),
)


def test_every_kind_of_update_is_tried() -> None:
    assert set(_REQUIRED) == v1.STABLE_UPDATES | v1.UNSTABLE_UPDATES


@MANY
@given(st.lists(_updates, max_size=30))
def test_valid_updates_in_any_order_are_all_kept(updates: list[dict[str, object]]) -> None:
    """Nothing of a kind we know falls among the unknown, and nothing raises."""
    state = fold(e.TurnStarted("t", [Text("go")]))
    for wire in updates:
        params = msgspec.json.encode({"sessionId": "s", "update": wire})
        event = wire_format.update(codec.decode(params, v1.SessionNotification).update)
        is_unknown = isinstance(event, e.UnknownUpdate)
        odd_plan = wire.get("plan") == ODD_PLAN
        assert is_unknown == (wire["sessionUpdate"] == "from_the_future" or odd_plan)
        state = fold(event, onto=state)
    assert copied(state) == state


# ── what it costs ─────────────────────────────────────────────────────────────────────────────


def _long_turn(count: int) -> list[e.Event]:
    events: list[e.Event] = [e.SessionOpened("s", "/", "new"), e.TurnStarted("t", [Text("go")])]
    for number in range(count // 10):
        tool = f"call {number}"
        events += [e.AgentMessage(Text("word ")) for _ in range(6)]
        events += [
            e.AgentThought(Text("hm ")),
            e.ToolCallUpdated(tool, title="Read", status="pending"),
            e.ToolCallUpdated(tool, status="completed"),
            e.UsageChanged(number, 200_000),
        ]
    return events


def _fold(events: list[e.Event]) -> SessionState:
    state = SessionState()
    for event in events:
        reduce(state, event)
    return state


def test_100k_events_fold_in_half_a_second_of_cpu() -> None:
    events = _long_turn(100_000)
    assert is_done_within(FOLD_SECONDS * MARGIN, lambda: _fold(events), repeat=2)


def test_the_cost_of_an_event_does_not_grow_with_the_thread() -> None:
    short, long = _long_turn(5_000), _long_turn(40_000)
    per_event = cpu_seconds(lambda: _fold(short)) / len(short)
    assert cpu_seconds(lambda: _fold(long)) / len(long) <= per_event * MARGIN


def test_what_adds_nothing_takes_no_memory() -> None:
    """Repeated facts, empty pieces and replaced fields leave nothing behind."""
    state = fold(e.TurnStarted("t", [Text("go")]), e.AgentMessage(Text("hi")))
    barren: list[e.Event] = [
        e.AgentMessage(Text("")),
        e.TerminalOutput("t", ""),
        e.ToolCallUpdated("a", title="Read", status="in_progress", meta={"n": 1}),
        e.UsageChanged(1, 2),
        e.ModeChanged("m"),
        e.PlanUpdated([]),
        e.SubagentUpdated("child", title="Child"),
    ]
    for event in barren:
        reduce(state, event)
    with Memory() as memory:
        for _ in range(10_000):
            for event in barren:
                reduce(state, event)
    assert memory.left < 50_000

"""Events as ACP again: what an agent said reaches an editor as it was, update by update."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from support.examples import examples
from support.folding import any_events
from support.samples import updates as every_kind

from dragoman.client.dialects.encoding import Shows
from dragoman.client.dialects.v1 import wire_format
from dragoman.client.dialects.v1.encoding import EncoderV1
from dragoman.client.dialects.v2.encoding import EncoderV2
from dragoman.schema import codec, v1, v2
from dragoman.session import content as c
from dragoman.session import events as e
from dragoman.session.reduce import reduce
from dragoman.session.state import SessionState

EVERYTHING = Shows(
    notices=True,
    compactions=True,
    plans=True,
    subagents=True,
    switches=True,
    terminals=True,
    forms=True,
    addresses=True,
)


def told(events: Iterable[e.Event], shows: Shows = EVERYTHING) -> list[dict[str, Any]]:
    """What an editor gets of these events, as JSON."""
    return [update for _, update in told_by_event(events, shows)]


def told_by_event(
    events: Iterable[e.Event], shows: Shows = EVERYTHING
) -> list[tuple[e.Event, dict[str, Any]]]:
    encoder, state = EncoderV1(shows), SessionState()
    found: list[tuple[e.Event, dict[str, Any]]] = []
    for seq, event in enumerate(events, 1):
        event.seq = seq
        wires = (codec.encode(update.wire) for update in encoder.updates(event, state))
        found += [(event, msgspec.json.decode(wire)) for wire in wires]
        reduce(state, event)
    return found


def heard(update: dict[str, Any]) -> e.Event:
    params = msgspec.json.encode({"sessionId": "s", "update": update})
    return wire_format.update(codec.decode(params, v1.SessionNotification).update)


@pytest.mark.parametrize("notification", every_kind(), ids=lambda each: type(each.update).__name__)
def test_an_update_of_every_kind_comes_out_as_it_came_in(
    notification: v1.SessionNotification,
) -> None:
    event = wire_format.update(
        codec.decode(codec.encode(notification), v1.SessionNotification).update
    )
    [update] = told([event])
    assert heard(update) == _unnumbered(event)


def _unnumbered(event: e.Event) -> e.Event:
    event.seq = 0
    return event


@examples(200)
@given(any_events)
def test_what_was_told_once_is_told_the_same_again(events: list[e.Event]) -> None:
    """What an event becomes on the wire does not change by being read and written again."""
    for _, update in told_by_event(events):
        event = heard(update)
        if isinstance(event, e.ToolCallUpdated) and update["sessionUpdate"] == "tool_call_update":
            known: list[e.Event] = [e.ToolCallUpdated(event.tool_call_id, title="known"), event]
            again = told(known)[1]
        else:
            [again, *_] = told([event])
        assert heard(again) == _unnumbered(event)


@examples(200)
@given(any_events)
def test_version_2_reads_all_that_it_is_sent(events: list[e.Event]) -> None:
    encoder, state = EncoderV2(EVERYTHING), SessionState()
    for seq, event in enumerate(events, 1):
        event.seq = seq
        for update in encoder.updates(event, state):
            params = codec.encode({"sessionId": "s", "update": update.wire})
            read = codec.decode(params, v2.UpdateSessionNotification).update
            assert codec.encode(read) == codec.encode(update.wire)
        reduce(state, event)


def test_an_unknown_update_passes_as_it_came() -> None:
    raw = '{"sessionUpdate":"_hologram","depth":[3,{"a":null}]}'
    assert told([e.UnknownUpdate("_hologram", raw)]) == [msgspec.json.decode(raw)]
    plan = '{"type":"_mural","planId":"p"}'
    assert told([e.UnknownUpdate("plan_update/_mural", plan)]) == [
        {"sessionUpdate": "plan_update", "plan": msgspec.json.decode(plan)}
    ]


def test_a_tool_call_is_new_once() -> None:
    updates = told(
        [
            e.ToolCallUpdated("t", title="Read", status="pending"),
            e.ToolCallUpdated("t", title="Read it"),
            e.ToolCallUpdated("u", status="completed"),
        ]
    )
    kinds = [update["sessionUpdate"] for update in updates]
    assert kinds == ["tool_call", "tool_call_update", "tool_call_update"]


def test_content_that_is_added_comes_with_what_was_there() -> None:
    first, second = c.ContentItem(c.Text("a")), c.ContentItem(c.Text("b"))
    updates = told(
        [
            e.ToolCallUpdated("t", title="Read", content=[first]),
            e.ToolCallUpdated("t", more=[second]),
        ]
    )
    assert [item["content"]["text"] for item in updates[1]["content"]] == ["a", "b"]


def test_the_steps_of_a_plan_with_an_id_are_shown_to_those_who_know_only_the_one_plan() -> None:
    plan = e.PlanUpdated(plan_id="p", markdown="# All of it")
    [update] = told([plan], Shows())
    assert update["sessionUpdate"] == "plan"
    assert [entry["content"] for entry in update["entries"]] == ["# All of it"]


def test_a_notice_is_a_message_for_those_who_show_none() -> None:
    [update] = told([e.Notice("Careful", "warning", "it is hot")], Shows())
    assert update["sessionUpdate"] == "agent_message_chunk"
    assert "[warning] Careful: it is hot" in update["content"]["text"]


TERMINAL = [
    e.TerminalStarted("term_1", ["ls"], "/w"),
    e.TerminalOutput("term_1", "one\n"),
    e.ToolCallUpdated("t", title="Run ls", content=[c.TerminalItem("term_1")]),
    e.TerminalOutput("term_1", "two\n"),
    e.TerminalExited("term_1", 0),
]


def test_a_terminal_of_ours_is_shown_in_metadata() -> None:
    metas = [update["_meta"] for update in told(TERMINAL)[1:]]
    assert metas == [
        {"terminal_info": {"terminal_id": "term_1", "cwd": "/w"}},
        {"terminal_output": {"terminal_id": "term_1", "data": "one\n"}},
        {"terminal_output": {"terminal_id": "term_1", "data": "two\n"}},
        {"terminal_exit": {"terminal_id": "term_1", "exit_code": 0, "signal": None}},
    ]


def test_where_it_cannot_be_shown_its_output_is_text_once_it_has_ended() -> None:
    first, last = told(TERMINAL, Shows())
    assert [item["content"]["text"] for item in first["content"]] == ["```\none\n\n```"]
    assert [item["content"]["text"] for item in last["content"]] == ["```\none\ntwo\n\n```"]


def test_a_terminal_that_the_agent_itself_speaks_of_is_told_once() -> None:
    info = {"terminal_info": {"terminal_id": "x", "cwd": "/w"}}
    output = {"terminal_output": {"terminal_id": "x", "data": "hi"}}
    updates = told(
        [
            e.ToolCallUpdated("t", title="Run", content=[c.TerminalItem("x")], meta=info),
            e.TerminalStarted("x", [], "/w"),
            e.ToolCallUpdated("t", meta=output),
            e.TerminalOutput("x", "hi"),
        ]
    )
    assert [update["_meta"] for update in updates] == [info, output]


def test_a_turn_is_told_as_what_the_user_said() -> None:
    updates = told([e.TurnStarted("t-1", [c.Text("hi"), c.Image("aGk=", "image/png")])])
    assert [update["sessionUpdate"] for update in updates] == ["user_message_chunk"] * 2
    assert {update["messageId"] for update in updates} == {"t-1"}

"""Things told as they are now: replaced, added to, cleared; and what an agent does on its own."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

from dragoman.session import events as e
from dragoman.session.coalesce import coalesce
from dragoman.session.content import UNREAD, ContentItem, Diff, Text, UnknownItem
from dragoman.session.facts import BackgroundWork, SubagentState
from dragoman.session.reduce import reduce
from dragoman.session.state import (
    AgentEntry,
    CompactionEntry,
    SessionState,
    ThoughtEntry,
    ToolCall,
)


def folded(*events: e.Event) -> SessionState:
    state = SessionState()
    for seq, event in enumerate(events, 1):
        event.seq = seq
        reduce(state, event)
    return state


def said(text: str, **fields: Any) -> e.AgentMessage:
    return e.AgentMessage(Text(text), "m", **fields)


def item(text: str) -> ContentItem:
    return ContentItem(Text(text))


def call_of(*changes: dict[str, Any]) -> ToolCall:
    state = folded(*(e.ToolCallUpdated("c", **fields) for fields in changes))
    return state.tool_calls["c"]


def test_a_message_told_anew_replaces_what_it_held() -> None:
    state = folded(said("A"), said("B"), said("C", replaces=True), said("D"))
    (entry,) = state.entries
    assert entry.text == "CD"


def test_a_message_told_anew_with_nothing_is_empty_and_stays() -> None:
    state = folded(said("A"), said("", replaces=True))
    (entry,) = state.entries
    assert entry.text == ""


def test_a_message_that_replaces_nothing_just_begins() -> None:
    assert [entry.text for entry in folded(said("A", replaces=True)).entries] == ["A"]


def test_a_message_is_found_by_its_kind_and_id() -> None:
    state = folded(said("A"))
    found = state.message(AgentEntry, "m")
    assert found is state.entries[0]
    assert state.message(ThoughtEntry, "m") is None
    assert state.message(AgentEntry, "other") is None


def test_joined_pieces_keep_that_they_replace() -> None:
    events = [said("A"), said("B"), said("C", replaces=True), said("D")]
    joined = [each.event for each in coalesce(events)]
    assert [(event.text, getattr(event, "replaces", None)) for event in joined] == [
        ("AB", False),
        ("CD", True),
    ]


def test_more_content_stands_behind_what_is_there_until_it_is_replaced() -> None:
    first = [item("a")]
    assert call_of({"content": first}, {"more": [item("b")]}).content == [item("a"), item("b")]
    assert first == [item("a")]
    assert call_of({"more": [item("a")]}, {"content": [item("b")]}).content == [item("b")]
    assert call_of({"more": [item("a")]}, {"content": None}).content == []


def test_of_a_row_of_what_could_not_be_read_a_call_has_the_last() -> None:
    one, two, three = (UnknownItem(UNREAD, str(number)) for number in range(3))
    other = UnknownItem("novelty", "{}")
    call = call_of({"content": [item("a"), other]}, {"more": [one]}, {"more": [two, item("b")]})
    assert call.content == [item("a"), other, two, item("b")]
    assert call_of({"more": [one, two]}, {"more": [three]}).content == [three]
    assert call_of({"more": [one, item("b")]}, {"more": [two]}).content == [one, item("b"), two]


def test_whether_a_call_can_be_stopped_is_kept_until_it_changes() -> None:
    assert call_of({"cancellable": True}, {"title": "x"}).cancellable
    assert not call_of({"cancellable": True}, {"cancellable": False}).cancellable


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        ([{"meta": {"a": 1}}, {"meta": {"b": 2}}], {"a": 1, "b": 2}),
        ([{"meta": {"a": 1, "b": 2}}, {"meta": {"a": None}}], {"b": 2}),
        ([{"meta": {"a": 1}}, {"forgets_meta": True}], None),
        ([{"meta": {"a": 1}}, {"forgets_meta": True, "meta": {"b": 2}}], {"b": 2}),
    ],
)
def test_metadata_is_patched_by_key(changes: list[dict[str, Any]], left: Any) -> None:
    assert call_of(*changes).meta == left


def test_a_terminal_of_the_agents_own_can_begin_print_anew_and_end() -> None:
    started = e.TerminalStarted("t", [], "/w", "make", True)
    state = folded(started, e.TerminalOutput("t", "one"), e.TerminalOutput("t", "2", replaces=True))
    terminal = state.terminals["t"]
    assert (terminal.output, terminal.size, terminal.ours) == ("2", 1, False)
    assert (terminal.command, terminal.cwd, terminal.cancellable) == ("make", "/w", True)
    reduce(state, e.TerminalExited("t", 1))
    assert (terminal.running, terminal.exit_code, terminal.cancellable) == (False, 1, False)
    reduce(state, started)
    assert (terminal.running, terminal.exit_code, terminal.output) == (True, None, "2")


def test_what_an_agent_does_on_its_own_is_known_until_it_changes() -> None:
    running = [BackgroundWork("terminal", terminal_id="t")]
    state = folded(e.ActivityChanged("running"), e.ActivityChanged(background=running))
    assert (state.activity, state.background) == ("running", running)
    reduce(state, e.ActivityChanged("idle"))
    assert (state.activity, state.background) == ("idle", running)
    assert e.ActivityChanged().activity is UNSET
    reduce(state, e.ActivityChanged("running"))
    reduce(state, e.SessionOpened("s", "/w", "continued"))
    assert (state.activity, state.background) == ("idle", [])


RUNNING = SubagentState("running")
STOPPED = SubagentState("idle", stop_reason="cancelled")


@pytest.mark.parametrize(
    ("end", "status", "doing"),
    [
        (e.TurnEnded("t", "cancelled"), "cancelled", STOPPED),
        (e.TurnEnded("t", error="the agent died"), "cancelled", STOPPED),
        (e.TurnEnded("t", "end_turn"), "in_progress", RUNNING),
    ],
    ids=["cancelled", "failed", "done"],
)
def test_what_was_at_work_in_a_turn_that_is_cut_short_is_over(
    end: e.Event, status: str, doing: SubagentState
) -> None:
    state = folded(
        e.TurnStarted("t", [Text("go")]),
        e.CompactionUpdated("k", "in_progress"),
        e.CompactionUpdated("done", "completed"),
        e.SubagentUpdated("child", state=RUNNING),
        e.SubagentUpdated("silent"),
        end,
    )
    found = {
        entry.id: entry.status for entry in state.entries if isinstance(entry, CompactionEntry)
    }
    assert found == {"k": status, "done": "completed"}
    assert (state.subagents["child"].state, state.subagents["silent"].state) == (doing, None)


def test_a_subagent_runs_on_while_the_agent_says_so_and_until_it_is_opened_anew() -> None:
    state = folded(
        e.TurnStarted("t", [Text("go")]),
        e.SubagentUpdated("child", state=RUNNING),
        e.SubagentUpdated("asking", state=SubagentState("requires_action")),
        e.ActivityChanged(background=[BackgroundWork("subagent", session_id="child")]),
        e.TurnEnded("t", "cancelled"),
    )
    assert state.subagents["child"].state == RUNNING
    assert state.subagents["asking"].state == STOPPED
    reduce(state, e.SessionOpened("s", "/w", "continued"))
    assert state.subagents["child"].state == STOPPED


def test_a_change_names_every_file_it_touches() -> None:
    assert Diff("/a", "x").paths == ["/a"]
    assert Diff("/b", "", operation="move", old_path="/a").paths == ["/a", "/b"]


def test_a_question_keeps_what_the_agent_says_about_it() -> None:
    asked = e.PermissionRequested("p", [], "Run it?", explanation="It is safe", claimed=True)
    pending = folded(asked).pending["p"]
    assert (getattr(pending, "explanation", ""), getattr(pending, "claimed", None)) == (
        "It is safe",
        True,
    )

"""The fold, one sentence for each thing an event does to a state."""

from __future__ import annotations

import pytest
from support.folding import copied, fold

from dragoman.session import events as e
from dragoman.session.content import (
    Content,
    ContentItem,
    Diff,
    Image,
    Location,
    ResourceLink,
    Text,
)
from dragoman.session.facts import (
    Decision,
    Mode,
    PermissionOption,
    PlanStep,
    TokenUsage,
)
from dragoman.session.reduce import reduce
from dragoman.session.state import (
    AgentEntry,
    AnyEntry,
    CompactionEntry,
    ErrorEntry,
    NoticeEntry,
    PeerMessageEntry,
    PlanEntry,
    ResetEntry,
    SessionState,
    ThoughtEntry,
    ToolCall,
    TurnState,
    UnknownEntry,
    UserEntry,
)


def texts(state: SessionState) -> list[tuple[type[AnyEntry], str]]:
    return [(type(entry), entry.text) for entry in state.entries]


def said(text: str, message_id: str | None = None) -> e.AgentMessage:
    return e.AgentMessage(Text(text), message_id)


def started(text: str = "go", turn_id: str = "t1") -> e.TurnStarted:
    return e.TurnStarted(turn_id, [Text(text)])


def only_call(state: SessionState) -> ToolCall:
    (call,) = state.tool_calls.values()
    return call


# ── the session and its turns ─────────────────────────────────────────────────────────────────


def test_opening_says_where_and_how_the_session_continues() -> None:
    state = fold(e.SessionOpened("s", "/project", "replayed", ["/more"], "goose"))
    assert (state.session_id, state.cwd, state.agent) == ("s", "/project", "goose")
    assert (state.additional_directories, state.continuity) == (["/more"], "replayed")
    assert state.open
    assert (state.fence, state.network) == (None, None)
    assert state.entries == []


def test_opening_says_how_the_agent_is_fenced() -> None:
    opened = e.SessionOpened("s", "/project", "new", fence="namespaces", network=["a.org:443"])
    state = fold(opened)
    assert (state.fence, state.network) == ("namespaces", ["a.org:443"])
    state = fold(opened, e.SessionOpened("s", "/project", "continued"))
    assert (state.fence, state.network) == (None, None)


def test_a_reset_leaves_a_mark_where_the_memory_ends() -> None:
    opened = e.SessionOpened("s", "/", "new")
    state = fold(opened, said("before"), e.SessionOpened("s2", "/", "reset"), said("after"))
    assert [type(entry) for entry in state.entries] == [AgentEntry, ResetEntry, AgentEntry]
    assert state.entries[1].text == ""


def test_closing_ends_it_and_keeps_the_thread() -> None:
    state = fold(e.SessionOpened("s", "/", "new"), said("hi"), e.SessionClosed("done"))
    assert not state.open
    assert state.entries[0].text == "hi"


def test_a_turn_goes_through_its_states() -> None:
    state = fold(started())
    assert state.turn == TurnState("t1", "prompting", seq=1)
    fold(said("hm"), onto=state)
    assert state.turn == TurnState("t1", "streaming", seq=1)
    fold(e.PermissionRequested("p", []), onto=state)
    assert state.turn == TurnState("t1", "waiting", seq=1)
    fold(e.PermissionSettled("p", "yes", Decision("allow", "answered")), onto=state)
    assert state.turn == TurnState("t1", "streaming", seq=1)
    fold(e.TurnCancelling("t1"), onto=state)
    assert state.turn == TurnState("t1", "cancelling", seq=1)
    fold(e.TurnEnded("t1", "cancelled"), onto=state)
    assert state.turn is None
    assert state.turns == [TurnState("t1", "cancelled", "cancelled", seq=1)]


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (e.TurnEnded("t1", "end_turn"), "completed"),
        (e.TurnEnded("t1", "max_tokens"), "completed"),
        (e.TurnEnded("t1", "refusal"), "completed"),
        (e.TurnEnded("t1", "cancelled"), "cancelled"),
        (e.TurnEnded("t1", error="the agent died"), "failed"),
        (e.TurnEnded("t1", error="interrupted: by the agent itself"), "failed"),
        (e.TurnEnded("t1", error="the host ended", interrupted=True), "interrupted"),
        # As it was written before there was a field for it.
        (
            e.TurnEnded("t1", error="interrupted: the process that ran the session ended"),
            "interrupted",
        ),
        (
            e.TurnEnded("t1", error="interrupted: the session was forked in the midst of a turn"),
            "interrupted",
        ),
    ],
)
def test_a_turn_says_how_it_ended(end: e.TurnEnded, status: str) -> None:
    state = fold(started(), end)
    assert (state.turn, state.turns[0].status) == (None, status)
    assert state.turns[0].interrupted is (status == "interrupted")


def test_a_turn_that_was_cancelled_and_ended_in_order_is_cancelled() -> None:
    state = fold(started(), e.TurnCancelling("t1"), e.TurnEnded("t1", "end_turn"))
    assert state.turns[0].status == "cancelled"


@pytest.mark.parametrize(
    "update", [e.UsageChanged(1, 2), e.CommandsChanged([]), e.ToolCallUpdated("a"), said("hi")]
)
def test_any_update_shows_that_the_agent_is_at_work(update: e.Event) -> None:
    state = fold(started(), update)
    assert state.turn is not None
    assert state.turn.status == "streaming"


def test_a_notice_of_ours_does_not_show_that_the_agent_is_at_work() -> None:
    state = fold(started(), e.Notice("sent as a link", source="client"))
    assert state.turn is not None
    assert state.turn.status == "prompting"


def test_a_request_does_not_end_the_cancelling_of_a_turn() -> None:
    state = fold(started(), e.TurnCancelling("t1"), e.PermissionRequested("p", []))
    assert state.turn is not None
    assert state.turn.status == "cancelling"


def test_the_end_of_a_turn_keeps_reason_and_usage() -> None:
    usage = TokenUsage(total=3, input=1, output=2)
    state = fold(started(), e.TurnEnded("t1", "max_tokens", usage))
    assert state.turns == [TurnState("t1", "completed", "max_tokens", usage, seq=1)]


def test_unknown_usage_is_none_and_not_zero() -> None:
    state = fold(started(), e.TurnEnded("t1", "end_turn"))
    assert state.usage is None
    assert state.turns[0].usage is None


def test_an_error_that_cuts_a_turn_short_stands_in_the_thread() -> None:
    state = fold(started(), said("I will"), e.TurnEnded("t1", error="the agent died"))
    assert state.turns[0].error == "the agent died"
    assert texts(state)[-1] == (ErrorEntry, "the agent died")
    assert state.entries[-1].turn_id == "t1"


@pytest.mark.parametrize("event", [e.TurnEnded("other", "end_turn"), e.TurnCancelling("other")])
def test_the_end_of_another_turn_changes_nothing(event: e.Event) -> None:
    state = fold(started())
    fold(event, onto=state)
    assert state.turn == TurnState("t1", "prompting", seq=1)


@pytest.mark.parametrize("event", [e.TurnEnded("t1", "end_turn"), e.TurnCancelling("t1")])
def test_the_end_of_a_turn_nobody_started_changes_nothing(event: e.Event) -> None:
    state = fold(event)
    assert (state.turns, state.entries) == ([], [])


@pytest.mark.parametrize(
    "ending",
    [
        [e.TurnCancelling("t1")],
        [e.TurnEnded("t1", "cancelled")],
        [e.TurnEnded("t1", error="gone")],
        [
            e.TurnCancelling("t1"),
            e.ToolCallUpdated("b", status="in_progress"),
            e.TurnEnded("t1", "end_turn"),
        ],
    ],
)
def test_open_tool_calls_of_a_turn_that_is_cut_short_are_cancelled(ending: list[e.Event]) -> None:
    calls = [
        e.ToolCallUpdated("a", status="pending"),
        e.ToolCallUpdated("b", status="in_progress"),
        e.ToolCallUpdated("c", status="completed"),
    ]
    state = fold(started(), *calls, *ending)
    statuses = {call.id: call.status for call in state.tool_calls.values()}
    assert statuses == {"a": "cancelled", "b": "cancelled", "c": "completed"}


def test_open_tool_calls_of_a_turn_that_ends_by_itself_stay_as_told() -> None:
    state = fold(
        started(), e.ToolCallUpdated("a", status="in_progress"), e.TurnEnded("t1", "end_turn")
    )
    assert only_call(state).status == "in_progress"


def test_cancelling_touches_no_earlier_turn() -> None:
    state = fold(
        started(),
        e.ToolCallUpdated("a", status="in_progress"),
        e.TurnEnded("t1", "end_turn"),
        started(turn_id="t2"),
        e.ToolCallUpdated("b", status="in_progress"),
        e.TurnCancelling("t2"),
    )
    assert [call.status for call in state.tool_calls.values()] == ["in_progress", "cancelled"]


def test_entries_know_their_turn_and_their_event() -> None:
    state = fold(
        said("before"), started(), said("in"), e.TurnEnded("t1", "end_turn"), said("after")
    )
    assert [entry.turn_id for entry in state.entries] == [None, "t1", "t1", None]
    assert [entry.seq for entry in state.entries] == [1, 2, 3, 5]


# ── messages ──────────────────────────────────────────────────────────────────────────────────


def test_pieces_of_a_message_are_one_entry() -> None:
    state = fold(started("What?"), said("Hel"), said("lo"), e.AgentThought(Text("hm")), said("!"))
    assert texts(state) == [
        (UserEntry, "What?"),
        (AgentEntry, "Hello"),
        (ThoughtEntry, "hm"),
        (AgentEntry, "!"),
    ]


def test_the_pieces_of_a_message_come_out_as_content() -> None:
    image = Image("data", "image/png")
    marked = Text("marked", annotations={"priority": 1})
    parts = [Text("a"), Text("b"), image, Text("c"), marked]
    state = fold(*(e.AgentMessage(part) for part in parts))
    entry = state.entries[0]
    assert isinstance(entry, AgentEntry)
    assert entry.content == [Text("ab"), image, Text("c"), marked]
    assert entry.text == "abcmarked"


def test_another_message_id_begins_another_message() -> None:
    state = fold(said("one", "m1"), said("two", "m2"), said(" and three", "m2"))
    assert [text for _, text in texts(state)] == ["one", "two and three"]


def test_a_piece_with_a_known_message_id_finds_its_message_again() -> None:
    state = fold(said("one", "m1"), e.AgentThought(Text("hm")), said("!", "m1"))
    assert [text for _, text in texts(state)] == ["one!", "hm"]


def test_the_same_message_id_in_another_voice_is_another_message() -> None:
    state = fold(said("answer", "m1"), e.AgentThought(Text("hm"), "m1"))
    assert texts(state) == [(AgentEntry, "answer"), (ThoughtEntry, "hm")]


def test_without_ids_a_new_turn_begins_a_new_message() -> None:
    state = fold(started(), said("one"), e.TurnEnded("t1", "end_turn"), said("late"))
    assert [text for _, text in texts(state)] == ["go", "one", "late"]


def test_replayed_messages_are_joined_as_they_were_told() -> None:
    told = [e.UserMessage(Text(t), replay=True) for t in ("wh", "y")]
    answered = [e.AgentMessage(Text(t), replay=True) for t in ("be", "cause")]
    state = fold(*told, *answered, *(e.UserMessage(Text("ok"), replay=True),))
    assert texts(state) == [(UserEntry, "why"), (AgentEntry, "because"), (UserEntry, "ok")]
    assert {entry.turn_id for entry in state.entries} == {None}


def test_empty_pieces_begin_no_message() -> None:
    assert fold(said(""), e.AgentThought(Text(""))).entries == []


def test_a_prompt_the_agent_tells_back_stands_in_the_thread_once() -> None:
    link = ResourceLink("file:///a", "a")
    state = fold(
        e.TurnStarted("t1", [Text("Look at "), link, Text("now")]),
        e.UserMessage(Text("Look at ")),
        e.UserMessage(link),
        e.UserMessage(Text("Look at now")),
        said("yes"),
    )
    assert texts(state) == [(UserEntry, "Look at now"), (AgentEntry, "yes")]


def test_what_the_user_says_beside_the_prompt_is_a_message_of_its_own() -> None:
    image = Image("data", "image/png")
    state = fold(
        e.TurnStarted("t1", [image]), e.UserMessage(Text("also")), e.UserMessage(Text("!"))
    )
    assert texts(state) == [(UserEntry, ""), (UserEntry, "also!")]


def test_other_content_is_not_mistaken_for_the_prompt() -> None:
    state = fold(
        e.TurnStarted("t1", [Image("a", "image/png")]), e.UserMessage(Image("b", "image/png"))
    )
    assert len(state.entries) == 2


def test_what_the_agent_attributes_to_the_user_is_marked_as_reported() -> None:
    state = fold(
        e.UserMessage(Text("before"), replay=True),
        started("go"),
        said("well"),
        e.UserMessage(Text("Yes, ")),
        e.UserMessage(Text("delete it.")),
    )
    users = [entry for entry in state.entries if isinstance(entry, UserEntry)]
    assert [(entry.text, entry.reported) for entry in users] == [
        ("before", False),
        ("go", False),
        ("Yes, delete it.", True),
    ]


def test_the_same_words_said_later_are_said_again() -> None:
    state = fold(started("go"), said("gone"), e.UserMessage(Text("go")))
    assert [text for _, text in texts(state)] == ["go", "gone", "go"]


def test_history_that_equals_the_prompt_is_history() -> None:
    state = fold(started("go"), e.UserMessage(Text("go"), replay=True))
    assert len(state.entries) == 2


def test_a_prompt_place_that_points_elsewhere_does_no_harm() -> None:
    """A state from another version may hold anything."""
    state = SessionState(entries=[NoticeEntry(title="x")], places={"last prompt": 0})
    fold(started(), onto=state)
    state.places["last prompt"] = 1
    state.entries[1] = NoticeEntry(title="y")
    fold(e.UserMessage(Text("go")), onto=state)
    assert texts(state)[-1] == (UserEntry, "go")


# ── tool calls ────────────────────────────────────────────────────────────────────────────────


def test_a_tool_call_appears_on_first_sight_whatever_comes_first() -> None:
    state = fold(e.ToolCallUpdated("a", status="completed"))
    assert only_call(state) == ToolCall(id="a", status="completed", seq=1, size=12)


def test_a_tool_call_is_updated_field_by_field() -> None:
    diff, place = Diff("/a", "new", "old"), Location("/a", 3)
    state = fold(
        e.ToolCallUpdated("a", title="Edit", kind="edit", status="pending", meta={"x": 1, "y": 1}),
        e.ToolCallUpdated("a", content=[diff], locations=[place], raw_input={"path": "/a"}),
        e.ToolCallUpdated(
            "a", status="completed", raw_output="done", name="edit_file", meta={"y": 2}
        ),
    )
    call = only_call(state)
    assert (call.title, call.kind, call.status, call.name) == (
        "Edit",
        "edit",
        "completed",
        "edit_file",
    )
    assert (call.content, call.locations, call.diffs) == ([diff], [place], [diff])
    assert (call.raw_input, call.raw_output, call.meta) == (
        {"path": "/a"},
        "done",
        {"x": 1, "y": 2},
    )
    assert len(state.entries) == 1
    assert call.text == "Edit"


def test_content_and_locations_are_replaced_as_a_whole() -> None:
    state = fold(
        e.ToolCallUpdated(
            "a", content=[Diff("/a", "1"), Diff("/b", "2")], locations=[Location("/a")]
        ),
        e.ToolCallUpdated("a", content=[ContentItem(Text("x"))], locations=[]),
    )
    assert only_call(state).content == [ContentItem(Text("x"))]
    assert only_call(state).diffs == []
    assert only_call(state).locations == []


def test_null_clears_a_field() -> None:
    state = fold(
        e.ToolCallUpdated(
            "a",
            title="t",
            name="n",
            kind="edit",
            status="failed",
            content=[Diff("/a", "1")],
            locations=[Location("/a")],
            raw_input=1,
            raw_output=2,
        ),
        e.ToolCallUpdated(
            "a",
            title=None,
            name=None,
            kind=None,
            status=None,
            content=None,
            locations=None,
            raw_input=None,
            raw_output=None,
        ),
    )
    assert only_call(state) == ToolCall(id="a", seq=1, size=12)


def test_metadata_of_events_is_not_shared_with_the_state() -> None:
    first = e.ToolCallUpdated("a", meta={"x": 1})
    fold(first, e.ToolCallUpdated("a", meta={"y": 2}))
    assert first.meta == {"x": 1}


def test_a_place_that_points_elsewhere_does_no_harm() -> None:
    state = SessionState(entries=[NoticeEntry(title="x")], places={"tool:a": 0, "plan:p": 0})
    assert state.tool_call("a") is None
    fold(e.PlanRemoved("p"), e.ToolCallUpdated("a", title="t"), onto=state)
    assert only_call(state).title == "t"
    assert state.entries[0] == NoticeEntry(title="x")


# ── plans, notices, compaction and the rest of the thread ─────────────────────────────────────


def test_a_plan_without_id_is_replaced_until_the_user_speaks_again() -> None:
    state = fold(
        started(),
        e.PlanUpdated([PlanStep("one")]),
        said("hm"),
        e.PlanUpdated([PlanStep("one", status="completed"), PlanStep("two")]),
        e.TurnEnded("t1", "end_turn"),
        started("more", "t2"),
        e.PlanUpdated([PlanStep("three")]),
    )
    plans = [entry for entry in state.entries if isinstance(entry, PlanEntry)]
    assert [plan.text for plan in plans] == ["one\ntwo", "three"]
    assert state.plan is plans[1]


def test_plans_with_ids_stand_beside_each_other() -> None:
    state = fold(
        e.PlanUpdated([PlanStep("a")], "p1"),
        e.PlanUpdated(plan_id="p2", markdown="# Plan"),
        e.PlanUpdated(plan_id="p1", uri="file:///plan.md"),
    )
    plans = [entry for entry in state.entries if isinstance(entry, PlanEntry)]
    assert [(p.plan_id, p.steps, p.markdown, p.uri) for p in plans] == [
        ("p1", [], None, "file:///plan.md"),
        ("p2", [], "# Plan", None),
    ]
    assert state.plan is plans[1]


def test_a_removed_plan_leaves_the_other_entries_where_they_are() -> None:
    state = fold(
        e.PlanUpdated([PlanStep("a")], "p"),
        e.ToolCallUpdated("t"),
        e.PlanRemoved("p"),
        e.PlanRemoved("unknown"),
        e.ToolCallUpdated("t", title="still here"),
    )
    assert state.plan is None
    assert state.entries[1].text == "still here"
    fold(e.PlanUpdated([PlanStep("b")], "p"), onto=state)
    assert state.plan is not None
    assert state.plan is state.entries[2]


def test_a_notice_is_an_entry_of_its_own() -> None:
    state = fold(
        e.Notice("Slow", "warning", "the model is busy"), e.Notice("Sent", source="client")
    )
    first, second = state.entries
    assert isinstance(first, NoticeEntry)
    assert (first.severity, first.source, first.text) == (
        "warning",
        "agent",
        "Slow: the model is busy",
    )
    assert (second.text, isinstance(second, NoticeEntry) and second.source) == ("Sent", "client")


def test_a_compaction_grows_by_its_summary() -> None:
    state = fold(
        e.CompactionUpdated("c", "in_progress"),
        e.CompactionSummary("c", Text("So ")),
        e.CompactionSummary("c", Text("far.")),
        e.CompactionUpdated("c", "completed"),
    )
    (entry,) = state.entries
    assert isinstance(entry, CompactionEntry)
    assert (entry.status, entry.text, entry.error) == ("completed", "So far.", None)


def test_a_compaction_can_be_told_as_a_whole_and_cleared() -> None:
    summary: list[Content] = [Text("all")]
    told = e.CompactionUpdated("c", "failed", summary, "no room")
    state = fold(told, e.CompactionSummary("c", Text("!")))
    entry = state.entries[0]
    assert isinstance(entry, CompactionEntry)
    assert (entry.text, entry.error) == ("all!", "no room")
    assert summary == [Text("all")]
    fold(e.CompactionUpdated("c", "completed", None, None), onto=state)
    assert (entry.text, entry.error) == ("", None)


def test_a_summary_may_come_before_its_compaction() -> None:
    state = fold(e.CompactionSummary("c", Text("x")), e.CompactionUpdated("c", "completed"))
    assert len(state.entries) == 1


def test_messages_between_sessions_are_patched_and_grow() -> None:
    state = fold(
        e.PeerMessageChunk("m", Text("Hi")),
        e.PeerMessageUpdated("m", sender_session_id="a", recipient_session_id="b"),
        e.PeerMessageChunk("m", Text("!")),
        e.PeerMessageUpdated("m", recipient_session_id=None),
    )
    (entry,) = state.entries
    assert isinstance(entry, PeerMessageEntry)
    assert (entry.text, entry.sender_session_id, entry.recipient_session_id) == ("Hi!", "a", None)
    fold(e.PeerMessageUpdated("m", content=[Text("new")]), onto=state)
    assert entry.text == "new"
    fold(e.PeerMessageUpdated("m", content=None), onto=state)
    assert entry.text == ""


def test_an_unknown_update_is_kept() -> None:
    state = fold(e.UnknownUpdate("from_the_future", '{"a":1}'))
    assert state.entries == [UnknownEntry(kind="from_the_future", raw='{"a":1}', seq=1, size=71)]
    assert state.entries[0].text == ""


# ── all of it ─────────────────────────────────────────────────────────────────────────────────


def test_an_event_without_a_number_leaves_the_last_number() -> None:
    state = fold(said("one"))
    assert reduce(state, said("two")).last_seq == 1


def test_a_whole_session_can_be_written_down_and_read_again() -> None:
    state = fold(
        e.SessionOpened("s", "/", "new"),
        e.ModeChanged("a", [Mode("a", "A")]),
        started(),
        said("hi"),
        e.AgentMessage(Image("data", "image/png")),
        e.ToolCallUpdated("t", content=[Diff("/a", "b")], raw_input={"n": 2**70}),
        e.PermissionRequested("p", [PermissionOption("y", "Yes", "allow_once")]),
        e.ElicitationRequested("q", "?", "url", url="https://x"),
        e.TerminalStarted("x", ["ls"]),
        e.PromptQueued("q1", [Text("next")]),
    )
    assert copied(state) == state

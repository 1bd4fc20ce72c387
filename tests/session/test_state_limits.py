"""A state is bounded whatever an agent says, and still the fold of its events."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cost import Memory, calls
from support.examples import EXAMPLES
from support.folding import a_speech, any_events, copied

from dragoman.host.workspace.changes import MAX_KEPT_BYTES
from dragoman.hub.hub_limits import HubLimits
from dragoman.hub.running.event_recorder import MAX_SAID, MUCH_BYTES
from dragoman.hub.stored.stored_sessions import MOST_SAVED
from dragoman.session import events as e
from dragoman.session import facts as f
from dragoman.session.content import (
    UNREAD,
    ContentItem,
    Diff,
    Image,
    Location,
    Text,
    UnknownItem,
)
from dragoman.session.reduce import fold, reduce
from dragoman.session.state import (
    AgentEntry,
    AnyEntry,
    CompactionEntry,
    NoticeEntry,
    PeerMessageEntry,
    PlanEntry,
    SessionState,
    ThoughtEntry,
    ToolCall,
    UserEntry,
)
from dragoman.session.state_limits import LIMITS, ROW, Limits, fitted, weigh, weigh_struct
from dragoman.stream import MAX_STREAM_BYTES

SECURITY = Path(__file__).parents[2] / "docs" / "explanation" / "security.md"
MEASURED = Path(__file__).parents[1] / "web" / "test_floods.py"

SMALL = Limits(
    entry=4_000,
    thread=40_000,
    entries=100,
    turns=50,
    facts=4_000,
    fact=2_000,
    others=10,
    tail=2_000,
    tails=8_000,
    line=100,
)
SENT = 4_000_000
"""Characters of each kind that an agent sends here."""
KEPT = 400_000
"""Bytes that stay of them at most: a fraction of what the limits would add up to."""

MANY = EXAMPLES


def numbered(events: Iterator[e.Event]) -> Iterator[e.Event]:
    for seq, event in enumerate(events, 1):
        event.seq, event.at = seq, float(seq)
        yield event


# ── each kind of update, without end ──────────────────────────────────────────────────────────

WORDS = "lorem ipsum " * 100
BIG = "x" * 200_000


def tool(number: int, **fields: Any) -> e.Event:
    return e.ToolCallUpdated(f"call-{number}", **fields)


def item(text: str) -> ContentItem:
    return ContentItem(Text(text))


FLOODS: dict[str, Callable[[int], e.Event]] = {
    "small pieces": lambda n: e.AgentMessage(Text("hello")),
    "one message": lambda n: e.AgentMessage(Text(WORDS)),
    "one thought": lambda n: e.AgentThought(Text(WORDS)),
    "huge pieces": lambda n: e.AgentMessage(Text(BIG)),
    "what the user said": lambda n: e.UserMessage(Text(WORDS), replay=True),
    "messages with ids": lambda n: e.AgentMessage(Text(WORDS), f"m{n}"),
    "a few messages by turns": lambda n: e.AgentMessage(Text(WORDS), f"m{n % 50}"),
    "ids": lambda n: e.AgentMessage(Text("a"), f"{n}{BIG}"),
    "images": lambda n: e.AgentMessage(Image(WORDS, "image/png")),
    "huge images": lambda n: e.AgentMessage(Image(BIG, "image/png")),
    "annotated text": lambda n: e.AgentMessage(Text("a", meta={"words": WORDS})),
    "tool calls": lambda n: tool(n, title=WORDS),
    "small tool calls": lambda n: tool(n, title="hello"),
    "tool calls that are done": lambda n: tool(n, title=WORDS, status="completed"),
    "names and kinds": lambda n: tool(n, name=WORDS, kind=WORDS, status=WORDS),
    "content": lambda n: tool(0, content=[item(WORDS) for _ in range(100)]),
    "more content": lambda n: tool(0, more=[item(WORDS)]),
    "content of a few": lambda n: tool(n % 50, more=[item(WORDS)]),
    "diffs": lambda n: tool(n, content=[Diff("a.py", BIG, old_text=BIG)]),
    "what could not be read": lambda n: tool(0, more=[UnknownItem(UNREAD, BIG)]),
    "locations": lambda n: tool(0, locations=[Location(WORDS) for _ in range(100)]),
    "raw input": lambda n: tool(n, raw_input={"command": BIG}),
    "raw output": lambda n: tool(n, raw_output=[WORDS] * 100),
    "empty lists": lambda n: tool(n, raw_output=[[] for _ in range(1_000)]),
    "metadata": lambda n: tool(0, meta={f"key {n}": WORDS}),
    "tool ids": lambda n: tool(n, title="a") if n % 2 else e.ToolCallUpdated(f"{n}{BIG}"),
    "plans": lambda n: e.PlanUpdated([f.PlanStep(WORDS) for _ in range(100)]),
    "plans with ids": lambda n: e.PlanUpdated([f.PlanStep(WORDS)], plan_id=f"p{n}"),
    "Markdown": lambda n: e.PlanUpdated(markdown=BIG),
    "commands": lambda n: e.CommandsChanged([f.Command(WORDS) for _ in range(100)]),
    "modes": lambda n: e.ModeChanged(BIG, [f.Mode(WORDS, WORDS) for _ in range(50)]),
    "options": lambda n: e.ConfigChanged([f.ConfigOption(WORDS, WORDS, "v") for _ in range(50)]),
    "titles": lambda n: e.InfoChanged(BIG, BIG),
    "usage": lambda n: e.UsageChanged(n, n, f.Cost(1.0, BIG)),
    "notices": lambda n: e.Notice(WORDS, WORDS, WORDS),
    "compactions": lambda n: e.CompactionUpdated(f"c{n}", WORDS, [Text(WORDS)], WORDS),
    "summaries": lambda n: e.CompactionSummary("c", Text(WORDS)),
    "subagents": lambda n: e.SubagentUpdated(
        f"s{n}", WORDS, WORDS, f.SubagentState(WORDS, error={"a": WORDS}), WORDS, [WORDS]
    ),
    "messages between sessions": lambda n: e.PeerMessageUpdated(f"p{n}", BIG, content=[Text(BIG)]),
    "pieces of those": lambda n: e.PeerMessageChunk("p", Text(WORDS)),
    "background": lambda n: e.ActivityChanged(WORDS, [f.BackgroundWork(WORDS)] * 100),
    "the unknown": lambda n: e.UnknownUpdate(WORDS, WORDS),
    "terminals": lambda n: e.TerminalStarted(f"t{n}", [WORDS], WORDS, command=WORDS),
    "output": lambda n: e.TerminalOutput("t", WORDS),
    "output in small pieces": lambda n: e.TerminalOutput("t", "hello"),
    "output of many": lambda n: e.TerminalOutput(f"t{n}", WORDS),
    "ends of terminals": lambda n: e.TerminalExited(f"t{n}", signal=BIG),
    "ends of turns": lambda n: e.TurnEnded("turn", BIG, f.TokenUsage(1, 1, 1, meta={"a": BIG})),
    "errors": lambda n: e.TurnEnded("turn", error=BIG),
    "prompts": lambda n: e.TurnStarted(f"turn {n}", [Text(WORDS), Image(WORDS, "image/png")]),
}


def flood(make: Callable[[int], e.Event]) -> Iterator[e.Event]:
    yield e.TurnStarted("turn", [Text("Go")])
    sent = number = 0
    weight = max(500, weigh_struct(make(0)))
    while sent < SENT:
        yield make(number)
        sent, number = sent + weight, number + 1


@pytest.mark.parametrize("kind", FLOODS)
def test_of_what_an_agent_sends_without_end_little_is_kept(kind: str) -> None:
    state = SessionState()
    for event in numbered(flood(FLOODS[kind])):
        reduce(state, event, SMALL)
    assert len(msgspec.msgpack.encode(state)) < KEPT
    assert len(state.places) <= len(state.entries) + 3


def test_the_whole_is_bounded_when_an_agent_sends_everything() -> None:
    state = SessionState()
    for make in FLOODS.values():
        fold(state, numbered(flood(make)), SMALL)
    assert len(msgspec.msgpack.encode(state)) < KEPT


def _all_there_can_be_of(thread: Callable[[e.Event], e.Event], terminals: int) -> Iterator[e.Event]:
    """Every fact of a session or of a subagent, each larger than its room, except for words."""
    long = [WORDS] * 1_000
    yield thread(e.CommandsChanged([f.Command(each, each) for each in long]))
    yield thread(e.ConfigChanged([f.ConfigOption(each, each, "v") for each in long]))
    yield thread(e.ModeChanged(BIG, [f.Mode(each, each) for each in long]))
    yield thread(e.InfoChanged(BIG, BIG))
    yield thread(e.UsageChanged(1, 1, meta={"a": WORDS * 40}))
    yield thread(e.ActivityChanged("running", [f.BackgroundWork(WORDS)] * 1_000))
    for number in range(terminals):
        yield thread(e.TerminalStarted(f"t{number}", [WORDS] * 100, BIG, command=BIG))


def test_what_is_known_of_very_many_subagents_and_terminals_is_bounded() -> None:
    state, told = SessionState(), SECURITY.read_text()
    fold(state, numbered(_all_there_can_be_of(lambda event: event, LIMITS.others)))
    own = len(msgspec.json.encode(state))
    for number in range(LIMITS.others):
        name = f"s{number}"
        error = f.SubagentState("running", error={"a": BIG})
        updated = e.SubagentUpdated(name, BIG, BIG, error, BIG, [BIG], {"a": BIG})
        events = _all_there_can_be_of(lambda event, name=name: e.SubagentEvent(name, event), 10)
        fold(state, numbered(iter([updated, *events])))
    assert len(state.subagents) == LIMITS.others
    of_subagents = len(msgspec.json.encode(state)) - own
    facts = "command lines of terminals, and the commands, modes and options that the agent offers"
    for row, size in ((facts, own), ("everything else about subagents", of_subagents)):
        [mib] = re.findall(rf"^\| {row} \| (\d+) MiB", told, re.MULTILINE)
        assert size < int(mib) << 20


MOMENTARY: dict[str, e.Event] = {
    "words": e.AgentMessage(Text("a")),
    "words of a message": e.AgentMessage(Text("a"), "m"),
    "what the user said": e.UserMessage(Text("a")),
    "more content": tool(0, more=[item("a")]),
    "what could not be read": tool(0, more=[UnknownItem(UNREAD, "a")]),
    "a title": tool(0, title="a", status="pending"),
    "metadata": tool(0, meta={"a": 1}),
    "a location": tool(1, locations=[Location("a")]),
    "raw output": tool(1, raw_output="a"),
    "a plan": e.PlanUpdated([f.PlanStep("a")]),
    "a summary": e.CompactionSummary("c", Text("a")),
    "a message between sessions": e.PeerMessageChunk("p", Text("a")),
    "a subagent": e.SubagentUpdated("s", "a"),
    "commands": e.CommandsChanged([f.Command("a")]),
    "a mode": e.ModeChanged("a"),
    "an option": e.ConfigChanged([f.ConfigOption("a", "a", "v")]),
    "usage": e.UsageChanged(1, 1),
    "output": e.TerminalOutput("t", "a"),
    "a terminal": e.TerminalStarted("t", ["a"]),
    "activity": e.ActivityChanged("idle", []),
}


def crowded() -> SessionState:
    """Much of everything, in the midst of a turn."""
    items = [item("a") for _ in range(3_000)]
    events: list[e.Event] = [
        e.TurnStarted("turn", [Text("a") for _ in range(1_000)]),
        tool(0, content=items, meta={f"key {n}": n for n in range(3_000)}),
        tool(1, locations=[Location("a")] * 3_000, raw_output=["a"] * 3_000),
        *(tool(n, title="a") for n in range(2, 3_000)),
        *(e.AgentMessage(Image("a", "image/png"), "m") for _ in range(3_000)),
        *(e.CompactionSummary("c", Text("a")) for _ in range(3_000)),
        *(e.PeerMessageChunk("p", Text("a")) for _ in range(3_000)),
        e.PlanUpdated([f.PlanStep("a")] * 3_000),
        e.CommandsChanged([f.Command("a")] * 3_000),
        e.ConfigChanged([f.ConfigOption("a", "a", "v")] * 1_000),
        e.ActivityChanged("running", [f.BackgroundWork("subagent", session_id="a")] * 3_000),
        *(e.TerminalOutput(f"t{n}", "a") for n in range(200)),
        *(e.SubagentUpdated(f"s{n}", "a") for n in range(200)),
    ]
    return fold(SessionState(), numbered(iter(events)))


@pytest.mark.parametrize("kind", MOMENTARY)
def test_a_small_event_is_little_work_however_much_there_is(kind: str) -> None:
    state = crowded()
    event = MOMENTARY[kind]
    reduce(state, event)  # what is replaced by it was paid for when it came
    assert calls(lambda: reduce(state, event)) < 300


# ── what is cut is counted ────────────────────────────────────────────────────────────────────


def test_a_message_keeps_its_beginning_and_counts_the_rest() -> None:
    state = fold(SessionState(), flood(FLOODS["one message"]), SMALL)
    prompt, answer = state.entries
    assert isinstance(answer, AgentEntry)
    assert answer.text == (WORDS * 4)[: SMALL.entry]
    sent = sum(1 for _ in flood(FLOODS["one message"])) - 1
    assert answer.cut == sent * len(WORDS) - SMALL.entry
    assert (prompt.cut, state.entries_before) == (0, 0)


def test_small_pieces_cost_little_more_than_their_words() -> None:
    state = fold(SessionState(), [e.TurnStarted("t", []), e.AgentMessage(Text("hello"))])
    with Memory() as memory:
        for _ in range(20_000):
            fold(state, [e.AgentMessage(Text("hello"))])
    assert len(state.entries[-1].text) == 100_005
    assert memory.left < 200_000


def test_a_prompt_keeps_what_fits_and_is_still_known_when_it_is_told_again() -> None:
    words = "word " * 2_000
    state = SessionState()
    for event in (e.TurnStarted("t", [Text(words)]), e.UserMessage(Text(words))):
        reduce(state, event, SMALL)
    [prompt] = state.entries
    assert isinstance(prompt, UserEntry)
    assert words.startswith(prompt.text)
    assert prompt.cut > 0


def test_a_tool_call_of_which_something_was_cut_says_so() -> None:
    state = SessionState()
    reduce(state, tool(1, raw_input={"a": 1, "command": "x" * 5_000}, title="Run"), SMALL)
    [call] = state.entries
    assert isinstance(call, ToolCall)
    assert call.raw_input["a"] == 1
    assert 2_000 < len(call.raw_input["command"]) < SMALL.entry
    assert call.cut > 1_000
    assert call.title == "Run"[: len(call.title)]


def test_what_takes_the_place_of_something_has_its_room() -> None:
    state = SessionState()
    for _ in range(10):
        reduce(state, tool(1, content=[item("a" * 2_500)], raw_output="b" * 500), SMALL)
    [call] = state.entries
    assert isinstance(call, ToolCall)
    assert call.cut == 0
    assert call.raw_output == "b" * 500


def test_plain_json_is_cut_to_its_beginning() -> None:
    value = {"a": ["b"], "c": "d" * 1_000, "e": {"f": "g" * 1_000}}
    kept, weight = fitted(value, 600)
    assert weight == weigh(kept) <= 600
    assert kept["a"] == ["b"]
    assert set(kept["c"]) == {"d"}
    assert "e" not in kept
    assert fitted(value, 10_000)[0] is value
    assert fitted(7, 0) == (None, 64)


# ── the oldest entries leave ──────────────────────────────────────────────────────────────────


def test_the_oldest_entries_leave_and_are_counted() -> None:
    state = SessionState()
    for number in range(1_000):
        reduce(state, tool(number, title=str(number)), SMALL)
        assert len(state.entries) <= SMALL.entries
        assert state.entry_count == number + 1
    titles = [entry.text for entry in state.entries]
    assert titles == [str(n) for n in range(state.entries_before, 1_000)]
    assert len(titles) >= SMALL.entries // 2


def test_those_that_stay_are_still_found() -> None:
    state = SessionState()
    for number in range(1_000):
        reduce(state, tool(number), SMALL)
    last = state.tool_call("call-999")
    reduce(state, tool(999, status="completed"), SMALL)
    assert last is state.tool_call("call-999") is state.entries[-1]
    assert last is not None
    assert last.status == "completed"
    assert state.tool_call("call-0") is None


def test_a_tool_call_under_way_stays_while_others_come_and_go() -> None:
    state = fold(SessionState(), [e.TurnStarted("t", []), tool(0, title="long")], SMALL)
    for number in range(1, SMALL.entries + 50):
        reduce(state, tool(number, status="completed"), SMALL)
    reduce(state, tool(0, status="in_progress"), SMALL)
    first = state.tool_call("call-0")
    assert first is not None
    assert (first.title, first.status) == ("long", "in_progress")
    reduce(state, tool(0, status="completed"), SMALL)
    assert first.status == "completed"
    assert len(state.entries) <= SMALL.entries
    assert state.tool_call("call-0") is None


def test_however_many_are_under_way_there_is_an_end_to_it() -> None:
    state = fold(SessionState(), [e.TurnStarted("t", [])], SMALL)
    for number in range(10 * SMALL.entries):
        reduce(state, tool(number, title="a"), SMALL)
    assert len(state.entries) <= 2 * SMALL.entries


def test_what_is_told_of_an_entry_that_has_left_begins_another() -> None:
    state = SessionState()
    for number in range(1_000):
        reduce(state, tool(number, title="a"), SMALL)
    reduce(state, tool(0, status="completed"), SMALL)
    assert state.entries[-1] is state.tool_call("call-0")


# ── still the fold of its events ──────────────────────────────────────────────────────────────

TINY = Limits(
    entry=300,
    thread=2_500,
    entries=6,
    turns=2,
    facts=200,
    fact=200,
    others=2,
    tail=4,
    tails=12,
    line=2,
)


def one_by_one(events: list[e.Event], onto: SessionState | None = None) -> SessionState:
    state = SessionState() if onto is None else onto
    for event in events:
        reduce(state, event, TINY)
    return state


_histories = st.lists(any_events | a_speech, max_size=4).map(
    lambda parts: list(numbered(event for part in parts for event in part))
)


@MANY
@given(_histories, st.data())
def test_within_limits_many_at_once_come_to_the_same_as_one_by_one(
    events: list[e.Event], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(events)))
    whole = one_by_one(events)
    assert fold(one_by_one(events[:cut]), events[cut:], TINY) == whole
    assert one_by_one(events[cut:], copied(one_by_one(events[:cut]))) == whole


@MANY
@given(_histories)
def test_what_is_kept_is_weighed(events: list[e.Event]) -> None:
    state = SessionState()
    for event in events:
        reduce(state, event, TINY)
        assert [entry.size for entry in state.entries] == list(map(weight_of, state.entries))
        assert state.size == sum(ROW + entry.size for entry in state.entries)
        assert state.printed == sum(len(t.output) for t in state.terminals.values())
        assert len(state.entries) <= 2 * TINY.entries + 1
        assert all(place < state.entry_count for place in state.places.values())
        assert all(entry.size <= TINY.entry + 200 for entry in state.entries)


def weight_of(entry: AnyEntry) -> int:
    """All over again."""
    match entry:
        case UserEntry() | AgentEntry() | ThoughtEntry():
            texts = [p for p in entry.pieces if isinstance(p, str)]
            begun = entry.size if _is_prompt(entry) else sum(map(len, texts))
            if _is_prompt(entry):
                return begun
            parts = [p for p in entry.pieces if not isinstance(p, str)]
            return begun + 2 * len(entry.message_id or "") + sum(map(weigh_struct, parts))
        case ToolCall():
            fields = (entry.title, entry.name, entry.raw_input, entry.raw_output, entry.meta)
            return _named("tool:", entry.id, *fields) + _items(entry.content + entry.locations)
        case PlanEntry():
            key = f"plan:{entry.plan_id}" if entry.plan_id else "steps"
            return 2 * len(key) + _values(entry.markdown, entry.uri) + _items(entry.steps)
        case CompactionEntry():
            return _named("compaction:", entry.id, entry.error) + _items(entry.summary)
        case PeerMessageEntry():
            ids = (
                entry.sender_session_id,
                entry.recipient_session_id,
                entry.sender_message_id,
                entry.recipient_message_id,
            )
            return _named("peer:", entry.id, *ids) + _items(entry.content)
        case NoticeEntry():
            return _values(entry.title, entry.description)
        case _:
            return _values(getattr(entry, "raw", None), getattr(entry, "message", None))


def _is_prompt(entry: AnyEntry) -> bool:
    """Its texts are held as they came, and weigh as content."""
    return isinstance(entry, UserEntry) and entry.message_id is None


def _named(prefix: str, key: str, *values: Any) -> int:
    return 2 * len(prefix + key) + _values(*values)


def _values(*values: Any) -> int:
    return sum(weigh(value) for value in values if value)


def _items(items: list[Any]) -> int:
    return sum(map(weigh_struct, items))


def test_the_documentation_states_what_a_session_keeps_in_memory() -> None:
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", SECURITY.read_text(), re.MULTILINE)
    told = dict(rows)
    hub = HubLimits()
    thread = f"an estimated {_mib(LIMITS.thread)} in {LIMITS.entries:,} entries"
    assert told["the thread"].startswith(thread)
    assert told["one message or tool call"] == _mib(LIMITS.entry)
    assert told["output of terminals"] == f"{LIMITS.tails:,} characters"
    waiting = told["events waiting for the disk"]
    assert waiting.startswith(f"{_mib(MUCH_BYTES)} per session")
    given = _mib(hub.waiting_bytes)
    assert f"until {given} are being stored and another {given} are waiting" in waiting
    assert (
        told["prompts in the queue"]
        == f"{hub.queued_prompts}, and {_mib(hub.queued_bytes)} together"
    )
    indexed = told["text waiting to be indexed for search"]
    assert indexed.startswith(f"{MAX_SAID:,} characters")
    assert told["a slow reader"].startswith(_mib(MAX_STREAM_BYTES))
    assert told["changed files"].startswith(f"{_mib(MAX_KEPT_BYTES)} of what was written")
    saved = next(most for name, most in told.items() if name.startswith("saving the state"))
    assert saved.startswith(f"entries that take {_mib(MOST_SAVED)} as JSON")
    floods, security = MEASURED.read_text(), " ".join(SECURITY.read_text().split())
    for name, sentence in (
        ("PEAK", "adds less than {} MiB to a server"),
        (
            "MANY_PEAK",
            "A flood of anything else, such as large tool calls, plans, messages between "
            "sessions or updates that Dragoman does not know, adds less than {} MiB",
        ),
        ("WIDE_PEAK", "such as emoji, less than {} MiB"),
        ("LEFT", "at most {} MiB of that remain"),
    ):
        [size] = re.findall(rf"^{name} = (\d+) \* MIB$", floods, re.MULTILINE)
        assert sentence.format(size) in security


def _mib(size: int) -> str:
    return f"{size >> 20} MiB"


def test_an_integer_that_is_no_number_to_the_page_weighs_its_digits() -> None:
    assert weigh([10**300, 1]) == weigh([1, 1])
    long = 10**4299
    assert weigh(long) > 4299
    assert fitted([1, long, 2], 1_000) == ([1, 2], weigh([1, 2]))


def test_a_tool_call_full_of_long_integers_is_cut() -> None:
    call = e.ToolCallUpdated("c", title="x", raw_input=[10**4299] * 10, seq=1)
    state = fold(SessionState(), [call], SMALL)
    entry = state.entries[0]
    assert isinstance(entry, ToolCall)
    assert entry.cut
    assert entry.raw_input == []

"""Joined pieces say the same as the pieces did."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from dragoman.session import events as e
from dragoman.session.coalesce import MAX_LENGTH, Joined, coalesce
from dragoman.session.content import Image, Text
from dragoman.session.reduce import reduce
from dragoman.session.state import AgentEntry, SessionState, ThoughtEntry, UserEntry


def numbered(*events: e.Event) -> list[e.Event]:
    for seq, event in enumerate(events, 1):
        event.seq, event.at = seq, float(seq)
    return list(events)


def say(text: str, message_id: str | None = None) -> e.AgentMessage:
    return e.AgentMessage(Text(text), message_id)


def test_pieces_of_one_message_become_one_with_the_number_of_the_last() -> None:
    joined = list(coalesce(numbered(say("a"), say("b"), say("c"))))
    assert joined == [Joined(1, e.AgentMessage(Text("abc"), seq=3, at=1.0))]


def test_a_single_event_is_passed_on_as_it_is() -> None:
    [event] = numbered(e.PlanRemoved("plan"))
    [joined] = coalesce([event])
    assert joined.event is event
    assert joined.first_seq == 1


def test_what_is_not_the_same_text_is_not_joined() -> None:
    annotated = e.AgentMessage(Text("b", annotations={"a": 1}))
    pairs: list[tuple[e.Event, e.Event]] = [
        (say("a"), e.AgentThought(Text("b"))),
        (say("a", "1"), say("b", "2")),
        (say("a"), e.AgentMessage(Image("", "image/png"))),
        (say("a"), annotated),
        (annotated, say("a")),
        (say("a"), e.AgentMessage(Text("b"), meta={"x": 1})),
        (e.AgentMessage(Text("a"), meta={"x": 1}), say("b")),
        (say("a"), e.AgentMessage(Text("b"), replay=True)),
        (e.UserMessage(Text("a")), e.UserMessage(Text("b"))),
        (e.TerminalOutput("1", "a"), e.TerminalOutput("2", "b")),
        (e.PlanRemoved("a"), e.PlanRemoved("a")),
    ]
    for pair in pairs:
        assert [each.event for each in coalesce(numbered(*pair))] == list(pair)


def test_output_of_one_terminal_is_joined() -> None:
    events = numbered(e.TerminalOutput("1", "a"), e.TerminalOutput("1", "b"))
    [joined] = coalesce(events)
    assert joined == Joined(1, e.TerminalOutput("1", "ab", seq=2, at=1.0))


def test_thoughts_are_joined() -> None:
    events = numbered(e.AgentThought(Text("a")), e.AgentThought(Text("b")))
    assert [each.event.text for each in coalesce(events)] == ["ab"]


def test_a_joined_piece_is_bounded() -> None:
    events = numbered(*(say("x" * 1000) for _ in range(200)))
    joined = list(coalesce(events))
    assert max(len(each.event.text) for each in joined) <= MAX_LENGTH
    assert "".join(each.event.text for each in joined) == "x" * 200_000


def test_nothing_gives_nothing() -> None:
    assert list(coalesce([])) == []


def folded(events: list[e.Event]) -> SessionState:
    """Without what tells in how many pieces a text came, and when the last did."""
    state = SessionState()
    for event in events:
        reduce(state, msgspec.structs.replace(event))
    for entry in state.entries:
        entry.seq = 0
        if isinstance(entry, (UserEntry, AgentEntry, ThoughtEntry)):
            entry.pieces = ["".join(p for p in entry.pieces if isinstance(p, str))]
    for terminal in state.terminals.values():
        terminal.pieces = ["".join(terminal.pieces)]
    return state


_words = st.text(alphabet="ab ", min_size=1, max_size=4)
_texts = st.builds(Text, _words)
_ids = st.sampled_from([None, "1", "2"])
_prompt = st.just([Text("go")])
_events = st.one_of(
    st.builds(e.AgentMessage, _texts, _ids),
    st.builds(e.AgentThought, _texts, _ids),
    st.builds(e.TerminalOutput, st.sampled_from(["t1", "t2"]), _words),
    st.builds(e.ToolCallUpdated, st.just("call"), st.just("x")),
    st.builds(e.TurnStarted, st.sampled_from(["turn-1", "turn-2"]), _prompt),
)


@examples(400)
@given(st.lists(_events, max_size=30))
def test_the_fold_comes_to_the_same(events: list[e.Event]) -> None:
    events = numbered(*events)
    joined = list(coalesce(events))
    assert folded([each.event for each in joined]) == folded(events)
    numbers = [n for each in joined for n in range(each.first_seq, each.event.seq + 1)]
    assert numbers == [event.seq for event in events]

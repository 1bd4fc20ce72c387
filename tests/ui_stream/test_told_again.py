"""What is told again as a whole is told a bounded number of times, however often it changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.cost import calls

from dragoman.session import events as e
from dragoman.session.content import ContentItem, Location, Text, ToolContent
from dragoman.ui_stream import Encoder, encode
from dragoman.ui_stream.chunks import (
    Chunk,
    Data,
    ToolApprovalRequest,
    ToolInputAvailable,
    ToolOutputAvailable,
)
from dragoman.ui_stream.message_parts import INTERVAL, SMALL, Throttle

UPDATES = 400
BIG = "x" * 300_000


def tool(**fields: Any) -> e.Event:
    return e.ToolCallUpdated("c", **fields)


def items(count: int) -> list[ToolContent]:
    return [ContentItem(Text("x")) for _ in range(count)]


def child(title: str) -> e.Event:
    return e.SubagentUpdated("s", title=title)


FLOODS: dict[str, tuple[list[e.Event], Callable[[int], e.Event]]] = {
    "a title": (
        [tool(status="in_progress", content=items(3_000))],
        lambda n: tool(title=f"title {n}"),
    ),
    "an end and no end": (
        [tool(content=items(3_000))],
        lambda n: tool(status="completed" if n % 2 else "in_progress"),
    ),
    "one more item": ([tool(content=items(3_000))], lambda n: tool(more=items(1))),
    "metadata": ([tool(raw_input=BIG)], lambda n: tool(meta={f"{n}": n})),
    "places": ([tool(locations=[Location("a")] * 3_000)], lambda n: tool(title=f"title {n}")),
    "input": ([tool(raw_input=BIG)], lambda n: tool(title=f"title {n}")),
    "output": (
        [tool(status="in_progress", raw_output=BIG)],
        lambda n: tool(name=f"name {n}"),
    ),
    "a summary": (
        [e.CompactionSummary("c", Text(BIG))],
        lambda n: e.CompactionSummary("c", Text("a")),
    ),
    "a message between sessions": (
        [e.PeerMessageChunk("p", Text(BIG))],
        lambda n: e.PeerMessageChunk("p", Text("a")),
    ),
    "a subagent": (
        [e.SubagentUpdated("s", description="x" * 10_000)],
        lambda n: child(f"title {n}"),
    ),
    "a terminal": ([e.TerminalOutput("t", BIG)], lambda n: e.TerminalOutput("t", "a")),
    "ends of a terminal": (
        [e.TerminalOutput("t", BIG)],
        lambda n: e.TerminalExited("t", n) if n % 2 else e.TerminalOutput("t", "a"),
    ),
}


def begun(*events: e.Event) -> Encoder:
    encoder = Encoder()
    encoder.feed(e.TurnStarted("t", [Text("go")], at=1.0))
    for event in events:
        event.at = 1.0
        encoder.feed(event)
    return encoder


@pytest.mark.parametrize("kind", FLOODS)
def test_little_is_told_and_done_for_a_small_change_of_something_large(kind: str) -> None:
    first, change = FLOODS[kind]
    encoder = begun(*first)
    told = 0

    def flooded() -> None:
        nonlocal told
        for number in range(UPDATES):
            event = change(number)
            event.at = 1.0 + number / UPDATES
            told += sum(len(encode(chunk)) for chunk in encoder.feed(event))

    # All of it is told a few times in that second; it was hundreds.
    assert calls(flooded) < 400 * UPDATES
    assert told < 2_000_000


def told_last(kind: str, pause: float) -> dict[tuple[type[Chunk], object], bytes]:
    """What each part of a message says in the end, with so many seconds between the events."""
    first, change = FLOODS[kind]
    encoder = begun(*first)
    chunks: list[Chunk] = []
    for number in range(10):
        event = change(number)
        event.at = 1.0 + pause * number
        chunks += encoder.feed(event)
    chunks += encoder.feed(e.TurnEnded("t", "end_turn", at=1.0 + 9 * pause))
    return {(type(each), getattr(each, "id", None)): encode(each) for each in chunks}


@pytest.mark.parametrize("kind", FLOODS)
def test_what_was_held_back_is_told_at_the_end(kind: str) -> None:
    hurried, unhurried = told_last(kind, 0.0), told_last(kind, 100.0)
    assert hurried.items() <= unhurried.items()
    # Only an input may be left out in a hurry: the output that follows it says the same.
    left_out = {type_ for type_, _ in unhurried.keys() - hurried.keys()}
    assert left_out <= {ToolInputAvailable}


def test_what_was_held_back_is_told_when_it_is_due() -> None:
    encoder = begun(e.PeerMessageChunk("p", Text(BIG)))
    assert not encoder.feed(e.PeerMessageChunk("p", Text("b"), at=1.0))
    assert (due := encoder.due) is not None
    assert 1.0 + INTERVAL < due < 3.0
    assert not encoder.tick(due - 0.1)
    assert len(encoder.tick(due)) == 1
    assert encoder.due is None


def test_the_end_of_a_large_call_is_told_at_once() -> None:
    encoder = begun(tool(status="in_progress", content=items(3_000)))
    assert not encoder.feed(e.ToolCallUpdated("c", title="a", at=1.0))
    told = encoder.feed(e.ToolCallUpdated("c", status="completed", at=1.0))
    assert ToolOutputAvailable in map(type, told)


def test_a_question_is_asked_about_the_call_as_it_is() -> None:
    encoder = begun(tool(raw_input=BIG))
    assert not encoder.feed(e.ToolCallUpdated("c", title="the title", at=1.0))
    request = e.PermissionRequested("r", [], tool_call_id="c", at=1.0)
    types = [*map(type, encoder.feed(request))]
    assert types.index(ToolInputAvailable) < types.index(ToolApprovalRequest)


def test_a_small_part_is_told_whenever_it_changes() -> None:
    encoder = begun(e.PeerMessageChunk("p", Text("a")))
    for _ in range(5):
        [chunk] = encoder.feed(e.PeerMessageChunk("p", Text("a"), at=1.0))
        assert isinstance(chunk, Data)


def test_the_throttle_remembers_few_of_those_that_rest_no_longer() -> None:
    throttle = Throttle()
    for number in range(20_000):
        throttle.hold(f"{number}")
        assert throttle.release(float(number)) == [f"{number}"]
        throttle.rest(f"{number}", float(number), SMALL + 1)
    assert len(throttle._shown) <= 1_001  # pyright: ignore[reportPrivateUsage]


def test_what_is_held_is_not_looked_through_for_every_event() -> None:
    throttle = Throttle()
    for number in range(2_000):
        throttle.rest(f"{number}", 1.0, 2**20)
        throttle.hold(f"{number}")
    assert calls(lambda: throttle.release(1.0 + INTERVAL)) < 10

"""Whatever happens in whatever order, the stream is one that a page can read."""

from __future__ import annotations

import random
from typing import Any, Literal, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from support.ai_sdk_judge import RELEASES, Case, judge, stream_of
from support.chunk_rules import Told
from support.examples import examples
from support.folding import KINDS, any_events

from dragoman.session import events as e
from dragoman.session.content import Diff, TerminalItem, Text
from dragoman.session.facts import Decision, PermissionOption
from dragoman.ui_stream import messages
from dragoman.ui_stream.chunks import Sdk

SOME = examples(100)
MANY = examples(500)
_ids = st.sampled_from(["a", "b", "c"])
_statuses = st.sampled_from(["pending", "in_progress", "completed", "failed", "odd"])
_outputs: st.SearchStrategy[Any] = st.sampled_from([UNSET, None, "out", {"error": "bad"}])
_titles = st.sampled_from([UNSET, None, "Run", "Edit"])
_options = [
    PermissionOption("yes", "Yes", "allow_once"),
    PermissionOption("no", "No", "reject_once"),
]
_decisions = st.builds(
    Decision, effect=st.sampled_from(["allow", "deny", "cancelled"]), reason=st.just("so")
)
_busy: st.SearchStrategy[e.Event] = st.one_of(
    st.builds(e.AgentMessage, content=st.just(Text("word")), message_id=st.none() | _ids),
    st.builds(
        e.ToolCallUpdated,
        tool_call_id=_ids,
        title=_titles,
        status=_statuses | st.just(UNSET),
        content=st.sampled_from([UNSET, [], [Diff("/a", "new")], [TerminalItem("a")]]),
        raw_input=st.sampled_from([UNSET, None, {"command": "ls"}]),
        raw_output=_outputs,
    ),
    st.builds(
        e.PermissionRequested,
        request_id=_ids,
        options=st.just(_options),
        tool_call_id=st.none() | _ids,
    ),
    st.builds(e.PermissionSettled, request_id=_ids, option_id=st.none(), decision=_decisions),
    st.builds(e.TerminalOutput, terminal_id=_ids, data=st.just("line")),
    st.builds(e.ElicitationRequested, request_id=_ids, message=st.just("?"), mode=st.just("form")),
)
_stories = any_events | st.lists(_busy, max_size=40)
"""Anything there is, or a crowd of tools and questions that meet."""
_sdks: st.SearchStrategy[Sdk] = st.sampled_from([None, 6, 7])


def told(events: list[e.Event], sdk: Sdk, seed: int) -> Told:
    """The events as a turn, with answers at random moments."""
    chance = random.Random(seed)
    story = Told(sdk)
    story.feed(e.TurnStarted("t1", [Text("go")]))
    for number, event in enumerate(events):
        event.at = number / 10
        story.feed(event)
        if story.encoder.waiting and chance.random() < 0.4:
            story.resume(chance.random() < 0.5)
        if story.encoder.due is not None and chance.random() < 0.2:
            story.streams[-1] += (chunks := story.encoder.tick(number / 10 + 1))
            story.message.apply(*chunks)
    story.close()
    return story


def test_every_kind_of_event_is_tried() -> None:
    assert set(KINDS) == set(get_args(e.Event))


@SOME
@given(_stories, _sdks, st.integers(0, 9))
def test_any_events_make_streams_that_keep_the_rules(
    events: list[e.Event], sdk: Sdk, seed: int
) -> None:
    assert told(events, sdk, seed).problems == []


@SOME
@given(_stories, _sdks)
def test_all_events_at_once_make_streams_that_keep_the_rules(
    events: list[e.Event], sdk: Sdk
) -> None:
    _tell_at_once(events, sdk)


def _tell_at_once(events: list[e.Event], sdk: Sdk) -> None:
    story = Told(sdk)
    story.feed(e.TurnStarted("t1", [Text("go")]), *events)
    while story.encoder.waiting:
        story.resume(approved=True)
    story.close()
    assert story.problems == []


@SOME
@given(_stories)
def test_encoding_changes_no_event(events: list[e.Event]) -> None:
    _encode(events)


def _encode(events: list[e.Event]) -> None:
    before = [msgspec.json.encode(event) for event in events]
    story = Told()
    story.feed(e.TurnStarted("t1", []), *events)
    messages(events)
    assert [msgspec.json.encode(event) for event in events] == before


@pytest.mark.soak
@MANY
@given(_stories, _sdks, st.integers(0, 9))
def test_very_many_events_make_streams_that_keep_the_rules_and_are_not_changed(
    events: list[e.Event], sdk: Sdk, seed: int
) -> None:
    _encode(events)
    _tell_at_once(events, sdk)
    assert told(events, sdk, seed).problems == []


@pytest.mark.parametrize("release", RELEASES)
def test_the_sdk_reads_a_sample_of_streams_as_we_do(release: Literal[6, 7]) -> None:
    check_with_the_sdk(release, 40)


@pytest.mark.soak
@pytest.mark.parametrize("release", RELEASES)
def test_the_sdk_reads_very_many_streams_as_we_do(release: Literal[6, 7]) -> None:
    check_with_the_sdk(release, 5000)


def check_with_the_sdk(release: Literal[6, 7], count: int) -> None:
    """It takes random streams, and makes the messages that we make."""
    stories: list[Told] = []

    @settings(max_examples=count, deadline=None, derandomize=True, database=None)
    @given(_stories, st.integers(0, 9))
    def collect(events: list[e.Event], seed: int) -> None:
        stories.append(told(events, release, seed))

    collect()
    cases = [Case(release, [*map(stream_of, s.streams)], s.answers) for s in stories]
    for story, case, verdict in zip(stories, cases, judge(cases), strict=True):
        assert verdict.problems == [], case.streams
        assert verdict.message == msgspec.to_builtins(story.message.message), case.streams

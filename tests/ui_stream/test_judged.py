"""Whole turns of the demo agent, judged by the AI SDK's own parser and reducer."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.ai_sdk_judge import RELEASES, Case, Verdict, judge, node, stream_of
from support.chunk_rules import Told
from support.demo_chat import SCENES, Performed, performed, retold

from dragoman.session import events as e
from dragoman.session.content import Text
from dragoman.session.facts import SubagentState
from dragoman.ui_stream import messages
from dragoman.ui_stream.chunks import Sdk

NAMES = [scene.name for scene in SCENES]


@pytest.fixture(scope="module")
def performances(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Performed]:
    """Every scene, once."""

    async def all_of_them() -> list[Performed]:
        async with asyncio.timeout(50):
            folders = [tmp_path_factory.mktemp("scene") for _ in SCENES]
            return [await performed(s, f) for s, f in zip(SCENES, folders, strict=True)]

    return dict(zip(NAMES, asyncio.run(all_of_them()), strict=True))


Judged = dict[tuple[str, int, Sdk], tuple[Told, Verdict]]


@pytest.fixture(scope="module")
def judged(performances: dict[str, Performed]) -> Judged:
    """Each scene told for one release or for both, read by each release that can."""
    combinations: list[tuple[int, Sdk]] = [(6, None), (7, None), (6, 6), (7, 7)]
    keys: list[tuple[str, int, Sdk]] = [
        (name, release, sdk) for name in NAMES for release, sdk in combinations
    ]
    stories = [retold(performances[name], sdk) for name, _, sdk in keys]
    cases = [
        Case(release, [*map(stream_of, story.streams)], story.answers)
        for (_, release, _), story in zip(keys, stories, strict=True)
    ]
    return dict(zip(keys, zip(stories, judge(cases), strict=True), strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_the_sdk_accepts_the_stream_and_makes_the_message_that_we_make(
    judged: Judged, name: str
) -> None:
    for (scene, _, _), (story, verdict) in judged.items():
        if scene == name:
            assert verdict.problems == []
            assert verdict.message == msgspec.to_builtins(story.message.message)


def message(judged: Judged, name: str, release: int = 7) -> dict[str, Any]:
    return judged[name, release, None][1].message


def parts(judged: Judged, name: str, kind: str) -> list[dict[str, Any]]:
    return [part for part in message(judged, name)["parts"] if part["type"] == kind]


def test_an_allowed_turn_shows_all_there_is(judged: Judged) -> None:
    found = {part["type"] for part in message(judged, "allowed")["parts"]}
    assert found >= {"step-start", "text", "reasoning", "dynamic-tool", "data-acp-plan"}
    assert found >= {"data-acp-tool", "data-acp-terminal", "data-acp-permission"}
    tools = parts(judged, "allowed", "dynamic-tool")
    assert {tool["state"] for tool in tools} == {"output-available"}
    assert [tool["approval"]["approved"] for tool in tools if "approval" in tool] == [True, True]
    [terminal] = parts(judged, "allowed", "data-acp-terminal")
    assert terminal["data"]["exitCode"] == 0
    acp = message(judged, "allowed")["metadata"]["acp"]
    assert acp["stopReason"] == "end_turn"
    assert acp["usage"]["size"] == 128_000


def test_an_allowed_turn_goes_on_in_the_same_message(judged: Judged) -> None:
    story, verdict = judged["allowed", 7, None]
    assert len(story.streams) == 3
    assert [types[-2:] for types in verdict.chunks[:-1]] == [["finish-step", "finish"]] * 2
    assert {types[0] for types in verdict.chunks} == {"start"}


def test_a_denied_turn_says_so_and_keeps_the_diff(judged: Judged) -> None:
    states = [tool["state"] for tool in parts(judged, "denied", "dynamic-tool")]
    assert "output-denied" in states
    diffs = [
        item
        for part in parts(judged, "denied", "data-acp-tool")
        for item in part["data"].get("content", [])
        if item["type"] == "diff"
    ]
    assert len(diffs) == 1
    assert message(judged, "denied")["metadata"]["acp"]["stopReason"] == "end_turn"


@pytest.mark.parametrize("name", ["cancelled", "cancelled while asking"])
def test_a_cancelled_turn_ends_with_abort(judged: Judged, name: str) -> None:
    assert judged[name, 6, None][1].chunks[-1][-1] == "abort"
    assert message(judged, name, 6)["metadata"]["acp"]["stopReason"] == "cancelled"


@pytest.mark.parametrize(("name", "words"), [("crashed", "code 3"), ("failed", "it broke")])
def test_a_turn_cut_short_ends_with_an_error(judged: Judged, name: str, words: str) -> None:
    assert judged[name, 7, None][1].chunks[-1][-1] == "error"
    assert words in message(judged, name)["metadata"]["acp"]["error"]


def test_a_form_is_a_data_part_that_the_stream_waits_for(judged: Judged) -> None:
    [form] = parts(judged, "form", "data-acp-elicitation")
    assert form["data"]["status"] == "settled"
    assert form["data"]["action"] == "accept"
    assert "Ada" not in str(form)
    assert len(judged["form", 7, None][0].streams) == 2


def test_a_stream_is_written_live_as_it_is_from_the_record(
    performances: dict[str, Performed],
) -> None:
    for performance in performances.values():
        again = retold(performance, None)
        assert [len(chunks) for chunks in again.streams] == performance.live


def test_the_sdk_accepts_steers_and_subagents_in_the_middle_of_a_message() -> None:
    child = e.SubagentUpdated("child", title="Reader", state=SubagentState("running"))
    events: list[e.Event] = [
        e.TurnStarted("t", [Text("go")]),
        e.AgentMessage(Text("One ")),
        child,
        e.Steered("q-1", "delivered", "steering", [Text("the tests too")]),
        e.SubagentEvent("child", e.AgentMessage(Text("I read."))),
        e.Steered("q-2", "refused", "run", [Text("never mind")], "no such run"),
        e.AgentMessage(Text("two.")),
        e.SubagentUpdated("child", state=SubagentState("idle", stop_reason="end_turn")),
        e.TurnEnded("t", "end_turn"),
    ]
    numbered = [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(events, 1)]
    cases: list[Case] = []
    for end in range(2, len(events) + 1):
        story = Told()
        story.feed(*numbered[:end])
        story.close()
        cases += [Case(release, [*map(stream_of, story.streams)]) for release in RELEASES]
    verdicts = judge(cases)
    assert [verdict.problems for verdict in verdicts] == [[]] * len(cases)
    found = verdicts[-1].message["parts"]
    steers = [part["data"] for part in found if part["type"] == "data-acp-steer"]
    assert [(each["way"], each["outcome"]) for each in steers] == [
        ("steering", "delivered"),
        ("run", "refused"),
    ]
    assert steers[0]["content"] == [{"type": "text", "text": "the tests too"}]
    [subagent] = [part["data"] for part in found if part["type"] == "data-acp-subagent"]
    assert subagent["title"] == "Reader"


# ── resuming, and stored sessions ─────────────────────────────────────────────────────────────


def test_a_page_that_comes_back_is_told_the_message_from_its_start(
    performances: dict[str, Performed],
) -> None:
    """In mid-turn and with questions settled, open or none: each time a stream the SDK takes."""
    events = performances["allowed"].events
    asked = performances["allowed"].asked
    cases: list[Case] = []
    for end in range(3, len(events), 7):
        seen = events[:end]
        settled = {x.request_id for x in seen if isinstance(x, e.PermissionSettled)}
        story = Told()
        story.feed(*seen, pending=set(asked) - settled)
        story.close()
        cases += [Case(release, [stream_of(story.streams[0])]) for release in RELEASES]
    assert [verdict.problems for verdict in judge(cases)] == [[]] * len(cases)


def test_stored_sessions_are_messages_that_the_sdk_takes(
    performances: dict[str, Performed],
) -> None:
    stored = {name: messages(found.events) for name, found in performances.items()}
    cases = [Case(r, messages=found) for found in stored.values() for r in RELEASES]
    assert [verdict.problems for verdict in judge(cases)] == [[]] * len(cases)
    for name, (user, answer) in stored.items():
        assert user.parts[0]["text"] == performances[name].scene.prompt
        assert answer.metadata == retold(performances[name], None).message.message.metadata


# ── the laboratory's own judge ────────────────────────────────────────────────────────────────


@pytest.mark.skipif(not os.environ.get("DRAGOMAN_LAB"), reason="DRAGOMAN_LAB names no laboratory")
@pytest.mark.within(110)
def test_the_laboratory_agrees(judged: Judged, tmp_path: Path) -> None:
    laboratory = Path(os.environ["DRAGOMAN_LAB"])
    if not (laboratory / "node_modules").exists():
        pytest.skip("the laboratory's judge is not set up: run npm ci there, or in a copy of it")
    program = laboratory / "check-ui-stream.mjs"
    body, known = tmp_path / "stream.txt", tmp_path / "message.json"
    for (name, release, sdk), (story, _) in judged.items():
        if sdk is not None:
            continue
        for number, chunks in enumerate(story.streams):
            body.write_text(stream_of(chunks))
            command = [node(), str(program), "--ai", str(release), "--ndjson", str(body)]
            if number:
                known.write_bytes(msgspec.json.encode(story.answered[number - 1]))
                command += ["--message", str(known)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
            assert done.returncode == 0, (name, release, done.stdout, done.stderr)

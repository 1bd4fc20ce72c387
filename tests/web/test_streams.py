"""Streams of events: each event once and in order, whatever happens to the connection."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.raw_agent import RawAgent
from support.serving import SECONDS, STREAM, Sent, Served, also_served, sent_events, served

from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.steps import say
from dragoman.web.streams import stream_response
from dragoman.web.streams.sse import HEARTBEAT
from dragoman.web.streams.stream_response import merged

SEED = 20_250_611


def talking(count: int, pause_every: int = 0) -> ScriptedAgent:
    """Says so many words, the last of which is `end`."""

    async def script(turn: AgentTurn) -> None:
        for number in range(count):
            turn.say(f"w{number} ")
            if pause_every and number % pause_every == 0:
                await asyncio.sleep(0)
        turn.say("end")

    return ScriptedAgent(script)


async def stored(web: Served, session_id: str) -> list[dict[str, Any]]:
    """All events of a session, as pages of JSON tell it."""
    found: list[dict[str, Any]] = []
    while True:
        after = found[-1]["seq"] if found else 0
        path = f"/api/sessions/{session_id}/events?after={after}&limit=5000"
        page = await web.call("GET", path)
        found += page["events"]
        if not page["events"] or page["last"] == found[-1]["seq"]:
            return found


async def read_until_end(events: AsyncIterator[Sent]) -> list[Sent]:
    found: list[Sent] = []
    async for sent in events:
        found.append(sent)
        if '"turn_ended"' in sent.data:
            return found
    return found


# ── one reader ────────────────────────────────────────────────────────────────────────────────


async def test_a_stream_tells_what_was_and_what_comes(tmp_path: Path) -> None:
    async with served(tmp_path, {"scripted": ScriptedAgent([say("hello")])}) as web:
        session_id = await web.new_session()
        path = f"/api/sessions/{session_id}/events"
        async with web.http.stream("GET", path, headers=STREAM) as response:
            assert response.headers["content-type"] == "text/event-stream"
            await web.prompt(session_id)
            told = await read_until_end(sent_events(response))
        assert [sent.json for sent in told] == await stored(web, session_id)
        assert [sent.id for sent in told] == [str(n) for n in range(1, len(told) + 1)]


async def stored_to_its_end(web: Served, path: str) -> None:
    """A turn is over a moment before all of it is stored."""
    async with asyncio.timeout(SECONDS):
        while (await web.call("GET", path))["events"][-1]["type"] != "turn_ended":  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_pages_of_json_have_a_cursor(tmp_path: Path) -> None:
    async with served(tmp_path, {"scripted": talking(20)}) as web:
        session_id = await web.new_session()
        await web.done(session_id)
        path = f"/api/sessions/{session_id}/events"
        await stored_to_its_end(web, path)
        first = await web.call("GET", f"{path}?limit=5")
        second = await web.call("GET", f"{path}?after=5&limit=5")
        assert [event["seq"] for event in first["events"]] == [1, 2, 3, 4, 5]
        assert [event["seq"] for event in second["events"]] == [6, 7, 8, 9, 10]
        assert first["last"] == second["last"] > 20


async def test_a_page_of_some_types_has_a_bound_too(tmp_path: Path) -> None:
    async def script(turn: AgentTurn) -> None:
        for _ in range(10):
            turn.say("x" * 1_000_000)
            turn.think("y")

    async with served(tmp_path, {"scripted": ScriptedAgent(script)}) as web:
        session_id = await web.new_session()
        await web.done(session_id)
        after, words = 0, 0
        while True:
            path = f"/api/sessions/{session_id}/events?types=agent_message&after={after}&limit=5000"
            answer = await web.http.get(path)
            assert len(answer.content) < 4.1 * 2**20
            if not (events := answer.json()["events"]):
                break
            assert {event["type"] for event in events} == {"agent_message"}
            after, words = events[-1]["seq"], words + len(events)
    assert words == 10


async def test_last_event_id_counts_before_after(tmp_path: Path) -> None:
    async with served(tmp_path, {"scripted": ScriptedAgent([say("hello")])}) as web:
        session_id = await web.new_session()
        await web.done(session_id)
        path = f"/api/sessions/{session_id}/events?after=1"
        headers = {**STREAM, "last-event-id": "3"}
        async with web.http.stream("GET", path, headers=headers) as response:
            assert (await anext(sent_events(response))).id == "4"
        bad = {**STREAM, "last-event-id": "no number"}
        assert await web.refused("GET", path, headers=bad) == (400, "invalid")


async def test_a_cursor_ahead_of_everything_is_an_explicit_reset(tmp_path: Path) -> None:
    async with served(tmp_path, {"scripted": ScriptedAgent([say("hello")])}) as web:
        session_id = await web.new_session()
        await web.done(session_id)
        headers = {**STREAM, "last-event-id": "1000000"}
        path = f"/api/sessions/{session_id}/events"
        async with web.http.stream("GET", path, headers=headers) as response:
            events = sent_events(response)
            reset, first = await anext(events), await anext(events)
            assert (reset.event, reset.id, reset.json["after"]) == ("reset", "0", 0)
            assert (first.event, first.id) == ("message", "1")
        async with web.http.stream("GET", "/api/events", headers=headers) as response:
            reset = await anext(sent_events(response))
            last = await web.server.hub.store.last_position()
            assert (reset.event, reset.id) == ("reset", str(last))


async def test_all_sessions_are_told_in_one_stream(tmp_path: Path) -> None:
    async with served(tmp_path, {"scripted": ScriptedAgent([say("hello")])}) as web:
        async with web.http.stream("GET", "/api/events") as response:
            events = sent_events(response)
            assert (await anext(events)).event == "position"
            ids = [await web.new_session() for _ in range(3)]
            for session_id in ids:
                await web.done(session_id)
            expected = {session_id: await stored(web, session_id) for session_id in ids}
            count = sum(map(len, expected.values()))
            told = [await anext(events) for _ in range(count)]
        found: dict[str, list[Any]] = {session_id: [] for session_id in ids}
        for sent in told:
            found[sent.json["sessionId"]].append(sent.json["event"])
        assert found == expected
        positions = [int(sent.id or 0) for sent in told]
        assert positions == sorted(set(positions))


async def test_a_list_says_where_the_stream_stood(tmp_path: Path) -> None:
    async with served(tmp_path, {"scripted": ScriptedAgent([say("hello")])}) as web:
        session_id = await web.new_session()
        position = (await web.call("GET", "/api/sessions"))["position"]
        await web.done(session_id)
        path = f"/api/events?after={position}"
        async with web.http.stream("GET", path) as response:
            first = await anext(sent_events(response))
        assert first.json["event"]["type"] == "turn_started"


async def test_a_quiet_stream_has_a_heartbeat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_response, "BEAT_SECONDS", 0.05)
    async with (
        served(tmp_path) as web,
        web.http.stream("GET", "/api/events") as response,
    ):
        text = ""
        async for piece in response.aiter_text():
            text += piece
            if HEARTBEAT.decode() in text:
                break
        assert text.startswith("retry: ")


async def test_the_stream_of_a_deleted_session_ends_at_once(tmp_path: Path) -> None:
    async with served(tmp_path, {"scripted": ScriptedAgent()}) as web:
        session_id = await web.new_session()
        path = f"/api/sessions/{session_id}/events"
        async with web.http.stream("GET", path, headers=STREAM) as response:
            await web.call("DELETE", f"/api/sessions/{session_id}")
            told = [sent.event async for sent in sent_events(response)]
        assert told[-1] == "gone"
        assert await web.refused("GET", path, headers=STREAM) == (404, "unknown_session")


async def _next_of(events: AsyncIterator[Sent], *names: str) -> Sent:
    """The next frame of one of these names."""
    async with asyncio.timeout(60):
        async for sent in events:
            if sent.event in names:
                return sent
    raise AssertionError("the stream ended")


async def test_readers_of_all_sessions_are_told_what_the_list_says_now(tmp_path: Path) -> None:
    async with served(tmp_path, {"scripted": ScriptedAgent()}) as web:
        session_id = await web.new_session()
        path = f"/api/sessions/{session_id}"
        async with web.http.stream("GET", "/api/events") as response:
            events = sent_events(response)
            await _next_of(events, "position")
            await web.call("PATCH", path, {"title": "Mine"})
            renamed = await _next_of(events, "session")
            assert renamed.json == {
                "sessionId": session_id,
                "title": "Mine",
                "renamed": True,
                "name": None,
                "archived": False,
            }
            assert renamed.id is None
            await web.call("PATCH", path, {"archived": True})
            assert (await _next_of(events, "session")).json["archived"] is True
            await web.call("DELETE", path)
            assert (await _next_of(events, "session", "deleted")).json == {"sessionId": session_id}


async def test_readers_are_told_when_an_agent_asks_something_outside_of_sessions(
    tmp_path: Path,
) -> None:
    """Also when it asks on its own, while nobody waits for it."""
    agent = RawAgent()
    async with served(tmp_path, {"raw": agent}) as web:
        await web.call("POST", "/api/sessions", {"agent": "raw", "cwd": str(tmp_path)})
        async with web.http.stream("GET", "/api/events") as response:
            events = sent_events(response)
            await _next_of(events, "position")
            form = {"mode": "form", "message": "Which team?", "requestedSchema": TEAM}
            asking = asyncio.create_task(agent.ask("elicitation/create", form))
            assert (await _next_of(events, "questions")).json == {"agents": ["raw"]}
            [asked] = (await web.call("GET", "/api/questions"))["questions"]
            assert (asked["agent"], asked["message"]) == ("raw", "Which team?")
            answer = {"action": "accept", "content": {"team": "red"}}
            await web.call("POST", f"/api/agents/raw/questions/{asked['id']}", answer)
            assert (await asking)["result"] == answer
            assert (await _next_of(events, "questions")).json == {"agents": []}
            assert await web.call("GET", "/api/questions") == {"questions": []}


TEAM = {"type": "object", "properties": {"team": {"type": "string"}}, "required": ["team"]}


async def test_what_another_process_renames_and_deletes_is_told_too(tmp_path: Path) -> None:
    async with (
        served(tmp_path, {"scripted": ScriptedAgent()}, on_disk=True) as web,
        also_served(tmp_path, {"scripted": ScriptedAgent()}, on_disk=True) as other,
    ):
        session_id = await web.new_session()
        await web.call("POST", f"/api/sessions/{session_id}/close")
        async with web.http.stream("GET", "/api/events") as response:
            events = sent_events(response)
            await _next_of(events, "position")
            path = f"/api/sessions/{session_id}"
            await other.call("PATCH", path, {"title": "Theirs"})
            assert (await _next_of(events, "session")).json["title"] == "Theirs"
            await other.call("DELETE", f"{path}?local=true")
            assert (await _next_of(events, "deleted")).json == {"sessionId": session_id}


@pytest.mark.own_time
async def test_several_sources_are_told_as_they_come_and_all_of_them_end() -> None:
    ended: list[str] = []

    async def source(name: str, *seconds: float) -> AsyncGenerator[str]:
        try:
            for number, pause in enumerate(seconds):
                await asyncio.sleep(pause)
                yield f"{name}{number}"
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append(name)

    both = merged(source("a", 0, 0.2), source("b", 0.1))
    assert [await anext(both) for _ in range(3)] == ["a0", "b0", "a1"]
    await both.aclose()
    assert sorted(ended) == ["a", "b"]


# ── cut off, again and again ──────────────────────────────────────────────────────────────────


async def _log_with_cuts(web: Served, path: str, cuts: int, last: str, draw: random.Random):
    """Everything a reader sees that is cut off so many times and comes back with its cursor."""
    log: list[Sent] = []
    for cut in range(cuts + 1):
        headers = {**STREAM, "last-event-id": log[-1].id or "0"} if log else STREAM
        most = draw.randrange(1, 60) if cut < cuts else None
        async with web.http.stream("GET", path, headers=headers) as response:
            seen = 0
            async for sent in sent_events(response):
                log.append(sent)
                seen += 1
                if seen == most or last in sent.data:
                    break
        if last in log[-1].data:
            return log, cut
    return log, cuts


@pytest.mark.parametrize(
    ("cuts", "count"),
    [(20, 1_000), pytest.param(200, 5_000, marks=[pytest.mark.soak, pytest.mark.within(300)])],
)
async def test_a_reader_that_is_cut_off_sees_each_event_once_and_in_order(
    cuts: int, count: int, tmp_path: Path
) -> None:
    draw = random.Random(SEED)
    agent = talking(count, pause_every=10)
    async with served(tmp_path, {"scripted": agent}, on_disk=True) as web:
        session_id = await web.new_session()
        path = f"/api/sessions/{session_id}/events"
        await web.prompt(session_id)
        log, made = await _log_with_cuts(web, path, cuts, '"turn_ended"', draw)
        assert made >= min(cuts, count // 60), f"seed {SEED}"
        expected = await stored(web, session_id)
        assert [sent.json for sent in log] == expected, f"seed {SEED}"
        assert len(expected) > count


async def test_two_readers_at_different_places_are_told_the_same(tmp_path: Path) -> None:
    async with served(tmp_path, {"scripted": talking(300, pause_every=7)}) as web:
        session_id = await web.new_session()
        path = f"/api/sessions/{session_id}/events"

        async def read(after: int) -> list[Any]:
            url = f"{path}?after={after}"
            async with web.http.stream("GET", url, headers=STREAM) as response:
                return [sent.json for sent in await read_until_end(sent_events(response))]

        async with asyncio.TaskGroup() as tasks:
            readers = [tasks.create_task(read(after)) for after in (0, 1, 0)]
            await web.prompt(session_id)
        expected = await stored(web, session_id)
        assert [task.result() for task in readers] == [expected, expected[1:], expected]


# ── joined ────────────────────────────────────────────────────────────────────────────────────


async def test_joined_pieces_say_the_same_in_fewer_frames(tmp_path: Path) -> None:
    async with served(tmp_path, {"scripted": talking(500)}) as web:
        session_id = await web.new_session()
        await web.done(session_id)
        path = f"/api/sessions/{session_id}/events?coalesce=true"
        async with web.http.stream("GET", path, headers=STREAM) as response:
            told = await read_until_end(sent_events(response))
        expected = await stored(web, session_id)
        assert len(told) < len(expected) / 20
        assert _words(sent.json for sent in told) == _words(expected)
        assert _ranges(told) == [event["seq"] for event in expected]
        async with web.http.stream("GET", "/api/events?after=0&coalesce=true") as response:
            all_told = await read_until_end(sent_events(response))
        assert [sent.json["event"] for sent in all_told] == [sent.json for sent in told]


def _words(events: Any) -> str:
    return "".join(each["content"]["text"] for each in events if each["type"] == "agent_message")


def _ranges(told: list[Sent]) -> list[int]:
    """The numbers that the frames speak for; each frame has the id of the last."""
    numbers: list[int] = []
    for sent in told:
        event = sent.json
        assert sent.id == str(event["seq"])
        numbers += range(event.get("firstSeq", event["seq"]), event["seq"] + 1)
    return numbers


# ── the end ───────────────────────────────────────────────────────────────────────────────────


async def test_streams_end_when_the_server_does(tmp_path: Path) -> None:
    async with served(tmp_path) as web:
        async with web.http.stream("GET", "/api/events") as response:
            web.server.closing.set()
            async for _ in sent_events(response):
                pass
        assert web.server.closing.is_set()

"""`/metrics`, read by a parser of the format."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.serving import served

from dragoman.hub.running.activity import Activity, Count
from dragoman.session import events as e
from dragoman.session.content import Text
from dragoman.session.facts import Cost, Decision, TokenUsage
from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.web.api.metrics import exposition


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_a_turn_is_in_the_metrics(tmp_path: Path) -> None:
    async def say(turn: AgentTurn) -> None:
        turn.say("SECRET-WORDS")

    async with served(tmp_path, {"it": ScriptedAgent(say)}) as web:
        session = await web.new_session(agent="it")
        before = samples((await web.http.get("/metrics")).text)
        assert before["dragoman_sessions", (("state", "idle"),)] == 1
        assert before["dragoman_sessions", (("state", "running"),)] == 0
        await web.done(session, "SECRET-PROMPT")
        reply = await web.http.get("/metrics")
        assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
        after = samples(reply.text)
        ended = ("agent", "it"), ("outcome", "end_turn")
        assert after["dragoman_turns_total", ended] == 1
        assert after["dragoman_turn_seconds_count", (("agent", "it"),)] == 1
        assert after["dragoman_events_stored_total", ()] > 0
        assert after["dragoman_store_away", ()] == 0
        got = ("method", "GET"), ("status", "200")
        assert after["dragoman_http_requests_total", got] >= 1
        assert "SECRET" not in reply.text


async def test_only_who_has_the_token_reads_them(tmp_path: Path) -> None:
    async with served(tmp_path) as web, httpx.AsyncClient(base_url=web.http.base_url) as stranger:
        assert (await stranger.get("/metrics")).status_code == 401
        seen = samples((await web.http.get("/metrics")).text)
        refused = ("method", "GET"), ("status", "401")
        assert seen["dragoman_http_requests_total", refused] == 1


async def test_a_method_that_nobody_knows_makes_no_series_of_its_own(tmp_path: Path) -> None:
    async with served(tmp_path) as web:
        for number in range(3):
            await web.http.request(f"EVIL{number}", "/metrics")
        text = (await web.http.get("/metrics")).text
        assert "EVIL" not in text
        assert any(("method", "other") in labels for _, labels in samples(text))


def test_a_name_of_an_agent_is_quoted() -> None:
    name = 'a"b\\c\nd'
    text = exposition({Count("tool_calls_total", (("agent", name),)): 2})
    assert samples(text) == {("dragoman_tool_calls_total", (("agent", name),)): 2}


def test_a_count_without_a_meaning_is_not_left_out_quietly() -> None:
    with pytest.raises(KeyError):
        exposition({Count("surprises_total"): 1})


def test_whatever_is_counted_of_a_session_has_a_meaning() -> None:
    activity = Activity()
    one = activity.of("it", None)
    one.take(STORY)
    one.stored(5, 0.1)
    shown = samples(exposition(activity.counts))
    assert len(shown) == len(activity.counts) == 15


STORY: list[e.Event] = [
    e.PromptQueued("p", [Text("go")]),
    e.PromptUnqueued("p"),
    e.TurnStarted("t", [Text("go")]),
    e.ToolCallUpdated("c"),
    e.PermissionRequested(request_id="q", options=[]),
    e.PermissionSettled("q", None, Decision("deny", "no")),
    e.UsageChanged(1, 2, Cost(1.0, "USD")),
    e.TurnEnded("t", usage=TokenUsage(total=3, input=1, output=2)),
]

"""What agents report of their tokens beside ACP's own field, as they were seen to write it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.clients import opened, until
from support.raw_agent import RawAgent
from support.recordings import FOLDER

from dragoman import Session
from dragoman.agents.extensions import (
    TOKEN_REPORTS,
    added_tokens,
    quirks_for,
    reply_tokens,
    request_tokens,
)
from dragoman.session.events import TurnEnded
from dragoman.session.facts import ModelTokens, TokenUsage
from dragoman.session.limits.model_prices import MODEL_PRICES
from dragoman.session.limits.prices import price_of
from dragoman.testing.recordings.recorded_events import Transcript
from dragoman.testing.recordings.recording import load_recording

GEMINI: dict[str, Any] = {
    "quota": {
        "token_count": {"input_tokens": 200, "output_tokens": 20},
        "model_usage": [
            {
                "model": "gemini-3.8-flash",
                "token_count": {"input_tokens": 150, "output_tokens": 15},
            },
            {"model": "auto", "token_count": {"input_tokens": 50, "output_tokens": 5}},
        ],
    }
}
"""Gemini CLI 0.61.0, in the reply to a prompt."""
CODEX: dict[str, Any] = {
    "quota": {
        "token_count": {
            "totalTokens": 220, "inputTokens": 200, "cachedInputTokens": 50,
            "cacheWriteInputTokens": 7, "outputTokens": 20, "reasoningOutputTokens": 4,
        },
        "model_usage": [
            {
                "model": "gpt-5",
                "token_count": {
                    "totalTokens": 220, "inputTokens": 200, "cachedInputTokens": 50,
                    "cacheWriteInputTokens": 7, "outputTokens": 20, "reasoningOutputTokens": 4,
                },
            }
        ],
    }
}  # fmt: skip
"""codex-acp 2.6.0; claude-agent-acp 0.99.0 writes the same, but `cachedWriteTokens`."""
QWEN: dict[str, Any] = {
    "usage": {
        "inputTokens": 100, "outputTokens": 10, "totalTokens": 110, "thoughtTokens": 4,
        "cachedReadTokens": 3,
    },
    "durationMs": 48,
}  # fmt: skip
"""Qwen Code 0.24.4, with an empty piece of its answer, after each request to the model."""


async def turn(agent: RawAgent, session: Session, *metas: Any, **reply: Any) -> TokenUsage | None:
    """What a turn has used that reports this on its way and in the end."""
    running = session.prompt("go")
    prompt = await agent.expect("session/prompt")
    for meta in metas:
        agent.say("", _meta=meta)
    agent.reply(prompt["id"], {"stopReason": "end_turn"} | reply)
    await running
    return running.usage


async def test_tokens_beside_the_reply_are_those_of_the_turn(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        usage = await turn(agent, session, _meta=GEMINI)
        assert usage == TokenUsage(
            220, 200, 20,
            models=[ModelTokens("gemini-3.8-flash", 165, 150, 15), ModelTokens("auto", 55, 50, 5)],
        )  # fmt: skip


async def test_acps_own_field_counts_more_and_the_models_are_added(tmp_path: Path) -> None:
    agent = RawAgent()
    own = {"totalTokens": 5, "inputTokens": 3, "outputTokens": 2}
    async with opened(agent, tmp_path) as (_, session):
        usage = await turn(agent, session, usage=own, _meta=CODEX)
        models = [ModelTokens("gpt-5", 220, 200, 20, 4, 50, 7)]
        assert usage == TokenUsage(5, 3, 2, models=models)


async def test_requests_are_added_up_in_each_turn(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        assert await turn(agent, session, QWEN, QWEN) == TokenUsage(220, 200, 20, 8, 6)
        assert await turn(agent, session, QWEN) == TokenUsage(110, 100, 10, 4, 3)
        assert await turn(agent, session) is None


async def test_what_is_told_again_when_a_session_is_loaded_was_used_before(tmp_path: Path) -> None:
    agent = RawAgent()

    def loads(params: Any) -> Any:
        agent.say("of old", _meta=QWEN)
        return {}

    agent.answers["session/load"] = loads
    async with opened(agent, tmp_path) as (client, session):
        await client.close_session(session.id)
        loaded = await client.load_session("s1", cwd=tmp_path)
        await until(lambda: loaded.state.entries)
        assert await turn(agent, loaded, QWEN) == TokenUsage(110, 100, 10, 4, 3)


@pytest.mark.parametrize(
    ("name", "counted"),
    [("goose", "request"), ("OpenCode", "request"), ("hermes-agent", "session"), ("x", "turn")],
)
async def test_it_is_kept_what_an_agent_counts(tmp_path: Path, name: str, counted: str) -> None:
    agent = RawAgent(welcome={"agentInfo": {"name": name, "version": "1"}})
    own = {"totalTokens": 110, "inputTokens": 100, "outputTokens": 10}
    async with opened(agent, tmp_path) as (_, session):
        usage = await turn(agent, session, usage=own)
        assert usage is not None
        assert usage.counted == counted == quirks_for(name).counted_tokens


@pytest.mark.parametrize(
    "meta",
    [
        {"quota": 5},
        {"quota": {"token_count": None, "model_usage": 7}},
        {"quota": {"token_count": {"input_tokens": -1, "output_tokens": 3}}},
        {"quota": {"token_count": {"input_tokens": True, "output_tokens": 3}}},
        {"quota": {"token_count": {"input_tokens": "7", "output_tokens": 3}}},
        {"usage": {"inputTokens": 1.5, "outputTokens": 1}},
        {"usage": []},
    ],
)
def test_what_is_no_count_is_left_out(meta: dict[str, Any]) -> None:
    assert reply_tokens(None, meta) is None
    assert request_tokens(meta) is None


def test_a_model_without_counts_is_left_out_and_not_all_of_many_are_kept() -> None:
    one = {"model": "m" * 300, "token_count": {"input_tokens": 1, "output_tokens": 1}}
    told = {"quota": {"model_usage": [{"model": "x"}, 5, *[one] * 50]}}
    usage = reply_tokens(TokenUsage(1, 1, 0), told)
    assert usage is not None
    assert len(usage.models or ()) == 14
    assert {len(each.model) for each in usage.models or ()} == {200}


def test_what_only_some_requests_report_counts_as_far_as_it_goes() -> None:
    first, second = TokenUsage(1, 1, 0), TokenUsage(5, 3, 2, thought=1)
    assert added_tokens(added_tokens(None, first), second) == TokenUsage(6, 4, 2, thought=1)
    assert added_tokens(second, first) == TokenUsage(6, 4, 2, thought=1)


def test_every_row_of_the_table_says_what_it_was_seen_in() -> None:
    assert all(row.said_by and row.evidence and row.path for row in TOKEN_REPORTS)


# ── recorded ──────────────────────────────────────────────────────────────────────────────────


def _of_recorded(path: Path) -> list[TokenUsage | None]:
    """What each turn of a recording has used."""
    transcript = Transcript()
    lines = load_recording(path).frames
    happened = [each.event for line in lines for each in transcript.feed(line)]
    return [each.usage for each in happened if isinstance(each, TurnEnded)]


@pytest.mark.parametrize(
    ("agent", "counted"),
    [
        ("claude", "turn"),
        ("codex", "turn"),
        ("gemini", "turn"),
        ("qwen", "turn"),
        ("hermes", "session"),
        ("goose", "request"),
        ("opencode", "request"),
        ("kimicode", ""),
    ],
)
def test_what_was_recorded_is_counted(agent: str, counted: str) -> None:
    """The model of the recordings counts 100 and 10 tokens for each request, of which every turn
    with a tool call has two."""
    told = [usage for usage in _of_recorded(FOLDER / f"{agent}.jsonl") if usage is not None]
    assert bool(told) == bool(counted)
    sums = [usage.total // 110 for usage in told]
    assert all(usage.input == 10 * usage.output for usage in told)
    match counted:
        case "turn":
            assert {1, 2} <= set(sums) <= {0, 1, 2, 3}
        case "session":
            assert sums == sorted(sums)
            assert sums[-1] > len(sums)
        case _:
            assert set(sums) <= {1}


@pytest.mark.parametrize(("agent", "model"), [("claude", "claude-opus-5-5"), ("codex", "gpt-5")])
def test_the_recorded_models_have_a_price(agent: str, model: str) -> None:
    told = _of_recorded(FOLDER / f"{agent}.jsonl")
    models = {each.model for usage in told if usage for each in usage.models or ()}
    assert models == {model}
    assert price_of(model, MODEL_PRICES) is not None

"""Steers, one at a time: what goes over the wire in each way, and what is said of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.clients import opened, until
from support.raw_agent import RawAgent, Refusal, text_block
from support.v2_agent import CAPABILITIES, second_agent, state

from dragoman import Client, Session
from dragoman.errors import SessionBusy
from dragoman.session import events as e
from dragoman.session.content import Image, Text
from dragoman.session.state import UserEntry

STEERABLE: dict[str, Any] = {"_meta": {"steering": {"supported": True}}}


@asynccontextmanager
async def at_work(
    agent: RawAgent, cwd: Path, **options: Any
) -> AsyncGenerator[tuple[Client, Session, Any]]:
    """A session in a turn, and the id of its prompt."""
    async with opened(agent, cwd, **options) as (client, session):
        session.prompt("first").discard()
        prompt = await agent.expect("session/prompt")
        yield client, session, prompt["id"]


def steered(session: Session) -> list[tuple[str, str | None]]:
    """How each user's entry of the thread was said."""
    entries = (each for each in session.state.entries if isinstance(each, UserEntry))
    return [(each.text, each.steer) for each in entries]


# ── `_session/steering` ───────────────────────────────────────────────────────────────────────


async def test_a_steer_goes_into_the_running_turn(tmp_path: Path) -> None:
    agent = RawAgent(welcome=STEERABLE)
    agent.answers["_session/steering"] = {"outcome": "injected"}
    async with at_work(agent, tmp_path) as (client, session, prompt_id):
        assert client.capabilities.steer == "steering"
        steer = await session.steer("rather blue")
        assert (steer.outcome, steer.way, steer.turn) == ("delivered", "steering", None)
        assert agent.sent("_session/steering") == [
            {
                "sessionId": "s1",
                "prompt": [{"type": "text", "text": "rather blue"}],
                "_meta": {"steering": {"idleBehavior": "promptRequired"}},
            }
        ]
        agent.say("blue it is")
        agent.reply(prompt_id, {"stopReason": "end_turn"})
        await until(lambda: not session.busy)
        assert steered(session) == [("first", None), ("rather blue", "delivered")]
        assert len(agent.sent("session/prompt")) == 1


async def test_an_agent_that_says_idle_gets_it_as_a_prompt_before_others(tmp_path: Path) -> None:
    agent = RawAgent(welcome=STEERABLE)
    agent.answers["_session/steering"] = {"outcome": "promptRequired", "reason": "noRunningTurn"}
    async with at_work(agent, tmp_path) as (_, session, prompt_id):
        session.prompt("later").discard()
        steer = await session.steer("rather blue")
        assert (steer.outcome, steer.reason) == ("queued", "noRunningTurn")
        after = await session.steer("and small")  # behind the first, so not into this turn
        assert after.outcome == "queued"
        agent.say("at work")
        await until(lambda: session.state.entries[-1].text == "at work")
        assert len(agent.sent("_session/steering")) == 1
        agent.reply(prompt_id, {"stopReason": "end_turn"})
        for wanted in ("rather blue", "and small", "later"):
            message = await agent.expect("session/prompt")
            assert message["params"]["prompt"][0]["text"] == wanted
            agent.reply(message["id"], {"stopReason": "end_turn"})


async def test_an_agent_may_begin_a_turn_with_it(tmp_path: Path) -> None:
    agent = RawAgent(welcome=STEERABLE)
    agent.answers["_session/steering"] = {"outcome": "startedNewTurn"}
    async with at_work(agent, tmp_path) as (_, session, prompt_id):
        assert (await session.steer("rather blue")).outcome == "started"
        assert ("rather blue", "started") in steered(session)
        agent.reply(prompt_id, {"stopReason": "end_turn"})
        await until(lambda: not session.busy)
        assert len(agent.sent("session/prompt")) == 1


async def test_one_that_is_not_on_record_is_not_sent(tmp_path: Path) -> None:
    async def lost() -> None:
        raise SessionBusy("s1")

    agent = RawAgent(welcome=STEERABLE)
    agent.answers["_session/steering"] = {"outcome": "injected"}
    async with at_work(agent, tmp_path) as (_, session, _):
        stored = asyncio.Event()
        session.before_turn = stored.wait  # type: ignore[assignment]  # what it returns is ignored
        steering = asyncio.create_task(session.steer("rather blue"))
        await until(lambda: session.queued)
        agent.say("at work")
        await until(lambda: session.state.entries[-1].text == "at work")
        assert agent.sent("_session/steering") == []
        stored.set()
        assert (await steering).outcome == "delivered"
        session.before_turn = lost
        steer = await session.steer("and small")
        assert (steer.outcome, steer.reason) == ("refused", str(SessionBusy("s1")))
        assert len(agent.sent("_session/steering")) == 1


async def test_what_the_agent_refuses_is_in_the_thread_with_its_words(tmp_path: Path) -> None:
    def refuse(params: Any) -> None:
        raise Refusal(-32600, "The current model does not support image input")

    agent = RawAgent(welcome=STEERABLE)
    agent.answers["_session/steering"] = refuse
    async with at_work(agent, tmp_path) as (_, session, _):
        steer = await session.steer("look")
        assert steer.outcome == "refused"
        assert "does not support image input" in steer.reason
        entry = session.state.entries[-1]
        assert isinstance(entry, UserEntry)
        assert (entry.text, entry.steer, entry.reason) == ("look", "refused", steer.reason)
        assert session.queued == []


@pytest.mark.parametrize("result", [{}, {"outcome": "whatever"}, {"outcome": 7}])
async def test_an_answer_that_says_nothing_is_no_delivery(result: Any, tmp_path: Path) -> None:
    agent = RawAgent(welcome=STEERABLE)
    agent.answers["_session/steering"] = result
    async with at_work(agent, tmp_path) as (_, session, _):
        assert (await session.steer("hm")).outcome == "unsure"


async def test_a_crash_before_the_answer_leaves_the_text_and_is_not_repeated(
    tmp_path: Path,
) -> None:
    agent = RawAgent(welcome=STEERABLE)
    agent.answers["_session/steering"] = None
    async with at_work(agent, tmp_path) as (_, session, _):
        steering = asyncio.create_task(session.steer("rather blue"))
        await agent.expect("_session/steering")
        await agent.vanish()
        assert (await steering).outcome == "unsure"
        assert ("rather blue", "unsure") in steered(session)
        assert session.queued == []


async def test_one_that_outlasts_its_turn_is_not_repeated_when_the_agent_is_lost(
    tmp_path: Path,
) -> None:
    agent = RawAgent(welcome=STEERABLE)
    agent.answers["_session/steering"] = None
    async with at_work(agent, tmp_path) as (_, session, prompt_id):
        steering = asyncio.create_task(session.steer("rather blue"))
        await agent.expect("_session/steering")
        agent.reply(prompt_id, {"stopReason": "end_turn"})
        await until(lambda: session.state.turns[-1].ending == "completed")
        assert not steering.done()
        await agent.vanish()
        assert (await steering).outcome == "unsure"
        assert ("rather blue", "unsure") in steered(session)
        assert session.queued == []


async def test_without_the_capability_nothing_is_tried(tmp_path: Path) -> None:
    agent = RawAgent()
    async with at_work(agent, tmp_path) as (client, session, prompt_id):
        assert client.capabilities.steer is None
        steer = await session.steer("rather blue")
        assert (steer.outcome, steer.way) == ("queued", "queue")
        assert agent.sent("_session/steering") == []
        agent.reply(prompt_id, {"stopReason": "end_turn"})
        following = await agent.expect("session/prompt")
        assert following["params"]["prompt"] == [text_block("rather blue")]


async def test_a_session_at_rest_gets_it_as_a_prompt(tmp_path: Path) -> None:
    agent = RawAgent(welcome=STEERABLE)
    async with opened(agent, tmp_path) as (_, session):
        steer = await session.steer("begin")
        assert (steer.outcome, steer.way) == ("started", "prompt")
        assert steer.turn is session.running
        await agent.expect("session/prompt")
        assert agent.sent("_session/steering") == []


async def test_a_steer_does_not_overtake_the_prompt(tmp_path: Path) -> None:
    agent = RawAgent(welcome=STEERABLE)
    agent.answers["_session/steering"] = {"outcome": "injected"}
    stored = asyncio.Event()
    async with opened(agent, tmp_path) as (_, session):
        session.before_turn = stored.wait  # type: ignore[assignment]  # what it returns is ignored
        session.prompt("first").discard()
        steering = asyncio.create_task(session.steer("second"))
        await until(lambda: session.queued)
        stored.set()
        await steering
        methods = [each.get("method") for each in agent.received]
        assert methods.index("session/prompt") < methods.index("_session/steering")


async def test_content_is_adapted_as_in_a_prompt(tmp_path: Path) -> None:
    agent = RawAgent({"promptCapabilities": {}}, welcome=STEERABLE)
    agent.answers["_session/steering"] = {"outcome": "injected"}
    async with at_work(agent, tmp_path) as (_, session, _):
        await session.steer([Text("look"), Image("aGk=", "image/png")])
        blocks = agent.sent("_session/steering")[0]["prompt"]
        assert [block["type"] for block in blocks] != ["text", "image"]
        notices = [each.text for each in session.state.entries if "image" in str(each)]
        assert notices


# ── the run that the agent names ──────────────────────────────────────────────────────────────

RUN: dict[str, Any] = {"_meta": {"goose": {"activeRunId": "run-1"}}}


async def test_the_run_is_named_and_the_pickup_is_the_delivery(tmp_path: Path) -> None:
    agent = RawAgent()
    agent.answers["_goose/unstable/session/steer"] = {"runId": "run-1", "messageId": "steer_1"}
    async with at_work(agent, tmp_path) as (_, session, prompt_id):
        agent.update("session_info_update", **RUN)
        agent.update("tool_call", toolCallId="a", title="A", status="in_progress")
        await until(lambda: session.state.tool_calls)
        steer = await session.steer("rather blue")
        assert (steer.outcome, steer.way) == ("sent", "run")
        assert agent.sent("_goose/unstable/session/steer") == [
            {"sessionId": "s1", "prompt": [text_block("rather blue")], "expectedRunId": "run-1"}
        ]
        assert session.state.queue[0].steer == "sent"
        agent.update("tool_call_update", toolCallId="a", status="completed")
        block = text_block("rather blue")
        agent.update("user_message_chunk", messageId="steer_1", content=block)
        agent.say("blue it is")
        agent.reply(prompt_id, {"stopReason": "end_turn"})
        await until(lambda: not session.busy)
        assert steered(session) == [("first", None), ("rather blue", "delivered")]
        assert len(agent.sent("session/prompt")) == 1


async def test_what_a_run_did_not_take_up_is_the_next_prompt(tmp_path: Path) -> None:
    agent = RawAgent()
    agent.answers["_goose/unstable/session/steer"] = {"runId": "run-1", "messageId": "steer_1"}
    async with at_work(agent, tmp_path) as (_, session, prompt_id):
        agent.update("session_info_update", **RUN)
        await until(lambda: session.state.last_seq > 2)
        assert (await session.steer("rather blue")).outcome == "sent"
        agent.update("session_info_update", _meta={"goose": {"activeRunId": None}})
        agent.reply(prompt_id, {"stopReason": "end_turn"})
        following = await agent.expect("session/prompt")
        assert following["params"]["prompt"] == [text_block("rather blue")]


OVER = [
    Refusal(-32602, "Invalid params", "no active run to steer"),
    Refusal(-32602, "Invalid params", {"actualRunId": "run-2"}),
]


@pytest.mark.parametrize("over", OVER)
async def test_a_run_that_is_over_leaves_it_for_the_next_prompt(
    tmp_path: Path, over: Refusal
) -> None:
    def refuse(params: Any) -> None:
        raise over

    agent = RawAgent()
    agent.answers["_goose/unstable/session/steer"] = refuse
    async with at_work(agent, tmp_path) as (_, session, prompt_id):
        agent.update("session_info_update", **RUN)
        await until(lambda: session.state.last_seq > 2)
        assert (await session.steer("rather blue")).outcome == "queued"
        agent.reply(prompt_id, {"stopReason": "end_turn"})
        following = await agent.expect("session/prompt")
        assert following["params"]["prompt"] == [text_block("rather blue")]


# ── a prompt in flight ────────────────────────────────────────────────────────────────────────

IN_FLIGHT = CAPABILITIES | {"_meta": {"claudeCode": {"promptQueueing": True}}}


async def test_where_it_is_offered_a_second_prompt_goes_into_the_turn(tmp_path: Path) -> None:
    agent = second_agent(IN_FLIGHT, session__prompt=None)
    async with at_work(agent, tmp_path, protocol=2) as (client, session, prompt_id):
        assert client.capabilities.steer == "prompt"
        agent.reply(prompt_id, {"messageId": "u1"})
        state(agent, "running")
        steer = await session.steer("rather blue")
        assert (steer.outcome, steer.way) == ("sent", "prompt")
        sent = await agent.expect("session/prompt")
        assert sent["params"]["prompt"] == [text_block("rather blue")]
        assert session.state.queue[0].steer == "sent"
        agent.reply(sent["id"], {"messageId": "u2"})
        await until(lambda: steered(session)[1:] == [("rather blue", "delivered")])
        assert session.busy
        state(agent, "idle", stopReason="end_turn")
        await until(lambda: not session.busy)
        assert len(agent.sent("session/prompt")) == 2


async def test_version_2_alone_does_not_offer_it(tmp_path: Path) -> None:
    agent = second_agent(session__prompt=None)
    async with at_work(agent, tmp_path, protocol=2) as (client, session, prompt_id):
        assert client.capabilities.steer is None
        agent.reply(prompt_id, {"messageId": "u1"})
        state(agent, "running")
        assert (await session.steer("rather blue")).way == "queue"
        assert len(agent.sent("session/prompt")) == 1
        state(agent, "idle", stopReason="end_turn")
        following = await agent.expect("session/prompt")
        assert following["params"]["prompt"] == [text_block("rather blue")]


# ── an agent that asks ────────────────────────────────────────────────────────────────────────

PULL = "craft/drainMidTurnQueue"


async def test_an_agent_that_asks_gets_the_steers_and_no_other_prompt(tmp_path: Path) -> None:
    agent = RawAgent()
    async with at_work(agent, tmp_path) as (_, session, prompt_id):
        nothing = await agent.ask(PULL, {"sessionId": "s1"}, "p1")
        assert nothing["result"] == {"messages": [], "items": [], "hasQueuedPrompt": False}
        session.prompt("later").discard()
        steer = await session.steer("rather blue")
        assert (steer.outcome, steer.way) == ("queued", "pull")
        some = await agent.ask(PULL, {"sessionId": "s1"}, "p2")
        assert some["result"] == {
            "messages": ["rather blue"],
            "items": [
                {
                    "messageId": steer.id,
                    "displayText": "rather blue",
                    "content": [text_block("rather blue")],
                }
            ],
            "hasQueuedPrompt": True,
        }
        again = await agent.ask(PULL, {"sessionId": "s1"}, "p3")
        assert again["result"]["items"] == []
        assert steered(session)[-1] == ("rather blue", "delivered")
        agent.reply(prompt_id, {"stopReason": "end_turn"})
        following = await agent.expect("session/prompt")
        assert following["params"]["prompt"] == [text_block("later")]


@pytest.mark.own_time
async def test_what_does_not_go_on_record_in_time_stays_in_the_queue(tmp_path: Path) -> None:
    agent = RawAgent()
    async with at_work(agent, tmp_path) as (_, session, _):
        await session.steer("rather blue")
        session.before_turn = asyncio.Event().wait  # type: ignore[assignment]
        answer = await agent.ask(PULL, {"sessionId": "s1"}, "p")
        assert answer["result"]["items"] == []
        assert [each.steer for each in session.state.queue] == ["waiting"]


async def test_a_turn_that_is_being_cancelled_is_given_none(tmp_path: Path) -> None:
    agent = RawAgent()
    async with at_work(agent, tmp_path) as (_, session, prompt_id):
        await session.steer("rather blue")
        cancelling = asyncio.create_task(session.cancel())
        await agent.expect("session/cancel")
        answer = await agent.ask(PULL, {"sessionId": "s1"}, "p")
        assert answer["result"]["items"] == []
        agent.reply(prompt_id, {"stopReason": "cancelled"})
        await cancelling
        following = await agent.expect("session/prompt")
        assert following["params"]["prompt"] == [text_block("rather blue")]


async def test_an_agent_takes_ten_at_a_time(tmp_path: Path) -> None:
    agent = RawAgent()
    async with at_work(agent, tmp_path) as (_, session, _):
        for number in range(12):
            await session.steer(str(number))
        first = await agent.ask(PULL, {"sessionId": "s1"}, "p1")
        second = await agent.ask(PULL, {"sessionId": "s1"}, "p2")
        assert first["result"]["messages"] == [str(number) for number in range(10)]
        assert second["result"]["messages"] == ["10", "11"]


async def test_an_unknown_session_has_no_steers(tmp_path: Path) -> None:
    agent = RawAgent()
    async with at_work(agent, tmp_path):
        answer = await agent.ask(PULL, {"sessionId": "other"}, "p")
        assert answer["result"]["items"] == []


# ── in the queue ──────────────────────────────────────────────────────────────────────────────


async def test_a_steer_that_waits_can_be_changed_and_dropped(tmp_path: Path) -> None:
    agent = RawAgent()
    async with at_work(agent, tmp_path) as (_, session, _):
        await session.steer("one")
        await session.steer("two")
        first, second = session.queued
        session.edit_queued(first, "uno")
        session.drop_queued(second)
        assert [(p.content, p.steer) for p in session.state.queue] == [([Text("uno")], "waiting")]


async def test_a_steer_that_the_agent_has_can_be_neither(tmp_path: Path) -> None:
    agent = RawAgent(welcome=STEERABLE)
    agent.answers["_session/steering"] = None
    async with at_work(agent, tmp_path) as (_, session, _):
        steering = asyncio.create_task(session.steer("one"))
        sent = await agent.expect("_session/steering")
        (turn,) = session.queued
        with pytest.raises(KeyError):
            session.edit_queued(turn, "uno")
        session.drop_queued(turn)
        assert session.queued == [turn]
        agent.reply(sent["id"], {"outcome": "injected"})
        assert (await steering).outcome == "delivered"


async def test_the_next_prompt_waits_for_the_answer_to_a_steer(tmp_path: Path) -> None:
    agent = RawAgent(welcome=STEERABLE)
    agent.answers["_session/steering"] = None
    async with at_work(agent, tmp_path) as (_, session, prompt_id):
        steering = asyncio.create_task(session.steer("one"))
        sent = await agent.expect("_session/steering")
        session.prompt("later").discard()
        agent.reply(prompt_id, {"stopReason": "end_turn"})
        await until(lambda: not session.busy)
        assert len(agent.sent("session/prompt")) == 1
        agent.reply(sent["id"], {"outcome": "promptRequired"})
        await steering
        following = await agent.expect("session/prompt")
        assert following["params"]["prompt"] == [text_block("one")]


async def test_a_turn_that_is_being_cancelled_takes_no_steer(tmp_path: Path) -> None:
    agent = RawAgent(welcome=STEERABLE)
    async with at_work(agent, tmp_path) as (_, session, prompt_id):
        cancelling = asyncio.create_task(session.cancel())
        await agent.expect("session/cancel")
        assert (await session.steer("one")).outcome == "queued"
        agent.reply(prompt_id, {"stopReason": "cancelled"})
        await cancelling
        assert agent.sent("_session/steering") == []
        following = await agent.expect("session/prompt")
        assert following["params"]["prompt"] == [text_block("one")]


async def test_each_steer_has_one_event(tmp_path: Path) -> None:
    agent = RawAgent(welcome=STEERABLE)
    agent.answers["_session/steering"] = {"outcome": "injected"}
    async with at_work(agent, tmp_path) as (_, session, _):
        heard = session.events()
        steer = await session.steer("one")
        told = [event for event in heard.ready if isinstance(event, e.Steered)]
        assert [(each.queue_id, each.outcome, each.text) for each in told] == [
            (steer.id, "delivered", "one")
        ]

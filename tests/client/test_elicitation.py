"""Questions beside permissions: asked of a person, settled once, never answered for one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.clients import next_of, opened, started, until
from support.peers import settled, soon
from support.raw_agent import Json, RawAgent

from dragoman import Policy, Session, Timeouts
from dragoman.host.forms.elicitation import ElicitationAnswer, ElicitationRequest
from dragoman.host.permissions.questions import MOST_OPEN, NO_ROOM
from dragoman.session import events as e
from dragoman.session.state import PendingElicitation

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}
FORM: Json = {"sessionId": "s1", "mode": "form", "message": "Name?", "requestedSchema": SCHEMA}
PAGE: Json = {
    "sessionId": "s1",
    "mode": "url",
    "message": "Sign in",
    "url": "https://x",
    "elicitationId": "e1",
}


class Heard:
    def __init__(self) -> None:
        self.events: list[e.Event] = []

    def __call__(self, session: Session, event: e.Event) -> None:
        self.events.append(event)

    @property
    def actions(self) -> list[str]:
        return [event.action for event in self.events if isinstance(event, e.ElicitationSettled)]


async def test_a_form_is_filled_in_by_whoever_reads_the_turn(tmp_path: Path) -> None:
    agent, heard = RawAgent(), Heard()
    async with opened(agent, tmp_path, listen=heard) as (_, session):
        turn = session.prompt("hi")
        asking = asyncio.create_task(agent.ask("elicitation/create", FORM))
        asked = await next_of(turn, e.ElicitationRequested)
        assert (asked.text, asked.mode, asked.schema) == ("Name?", "form", SCHEMA)
        assert session.pending == [PendingElicitation(asked.request_id, "Name?", "form", SCHEMA)]
        answer = ElicitationAnswer("accept", {"name": "s3cret"})
        await session.answer_elicitation(asked.request_id, answer)
        told = await soon(asking)
        assert told["result"] == {"action": "accept", "content": {"name": "s3cret"}}
        with pytest.raises(KeyError):
            await session.answer_elicitation(asked.request_id, answer)
        with pytest.raises(KeyError):
            await session.answer(asked.request_id, "accept")
    assert heard.actions == ["accept"]
    assert "s3cret" not in str(heard.events)


async def test_only_so_many_forms_wait_at_a_time(tmp_path: Path) -> None:
    agent, heard = RawAgent(), Heard()
    async with opened(agent, tmp_path, listen=heard) as (_, session):
        session.prompt("hi")
        prompt = (await agent.expect("session/prompt"))["id"]
        waiting = [
            asyncio.create_task(agent.ask("elicitation/create", FORM, f"form {number}"))
            for number in range(MOST_OPEN)
        ]
        await until(lambda: len(session.pending) == MOST_OPEN)
        refused = await soon(agent.ask("elicitation/create", FORM, "one more"))
        assert refused["error"] == {"code": -32602, "message": NO_ROOM}
        assert len(session.pending) == MOST_OPEN
        await session.answer_elicitation(session.pending[0].id, ElicitationAnswer("decline"))
        await soon(waiting[0])
        waiting.append(asyncio.create_task(agent.ask("elicitation/create", FORM, "again")))
        await until(lambda: len(session.pending) == MOST_OPEN)
        agent.reply(prompt, {"stopReason": "end_turn"})
        await soon(asyncio.gather(*waiting))


async def test_only_so_many_forms_wait_while_an_agent_signs_in() -> None:
    agent = RawAgent(welcome=SIGN_IN, authenticate=None)
    async with started(agent) as client:
        assert client.pending == []
        signing_in = asyncio.create_task(client.authenticate("device"))
        key = (await agent.expect("authenticate"))["id"]
        form = {"mode": "form", "message": "?", "requestId": key}
        waiting = [
            asyncio.create_task(agent.ask("elicitation/create", form, f"form {number}"))
            for number in range(MOST_OPEN)
        ]
        await until(lambda: len(client.pending) == MOST_OPEN)
        refused = await soon(agent.ask("elicitation/create", form, "one more"))
        assert refused["error"] == {"code": -32602, "message": NO_ROOM}
        for request in client.pending:
            await client.answer_elicitation(request.request_id, ElicitationAnswer("decline"))
        await soon(asyncio.gather(*waiting))
        agent.reply(key, {})
        await soon(signing_in)


@pytest.mark.parametrize("content", [None, {}, {"other": 1}])
async def test_a_form_is_not_accepted_without_what_it_needs(
    content: dict[str, Any] | None, tmp_path: Path
) -> None:
    agent, form = RawAgent(), FORM | {"requestedSchema": SCHEMA | {"required": ["name", "gone"]}}
    async with opened(agent, tmp_path) as (_, session):
        turn = session.prompt("hi")
        asking = asyncio.create_task(agent.ask("elicitation/create", form))
        asked = await next_of(turn, e.ElicitationRequested)
        answer = ElicitationAnswer("accept", content)
        with pytest.raises(ValueError, match=r": name: an answer is needed$"):
            await session.answer_elicitation(asked.request_id, answer)
        await session.answer_elicitation(asked.request_id, ElicitationAnswer("decline"))
        assert (await soon(asking))["result"] == {"action": "decline"}


class Person:
    def __init__(self, answer: ElicitationAnswer | Exception) -> None:
        self.answer = answer
        self.asked: list[ElicitationRequest] = []

    async def create_elicitation(self, request: ElicitationRequest) -> ElicitationAnswer:
        self.asked.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (ElicitationAnswer("accept", {"n": 1}), {"action": "accept", "content": {"n": 1}}),
        (ElicitationAnswer("decline"), {"action": "decline"}),
        (OSError("no terminal"), {"action": "cancel"}),
    ],
)
async def test_a_provider_is_asked(
    answer: ElicitationAnswer | Exception, told: Json, tmp_path: Path
) -> None:
    agent, person = RawAgent(), Person(answer)
    async with opened(agent, tmp_path, elicitation=person):
        assert (await agent.ask("elicitation/create", FORM))["result"] == told
    (request,) = person.asked
    assert (request.message, request.schema) == ("Name?", SCHEMA)


@pytest.mark.parametrize("policy", [Policy(), Policy(yolo=True)])
async def test_with_nobody_to_ask_it_is_declined_whatever_is_allowed(
    policy: Policy, tmp_path: Path
) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path, policy=policy) as (_, session):
        turn = asyncio.ensure_future(session.prompt("hi"))
        request = await agent.expect("session/prompt")
        assert (await agent.ask("elicitation/create", FORM))["result"] == {"action": "decline"}
        agent.reply(request["id"], {"stopReason": "end_turn"})
        await soon(turn)


async def test_whoever_reads_on_without_answering_has_declined(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        turn = session.prompt("hi")
        asking = asyncio.create_task(agent.ask("elicitation/create", FORM))
        await next_of(turn, e.ElicitationRequested)
        assert (await next_of(turn, e.ElicitationSettled)).action == "decline"
        assert (await soon(asking))["result"] == {"action": "decline"}


async def test_a_cancel_settles_it_and_those_that_come_later(tmp_path: Path) -> None:
    agent, heard = RawAgent(), Heard()
    async with opened(agent, tmp_path, listen=heard) as (_, session):
        session.events()
        session.prompt("hi")
        request = await agent.expect("session/prompt")
        asking = asyncio.create_task(agent.ask("elicitation/create", FORM, 1))
        await until(lambda: session.state.pending)
        cancelling = asyncio.create_task(session.cancel())
        await settled()
        assert (await soon(asking))["result"] == {"action": "cancel"}
        assert (await agent.ask("elicitation/create", FORM, 2))["result"] == {"action": "cancel"}
        agent.reply(request["id"], {"stopReason": "cancelled"})
        await soon(cancelling)
    assert heard.actions == ["cancel", "cancel"]


async def test_withdrawing_settles_it(tmp_path: Path) -> None:
    agent, heard = RawAgent(), Heard()
    async with opened(agent, tmp_path, listen=heard) as (_, session):
        session.events()
        asking = asyncio.create_task(agent.ask("elicitation/create", FORM, 1))
        await until(lambda: session.state.pending)
        agent.send({"method": "$/cancel_request", "params": {"requestId": 1}})
        assert (await soon(asking))["error"]["code"] == -32800
    assert heard.actions == ["cancel"]


async def test_an_address_is_visited_when_the_agent_says_so(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        session.events()
        asking = asyncio.create_task(agent.ask("elicitation/create", PAGE))
        await until(lambda: session.state.pending)
        (waiting,) = session.pending
        assert isinstance(waiting, PendingElicitation)
        assert (waiting.url, waiting.elicitation_id) == ("https://x", "e1")
        for elicitation_id in ("other", "e1", "e1"):
            agent.send(
                {"method": "elicitation/complete", "params": {"elicitationId": elicitation_id}}
            )
        assert (await soon(asking))["result"] == {"action": "accept"}


async def test_a_form_is_not_accepted_by_the_agent_itself(tmp_path: Path) -> None:
    agent, heard = RawAgent(), Heard()
    async with opened(agent, tmp_path, listen=heard) as (client, session):
        session.events()
        client.questions = "wait"
        params = {**FORM, "elicitationId": "e1"}
        outside = {"mode": "form", "message": "?", "requestId": 3, "elicitationId": "e1"}
        asking = [
            asyncio.create_task(agent.ask("elicitation/create", params, 1)),
            asyncio.create_task(agent.ask("elicitation/create", outside, 2)),
        ]
        await until(lambda: session.state.pending and client.pending)
        agent.send({"method": "elicitation/complete", "params": {"elicitationId": "e1"}})
        agent.say("afterwards")
        await until(lambda: session.state.entries)
        assert (len(session.state.pending), len(client.pending)) == (1, 1)
        no = ElicitationAnswer("decline")
        await session.answer_elicitation(session.pending[0].id, no)
        await client.answer_elicitation(client.pending[0].request_id, no)
        for told in await soon(asyncio.gather(*asking)):
            assert told["result"] == {"action": "decline"}
    assert heard.actions == ["decline"]


@pytest.mark.parametrize("params", [{}, {"elicitationId": 7}, []])
async def test_a_completion_that_makes_no_sense_is_ignored(params: Any, tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (client, session):
        agent.send({"method": "elicitation/complete", "params": params})
        agent.say("still here")
        await until(lambda: session.state.entries)
        assert client.connection_error is None


async def test_outside_any_session_it_is_declined(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path):
        params = {"mode": "form", "message": "?", "requestId": 3}
        assert (await agent.ask("elicitation/create", params))["result"] == {"action": "decline"}


# ── outside any session ───────────────────────────────────────────────────────────────────────

DEVICE: Json = {
    "mode": "url",
    "message": "Enter the code ABCD-1234",
    "url": "https://x/device",
    "elicitationId": "e7",
}
SIGN_IN: Json = {"authMethods": [{"id": "device", "name": "Device code"}]}


async def test_a_question_while_signing_in_is_asked_of_the_provider() -> None:
    agent = RawAgent(welcome=SIGN_IN)
    person = Person(ElicitationAnswer("accept"))
    told = agent.asks_before("authenticate", DEVICE, {})
    async with started(agent, elicitation=person) as client:
        await soon(client.authenticate("device"))
    assert told[0]["result"] == {"action": "accept"}
    (request,) = person.asked
    assert (request.mode, request.url, request.session_id) == ("url", "https://x/device", None)


async def test_a_program_can_answer_what_is_asked_while_signing_in() -> None:
    agent = RawAgent(welcome=SIGN_IN)
    told = agent.asks_before("authenticate", DEVICE, {})
    async with started(agent) as client:
        assert client.pending == []
        signing_in = asyncio.create_task(client.authenticate("device"))
        await until(lambda: client.pending)
        await client.answer_elicitation(client.pending[0].request_id, ElicitationAnswer("accept"))
        await soon(signing_in)
        assert client.pending == []
        with pytest.raises(KeyError):
            await client.answer_elicitation("gone", ElicitationAnswer("accept"))
    assert told[0]["result"] == {"action": "accept"}


async def test_a_device_code_is_accepted_once_the_agent_saw_it_used() -> None:
    """The person types the code elsewhere; nobody has to say so here."""
    agent = RawAgent(welcome=SIGN_IN)
    told = agent.asks_before("authenticate", DEVICE, {})
    async with started(agent) as client:
        assert client.pending == []
        signing_in = asyncio.create_task(client.authenticate("device"))
        await until(lambda: client.pending)
        agent.send({"method": "elicitation/complete", "params": {"elicitationId": "e7"}})
        await soon(signing_in)
    assert told[0]["result"] == {"action": "accept"}


async def test_a_question_in_session_new_is_on_the_record_and_does_not_time_out(
    tmp_path: Path,
) -> None:
    agent, heard = RawAgent(), Heard()
    question = {"mode": "form", "message": "Trust this folder?", "requestedSchema": SCHEMA}
    told = agent.asks_before("session/new", question, {"sessionId": "s1"})
    timeouts = Timeouts(initialize=30)  # less than this agent waits for an answer
    async with started(agent, listen=heard, timeouts=timeouts) as client:
        assert client.pending == []
        opening = asyncio.create_task(client.new_session(tmp_path))
        await until(lambda: client.pending)
        await _leap(timeouts.initialize)
        assert not opening.done()
        answer = ElicitationAnswer("accept", {"name": "yes"})
        await client.answer_elicitation(client.pending[0].request_id, answer)
        session = await soon(opening)
        assert told[0]["result"] == {"action": "accept", "content": {"name": "yes"}}
        assert session.state.pending == {}
    kinds = [type(event).__name__ for event in heard.events]
    assert kinds[:3] == ["SessionOpened", "ElicitationRequested", "ElicitationSettled"]
    assert heard.actions == ["accept"]


async def _leap(seconds: float) -> None:
    """Let so many seconds pass at once, with all that was to happen in them."""
    loop = asyncio.get_running_loop()
    passed = loop.create_future()
    loop.call_later(seconds, passed.set_result, None)
    now = loop.time
    loop.time = lambda: now() + seconds
    await passed


async def test_a_question_of_a_request_that_is_over_is_withdrawn(tmp_path: Path) -> None:
    agent = RawAgent()
    told = agent.asks_before("session/new", DEVICE, {"sessionId": "s1"})
    async with started(agent) as client:
        assert client.pending == []
        opening = asyncio.create_task(client.new_session(tmp_path))
        await until(lambda: client.pending)
        opening.cancel()
        await asyncio.wait([opening])
        assert client.pending == []
        await until(lambda: told)
    assert told[0]["result"] == {"action": "cancel"}


async def test_outside_a_session_with_nobody_to_ask_it_is_declined() -> None:
    agent = RawAgent(welcome=SIGN_IN)
    told = agent.asks_before("authenticate", DEVICE, {})
    async with started(agent) as client:
        await soon(client.authenticate("device"))
    assert told[0]["result"] == {"action": "decline"}

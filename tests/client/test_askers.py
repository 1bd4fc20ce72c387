"""Who is asked: the reader of the turn, a program or a provider; or nobody is there."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.clients import next_of, until
from support.peers import settled, soon
from support.permission_scene import CANCELLED, OPTIONS, question, scene, selected
from support.raw_agent import ENDED, Json

from dragoman import Timeouts
from dragoman.host.permissions.questions import PermissionRequest
from dragoman.session import events as e

# ── refusing ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (OPTIONS, selected("no")),
        ([("once", "allow_once"), ("never", "reject_always")], selected("never")),
        ([("once", "allow_once")], CANCELLED),
        ([], CANCELLED),
    ],
)
async def test_with_nobody_to_ask_a_reject_option_is_picked(
    options: list[tuple[str, str]], expected: Json, tmp_path: Path
) -> None:
    async with scene(tmp_path, attended=False) as s:
        turn = await s.begin()
        running = asyncio.create_task(turn._run())  # pyright: ignore[reportPrivateUsage]
        await settled()
        assert (await s.result("session/request_permission", question(options)))[
            "result"
        ] == expected
        effect, reason = s.effect
        assert reason.startswith("there is nobody to ask")
        assert s.settlements[-1].decision.by == "default"
        assert ("offers no way to refuse" in reason) == (expected == CANCELLED)
        assert effect == ("cancelled" if expected == CANCELLED else "deny")
        s.agent.reply(s.prompt_id, ENDED)
        await soon(running)


async def test_whoever_reads_on_without_answering_has_refused(tmp_path: Path) -> None:
    async with scene(tmp_path, attended=False) as s:
        turn = await s.begin()
        asking = s.ask_permission()
        await next_of(turn, e.PermissionRequested)
        await settled()
        assert not asking.done()
        assert (await next_of(turn, e.PermissionSettled)).option_id == "no"
        assert (await soon(asking))["result"] == selected("no")


async def test_a_question_nobody_has_read_yet_waits(tmp_path: Path) -> None:
    """Whoever holds the turn may still come to read it."""
    async with scene(tmp_path, attended=False) as s:
        turn = await s.begin()
        asking = s.ask_permission()
        await s.waiting()
        await settled()
        assert not asking.done()
        assert [type(event) for event in [await anext(turn)]] == [e.TurnStarted]
        asked = await next_of(turn, e.PermissionRequested)
        await s.session.answer(asked.request_id, "once")
        assert (await soon(asking))["result"] == selected("once")


async def test_awaiting_a_turn_refuses_what_already_waits(tmp_path: Path) -> None:
    async with scene(tmp_path, attended=False) as s:
        turn = await s.begin()
        asking = s.ask_permission()
        await s.waiting()
        waiting = asyncio.ensure_future(turn)
        assert (await soon(asking))["result"] == selected("no")
        s.agent.reply(s.prompt_id, ENDED)
        await soon(waiting)


async def test_between_turns_there_is_nobody_to_ask(tmp_path: Path) -> None:
    async with scene(tmp_path, attended=False) as s:
        told = await s.result("session/request_permission", question())
        assert told["result"] == selected("no")


async def test_a_program_that_looks_at_what_is_pending_will_answer(tmp_path: Path) -> None:
    async with scene(tmp_path, attended=False) as s:
        assert s.session.pending == []
        asking = s.ask_permission()
        await until(lambda: s.session.pending)
        await s.answer("once")
        assert (await soon(asking))["result"] == selected("once")


async def test_a_program_that_refuses_questions_may_look_at_them(tmp_path: Path) -> None:
    async with scene(tmp_path, attended=False, questions="refuse") as s:
        assert s.session.pending == []
        s.session.events()
        assert s.session.pending == []
        told = await s.result("session/request_permission", question())
        assert told["result"] == selected("no")


async def test_a_program_that_said_it_answers_need_not_look_first(tmp_path: Path) -> None:
    async with scene(tmp_path, attended=False, questions="wait") as s:
        asking = s.ask_permission()
        request = await s.waiting()
        await settled()
        assert not asking.done()
        await s.session.answer(request.id, "once")
        assert (await soon(asking))["result"] == selected("once")


async def test_a_turn_that_is_read_on_does_not_refuse_what_waits_for_the_program(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, attended=False, questions="wait") as s:
        turn = await s.begin()
        asking = s.ask_permission()
        asked = await next_of(turn, e.PermissionRequested)
        reading = asyncio.create_task(next_of(turn, e.PermissionSettled))
        await settled()
        assert not asking.done()
        await s.session.answer(asked.request_id, "once")
        assert (await soon(reading)).option_id == "once"
        assert (await soon(asking))["result"] == selected("once")


async def test_a_question_waits_no_longer_than_the_limit(tmp_path: Path) -> None:
    limit = Timeouts(question=0.01)
    async with scene(tmp_path, attended=False, questions="wait", timeouts=limit) as s:
        told = await s.result("session/request_permission", question())
        assert told["result"] == selected("no")
        assert s.settlements[-1].decision.by == "nobody"
        assert s.effect == ("deny", "nobody answered within 0.01 seconds")


# ── providers ─────────────────────────────────────────────────────────────────────────────────


class Person:
    """A provider that says what it is told to, after a while."""

    def __init__(self, answer: str | Exception | None = "once") -> None:
        self.answer = answer
        self.asked: list[PermissionRequest] = []
        self.ready = asyncio.Event()
        self.let_go = False

    async def request_permission(self, request: PermissionRequest) -> str | None:
        self.asked.append(request)
        try:
            await self.ready.wait()
        except asyncio.CancelledError:
            self.let_go = True
            raise
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "expected", "effect"),
    [
        ("once", "once", ("allow", "answered")),
        ("never", "never", ("deny", "answered")),
        (None, "no", ("deny", "refused")),
        ("maybe", "no", ("deny", "the answer 'maybe' is not one of the options")),
        (OSError("no terminal"), "no", ("deny", "the permissions provider failed")),
    ],
)
async def test_a_provider_is_asked(
    answer: str | Exception | None, expected: str, effect: tuple[str, str], tmp_path: Path
) -> None:
    person = Person(answer)
    person.ready.set()
    async with scene(tmp_path, attended=False, permissions=person) as s:
        await s.begin()
        assert (await soon(s.ask_permission()))["result"] == selected(expected)
        assert s.effect == effect
        (request,) = person.asked
        assert (request.agent, request.title, request.claimed) == ("raw", "Do it", True)
        assert [option.id for option in request.options] == ["once", "always", "no", "never"]


@pytest.mark.parametrize("answer", [None, "reject", "reject_always"])
async def test_that_a_person_refused_is_said_once(answer: str | None, tmp_path: Path) -> None:
    person = Person(answer)
    person.ready.set()
    async with scene(tmp_path, attended=False, permissions=person) as s:
        run: Json = {"sessionId": "s1", "command": "ls", "args": ["-la"]}
        told = await s.result("terminal/create", run)
        assert told["error"]["message"] == "ls -la: refused"


async def test_a_provider_is_let_go_when_the_answer_comes_from_elsewhere(tmp_path: Path) -> None:
    person = Person()
    async with scene(tmp_path, attended=False, permissions=person) as s:
        await s.begin()
        asking = s.ask_permission()
        await s.answer("no")
        assert (await soon(asking))["result"] == selected("no")
        await until(lambda: person.let_go)
    assert len(s.settlements) == 1


async def test_a_provider_is_asked_between_turns_too(tmp_path: Path) -> None:
    person = Person()
    person.ready.set()
    async with scene(tmp_path, attended=False, permissions=person) as s:
        assert (await soon(s.ask_permission()))["result"] == selected("once")

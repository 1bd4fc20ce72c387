"""Answers for longer than once, which Dragoman offers beside those of the agent."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest
from support.clients import until
from support.peers import soon
from support.permission_scene import OPTIONS, Scene, question, scene, selected
from support.raw_agent import Json

from dragoman import Policy
from dragoman.host.permissions.questions import PermissionRequest

_numbers = itertools.count()


def runs(*words: str) -> Json:
    return question(OPTIONS, toolCallId=f"c{next(_numbers)}", rawInput={"command": list(words)})


def line(text: str) -> Json:
    return question(OPTIONS, toolCallId=f"c{next(_numbers)}", rawInput={"command": text})


async def offered(s: Scene, asked: Json) -> dict[str, str]:
    """The ids and words of what is offered; the question is refused."""
    asking = s.ask_permission(asked)
    pending = await s.waiting()
    await s.answer("no")
    await soon(asking)
    return {offer.id: offer.words for offer in pending.offers}


async def asked_again(s: Scene, asked: Json) -> bool:
    """Whether a person is asked; then the answer is no."""
    before = len(s.requests)
    asking = s.ask_permission(asked)
    await until(lambda: asking.done() or s.session.state.pending)
    if s.session.state.pending:
        await s.answer("no")
    await soon(asking)
    return len(s.requests) > before


async def test_a_question_about_a_command_offers_the_program_and_all_commands(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        assert await offered(s, runs("pytest", "-q")) == {
            "remember:this:session": "Allow this command in this session",
            "remember:this:project": "Allow this command in this project",
            "remember:program:session": "Allow “pytest …” in this session",
            "remember:program:project": "Allow “pytest …” in this project",
            "remember:program:user": "Allow “pytest …” everywhere",
            "remember:commands:session": "Allow any command in this session",
            "remember:commands:project": "Allow any command in this project",
        }


async def test_a_question_about_a_file_offers_its_folder_and_all_files(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        diff = {"type": "diff", "path": str(tmp_path / "src/app.py"), "newText": "x"}
        words = (await offered(s, question(OPTIONS, kind="edit", content=[diff]))).values()
        assert list(words) == [
            "Allow changes to this file in this session",
            "Allow changes to this file in this project",
            "Allow changes to files in src in this session",
            "Allow changes to files in src in this project",
            "Allow changes to any file in this session",
            "Allow changes to any file in this project",
        ]


async def test_a_folder_is_named_as_it_is_on_the_disk(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        diff = {"type": "diff", "path": str(tmp_path / "[id]/page.tsx"), "newText": "x"}
        found = await offered(s, question(OPTIONS, kind="edit", content=[diff]))
        words = "Allow changes to files in [id] in this project"
        assert found["remember:folder:project"] == words


async def test_only_what_a_rule_can_say_is_offered(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        unread = await offered(s, line("echo $HOME && ls"))
        assert set(unread) == {"remember:commands:session", "remember:commands:project"}
        assert await offered(s, question(OPTIONS, toolCallId="unnamed")) == {}
        protected = {"type": "diff", "path": str(tmp_path / ".envrc"), "newText": "x"}
        assert (
            await offered(s, question(OPTIONS, toolCallId="p", kind="edit", content=[protected]))
            == {}
        )


async def test_there_is_nothing_to_offer_where_the_agent_takes_no_yes_for_once(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        only_always = [("always", "allow_always"), ("no", "reject_once")]
        command = {"command": ["pytest"]}
        assert await offered(s, question(only_always, rawInput=command)) == {}


async def test_a_chosen_program_covers_other_words_and_the_agent_is_told_yes_for_once(
    tmp_path: Path,
) -> None:
    policy = Policy()
    async with scene(tmp_path, policy=policy) as s:
        await s.begin()
        asking = s.ask_permission(runs("pytest", "-q"))
        await s.answer("remember:program:project")
        assert (await soon(asking))["result"] == selected("once")
        assert s.settlements[-1].option_id == "once"
        assert s.settlements[-1].decision.reason == "allow “pytest …” in this project"
        assert [rule.argv_prefix for rule in policy.rules] == [("pytest",)]
        assert not await asked_again(s, runs("pytest", "-q", "tests/x.py"))
        assert not await asked_again(s, line("pytest -x && pytest -q"))
        assert await asked_again(s, runs("make"))
        assert await asked_again(s, line("pytest -q > out.txt"))


async def test_a_line_is_remembered_command_by_command(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    policy = Policy()
    async with scene(tmp_path, policy=policy) as s:
        await s.begin()
        asking = s.ask_permission(line("cd src && ls && git status --short"))
        await s.answer("always")
        assert (await soon(asking))["result"] == selected("always")
        assert [(rule.argv, rule.cwd) for rule in policy.rules] == [
            (("ls",), str(tmp_path / "src")),
            (("git", "status", "--short"), str(tmp_path / "src")),
        ]
        assert not await asked_again(s, line("cd src && git status --short"))
        assert await asked_again(s, line("git status --short"))


async def test_a_rule_for_the_session_ends_with_it(tmp_path: Path) -> None:
    policy = Policy()
    async with scene(tmp_path, policy=policy) as s:
        await s.begin()
        asking = s.ask_permission(runs("pytest"))
        await s.answer("remember:program:session")
        await soon(asking)
        assert not await asked_again(s, runs("pytest", "-q"))
    async with scene(tmp_path, policy=policy) as other:
        await other.begin()
        assert await asked_again(other, runs("pytest", "-q"))


# ── danger ────────────────────────────────────────────────────────────────────────────────────


async def test_a_dangerous_command_is_marked_and_remembered_only_if_it_is_said_twice(
    tmp_path: Path,
) -> None:
    policy = Policy()
    async with scene(tmp_path, policy=policy) as s:
        await s.begin()
        asking = s.ask_permission(runs("rm", "-rf", "build"))
        pending = await s.waiting()
        assert pending.danger == "rm deletes folders and everything in them"
        assert [offer.id for offer in pending.offers if offer.confirm] == [
            "remember:this:session",
            "remember:this:project",
        ]
        assert all(offer.confirm for offer in pending.offers)
        with pytest.raises(ValueError, match=r"rm deletes folders.*: to allow it from now on"):
            await s.session.answer(pending.id, "remember:this:project")
        await s.session.answer(pending.id, "remember:this:project", confirmed=True)
        await soon(asking)
        assert [rule.argv for rule in policy.rules] == [("rm", "-rf", "build")]
        assert not await asked_again(s, runs("rm", "-rf", "build"))
        assert await asked_again(s, runs("rm", "-rf", "src"))


async def test_an_always_of_the_agent_for_a_dangerous_command_counts_once(tmp_path: Path) -> None:
    policy = Policy()
    async with scene(tmp_path, policy=policy) as s:
        await s.begin()
        asking = s.ask_permission(runs("git", "push", "--force"))
        pending = await s.waiting()
        told = [option.consequence for option in pending.options if option.kind == "allow_always"]
        assert "counts once only: git push rewrites or deletes what others have" in str(told)
        await s.answer("always")
        assert (await soon(asking))["result"] == selected("once")
        assert policy.rules == ()


# ── the same again ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("option", ["once", "no", "always", "remember:program:project"])
async def test_the_same_question_is_answered_with_the_one_that_waits(
    option: str, tmp_path: Path
) -> None:
    policy = Policy()
    async with scene(tmp_path, policy=policy) as s:
        await s.begin()
        asking = [s.ask_permission(runs("make", "test")) for _ in range(3)]
        await until(lambda: len(s.session.state.pending) == 3)
        first, *others = s.requests
        assert [each.same_as for each in others] == [first.request_id] * 2
        await s.session.answer(first.request_id, option)
        told = [(await soon(each))["result"] for each in asking]
        assert told == [told[0]] * 3
        assert not s.session.state.pending
        assert len(policy.rules) == (0 if option in ("once", "no") else 1)


async def test_an_equal_question_is_asked_if_the_first_is_withdrawn(tmp_path: Path) -> None:
    class Person:
        def __init__(self) -> None:
            self.asked: list[PermissionRequest] = []

        async def request_permission(self, request: PermissionRequest) -> str | None:
            self.asked.append(request)
            if len(self.asked) == 1:
                await asyncio.Event().wait()
            return "once"

    person = Person()
    async with scene(tmp_path, permissions=person) as s:
        await s.begin()
        s.ask_permission(runs("make", "test"))
        second = s.ask_permission(runs("make", "test"))
        await until(lambda: len(s.session.state.pending) == 2)
        assert len(person.asked) == 1
        s.agent.send({"method": "$/cancel_request", "params": {"requestId": "ask 1"}})
        assert (await soon(second))["result"] == selected("once")
        assert len(person.asked) == 2


async def test_other_questions_that_a_new_rule_allows_are_answered_by_it(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        first = s.ask_permission(runs("pytest", "a.py"))
        second = s.ask_permission(runs("pytest", "b.py"))
        third = s.ask_permission(runs("make"))
        await until(lambda: len(s.session.state.pending) == 3)
        asked = next(iter(s.session.state.pending))
        await s.session.answer(asked, "remember:program:session")
        assert (await soon(first))["result"] == (await soon(second))["result"] == selected("once")
        by = [settled.decision.by for settled in s.settlements]
        assert by == ["person", "rule"]
        assert len(s.session.state.pending) == 1
        await s.answer("no")
        await soon(third)


@pytest.mark.parametrize(
    "calls",
    [
        [{"kind": "edit", "rawInput": {"path": "a.py", "new_string": n}} for n in "ab"],
        [{"kind": "fetch", "rawInput": {"url": "https://example.com/", "body": n}} for n in "ab"],
        [{"kind": "execute", "rawInput": {"command": "psql", "stdin": n}} for n in "ab"],
    ],
)
async def test_requests_that_differ_in_what_is_not_shown_are_not_the_same(
    calls: list[Json], tmp_path: Path
) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        asking = [
            s.ask_permission(question(OPTIONS, toolCallId=f"n{n}", **call))
            for n, call in enumerate(calls)
        ]
        await until(lambda: len(s.session.state.pending) == 2)
        assert [asked.same_as for asked in s.requests] == [None, None]
        for request_id in list(s.session.state.pending):
            await s.session.answer(request_id, "no")
        await soon(asyncio.gather(*asking))


async def test_an_answer_to_any_of_several_equal_questions_answers_all(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        asking = [s.ask_permission(runs("make", "test")) for _ in range(3)]
        await until(lambda: len(s.session.state.pending) == 3)
        await s.session.answer(s.requests[1].request_id, "once")
        told = [(await soon(each))["result"] for each in asking]
        assert told == [selected("once")] * 3


async def test_a_file_that_a_line_writes_is_named_in_what_is_offered(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        words = (await offered(s, line("pytest -q > out.txt")))["remember:program:project"]
        assert words == "Allow “pytest …” and changes to out.txt in this project"
        words = (await offered(s, line("git diff --quiet && ./deploy")))["remember:this:project"]
        assert words == "Allow each command of this line in this project"

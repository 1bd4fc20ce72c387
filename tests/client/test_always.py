"""Answers that count for more than once: what is remembered, and what the question says of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.granting import allow, diff, refused
from support.peers import soon
from support.permission_scene import question, scene, selected

from dragoman import Policy, Rule
from dragoman.session import events as e


class Kept:
    """Where rules are stored."""

    def __init__(self) -> None:
        self.rules: list[Rule] = []

    def list(self) -> list[Rule]:
        return self.rules

    def add(self, rule: Rule) -> None:
        self.rules.append(rule)


@pytest.mark.parametrize("store", [Kept(), None])
async def test_always_is_remembered_as_a_rule(store: Kept | None, tmp_path: Path) -> None:
    async with scene(tmp_path, policy=Policy(stored=store)) as s:
        await s.begin()
        writing = asyncio.create_task(s.write("one"))
        waiting = await s.waiting()
        assert waiting.always is not None
        assert f"allow writing files {tmp_path}/a.txt" in waiting.always
        await s.answer("allow_always")
        assert "result" in await soon(writing)
        assert "result" in await s.write("two")
        assert len(s.requests) == 1
        await refused(s, s.write("three", "b.txt"))
    if store is not None:
        (rule,) = store.rules
        assert (rule.operation, rule.effect, rule.scope) == ("write", "allow", "project")


@pytest.mark.parametrize(
    "label",
    [
        *("Allow for this session", "Approve for this session", "Always allow (session)"),
        *("Allow in session", "Allow session", "Yes, until session ends", "Allow until restart"),
    ],
)
async def test_a_yes_for_the_session_is_stored_nowhere(label: str, tmp_path: Path) -> None:
    store = Kept()
    policy = Policy(stored=store)
    answers = [("Allow", "allow_once"), (label, "allow_always"), ("No", "reject_once")]
    async with scene(tmp_path, policy=policy) as s:
        await s.begin()
        asking = s.ask_permission(question(answers, call=diff(tmp_path, "one")))
        offered = {option.kind: option for option in (await s.waiting()).options}["allow_always"]
        assert offered.words == "Allow for this session"
        assert offered.warning is None
        assert str(offered.consequence).endswith("in this session; the agent may also remember it")
        await s.answer(label)
        assert (await soon(asking))["result"] == selected(label)
        assert "result" in await s.write("two")
        assert len(s.requests) == 1
        (rule,) = policy.rules
        assert (rule.scope, rule.session, rule.project) == ("session", "s1", str(tmp_path))
        # Another session, to which its agent gave the same id.
        async with scene(tmp_path, policy=policy) as other:
            assert other.session.id == s.session.id
            await refused(other, other.write("three"))
    assert store.rules == []
    assert policy.rules == ()


async def test_never_is_remembered_as_a_rule(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        writing = asyncio.create_task(s.write("one"))
        await s.answer("reject_always")
        assert "error" in await soon(writing)
        assert "your answer" in (await s.write("two"))["error"]["message"]
        assert len(s.requests) == 1


async def test_always_to_what_the_agent_asks_counts_for_the_host_too(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        await allow(s, diff(tmp_path, "one"), "always")
        for text in ("one", "two", "three"):
            assert "result" in await s.write(text)
        assert (await soon(s.ask_permission(question(call=diff(tmp_path, "x")))))[
            "result"
        ] == selected("once")


async def test_an_always_that_cannot_be_a_rule_counts_once_and_says_so(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        await allow(s, {"rawInput": {"command": "a && $b"}}, "always")
        (notice,) = [event for event in s.heard if isinstance(event, e.Notice)]
        assert "counts once only" in notice.text
        assert s.requests[0].description is None

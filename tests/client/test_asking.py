"""`Session.ask`: a result of a type or nothing, by the tool or from the text, mended in between."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.clients import started
from support.programs import submitting_agent
from support.programs.submitting_agent import script
from support.raw_agent import RawAgent, notification, text_block

import dragoman
from dragoman import Client, NoResult, Policy, Rule, Session, SyncSession
from dragoman.session.state import AgentEntry, UserEntry
from dragoman.testing import AgentTurn, ScriptedAgent

AGENT = ScriptedAgent.command(f"{submitting_agent.__file__}:agent")


class Invoice(msgspec.Struct):
    number: str
    total: float


GOOD = {"number": "A1", "total": 5.0}
BAD = {"number": "A1", "total": "five"}
BLOCK = f"Here it is:\n```json\n{json.dumps(GOOD)}\n```\n"
BAD_BLOCK = BLOCK.replace("5.0", '"five"')


@asynccontextmanager
async def asked(cwd: Path, **options: Any) -> AsyncGenerator[Session]:
    async with started(submitting_agent.agent) as client:
        yield await client.new_session(cwd, **options)


def prompts(session: Session) -> list[str]:
    return [entry.text for entry in session.state.entries if isinstance(entry, UserEntry)]


def answers(session: Session) -> list[str]:
    return [entry.text for entry in session.state.entries if isinstance(entry, AgentEntry)]


# ── with the tool ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("results", [True, Invoice])
async def test_what_the_agent_submits_is_the_result(tmp_path: Path, results: Any) -> None:
    async with asked(tmp_path, results=results) as session:
        prompt = script([{"submit": {"result": GOOD}}])
        assert await session.ask(prompt, output=Invoice) == Invoice("A1", 5.0)
        assert "call the tool submit_result" in prompts(session)[0]
        assert answers(session) == ["The result was accepted. End your turn now; nothing else is "
                                    "needed."]  # fmt: skip


async def test_an_invalid_submission_is_told_back_and_mended_in_the_same_turn(
    tmp_path: Path,
) -> None:
    async with asked(tmp_path, results=True) as session:
        prompt = script([{"submit": BAD}, {"submit": GOOD}])
        assert await session.ask(prompt, output=Invoice) == Invoice("A1", 5.0)
        assert "Expected `float`, got `str` - at `$.total`" in answers(session)[0]
        assert len(session.state.turns) == 1


async def test_after_the_last_try_the_turn_is_stopped_and_nothing_is_returned(
    tmp_path: Path,
) -> None:
    async with asked(tmp_path, results=True) as session:
        prompt = script([{"submit": BAD}] * 3 + [{"submit": GOOD}])
        with pytest.raises(NoResult, match="in 3 tries: Expected `float`") as told:
            await session.ask(prompt, output=Invoice)
        assert len(told.value.problems) == 3
        assert session.state.turns[0].stop_reason == "cancelled"


async def test_an_agent_that_writes_the_result_instead_is_understood(tmp_path: Path) -> None:
    async with asked(tmp_path, results=True) as session:
        assert await session.ask(script({"say": BLOCK}), output=Invoice) == Invoice("A1", 5.0)


async def test_a_tool_that_says_something_else_is_not_used(tmp_path: Path) -> None:
    async with asked(tmp_path, results=Invoice) as session:
        prompt = script([{"submit": {"result": [1]}}, {"say": "```json\n[2]\n```"}])
        with pytest.raises(NoResult):
            await session.ask(prompt, output=list[str], retries=0)
        assert "call the tool" not in prompts(session)[0]


async def test_nothing_is_taken_when_nothing_is_asked_for(tmp_path: Path) -> None:
    async with asked(tmp_path, results=True) as session:
        turn = await session.prompt(script([{"submit": GOOD}]))
        assert turn.text == "Nobody waits for a result now."


async def test_each_of_several_questions_gets_its_own_result(tmp_path: Path) -> None:
    """They are queued; a submission is for the turn that runs."""
    async with asked(tmp_path, results=True) as session:
        first = script([{"submit": {"result": 1}}], [{"submit": {"result": "two"}}])
        asked_at_once = session.ask(first, output=int), session.ask("x", output=str)
        assert await asyncio.gather(*asked_at_once) == [1, "two"]


async def test_other_tools_and_methods_are_errors(tmp_path: Path) -> None:
    agent = RawAgent()
    async with started(agent) as client:
        await client.new_session(tmp_path, results=Invoice)
        [server] = agent.sent("session/new")[0]["mcpServers"]

        async def answer(method: str, params: Any = None) -> Any:
            body = {"serverId": server["serverId"], "requestId": "r", "method": method}
            reply = await agent.ask("mcp/message", body | ({"params": params} if params else {}))
            return reply.get("result", reply.get("error"))

        [tool] = (await answer("tools/list"))["result"]["tools"]
        assert tool["name"] == "submit_result"
        required = tool["inputSchema"]["properties"]["result"]["required"]
        assert required == ["number", "total"]
        assert "-326" in str(await answer("resources/list"))
        assert "the only tool is submit_result" in str(await answer("tools/call", {"name": "x"}))


# ── from the text ─────────────────────────────────────────────────────────────────────────────


async def test_without_the_tool_the_last_block_is_the_result(tmp_path: Path) -> None:
    async with asked(tmp_path) as session:
        assert await session.ask(script({"say": BLOCK}), output=Invoice) == Invoice("A1", 5.0)
        assert "one fenced code block" in prompts(session)[0]
        assert "submit_result" not in prompts(session)[0]


async def test_what_was_wrong_is_told_and_the_next_answer_counts(tmp_path: Path) -> None:
    async with asked(tmp_path) as session:
        prompt = script({"say": "Done."}, {"say": BAD_BLOCK}, {"say": BLOCK})
        assert await session.ask(prompt, output=Invoice) == Invoice("A1", 5.0)
        _, second, third = prompts(session)
        assert "the answer has no JSON in a fenced code block" in second
        assert "Expected `float`, got `str` - at `$.total`" in third


async def test_it_is_tried_again_as_often_as_was_said(tmp_path: Path) -> None:
    async with asked(tmp_path) as session:
        prompt = script(*[{"say": BAD_BLOCK}] * 9)
        with pytest.raises(NoResult, match="no valid result in 5 tries"):
            await session.ask(prompt, output=Invoice, retries=4)
        assert len(prompts(session)) == 5


async def test_a_turn_that_was_refused_is_not_tried_again(tmp_path: Path) -> None:
    async with asked(tmp_path) as session:
        prompt = script([{"say": "no"}, {"stop": "refusal"}], {"say": BLOCK})
        with pytest.raises(NoResult, match="the turn ended with refusal"):
            await session.ask(prompt, output=Invoice)


async def test_a_json_schema_and_a_plain_answer(tmp_path: Path) -> None:
    schema = {"type": "object", "required": ["number"]}
    async with asked(tmp_path) as session:
        prompt = script({"say": BLOCK}, {"say": "hello"})
        assert await session.ask(prompt, output=schema) == GOOD
        assert await session.ask("x") == "hello"


async def test_only_what_was_typed_mentions_files(tmp_path: Path) -> None:
    (tmp_path / "id").write_text("x")
    schema = {"type": "object", "properties": {"mail": {"pattern": "@id"}}}
    agent = RawAgent()
    agent.answers["session/prompt"] = {"stopReason": "refusal"}
    async with started(agent) as client:
        session = await client.new_session(tmp_path)
        with pytest.raises(NoResult):
            await session.ask("read @notes.txt", output=schema)
    blocks = agent.sent("session/prompt")[0]["prompt"]
    assert [block.get("name") for block in blocks] == [None, None, "notes.txt"]


# ── permission to submit ──────────────────────────────────────────────────────────────────────

OPTIONS = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]


async def _chosen(tmp_path: Path, call: dict[str, Any], **options: Any) -> Any:
    """What an agent is answered that asks permission for this call, in a turn that wants a
    result, with nobody to ask."""
    agent = RawAgent()
    given: list[Any] = []

    async def turn(params: Any) -> None:
        known = {"toolCallId": "c"} | call
        body = {"sessionId": "s1", "toolCall": known, "options": offered}
        given.append(await agent.ask("session/request_permission", body))

    results, offered = options.pop("results", True), options.pop("offered", OPTIONS)
    async with started(agent, questions="refuse", **options) as client:
        session = await client.new_session(tmp_path, results=results)
        running = asyncio.create_task(session.ask("x", output=int, retries=0))
        request = await agent.expect("session/prompt")
        await turn(request)
        agent.send(notification("agent_message_chunk", content=text_block("5")))
        agent.reply(request["id"], {"stopReason": "end_turn"})
        assert await running == 5
    return given[0]["result"]["outcome"].get("optionId")


@pytest.mark.parametrize(
    "call",
    [
        {"title": "mcp__dragoman__submit_result", "rawInput": {"result": 5}},
        {"title": "submit_result (dragoman MCP Server)", "kind": "other"},
    ],
)
async def test_submitting_needs_no_permission(tmp_path: Path, call: dict[str, Any]) -> None:
    assert await _chosen(tmp_path, call) == "yes"
    assert await _chosen(tmp_path, call, results=False) == "no"
    rules = Policy((Rule(effect="deny", operation="mcp"),))
    assert await _chosen(tmp_path, call, policy=rules) == "no"


async def test_an_option_that_does_more_than_allow_is_not_chosen(tmp_path: Path) -> None:
    switch = {"optionId": "more", "name": "Switch to Auto Mode and allow", "kind": "allow_once"}
    call = {"title": "submit_result"}
    assert await _chosen(tmp_path, call, offered=[switch, *OPTIONS]) == "yes"
    assert await _chosen(tmp_path, call, offered=[switch, switch, OPTIONS[1]]) == "no"


@pytest.mark.parametrize(
    "call",
    [
        {"title": "submit_result", "kind": "execute", "rawInput": {"command": "rm -rf ."}},
        {"title": "submit_result", "rawInput": {"command": "rm -rf ."}},
        {"title": "submit_result", "rawInput": {"result": {"command": ["sh", "-c", "id"]}}},
        {"title": "submit_result", "kind": "edit", "rawInput": {"path": "a.txt"}},
        {"title": "submit_result", "rawInput": {"path": "/etc/passwd"}},
        {"title": "submit_result", "kind": "fetch", "rawInput": {"url": "https://example.com"}},
        {"title": "submit_result", "kind": "delete"},
        {"title": "run `rm -rf .` for submit_result", "kind": "execute"},
        {"title": "bash", "kind": "other"},
        {
            "title": "submit_result",
            "content": [{"type": "diff", "path": "a.txt", "newText": "x"}],
        },
    ],
)
async def test_the_name_of_the_tool_does_not_open_anything_else(
    tmp_path: Path, call: dict[str, Any]
) -> None:
    assert await _chosen(tmp_path, call) != "yes"


# ── without async ─────────────────────────────────────────────────────────────────────────────


def test_one_call_asks_for_a_result(tmp_path: Path) -> None:
    prompt = script([{"submit": {"result": GOOD}}])
    assert dragoman.ask(prompt, output=Invoice, agent=AGENT, cwd=tmp_path) == Invoice("A1", 5.0)


async def test_it_works_where_a_loop_is_running(tmp_path: Path) -> None:
    text = dragoman.ask(script({"say": "hello"}), agent=AGENT, cwd=tmp_path)
    assert text == "hello"


def test_a_session_without_async_asks_too(tmp_path: Path) -> None:
    with SyncSession.start(AGENT, tmp_path, results=True) as session:
        prompt = script([{"submit": {"result": 1}}], {"say": "no"})
        assert session.ask(prompt, output=int) == 1
        with pytest.raises(NoResult):
            session.ask("x", output=int, retries=0)


# ── random answers ────────────────────────────────────────────────────────────────────────────


class Order(msgspec.Struct):
    number: str
    total: float
    paid: bool
    lines: list[str]


RIGHT: dict[str, Any] = {"number": "A1", "total": 1.5, "paid": True, "lines": ["a"]}
WRONG: dict[str, list[Any]] = {
    "number": [1, None, ["A1"], {}],
    "total": ["1.5", None, [1], "one"],
    "paid": ["yes", 1, None],
    "lines": ["a", [1], {"a": 1}, None],
}
LAYOUTS = (
    "```json\n{}\n```",
    "Sure!\n\n```\n{}\n```\nAnything else?",
    "{}",
    "First\n```\nnot this\n```\nthen\n~~~json\n{}\n~~~",
)
BROKEN = (
    "It is {}.",
    "```json\n{},\n```",
    "```json\n{}",
    "```json\n{}\n",
    "```\n// {}\n```",
    "{} ",
)


class Clumsy:
    """Answers with several faults, and mends at each correction what that names, and no more."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self.faults = dict[str, Any]()
        for field in dice.sample(sorted(WRONG), dice.choices([0, 1, 2, 3], [25, 45, 27, 3])[0]):
            self.faults[field] = dice.choice([*WRONG[field], "missing"])
        self._is_broken = len(self.faults) < 2 and dice.random() < 0.5
        self._by_tool = dice.random() < 0.5

    async def take(self, turn: AgentTurn) -> None:
        told = turn.text
        while True:
            self._mend(told)
            whole = {**RIGHT, **self.faults}
            value = {name: each for name, each in whole.items() if each != "missing"}
            if not self._by_tool or self._is_broken:
                turn.say(self._written(json.dumps(value)))
                return
            told = await submitting_agent.submitted(turn, {"result": value})
            if told == "there is no tool":
                self._by_tool = False
            elif "not valid" not in told or "last try" in told:
                return

    def _mend(self, told: str) -> None:
        if not told.startswith(("Your result was not valid", "The result is not valid")):
            return
        if "JSON" in told.split("\n")[0]:
            self._is_broken = False
        for field in list(self.faults):
            if re.search(rf"\$\.{field}\b|`{field}`", told.split("\n")[0]):
                del self.faults[field]

    def _written(self, text: str) -> str:
        if not self._is_broken:
            return self._dice.choice(LAYOUTS).replace("{}", text)
        cut = text[: self._dice.randrange(1, len(text) - 1)]
        return self._dice.choice(BROKEN).replace("{}", cut)


async def _mended(cases: int, tmp_path: Path, seed: int) -> int:
    """How many of so many random agents gave a valid result within two retries."""
    dice, agents = random.Random(seed), dict[str, Clumsy]()

    async def answer(turn: AgentTurn) -> None:
        await agents.setdefault(turn.session_id, Clumsy(dice)).take(turn)

    mended = 0
    async with Client.start(ScriptedAgent(answer).connect()) as client:
        for _ in range(cases):
            session = await client.new_session(tmp_path, results=dice.random() < 0.8)
            with suppress(NoResult):
                found = await session.ask("an order, please", output=Order)
                assert found == Order("A1", 1.5, True, ["a"])
                mended += 1
            await session.close()
    return mended


async def test_malformed_answers_are_mended_within_two_retries(tmp_path: Path) -> None:
    assert await _mended(50, tmp_path, seed=1) >= 47


@pytest.mark.soak
async def test_of_a_thousand_malformed_answers_95_percent_are_mended(tmp_path: Path) -> None:
    assert await _mended(1000, tmp_path, seed=31) >= 950

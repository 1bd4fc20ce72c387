"""What an agent of version 2 asks for: who is asked about what, and what no rule may allow."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.clients import opened
from support.raw_agent import RawAgent
from support.v2_agent import second_agent

from dragoman import Policy, Session
from dragoman.session import events as e

SECOND: dict[str, Any] = {"protocol": 2}
OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


async def asked(agent: RawAgent, session: Session, **params: Any) -> e.PermissionRequested:
    """What is asked when the agent asks like this; the answer is yes."""
    events = session.events()
    asking = asyncio.create_task(
        agent.ask("session/request_permission", {"sessionId": "s1", "options": OPTIONS} | params)
    )
    async for event in events:
        if isinstance(event, e.PermissionRequested):
            await session.answer(event.request_id, "yes")
            answer = await asking
            assert answer["result"]["outcome"] == {"outcome": "selected", "optionId": "yes"}
            return event
    raise AssertionError


async def test_a_question_has_its_own_title_and_leaves_the_calls_alone(tmp_path: Path) -> None:
    agent = second_agent()
    async with opened(agent, tmp_path, **SECOND) as (_, session):
        change = {"operation": "modify", "path": str(tmp_path / "a")}
        call = {
            "toolCallId": "c",
            "kind": "edit",
            "content": [{"type": "diff", "changes": [change]}],
        }
        agent.update("tool_call_update", toolCallId="c", title="Edit a")
        subject = {"type": "tool_call", "toolCall": call}
        event = await asked(agent, session, title="May I?", description="Safe", subject=subject)
        assert (event.title, event.explanation, event.tool_call_id) == ("May I?", "Safe", "c")
        assert (event.operation, event.paths) == ("write", [str(tmp_path / "a")])
        assert session.state.tool_calls["c"].title == "Edit a"


async def test_a_move_out_of_a_place_we_refuse_is_refused(tmp_path: Path) -> None:
    agent = second_agent()
    async with opened(agent, tmp_path, **SECOND):
        change = {"operation": "move", "oldPath": "/etc/passwd", "path": str(tmp_path / "a")}
        call = {"toolCallId": "c", "content": [{"type": "diff", "changes": [change]}]}
        subject = {"type": "tool_call", "toolCall": call}
        params = {"sessionId": "s1", "options": OPTIONS, "title": "May I?", "subject": subject}
        answer = await agent.ask("session/request_permission", params)
        assert answer["result"]["outcome"]["optionId"] == "no"


async def test_a_command_that_the_agent_would_run_is_shown_as_one(tmp_path: Path) -> None:
    agent = second_agent()
    async with opened(agent, tmp_path, **SECOND) as (_, session):
        subject = {"type": "command", "command": "make all", "cwd": str(tmp_path)}
        event = await asked(agent, session, title="Run the build?", subject=subject)
        assert (event.operation, event.argv, event.claimed) == ("execute", ["make all"], True)


@pytest.mark.parametrize("subject", [None, {"type": "_telepathy", "mind": "yours"}])
async def test_a_question_about_nothing_known_is_always_asked(subject: Any, tmp_path: Path) -> None:
    agent = second_agent()
    async with opened(agent, tmp_path, policy=Policy(yolo=True), **SECOND) as (_, session):
        event = await asked(agent, session, title="Go on?", subject=subject)
        assert (event.title, event.tool_call_id) == ("Go on?", None)


KNOWN = {"operation": "modify", "path": "a"}


@pytest.mark.parametrize(
    "item",
    [
        {"type": "diff", "changes": [{"operation": "_truncate", "path": "/etc/passwd"}]},
        {"type": "diff", "changes": [KNOWN, {"operation": "_truncate", "path": "b"}]},
        {"type": "diff", "changes": [{"operation": "modify"}]},
        {"type": "diff", "changes": [KNOWN, {"operation": "modify"}]},
        {"type": "diff", "changes": [], "patch": {"format": "git_patch", "text": "diff --git"}},
        {"type": "diff", "changes": []},
        {"type": "diff"},
        {"type": "_exec", "line": "rm -rf /"},
    ],
)
@pytest.mark.parametrize("policy", [Policy(), Policy(write=True), Policy(yolo=True)])
async def test_what_is_not_understood_is_asked_whatever_the_rules_allow(
    policy: Policy, item: Any, tmp_path: Path
) -> None:
    agent = second_agent()
    async with opened(agent, tmp_path, policy=policy, **SECOND) as (_, session):
        place = {"path": str(tmp_path / "a")}
        call = {"toolCallId": "c", "kind": "read", "locations": [place], "content": [item]}
        event = await asked(
            agent, session, title="May I?", subject={"type": "tool_call", "toolCall": call}
        )
        assert (event.tool_call_id, event.title) == ("c", "May I?")


async def test_what_was_not_understood_before_is_asked_too(tmp_path: Path) -> None:
    agent = second_agent()
    async with opened(agent, tmp_path, policy=Policy(yolo=True), **SECOND) as (_, session):
        item = {"type": "diff", "changes": [KNOWN, {"operation": "modify"}]}
        agent.update("tool_call_content_chunk", toolCallId="c", content=item)
        call = {"toolCallId": "c", "kind": "read", "locations": [{"path": str(tmp_path / "a")}]}
        await asked(agent, session, title="May I?", subject={"type": "tool_call", "toolCall": call})


@pytest.mark.parametrize("known", [True, False])
async def test_a_command_without_words_is_asked(known: bool, tmp_path: Path) -> None:
    agent = second_agent()
    async with opened(agent, tmp_path, policy=Policy(yolo=True), **SECOND) as (_, session):
        if known:
            place = {"path": str(tmp_path / "a")}
            agent.update("tool_call_update", toolCallId="c", kind="read", locations=[place])
        subject = {"type": "command", "command": " ", "cwd": str(tmp_path), "toolCallId": "c"}
        await asked(agent, session, title="Go on?", subject=subject)


async def test_tool_content_of_an_unknown_type_is_asked_in_version_1_too(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path, policy=Policy(yolo=True)) as (_, session):
        call = {
            "toolCallId": "c",
            "kind": "read",
            "locations": [{"path": str(tmp_path / "a")}],
            "content": [{"type": "_exec", "line": "rm -rf /"}],
        }
        event = await asked(agent, session, toolCall=call)
        assert event.tool_call_id == "c"

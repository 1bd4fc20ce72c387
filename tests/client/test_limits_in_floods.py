"""Limits of an agent that streams: it waits for nobody, and all it does comes in one piece."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from support.clients import opened, until
from support.raw_agent import ENDED, Json, RawAgent, notification

from dragoman import Policy, SpendingLimit
from dragoman.host.rules.policy import flag_rules
from dragoman.session import events as e

STEPS, AT = 200, 100
"""The limit is reached by the report of step `AT`."""


def step(number: int, folder: Path) -> list[Json]:
    """What it costs so far, a tool call, and three requests that the rules allow."""
    cost = {"amount": number / AT, "currency": "USD"}
    call = {"toolCallId": f"c{number}", "title": f"Call {number}", "kind": "edit"}
    path = str(folder / f"{number}.txt")
    allow = {"optionId": "yes", "name": "Yes", "kind": "allow_once"}
    asked: dict[str, Json] = {
        "session/request_permission": {
            "toolCall": call | {"locations": [{"path": path}]},
            "options": [allow],
        },
        "fs/write_text_file": {"path": path, "content": "x"},
        "terminal/create": {"command": "touch", "args": [f"{folder}/run-{number}"]},
    }
    return [
        notification("usage_update", used=1, size=10, cost=cost),
        notification("tool_call", **call),
        *(
            {"id": f"{method} {number}", "method": method, "params": {"sessionId": "s1"} | params}
            for method, params in asked.items()
        ),
    ]


async def test_what_streams_in_after_the_limit_is_recorded_and_nothing_of_it_is_allowed(
    tmp_path: Path,
) -> None:
    agent, limit = RawAgent(), SpendingLimit(measure="cost", most=1.0, source="--max-cost")
    policy = Policy(flag_rules(write=True, execute=True, yolo=True))
    async with opened(agent, tmp_path, limits=[limit], policy=policy) as (_, session):
        events: list[e.Event] = []
        session.log.listeners.append(events.append)
        turn = session.prompt("hi")
        prompt = await agent.expect("session/prompt")
        agent.send(*step(1, tmp_path))
        await until(lambda: len(answers(agent)) == 3)
        assert all(allowed for _, _, allowed in answers(agent))

        agent.send(*(each for number in range(2, STEPS + 1) for each in step(number, tmp_path)))
        await until(lambda: len(answers(agent)) == 3 * STEPS)
        agent.reply(prompt["id"], ENDED | {"stopReason": "cancelled"})
        await turn.wait()
        assert turn.limit is not None
        assert turn.limit.limit is not None
        assert turn.limit.limit.value == 1.0, "of the report that reached it, not of a later one"
        assert isinstance(events[events.index(turn.limit) + 1], e.TurnCancelling)
        reported = [each for each in events if isinstance(each, e.UsageChanged)]
        assert len(reported) == STEPS, "what was on its way is recorded"

        late = {number for _, number, allowed in answers(agent) if allowed and number >= AT}
        assert late == set()
        assert 1 in steps_done(tmp_path)
        assert max(steps_done(tmp_path)) < AT
        assert session.pending == []


def steps_done(folder: Path) -> set[int]:
    """Those of which there is a file."""
    return {int(re.sub(r"\D", "", path.name)) for path in folder.iterdir()}


def answers(agent: RawAgent) -> list[tuple[str, int, bool]]:
    """The method and the step of each answer, and whether it lets the agent do something."""
    found: list[tuple[str, int, bool]] = []
    for message in agent.received:
        method, _, number = str(message.get("id")).partition(" ")
        if "method" not in message and number:
            found.append((method, int(number), allows(message)))
    return found


def allows(answer: Json) -> bool:
    result: Any = answer.get("result")
    if "error" in answer:
        return False
    return result is None or result.get("outcome", {}).get("outcome") != "cancelled"

"""A user's program: it tells what happens in a session, and must not forget any kind of event.

Checked by `test_exhaustive_match.py`; a kind that is missing here is a type error.
"""

from __future__ import annotations

import asyncio
from typing import assert_never

import dragoman
from dragoman import events


def told(event: dragoman.Event) -> str:  # noqa: C901 (one case for each kind)
    match event:
        case events.SessionOpened():
            return f"{event.session_id} in {event.cwd} ({event.continuity})"
        case events.SessionClosed():
            return event.reason
        case events.TurnStarted():
            return event.text
        case events.TurnCancelling():
            return event.turn_id
        case events.TurnEnded():
            return event.stop_reason or event.error or ""
        case events.UserMessage() | events.AgentMessage() | events.AgentThought():
            return event.content.text
        case events.ToolCallUpdated():
            return f"{event.tool_call_id}: {event.title or 'unchanged'}"
        case events.PlanUpdated():
            return ", ".join(step.content for step in event.steps)
        case events.ActivityChanged():
            return event.activity or "as before"
        case events.PlanRemoved():
            return event.plan_id
        case events.CommandsChanged():
            return ", ".join(command.name for command in event.commands)
        case events.ModeChanged():
            return event.mode_id
        case events.ConfigChanged():
            return ", ".join(f"{option.id}={option.value}" for option in event.options)
        case events.InfoChanged():
            return event.title or "untitled"
        case events.UsageChanged():
            return f"{event.used} of {event.size}"
        case events.LimitReached():
            return event.limit.outcome
        case events.TurnLimited():
            return event.kind
        case events.ParkingChanged():
            return event.outcome
        case events.Notice():
            return event.text
        case events.CompactionUpdated():
            return event.status
        case events.CompactionSummary():
            return event.text
        case events.SubagentUpdated():
            return event.session_id
        case events.SubagentEvent():
            return told(event.event)
        case events.PeerMessageUpdated() | events.PeerMessageChunk():
            return event.message_id
        case events.UnknownUpdate():
            return event.raw
        case events.PermissionRequested():
            return " or ".join(option.name for option in event.options)
        case events.PermissionSettled():
            return event.decision.reason
        case events.AccessDecided():
            return f"{event.operation}: {event.decision.effect}"
        case events.ElicitationRequested():
            return event.message
        case events.ElicitationSettled():
            return event.action
        case events.TerminalStarted():
            return " ".join(event.argv)
        case events.TerminalOutput():
            return event.data
        case events.TerminalExited():
            return str(event.exit_code)
        case events.TerminalReleased():
            return event.terminal_id
        case events.FileWritten() | events.FileReverted():
            return event.path
        case events.WorkspaceSnapshot():
            return event.step_id
        case events.ProgramsRan():
            return " ".join(program.id for program in event.programs)
        case events.PromptQueued():
            return event.text
        case events.PromptUnqueued():
            return event.queue_id
        case events.Steered():
            return event.outcome
        case _:
            assert_never(event)


async def converse(client: dragoman.Client, prompt: str) -> list[str]:
    session = await client.new_session(".")
    turn = session.prompt(prompt)
    lines = [told(event) async for event in turn]
    if turn.usage is not None:
        lines.append(f"{turn.usage.total} tokens")
    calls = session.state.tool_calls.values()
    return lines + [f"{call.title}: {call.status}" for call in calls]


async def main() -> list[str]:
    async with dragoman.Client.start("demo", policy=dragoman.Policy(write=True)) as client:
        return await converse(client, "Summarise @README.md")


if __name__ == "__main__":
    asyncio.run(main())

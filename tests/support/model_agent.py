"""An agent that does everything the conformance checks look at, and does it right."""

from __future__ import annotations

import asyncio

from dragoman.conformance.examination.agent_words import LONG, WORK
from dragoman.errors import RemoteError
from dragoman.schema import v1
from dragoman.testing.scripted_agent import ScriptedAgent
from dragoman.testing.scripted_turn import AgentTurn

_FORM = {"type": "object", "properties": {"colour": {"type": "string"}}}


def model_agent() -> ScriptedAgent:
    return ScriptedAgent(
        _play,
        modes=[v1.SessionMode(id=name, name=name) for name in ("ask", "auto")],
        config_options=[
            v1.SessionConfigSelect(
                id="model",
                name="Model",
                current_value="small",
                options=[
                    v1.SessionConfigSelectOption(value=name, name=name)
                    for name in ("small", "large")
                ],
            )
        ],
        commands=[v1.AvailableCommand(name="help", description="what there is")],
    )


async def _play(turn: AgentTurn) -> None:
    if turn.text == WORK:
        await turn.until_cancelled(_work(turn))
    elif turn.text == LONG:
        await turn.until_cancelled(_count(turn))
    else:
        turn.say("ready")


async def _count(turn: AgentTurn) -> None:
    for number in range(1, 501):
        turn.say(f"{number}\n")
        await asyncio.sleep(0.05)


async def _work(turn: AgentTurn) -> None:
    turn.plan(("write the file", "in_progress"), ("run the command", "pending"))
    path = f"{turn.cwd}/conformance.txt"
    if turn.client.fs.read_text_file:
        try:
            await turn.read_text_file(path)
        except RemoteError:
            turn.think("there is none yet")
    await _write(turn, path)
    await _run(turn)
    if turn.client.elicitation is not None:
        await turn.elicit("Which colour?", _FORM)
    turn.report_usage(100, 1000)
    turn.say("done")


async def _write(turn: AgentTurn, path: str) -> None:
    place = [v1.ToolCallLocation(path=path)]
    turn.tool_call("write", "Write a file", kind="edit", status="pending", locations=place)
    if turn.client.fs.write_text_file and await _may(turn, "write"):
        await turn.write_text_file(path, "ready\n")
        turn.tool_call_update("write", status="completed")
    else:
        turn.tool_call_update("write", status="failed")


async def _may(turn: AgentTurn, tool_call_id: str) -> bool:
    try:
        return await turn.request_permission(tool_call_id, title="May I?") == "allow"
    except RemoteError:
        return False


async def _run(turn: AgentTurn) -> None:
    # In version 2 it would be a process of its own, and none of what this model is for.
    if not turn.client.terminal or type(turn) is not AgentTurn:
        return
    turn.tool_call("run", "Run echo", kind="execute", status="in_progress")
    terminal = await turn.create_terminal("echo", "ready", cwd=turn.cwd)
    await turn.terminal("wait_for_exit", terminal)
    await turn.terminal("output", terminal)
    await turn.terminal("release", terminal)
    turn.tool_call_update("run", status="completed")

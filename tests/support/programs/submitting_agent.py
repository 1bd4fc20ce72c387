"""Gives results as its first prompt says: a JSON list with what to do in each turn, one after the
other. `{"say": text}` writes it, `{"submit": value}` calls the tool, and tells what the tool said.
"""

from __future__ import annotations

import json
from typing import Any

from dragoman.schema import v1
from dragoman.testing import AgentTurn, ScriptedAgent

_scripts: dict[str, list[Any]] = {}


def script(*turns: Any) -> str:
    """The prompt that has it do this."""
    return json.dumps(turns)


async def play(turn: AgentTurn) -> None:
    if turn.session_id not in _scripts:
        [first, *_] = (part for part in turn.prompt if isinstance(part, v1.TextContent))
        _scripts[turn.session_id] = json.loads(first.text)
    steps: Any = _scripts[turn.session_id].pop(0)
    if isinstance(steps, dict):
        steps = [steps]
    for step in steps:
        if "say" in step:
            turn.say(step["say"])
        elif "stop" in step:
            turn.stop_reason = step["stop"]
        else:
            turn.say(await submitted(turn, step["submit"]))


async def submitted(turn: AgentTurn, arguments: Any) -> str:
    """What the tool answered."""
    servers = turn.session.request.mcp_servers
    if not servers:
        return "there is no tool"
    params = {"name": "submit_result", "arguments": arguments}
    message = {"serverId": servers[0].server_id, "requestId": "r", "method": "tools/call"}
    reply = await turn.call("mcp/message", message | {"params": params})
    return reply["result"]["content"][0]["text"]


agent = ScriptedAgent(play)

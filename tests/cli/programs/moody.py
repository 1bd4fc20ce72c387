"""An agent whose sessions begin in its first mode whenever it opens them, as most do."""

from __future__ import annotations

import os
import sys

from dragoman.schema import v1
from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.demo.demo_agent import StoredSessions
from dragoman.testing.scripted_agent import AgentSession

_ALWAYS = [("always", "Always", "allow_always"), ("never", "No", "reject_once")]


async def tell(turn: AgentTurn) -> None:
    match turn.text:
        case "ask":
            chosen = await turn.request_permission(
                "c", _ALWAYS, kind="execute", raw_input={"command": "make"}
            )
            turn.say(f"chosen={chosen}\n")
        case "leave a command":
            await turn.create_terminal("sleep", "600")
            turn.say("it runs\n")
        case "change":
            turn.session.mode = "ask"
            turn.update(v1.CurrentModeUpdate(current_mode_id="ask"))
            turn.say("changed\n")
        case _:
            turn.say(f"{turn.mode} {turn.session.options['brain']}\n")


class Resetting(StoredSessions):
    def __getitem__(self, session_id: str) -> AgentSession:
        session = super().__getitem__(session_id)
        session.mode, session.options = "code", {"brain": "small"}
        return session


def moody() -> ScriptedAgent:
    folder = f"{sys.argv[1]}-moody"
    os.makedirs(folder, exist_ok=True)
    choices: v1.SessionConfigSelectOptions = [
        v1.SessionConfigSelectOption(value=each, name=each) for each in ("small", "large")
    ]
    return ScriptedAgent(
        tell,
        name="moody",
        modes=[v1.SessionMode(id="code", name="Code"), v1.SessionMode(id="ask", name="Ask")],
        config_options=[
            v1.SessionConfigSelect(
                id="brain", name="Model", category="model", current_value="small", options=choices
            )
        ],
        sessions=Resetting(folder),
    )

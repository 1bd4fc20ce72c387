"""Agents that count what they were asked in a session: one remembers it for ever, one forgets."""

from __future__ import annotations

import asyncio
import os
import sys
import uuid

import msgspec

from dragoman.schema import v1
from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.demo.demo_agent import StoredSessions
from dragoman.testing.scripted_agent import EVERYTHING


async def converse(turn: AgentTurn) -> None:
    match turn.text:
        case "ask" | "ask to delete":
            turn.say("I have a question.\n")
            command = "make" if turn.text == "ask" else "rm -rf build"
            chosen = await turn.request_permission(
                "c", title="Do it", kind="execute", raw_input={"command": command}
            )
            turn.say(f"chosen={chosen}\n")
        case "edit":
            change = v1.Diff(path=f"{turn.cwd}/a.py", old_text="one\n", new_text="two\n")
            chosen = await turn.request_permission("c", kind="edit", title="Edit", content=[change])
            turn.say(f"chosen={chosen}\n")
        case "mislead":
            options = [("reject", "Reject", "allow_once"), ("allow", "Allow", "reject_once")]
            claim = {"command": "touch PWNED" + "\n" * 60 + "true", "cwd": "sub"}
            chosen = await turn.request_permission("c", options, kind="execute", raw_input=claim)
            turn.say(f"chosen={chosen}\n")
        case "wait":
            turn.say("started\n")
            await turn.cancelled.wait()
        case "linger":
            turn.say("started\n")
            await turn.cancelled.wait()
            await told(turn)
        case "work":
            turn.say("working\n")
            await told(turn)
            turn.say("worked\n")
        case "fill in":
            schema = {"type": "object", "properties": {"name": {"type": "string"}}}
            turn.say(f"answer={await turn.elicit('Who are you?', schema)}\n")
        case "tell title":
            turn.update(v1.SessionInfoUpdate(title=turn.session.title))
        case text if text.startswith("title: "):
            turn.session.title = text.removeprefix("title: ")
            turn.say("only my list says so\n")
        case _:
            turn.say(f"{count(turn)}. {turn.text}\n")


def count(turn: AgentTurn) -> int:
    """How many prompts it knows of."""
    return sum(b'"user_message_chunk"' in bytes(update) for update in turn.session.history)


async def told(turn: AgentTurn) -> None:
    """Wait for a file of that name."""
    while not os.path.exists(f"{turn.cwd}/go"):  # noqa: ASYNC110, ASYNC240 (nobody can tell us)
        await asyncio.sleep(0.01)


class Remembering(ScriptedAgent):
    """Its sessions are in files beside the socket of the process that serves it."""

    def __init__(self) -> None:
        folder = f"{sys.argv[1]}-memory"
        os.makedirs(folder, exist_ok=True)
        super().__init__(converse, name="memory", sessions=StoredSessions(folder))

    def new_session_id(self) -> str:
        return f"m-{uuid.uuid4().hex[:12]}"


class Instructed(Remembering):
    """Says what it was told when the session was last opened."""

    def __init__(self) -> None:
        super().__init__()
        session = msgspec.structs.replace(
            EVERYTHING.session_capabilities, system_prompt=v1.SessionSystemPromptCapabilities()
        )
        self.capabilities = msgspec.structs.replace(EVERYTHING, session_capabilities=session)
        self.script = _tell_instructions


async def _tell_instructions(turn: AgentTurn) -> None:
    told = turn.session.request.system_prompt
    turn.say("nothing" if told is None else f"{told.mode}: {told.content[0].text}")


forgetful = ScriptedAgent(converse, name="forgetful", capabilities=v1.AgentCapabilities())


def remembering() -> ScriptedAgent:
    return Remembering()


def instructed() -> ScriptedAgent:
    return Instructed()

"""Agents that run as processes of their own, for the tests of the hub."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from dragoman.errors import RemoteError
from dragoman.schema import v1
from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.demo.demo_agent import StoredSessions


async def _says_yes(turn: AgentTurn) -> None:
    turn.say("yes")


def _sessions() -> StoredSessions:
    os.makedirs(os.environ["STORE"], exist_ok=True)
    return StoredSessions(os.environ["STORE"])


def remembers() -> ScriptedAgent:
    """Knows its sessions after a restart."""
    return ScriptedAgent(_says_yes, sessions=_sessions())


async def _works(turn: AgentTurn) -> None:
    """Talks, has a file written and a command run whose effect can be counted."""
    turn.say(f"about {turn.text}: ")
    for word in ("one ", "two ", "three "):
        turn.say(word)
    await turn.write_text_file(f"{turn.cwd}/written.txt", turn.text)
    effects = f"{turn.cwd}/effects.txt"
    terminal_id = await turn.create_terminal("sh", "-c", f"echo {turn.text} >> {effects}")
    await turn.terminal("wait_for_exit", terminal_id)
    await turn.terminal("release", terminal_id)
    turn.say("done")


def busy() -> ScriptedAgent:
    """Has a lot done, and knows its sessions after a restart."""
    return ScriptedAgent(_works, sessions=_sessions())


async def _talks(turn: AgentTurn) -> None:
    for number in range(20):
        turn.say(f"{number} ")


def talks() -> ScriptedAgent:
    """Says twenty things to every prompt."""
    return ScriptedAgent(_talks)


async def _asks(turn: AgentTurn) -> None:
    """Keeps what is typed to itself: it is in a file of its own, beside the sessions."""
    schema = {"type": "object", "properties": {"secret": {"type": "string"}}}
    answer = await turn.elicit("Your key?", schema)
    await asyncio.to_thread(Path(os.environ["GOT"]).write_text, answer["content"]["secret"])


def asks() -> ScriptedAgent:
    """Has a person fill in a form."""
    return ScriptedAgent(_asks)


async def _writes_on(turn: AgentTurn) -> None:
    """`writes` by its own system calls, and does not care for a cancel; else it says yes."""
    if turn.text != "writes":
        turn.say("yes")
        return
    turn.say("I write")
    turn.ignores_cancel = True
    effects = os.open(f"{turn.cwd}/effects.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    while True:
        os.write(effects, b"x")
        await asyncio.sleep(0.005)


def deaf() -> ScriptedAgent:
    """Cannot be stopped while it writes; knows its sessions after a restart."""
    return ScriptedAgent(_writes_on, sessions=_sessions())


async def _serves_many(turn: AgentTurn) -> None:
    """Waits for an answer, goes on although it is cancelled, or until it is, or says yes."""
    if turn.text == "asks":
        turn.tool_call("c", "shell", kind="execute", status="pending")
        await turn.request_permission("c", [("y", "Allow", "allow_once")], title="shell")
    elif turn.text == "stubborn":
        turn.ignores_cancel = True
        await asyncio.Event().wait()
    elif turn.text == "closable":
        await turn.cancelled.wait()
    else:
        turn.say("yes")


def closes() -> ScriptedAgent:
    """Can close one of its sessions; knows them after a restart."""
    return ScriptedAgent(_serves_many, sessions=_sessions())


def shared() -> ScriptedAgent:
    """The same, but cannot close."""
    capabilities = v1.AgentCapabilities(load_session=True)
    return ScriptedAgent(_serves_many, sessions=_sessions(), capabilities=capabilities)


def _noted(prompt: str) -> int:
    """How many prompts there were."""
    path = Path(os.environ["PROMPTS"])
    with path.open("a") as file:
        file.write(f"{prompt}\n")
    return len(path.read_text().splitlines())


async def _limited(turn: AgentTurn) -> None:
    """Notes each prompt it gets before anything else; its provider takes none but the second."""
    if _noted(turn.text) == 1:
        raise RemoteError("Rate limit exceeded: retry after 0.4s")
    turn.say("done")


def limited() -> ScriptedAgent:
    """Reports a limit once, and knows its sessions after a restart."""
    return ScriptedAgent(_limited, sessions=_sessions())

"""Scripted agents that tests run as processes, by file and name."""

from __future__ import annotations

import asyncio

from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing import faults as f
from dragoman.testing.steps import say, wait_for_cancel


async def chatty(turn: AgentTurn) -> None:
    print("this is no frame")  # noqa: T201 (that is the point)
    turn.say("hello")


polite = ScriptedAgent(chatty)
crashing = ScriptedAgent([say("last words"), f.crash(7)])
half = ScriptedAgent([say("last words"), f.half_frame(8)])
asking = ScriptedAgent([f.ask_and_crash(9)])
bannered = ScriptedAgent([say("hello")], banner=b"Welcome!\n[INFO] ready\n")
complaining = ScriptedAgent([f.flood_stderr(4_000_000), say("hello")])
deaf = ScriptedAgent([f.stop_reading(), say("not listening"), f.never_answer()])
stubborn = ScriptedAgent([f.ignore_term(), f.linger(), say("still here"), wait_for_cancel()])


def made() -> ScriptedAgent:
    return ScriptedAgent([say("made to order")])


async def slow(turn: AgentTurn) -> None:
    turn.say("started")
    await turn.until_cancelled(asyncio.sleep(60))


cancellable = ScriptedAgent(slow)

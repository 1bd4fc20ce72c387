"""The agent's process: how it ends, and what it leaves behind."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from dragoman.agents.doctor.examined_agent import WatchedTransport
from dragoman.conformance.check import Checks, expect, not_applicable, page
from dragoman.conformance.examination.examinee import AgentProbe, Examinee, introduce, prompt
from dragoman.process import process_tree

checks: Checks[Examinee] = Checks("agent", page("transports"))


@asynccontextmanager
async def _watched(examinee: Examinee) -> AsyncGenerator[tuple[AgentProbe, WatchedTransport]]:
    """A connection of its own to an agent whose process is ours. Raises NotApplicable."""
    async with examinee.stranger() as probe:
        if not isinstance(probe.transport, WatchedTransport):
            not_applicable("the agent is not a process of this machine")
        await introduce(probe)
        yield probe, probe.transport


async def _exits(process: WatchedTransport, within: float) -> None:
    """Close its input. Raises CheckFailed if it stays."""
    ended = await process.end_input(within)
    expect(ended is not None, f"it was still there {within:g} s after the end of its input")


@checks.should(
    "process.exits",
    "An agent ends when its standard input does.",
    does="opens a session, and closes the agent's input",
    expects="its exit within 5 s",
)
async def exits(examinee: Examinee) -> None:
    async with _watched(examinee) as (probe, process):
        await examinee.session(probe)
        await _exits(process, examinee.exit_seconds)


@checks.should(
    "process.exit-code",
    "An agent whose client has left has done nothing wrong.",
    does="closes the agent's input",
    expects="the exit code 0, if it exits",
)
async def exits_in_order(examinee: Examinee) -> None:
    async with _watched(examinee) as (_, process):
        ended = await process.end_input(examinee.exit_seconds)
        if ended is None:
            not_applicable("the agent does not exit")
        expect(ended.code == 0, f"it exited with {ended.code}, signal {ended.signal}")


@checks.should(
    "process.exits-in-a-turn",
    "An agent ends when its standard input does, in the middle of a turn too.",
    does="starts a long turn, and closes the agent's input",
    expects="its exit within 5 s",
)
async def exits_in_a_turn(examinee: Examinee) -> None:
    async with _watched(examinee) as (probe, process):
        session_id = await examinee.session(probe)
        probe.begin("session/prompt", prompt(session_id, examinee.prompts.long))
        await probe.settle("a prompt")
        await _exits(process, examinee.exit_seconds)


@checks.should(
    "process.half-frame",
    "An input that ends in the middle of a message is an end.",
    does="sends half a request, and closes the agent's input",
    expects="its exit within 5 s",
)
async def exits_at_half_a_frame(examinee: Examinee) -> None:
    async with _watched(examinee) as (probe, process):
        probe.write(b'{"jsonrpc":"2.0","id":"half')
        await _exits(process, examinee.exit_seconds)


@checks.should(
    "process.terminates",
    "An agent that is asked to end by its system does so.",
    does="sends SIGTERM",
    expects="its exit within 5 s",
)
async def terminates(examinee: Examinee) -> None:
    async with _watched(examinee) as (probe, process):
        os.kill(process.pid, signal.SIGTERM)
        try:
            async with asyncio.timeout(examinee.exit_seconds):
                while probe.over is None:
                    await probe.change()
        except TimeoutError:
            expect(False, f"it was still there {examinee.exit_seconds:g} s after SIGTERM")


@checks.should(
    "process.leaves-nothing",
    "An agent that exits leaves no processes behind.",
    does="closes the agent's input, waits for its exit, and looks for its children",
    expects="none",
)
async def leaves_nothing(examinee: Examinee) -> None:
    async with _watched(examinee) as (probe, process):
        await examinee.session(probe)
        before = process_tree.descendants(process.pid)
        await process.end_input(examinee.exit_seconds)
        await asyncio.sleep(0.3)
        left = [pid for pid in before if process_tree.state(pid).state not in (b"", b"Z", b"X")]
        expect(not left, f"{len(left)} processes were left running")

"""The agent's process: how it ends, and what it leaves behind."""

from __future__ import annotations

import os
import signal

from dragoman.conformance.check import Checks, expect, not_applicable, page
from dragoman.conformance.examination.agent_words import prompt
from dragoman.conformance.examination.examinee import AgentProbe, Examinee
from dragoman.conformance.examination.watched_transport import WatchedTransport

checks: Checks[Examinee] = Checks("agent", page("transports"))
_EXITS = "it exits within 5 s"


async def _exits(examinee: Examinee, probe: AgentProbe, process: WatchedTransport) -> None:
    """Close its input. Raises CheckFailed if it stays."""
    seconds = examinee.exit_seconds
    ended = await process.end_input(probe.limit.of(seconds))
    expect(ended is not None, f"it did not exit within {seconds:g} s of the end of its input")


@checks.should(
    "process.exits",
    "An agent exits when its standard input is closed.",
    does="creates a session, and closes the agent's standard input",
    expects=_EXITS,
)
async def exits(examinee: Examinee) -> None:
    seconds = examinee.exit_seconds
    ended = (await examinee.departure()).ended
    expect(ended is not None, f"it did not exit within {seconds:g} s of the end of its input")


@checks.should(
    "process.exit-code",
    "The end of its input is a normal end for an agent.",
    does="creates a session, and closes the agent's standard input",
    expects="exit code 0, if it exits",
)
async def exits_in_order(examinee: Examinee) -> None:
    ended = (await examinee.departure()).ended
    if ended is None:
        not_applicable("the agent does not exit")
    expect(ended.code == 0, f"it exited with code {ended.code}, signal {ended.signal}")


@checks.should(
    "process.leaves-nothing",
    "An agent leaves no processes running when it exits.",
    does="creates a session, closes the agent's standard input, and waits until it has exited",
    expects="none of the processes that it started runs 5 s later",
)
async def leaves_nothing(examinee: Examinee) -> None:
    departure = await examinee.departure()
    if departure.ended is None:
        not_applicable("the agent does not exit")
    expect(not departure.left, f"left running: {', '.join(departure.left)}")


@checks.should(
    "process.exits-in-a-turn",
    "An agent exits when its standard input is closed, even during a turn.",
    does="starts a long turn, and closes the agent's standard input",
    expects=_EXITS,
)
async def exits_in_a_turn(examinee: Examinee) -> None:
    async with examinee.process() as (probe, process):
        session_id = await examinee.session(probe)
        probe.begin("session/prompt", prompt(session_id, examinee.prompts.long))
        await probe.settle("a prompt")
        await _exits(examinee, probe, process)


@checks.should(
    "process.half-frame",
    "An agent exits even if its standard input ends in the middle of a message.",
    does="sends half a request, and closes the agent's standard input",
    expects=_EXITS,
)
async def exits_at_half_a_frame(examinee: Examinee) -> None:
    async with examinee.process() as (probe, process):
        probe.write(b'{"jsonrpc":"2.0","id":"half')
        await _exits(examinee, probe, process)


@checks.should(
    "process.terminates",
    "An agent exits on SIGTERM.",
    does="sends SIGTERM",
    expects=_EXITS,
)
async def terminates(examinee: Examinee) -> None:
    async with examinee.process() as (probe, process):
        os.kill(process.pid, signal.SIGTERM)
        seconds = examinee.exit_seconds
        ended = await process.end(probe.limit.of(seconds))
        expect(ended is not None, f"it did not exit within {seconds:g} s of SIGTERM")

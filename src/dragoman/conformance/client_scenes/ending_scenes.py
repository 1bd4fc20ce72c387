"""The end: of the agent while the client runs, and of the client, with what it has started."""

from __future__ import annotations

import asyncio

from dragoman.conformance.check import Checks, expect, not_applicable, page
from dragoman.conformance.client_stage.stage import ClientStage

checks: Checks[ClientStage] = Checks("client", page("transports"))


@checks.should(
    "ending.exit-code",
    "A client that has had its answer has succeeded.",
    does="plays a turn that ends with `end_turn`",
    expects="the exit code 0, if the client exits",
)
async def succeeds(stage: ClientStage) -> None:
    await stage.prompted()
    stage.say("ready")
    await stage.printed()
    code = await stage.exited("the turn")
    expect(code == 0, f"it exited with {code}")


@checks.should(
    "ending.closes-input",
    "A client lets its agent go by closing its standard input.",
    does="plays a turn, and waits for the end of the agent's input",
    expects="its end, without a message that is cut off",
)
async def closes_the_input(stage: ClientStage) -> None:
    await stage.prompted()
    stage.say("[bye]")
    await stage.printed()
    await stage.over("the turn")


def _crash(key: str, says: str, does: str, last: bytes) -> None:
    @checks.must(key, says, does=does, expects="the client's exit, with a code other than 0")
    async def notices_a_crash(stage: ClientStage) -> None:
        await stage.prompted(exit_code=1)
        if last:
            stage.probe.write(last)
            await stage.probe.transport.drain()
        await stage.probe.aclose()
        code = await stage.exited("the end of its agent")
        expect(code != 0, "it exited with 0, and its turn had no end")


_crash(
    "ending.crash",
    "A turn whose agent is gone is over, and has failed.",
    "ends the agent in the middle of a turn",
    b"",
)
_crash(
    "ending.half-frame",
    "Half a message is none.",
    "ends the agent in the middle of a message",
    b'{"jsonrpc":"2.0","id":',
)


@checks.must(
    "ending.no-agent",
    "A program that exits before it says anything is not an agent.",
    does="exits with 1 instead of answering `initialize`",
    expects="the client's exit, with a code other than 0",
)
async def notices_no_agent(stage: ClientStage) -> None:
    await stage.start(costume="exit 1")
    code = await stage.exited("the end of its agent")
    expect(code != 0, "it exited with 0, and there was no agent")


@checks.must(
    "ending.stderr",
    "What an agent writes to its standard error holds nothing up.",
    does="writes 1 MB to standard error before it reads anything",
    expects="a prompt",
)
async def drains_standard_error(stage: ClientStage) -> None:
    await stage.prompted(costume="head -c 1000000 /dev/zero | tr '\\0' x >&2")


async def _left(stage: ClientStage) -> None:
    """Wait until the client is gone, or as good as."""
    stage.end()
    try:
        async with asyncio.timeout(stage.patience):
            await stage.running.exited()
    except TimeoutError:
        not_applicable("the client does not exit after the turn")


@checks.should(
    "ending.stubborn",
    "A client ends an agent that does not end by itself.",
    does="ignores the end of the input, and SIGTERM",
    expects="the end of the agent within 10 s of that of the client",
)
async def ends_a_stubborn_agent(stage: ClientStage) -> None:
    await stage.prompted(costume="trap '' TERM HUP INT")
    await _left(stage)
    await stage.gone(stage.running.agent_pid, "the agent")


def _child(key: str, says: str, line: str, does: str) -> None:
    @checks.should(
        key, says, does=does, expects="the end of that process within 10 s of that of the client"
    )
    async def ends_children(stage: ClientStage) -> None:
        pid_file = f"{stage.folder}-agent/child"
        await stage.prompted(costume=line.replace("PID", pid_file))
        pid = await stage.pid_in(pid_file)
        await _left(stage)
        # An agent in order would take its children along; this one is just gone.
        await stage.probe.aclose()
        await stage.gone(pid, "a process that the agent had started")


_child(
    "ending.children",
    "A client ends what its agent has started, too.",
    "sleep 600 >/dev/null 2>&1 </dev/null & echo $! > PID",
    "starts a process, and leaves it behind",
)
_child(
    "ending.grandchildren",
    "What an agent has started may have left its process group.",
    "setsid sleep 600 >/dev/null 2>&1 </dev/null & sleep 0.05; echo $! > PID",
    "starts a process in a session of its own, and leaves it behind",
)

"""The end: of the agent while the client runs, and of the client and its child processes."""

from __future__ import annotations

from dragoman.conformance.check import Checks, expect, page
from dragoman.conformance.client_stage.stage import ClientStage

checks: Checks[ClientStage] = Checks("client", page("transports"))


@checks.should(
    "ending.exit-code",
    "A client exits with code 0 after a successful turn.",
    does="plays a turn that ends with `end_turn`",
    expects="exit code 0, if the client exits",
)
async def succeeds(stage: ClientStage) -> None:
    await stage.prompted()
    stage.say("ready")
    await stage.printed()
    code = await stage.exited("the turn")
    expect(code == 0, f"it exited with code {code}")


@checks.should(
    "ending.closes-input",
    "A client ends its agent by closing the agent's standard input.",
    does="plays a turn, and waits for the end of its standard input",
    expects="the end of the input",
)
async def closes_the_input(stage: ClientStage) -> None:
    await stage.prompted()
    stage.say("[bye]")
    await stage.printed()
    await stage.over("the turn")


def _crash(key: str, says: str, does: str, last: bytes) -> None:
    @checks.must(key, says, does=does, expects="the client exits with a code other than 0")
    async def notices_a_crash(stage: ClientStage) -> None:
        await stage.prompted(exit_code=1)
        if last:
            stage.probe.write(last)
            await stage.probe.transport.drain()
        await stage.probe.aclose()
        code = await stage.exited("the end of its agent")
        expect(code != 0, "it exited with code 0, although the turn was not finished")


_crash(
    "ending.crash",
    "A turn fails when its agent exits.",
    "exits during a turn",
    b"",
)
_crash(
    "ending.half-frame",
    "An incomplete message is not a message.",
    "exits in the middle of a message",
    b'{"jsonrpc":"2.0","id":',
)


@checks.must(
    "ending.no-agent",
    "A program that exits before it responds to `initialize` is not an agent.",
    does="exits with code 1 at once",
    expects="the client exits with a code other than 0",
)
async def notices_no_agent(stage: ClientStage) -> None:
    await stage.start(costume="exit 1")
    code = await stage.exited("the end of its agent")
    expect(code != 0, "it exited with code 0, although there was no agent")


@checks.must(
    "ending.stderr",
    "A client reads the standard error of its agent, so that the agent is not blocked.",
    does="writes 1 MB to standard error before it reads anything",
    expects="a prompt",
)
async def drains_standard_error(stage: ClientStage) -> None:
    await stage.prompted(costume="head -c 1000000 /dev/zero | tr '\\0' x >&2")


async def _left(stage: ClientStage) -> None:
    """End the turn, and wait until the client has exited."""
    stage.end()
    await stage.left()


@checks.should(
    "ending.stubborn",
    "A client terminates an agent that does not exit by itself.",
    does="ignores the end of its input, and SIGTERM",
    expects="the agent is gone 10 s after the client has exited",
)
async def ends_a_stubborn_agent(stage: ClientStage) -> None:
    await stage.prompted(costume="trap '' TERM HUP INT")
    await _left(stage)
    await stage.gone(stage.running.agent_pid, "the agent")


def _child(key: str, says: str, line: str, does: str) -> None:
    @checks.should(
        key, says, does=does, expects="that process is gone 10 s after the client has exited"
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
    "A client terminates the child processes of its agent too.",
    "sleep 600 >/dev/null 2>&1 </dev/null & echo $! > PID",
    "starts a process, and exits without ending it",
)
_child(
    "ending.grandchildren",
    "A client also terminates child processes that have left the process group of the agent.",
    "setsid sh -c 'echo $$ > PID; exec sleep 600' >/dev/null 2>&1 </dev/null &",
    "starts a process in a session of its own, and exits without ending it",
)

"""A program that runs one agent of each shape and then meets one end: `host.py WAY FOLDER TOKEN`.

A way `fenced:killed` does the same with a fence around each agent.

Prints `ready` when every tree stands, `done` when it has closed what it wants to close, and then
waits for the end of its input. With the way `naive` it does what a plain script would do.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from dragoman.fence.plan import FencePlan
from dragoman.fence.seccomp_listener import let_all_through
from dragoman.transport.stdio import AgentCommand, StdioTransport

NAME, FOLDER, TOKEN, *SHAPES = sys.argv[1:]
FENCED, _, WAY = NAME.rpartition(":")
TREE = str(Path(__file__).with_name("tree.py"))
PYTHON = f"{sys.executable} -I -S {TREE}"
# A shape may be a shell around another one.
WRAPPERS = {
    "shell_waits": "{program} & wait",
    "shell_then_true": "{program}; true",
    "shell_leaves": "{program} &",
    "two_shells": "sh -c '{program} & wait' & wait",
}


class Enclosed:
    """A fence in which these sources and the folder of the test are as they are outside."""

    async def open(self, command: str) -> FencePlan:
        return _plan()

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        return dict(env)


def _plan() -> FencePlan:
    place = os.fsencode(os.path.realpath(FOLDER))
    sources = (sys.prefix, Path(__file__).parents[3])
    kept = tuple(sorted({os.fsencode(os.path.realpath(path)) for path in sources}))
    return FencePlan(
        "namespaces",
        temporary=place,
        writable=(place,),
        kept=kept,
        gate="write",
        listen=let_all_through,
    )


def argv(shape: str) -> list[str]:
    arguments = f"{TOKEN}-{shape}. {FOLDER}/{shape}"
    if shape in WRAPPERS:
        program = f"{PYTHON} setsid {arguments}"
        return ["sh", "-c", WRAPPERS[shape].format(program=program)]
    return [*PYTHON.split(), shape, *arguments.split()]


async def start(shape: str) -> StdioTransport:
    command, *args = argv(shape)
    environment = {"TREE_MARKER": f"{TOKEN}-{shape}."}
    agent = AgentCommand(command, tuple(args), environment)
    transport = await StdioTransport.start(agent, Enclosed() if FENCED else None)
    await asyncio.to_thread(wait_until_ready, shape)
    return transport


def wait_until_ready(shape: str) -> None:
    deadline = time.monotonic() + 200  # the test ends a host that takes longer
    while not Path(f"{FOLDER}/{shape}.ready").exists():
        if time.monotonic() > deadline:
            sys.exit(f"{shape} did not get ready")
        time.sleep(0.01)


async def start_all() -> list[StdioTransport]:
    transports = await asyncio.gather(*map(start, SHAPES))
    say("ready")
    return transports


async def close(transport: StdioTransport) -> None:
    await transport.aclose(exit_within=0.3, term_within=0.3)


async def close_all(transports: list[StdioTransport]) -> None:
    await asyncio.gather(*map(close, transports))


async def owner(transport: StdioTransport, body: Callable[[], Awaitable[object]]) -> None:
    try:
        await body()
    finally:
        await close(transport)


async def for_ever() -> None:
    await asyncio.Event().wait()


async def aclose() -> None:
    await close_all(await start_all())


async def closed_when_told() -> None:
    transports = await start_all()
    await asyncio.to_thread(sys.stdin.readline)
    await close_all(transports)


async def cancelled() -> None:
    tasks = [asyncio.create_task(owner(each, for_ever)) for each in await start_all()]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def cancelled_while_closing() -> None:
    transports = await start_all()
    tasks = [asyncio.create_task(each.aclose()) for each in transports]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def exception() -> None:
    async def fail() -> None:
        raise LookupError

    owners = [owner(each, fail) for each in await start_all()]
    for outcome in await asyncio.gather(*owners, return_exceptions=True):
        assert isinstance(outcome, LookupError)


async def crashed() -> None:
    """The agents themselves are killed; then what they left is closed."""
    transports = await start_all()
    for each in transports:
        kill_agent(each)
    async with asyncio.timeout(60):
        await asyncio.gather(*map(to_the_end, transports))
    await close_all(transports)


def kill_agent(transport: StdioTransport) -> None:
    try:
        command = Path(f"/proc/{transport.pid}/cmdline").read_text()
    except OSError:
        return  # one that has ended by itself
    if TOKEN in command:
        os.kill(transport.pid, signal.SIGKILL)


async def to_the_end(transport: StdioTransport) -> None:
    while await transport.receive():
        pass


async def interrupted() -> None:
    transports = await start_all()
    try:
        await for_ever()
    finally:
        await close_all(transports)


async def killed() -> None:
    await start_all()
    await for_ever()


terminated = killed


async def killed_with_unread_reports() -> None:
    """The agents' ends are reported while this process is too busy to listen."""
    transports = await start_all()
    for each in transports:
        kill_agent(each)
    time.sleep(0.2)  # noqa: ASYNC251
    say("busy")
    time.sleep(1000)  # noqa: ASYNC251


async def killed_with_a_fork_left() -> None:
    """A fork of the host, with copies of all its descriptors, lives on after it."""
    await start_all()
    if os.fork() == 0:
        say("forked")
        sys.stdin.read()
        os._exit(0)
    await for_ever()


async def left_without_closing() -> None:
    await start_all()
    os._exit(0)


def forgotten_loop() -> None:
    """The loop is closed, nobody closed the transports, and the program goes on."""
    warnings.simplefilter("ignore", ResourceWarning)
    loop = asyncio.new_event_loop()
    transports = loop.run_until_complete(start_all())
    loop.close()
    del transports
    gc.collect()


forgotten: list[subprocess.Popen[bytes]] = []


def naive() -> None:
    """The positive control: what most programs do."""
    pipe = subprocess.PIPE
    forgotten[:] = [
        subprocess.Popen(argv(shape), stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
        for shape in SHAPES
    ]
    for shape in SHAPES:
        wait_until_ready(shape)
    say("ready")
    for process in forgotten:
        assert process.stdin
        process.stdin.close()
        # Not `terminate`: it first looks whether the process has ended, and so reaps it.
        os.kill(process.pid, signal.SIGTERM)


def say(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


def main() -> None:
    way = globals()[WAY]
    try:
        asyncio.run(way()) if inspect.iscoroutinefunction(way) else way()
    except KeyboardInterrupt:
        say("interrupted")
    say("done")
    sys.stdin.read()


if __name__ == "__main__":
    main()

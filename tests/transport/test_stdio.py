"""An agent on the other side of two pipes: bytes there and back, faults, and the end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import resource
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.cost import resident_bytes

from dragoman.errors import (
    AgentExited,
    CommandNotFound,
    ConnectionClosed,
    NotAnAgent,
    PeerStalled,
    StartError,
)
from dragoman.transport.stdio import AgentCommand, StdioTransport

MEBIBYTE = 1 << 20
ECHO = "while data := os.read(0, 65536): os.write(1, data)"
SLEEP = "time.sleep(1000)"


def script(code: str) -> AgentCommand:
    return AgentCommand(sys.executable, ("-I", "-S", "-c", f"import os, signal, sys, time\n{code}"))


@asynccontextmanager
async def agent(code: str) -> AsyncGenerator[StdioTransport]:
    async with connected(script(code)) as transport:
        yield transport


@asynccontextmanager
async def connected(command: AgentCommand) -> AsyncGenerator[StdioTransport]:
    transport = await StdioTransport.start(command)
    try:
        yield transport
    finally:
        await transport.aclose(exit_within=0, term_within=0)


async def everything(transport: StdioTransport) -> bytes:
    received = bytearray()
    while data := await transport.receive():
        received += data
    return bytes(received)


async def exactly(transport: StdioTransport, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        data = await transport.receive()
        assert data, "the agent ended too early"
        received += data
    return bytes(received)


async def test_bytes_come_back_in_the_order_sent() -> None:
    frames = [b"%d\n" % number for number in range(5000)]
    async with agent(ECHO) as transport:
        for frame in frames:
            transport.send(frame)
        expected = b"".join(frames)
        assert await exactly(transport, len(expected)) == expected


async def test_what_the_kernel_holds_is_unread_though_nothing_is_queued() -> None:
    async with agent(f"os.read(0, 5_000); os.write(1, b'-'); {SLEEP}") as transport:
        transport.send(b"x" * 20_000)
        assert transport.pending == 0
        await transport.receive()
        assert transport.unread == 15_000
    assert transport.unread == 0


async def test_large_messages_pass_both_ways_with_back_pressure() -> None:
    data = os.urandom(8 * MEBIBYTE)
    async with agent(ECHO) as transport:
        echoed = asyncio.create_task(exactly(transport, len(data)))
        transport.send(data)
        assert transport.pending > 0
        await transport.drain()
        assert transport.pending <= 64 * 1024
        assert await echoed == data
        assert transport.pending == 0


async def test_bytes_queued_before_closing_still_arrive(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    code = f"time.sleep(0.1); open({str(copy)!r}, 'wb').write(sys.stdin.buffer.read())"
    data = os.urandom(MEBIBYTE)
    transport = await StdioTransport.start(script(code))
    transport.send(data)
    await transport.aclose(exit_within=20)
    assert copy.read_bytes() == data


async def test_a_receive_that_was_cancelled_loses_nothing() -> None:
    async with agent("for n in range(200): os.write(1, b'%03d' % n); time.sleep(0.001)") as it:
        received = bytearray()
        while len(received) < 600:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.0015):
                    received += await it.receive()
    assert received == b"".join(b"%03d" % number for number in range(200))


async def test_half_a_frame_is_delivered_before_the_end() -> None:
    async with agent("os.write(1, b'{\"half\":')") as transport:
        assert await everything(transport) == b'{"half":'
        assert await transport.receive() == b""


async def test_an_agent_killed_in_the_middle_of_a_frame() -> None:
    async with agent("os.write(1, b'{\"half\":'); os.kill(os.getpid(), signal.SIGKILL)") as it:
        assert await everything(it) == b'{"half":'
        failure = await it.failure(spoke=True, printed="")
    assert type(failure) is AgentExited
    assert (failure.code, failure.signal) == (None, "SIGKILL")


async def test_an_agent_that_failed_is_quoted() -> None:
    code = "os.write(2, b'no API key: \\xff\\n'); sys.exit(3)"
    async with agent(code) as transport:
        await everything(transport)
        failure = await transport.failure(spoke=True, printed="")
    assert type(failure) is AgentExited
    assert (failure.code, failure.stderr) == (3, "no API key: \ufffd\n")


async def test_a_banner_and_an_end_are_not_an_agent() -> None:
    async with agent("print('this tool has moved')") as transport:
        printed = (await everything(transport)).decode()
        failure = await transport.failure(spoke=False, printed=printed)
    assert type(failure) is NotAnAgent
    assert (failure.code, failure.printed) == (0, "this tool has moved\n")


async def test_a_wrapper_that_finds_no_command_counts_as_not_found() -> None:
    async with connected(AgentCommand("sh", ("-c", "nonexistent-command"))) as transport:
        await everything(transport)
        failure = await transport.failure(spoke=False, printed="")
        later = await transport.failure(spoke=True, printed="")
    assert type(failure) is CommandNotFound
    assert "not found" in failure.reason
    assert type(later) is AgentExited


async def test_an_agent_that_closes_its_output_and_lives() -> None:
    async with agent(f"os.close(1); {SLEEP}") as transport:
        assert await transport.receive() == b""
        failure = await transport.failure(spoke=True, printed="")
    assert isinstance(failure, AgentExited)
    assert failure.ending == "closed its output"


@pytest.mark.parametrize("size", [1, MEBIBYTE], ids=["before a write", "during a write"])
async def test_an_agent_that_closes_its_input_and_lives(size: int) -> None:
    code = f"os.read(0, 1); os.close(0); os.write(1, b'bye'); {SLEEP}"
    async with agent(code) as transport, asyncio.timeout(60):
        transport.send(b"x" * size)
        assert await transport.receive() == b"bye"
        transport.send(b"more")
        assert await transport.receive() == b""
        failure = await transport.failure(spoke=True, printed="")
    assert isinstance(failure, PeerStalled)
    assert 0 < failure.pending <= max(size, 4)


async def test_an_agent_that_closes_its_input_and_exits_has_exited() -> None:
    code = "os.close(0); os.write(1, b'bye'); time.sleep(0.1); os._exit(4)"
    async with agent(code) as transport, asyncio.timeout(60):
        assert await transport.receive() == b"bye"
        transport.send(b"more")
        assert await transport.receive() == b""
        failure = await transport.failure(spoke=True, printed="")
    assert isinstance(failure, AgentExited)
    assert failure.code == 4


async def test_our_own_closing_is_an_orderly_end() -> None:
    async with agent(ECHO) as transport:
        await transport.aclose()
        assert await transport.receive() == b""
        assert isinstance(await transport.failure(spoke=True, printed=""), ConnectionClosed)


async def test_a_descendant_that_holds_the_output_does_not_delay_the_end() -> None:
    code = f"os.write(1, b'x' * 60000)\nif os.fork() == 0: os.setsid(); {SLEEP}"
    async with agent(code) as transport:
        async with asyncio.timeout(60):
            assert await everything(transport) == b"x" * 60000
        failure = await transport.failure(spoke=True, printed="")
    assert isinstance(failure, AgentExited)
    assert failure.code == 0


async def test_a_descendant_that_floods_the_output_does_not_delay_the_end() -> None:
    code = "if os.fork() == 0:\n while True: os.write(1, b'x' * 60000)"
    async with agent(code) as transport, asyncio.timeout(60):
        await everything(transport)


async def test_an_agent_that_stops_reading_fills_the_queue_and_holds_back_the_sender() -> None:
    async with agent(SLEEP) as transport:
        for _ in range(40):
            transport.send(b"x" * 100_000)
        assert 3_900_000 < transport.pending < 4_000_000
        draining = asyncio.create_task(transport.drain())
        await asyncio.sleep(0.05)
        assert not draining.done()
        await transport.aclose(exit_within=0.05, term_within=2)
        await asyncio.wait_for(draining, 60)
        assert transport.pending == 0


async def test_a_sender_is_not_held_back_by_the_dead() -> None:
    async with agent("os.read(0, 10); os._exit(1)") as transport:
        transport.send(b"x" * MEBIBYTE)
        await asyncio.wait_for(transport.drain(), 60)
        await everything(transport)
        transport.send(b"dropped in silence")
        assert transport.pending == 0


async def test_a_flood_that_nobody_receives_stays_in_the_agent(tmp_path: Path) -> None:
    count = tmp_path / "count"
    code = f"""if True:
        with open({str(count)!r}, "wb", buffering=0) as count:
            while True:
                count.write(b"x" * (os.write(1, b"x" * 65536) >> 10))
        """
    async with agent(code) as transport:
        await transport.receive()
        await asyncio.sleep(0.3)
        written = count.stat().st_size << 10
        assert written <= 5 * 65536  # one received, one read ahead, the pipe, and some slack
        assert len(await exactly(transport, 4 * MEBIBYTE)) >= 4 * MEBIBYTE


async def test_a_flood_of_complaints_neither_blocks_the_agent_nor_fills_memory() -> None:
    code = "for n in range(2000): os.write(2, b'%09d ' % n * 10000)\nos.write(1, b'done')"
    before = resident_bytes()
    async with agent(code) as transport:
        assert await everything(transport) == b"done"
        failure = await transport.failure(spoke=True, printed="")
    assert resident_bytes() - before < 8 * MEBIBYTE
    assert isinstance(failure, AgentExited)
    assert failure.stderr.endswith("000001999 " * 10)
    assert len(failure.stderr) == 64 * 1024


async def test_closing_asks_first(tmp_path: Path) -> None:
    tidied = tmp_path / "tidied"
    code = f"sys.stdin.read(); open({str(tidied)!r}, 'w').close()"
    async with agent(code) as transport:
        await transport.aclose(exit_within=20, term_within=0)
        assert tidied.exists()


async def test_closing_frees_an_agent_that_waits_for_its_output_to_be_read(tmp_path: Path) -> None:
    done = tmp_path / "done"
    code = f"for _ in range(50): os.write(1, b'x' * 65536)\nopen({str(done)!r}, 'w').close()"
    transport = await StdioTransport.start(script(code))
    await transport.aclose(exit_within=20)
    assert done.exists()


async def test_closing_ends_a_pending_receive_and_may_be_repeated() -> None:
    async with agent(ECHO) as transport:
        receiving = asyncio.create_task(transport.receive())
        await asyncio.sleep(0)
        await asyncio.gather(transport.aclose(), transport.aclose())
        await transport.aclose()
        assert await receiving == b""
        transport.send(b"dropped in silence")


async def test_the_environment_is_ours_overlaid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OURS", "1")
    monkeypatch.setenv("BOTH", "ours")
    before = dict(os.environ)
    command = AgentCommand("env", env={"BOTH": "theirs", "THEIRS": "2"})
    async with connected(command) as transport:
        lines = set((await everything(transport)).decode().splitlines())
    assert {"OURS=1", "BOTH=theirs", "THEIRS=2"} <= lines
    assert dict(os.environ) == before


async def test_the_command_is_found_in_the_overlaid_path(tmp_path: Path) -> None:
    (tmp_path / "my-agent").write_text("#!/bin/sh\necho found\n")
    (tmp_path / "my-agent").chmod(0o755)
    async with connected(AgentCommand("my-agent", env={"PATH": str(tmp_path)})) as transport:
        assert await everything(transport) == b"found\n"


async def test_the_agent_starts_in_its_directory(tmp_path: Path) -> None:
    async with connected(AgentCommand("pwd", ("-P",), cwd=str(tmp_path))) as transport:
        assert (await everything(transport)).decode().strip() == str(tmp_path)


def test_a_command_does_not_show_its_secrets() -> None:
    command = AgentCommand("agent", ("--key", "canary1"), {"API_KEY": "canary2"})
    assert "canary" not in repr(command)
    assert "'agent', 2 arguments, env: API_KEY" in repr(command)


async def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    async with agent(ECHO):
        pass
    before = os.listdir("/proc/self/fd")
    async with agent(ECHO) as transport:
        transport.send(b"x")
        await transport.receive()
    for bad in (AgentCommand("nonexistent"), AgentCommand("true", cwd=str(tmp_path / "no"))):
        with pytest.raises(StartError):
            await StdioTransport.start(bad)
    assert len(os.listdir("/proc/self/fd")) == len(before)


async def test_a_host_short_of_descriptors_says_so_and_leaks_none() -> None:
    async with agent(ECHO):
        pass
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = os.listdir("/proc/self/fd")
    refusals: list[str] = []
    try:
        for limit in range(len(before), len(before) + 40):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limits[1]))
            refusals += await refusal()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert 5 < len(refusals) < 40
    assert all("Too many open files" in reason for reason in refusals)
    assert len(os.listdir("/proc/self/fd")) == len(before)


async def refusal() -> list[str]:
    try:
        async with agent(ECHO):
            return []
    except StartError as error:
        return [error.reason]


def test_a_transport_nobody_closed_is_ended_with_its_loop() -> None:
    def forget_and_collect() -> int:
        pid = asyncio.run(forget())
        gc.collect()
        return pid

    async def forget() -> int:
        return (await StdioTransport.start(script(SLEEP))).pid

    with pytest.warns(ResourceWarning, match="unclosed <ContainedProcess"):
        pid = forget_and_collect()
    deadline = time.monotonic() + 60
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not os.path.exists(f"/proc/{pid}")

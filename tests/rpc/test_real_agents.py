"""Agents that are real processes, and what may befall one: nobody hangs, everybody learns why."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec
import pytest
from process.survivors import exists
from support.peers import ignore, refuse, tidy_loop

from dragoman.errors import (
    AgentExited,
    CallTimeout,
    CommandNotFound,
    DragomanError,
    NotAnAgent,
    PeerStalled,
)
from dragoman.rpc import OnNotification, OnRequest, Peer, PeerLimits
from dragoman.transport.stdio import AgentCommand, StdioTransport

# What an agent's script starts with; it hears frames as bytes, and says them.
AGENT = """
import json, os, signal, sys, time
def hear():
    return json.loads(sys.stdin.buffer.readline())
def write(data):
    while data:
        data = data[os.write(1, data):]
def say(*frames):
    write(b"".join(frame + b"\\n" for frame in frames))
def note(number):
    return b'{"jsonrpc":"2.0","method":"note","params":%d}' % number
def done(call, result=b'"done"'):
    return b'{"jsonrpc":"2.0","id":%d,"result":%s}' % (call["id"], result)
"""
SECONDS = 60


@asynccontextmanager
async def agent(
    script: str,
    *,
    on_notification: OnNotification = ignore,
    on_request: OnRequest = refuse,
    limits: PeerLimits | None = None,
) -> AsyncGenerator[Peer]:
    """A peer of an agent that runs this script; afterwards nothing of either is left."""
    command = AgentCommand(sys.executable, ("-I", "-S", "-c", AGENT + script))
    async with tidy_loop(), asyncio.timeout(SECONDS):
        transport = await StdioTransport.start(command)
        async with Peer(
            transport, on_notification=on_notification, on_request=on_request, limits=limits
        ) as peer:
            yield peer
        assert not exists(transport.pid)


async def failure_of(script: str) -> tuple[DragomanError, Peer]:
    """What a call gets from this agent, and everybody else as well."""
    async with agent(script) as peer:
        with pytest.raises(DragomanError) as caught:
            await peer.call("work", b"{}")
        assert peer.error is caught.value
        return caught.value, peer


# ── the agent ends ────────────────────────────────────────────────────────────────────────────


async def test_an_agent_killed_in_the_middle_of_a_frame() -> None:
    script = "call = hear(); say(note(1)); write(done(call)[:20]); os.kill(os.getpid(), 9)"
    error, peer = await failure_of(script)
    assert isinstance(error, AgentExited)
    assert (error.code, error.signal) == (None, "SIGKILL")
    assert peer.noise.sample == '{"jsonrpc":"2.0","id\n'


async def test_an_agent_that_ends_after_half_a_frame() -> None:
    error, peer = await failure_of("call = hear(); say(note(1)); write(done(call)[:20])")
    assert isinstance(error, AgentExited)
    assert (error.code, error.signal, peer.noise.lines) == (0, None, 1)


async def test_an_agent_that_ends_after_half_a_frame_and_nothing_else_never_spoke() -> None:
    error, _ = await failure_of("write(done(hear())[:20])")
    assert isinstance(error, NotAnAgent)
    assert error.printed == '{"jsonrpc":"2.0","id\n'


async def test_an_agent_whose_last_frame_lacks_its_newline_is_heard() -> None:
    async with agent("write(done(hear()))") as peer:
        assert bytes(await peer.call("work", b"{}")) == b'"done"'
        assert isinstance(await peer.wait_ended(), AgentExited)


async def test_an_agent_that_fails_is_quoted() -> None:
    script = "hear(); say(note(1)); os.write(2, b'no API key\\n'); sys.exit(3)"
    error, _ = await failure_of(script)
    assert str(error).endswith("exited with code 3; it printed:\nno API key")


async def test_a_wrapper_that_does_not_find_its_command() -> None:
    error, _ = await failure_of("os.execvp('sh', ['sh', '-c', 'nonexistent-command'])")
    assert isinstance(error, CommandNotFound)
    assert "nonexistent-command" in error.reason


# ── the agent does not read ───────────────────────────────────────────────────────────────────


async def test_an_agent_that_stops_reading() -> None:
    limits = PeerLimits(unsent_bytes=1 << 20)
    async with agent("hear(); signal.pause()", limits=limits) as peer:
        params = b'"%b"' % (b"x" * 300_000)
        calls = [asyncio.create_task(peer.call("work", params)) for _ in range(10)]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert isinstance(peer.error, PeerStalled)
        assert outcomes == [peer.error] * 10


async def test_an_agent_that_closes_its_input() -> None:
    async with agent("call = hear(); os.close(0); say(done(call)); signal.pause()") as peer:
        await peer.call("work", b"{}")
        with pytest.raises(PeerStalled):
            await peer.call("more", b"{}")


# ── the agent prints too much ─────────────────────────────────────────────────────────────────


async def test_an_agent_that_floods_its_output_with_noise() -> None:
    script = "call = hear()\nfor _ in range(20): write(b'noise\\n' * 10000)\nsay(done(call))"
    async with agent(script) as peer:
        assert bytes(await peer.call("work", b"{}")) == b'"done"'
        assert peer.noise.lines == 200_000


async def test_an_agent_that_floods_its_errors() -> None:
    script = "call = hear()\nfor _ in range(200): os.write(2, b'x' * 100000)\nsay(done(call))"
    async with agent(script) as peer:
        assert bytes(await peer.call("work", b"{}")) == b'"done"'


async def test_a_flood_of_one_agent_does_not_keep_another_from_its_turn() -> None:
    flood = "while True: write(b'noise\\n' * 10000)"
    async with agent(flood), agent("while True: say(done(hear()))") as peer:
        for _ in range(50):
            await peer.call("work", b"{}", timeout=10)


# ── the agent says it twice, too late, or at the wrong time ───────────────────────────────────


async def test_replies_with_unknown_ids_and_second_replies_are_ignored() -> None:
    script = """if True:
        call = hear()
        say(done({"id": 99}), done(call), done(call, b'"again"'))
        say(b'{"jsonrpc":"2.0","id":%d,"error":"text"}' % call["id"])
        say(done(hear(), b'"second"'))
        hear()
        """
    async with agent(script) as peer:
        assert bytes(await peer.call("work", b"{}")) == b'"done"'
        assert bytes(await peer.call("work", b"{}")) == b'"second"'
        assert peer.error is None


async def test_a_request_and_a_reply_after_the_call_was_given_up() -> None:
    script = """if True:
        call, cancelled = hear(), hear()
        say(b'{"jsonrpc":"2.0","id":"late","method":"ask"}', done(call))
        answer = hear()
        say(done(hear(), json.dumps([cancelled, answer]).encode()))
        hear()
        """
    asked = asyncio.Event()

    def answer(method: str, params: msgspec.Raw) -> bytes:
        asked.set()
        return b'"yes"'

    async with agent(script, on_request=answer) as peer:
        with pytest.raises(CallTimeout):
            await peer.call("work", b"{}", timeout=0.001)
        await asked.wait()
        cancelled, answered = msgspec.json.decode(await peer.call("work", b"{}"))
    assert (cancelled["method"], cancelled["params"]) == ("$/cancel_request", {"requestId": 0})
    assert answered == {"jsonrpc": "2.0", "id": "late", "result": "yes"}


@pytest.mark.parametrize("method", ["session/prompt", "session/load"])
async def test_a_thousand_updates_are_handled_in_order_before_the_call_returns(method: str) -> None:
    chance = random.Random(1)
    seen: list[int] = []

    async def handle(method: str, params: msgspec.Raw) -> None:
        await asyncio.sleep(chance.choice([0, 0, 0.0001, 0.001]))
        seen.append(msgspec.json.decode(params))

    script = "call = hear(); say(*map(note, range(1000)), done(call)); hear()"
    async with agent(script, on_notification=handle) as peer:
        await peer.call(method, b"{}")
        assert seen == list(range(1000))

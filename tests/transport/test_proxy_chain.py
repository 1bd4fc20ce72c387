"""A chain as a transport: what it holds back, how it ends, and what it leaves: nothing."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from support.clients import until
from support.json_values import nested
from support.peers import Wire, ignore, settled, soon, tidy_loop
from support.proxies import proxy

from dragoman.errors import ChainBroken, ConnectionClosed, ConnectionLost
from dragoman.rpc import Peer
from dragoman.transport.memory import MemoryTransport, memory_pair
from dragoman.transport.proxy_chain import ChainTransport, Component
from dragoman.transport.stdio import AgentCommand
from dragoman.transport.target import way_to
from dragoman.transport.transport import Transport
from dragoman.wire.messages import MAX_DEPTH

KIBIBYTE = 1024
MEBIBYTE = 1 << 20


class Hand(Wire):
    """A component that the test plays."""

    def __init__(self, theirs: MemoryTransport, ours: MemoryTransport) -> None:
        super().__init__(ours)
        self.drain = ours.drain
        self._theirs = theirs

    @property
    def unread(self) -> int:
        return self._theirs.pending


@asynccontextmanager
async def by_hand() -> AsyncGenerator[tuple[ChainTransport, Hand, Hand]]:
    """A chain of one proxy and an agent; the test plays both."""
    pairs = [memory_pair(), memory_pair()]

    async def started(end: MemoryTransport) -> Transport:
        return end

    async with tidy_loop():
        chain = await ChainTransport.start(
            [
                Component("proxy", "p", lambda: started(pairs[0][0])),
                Component("agent", "a", lambda: started(pairs[1][0])),
            ]
        )
        try:
            yield chain, Hand(*pairs[0]), Hand(*pairs[1])
        finally:
            await soon(chain.aclose())


def note(content: Any, method: str = "note") -> bytes:
    message = {"jsonrpc": "2.0", "method": method, "params": {"content": content}}
    return json.dumps(message).encode()


def for_successor(content: Any) -> bytes:
    params = {"method": "note", "params": {"content": content}}
    return json.dumps({"method": "proxy/successor", "params": params}).encode()


# ── passing on ────────────────────────────────────────────────────────────────────────────────


async def test_what_is_sent_in_pieces_arrives_whole() -> None:
    async with by_hand() as (chain, first, _):
        line = note("in pieces") + b"\n"
        for index in range(len(line)):
            chain.send(line[index : index + 1])
        assert json.loads(await first.read()) == json.loads(line)


async def test_requests_pass_both_ways_at_the_same_time() -> None:
    def echo(method: str, params: Any) -> bytes:
        return bytes(params)

    there, here = memory_pair()
    agent = Peer(here, on_notification=ignore, on_request=echo)
    chain = await way_to(there, [proxy(), proxy()])()
    async with tidy_loop(), agent, Peer(chain, on_notification=ignore, on_request=echo) as client:
        calls = [
            side.call("mcp/message", b'{"n":%d}' % number)
            for number in range(200)
            for side in (client, agent)
        ]
        answers = await asyncio.wait_for(asyncio.gather(*calls), 30)
        assert [bytes(it) for it in answers[::2]] == [b'{"n": %d}' % n for n in range(200)]
        assert answers[::2] == answers[1::2]


async def test_noise_is_skipped_and_a_broken_request_answered() -> None:
    async with by_hand() as (chain, first, agent):
        agent.write(b"Welcome!", b"", b'{"jsonrpc":"2.0","id":1,"method":7}')
        assert (await agent.read_json())["error"]["code"] == -32600
        agent.write(b'{"id":2,"method":"proxy/successor","params":{"method":"x"}}', note("after"))
        assert (await agent.read_json())["error"]["code"] == -32601
        assert (await first.read_json())["params"]["params"] == {"content": "after"}
        assert chain.pending == 0


# ── back-pressure ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.own_time
async def test_a_client_that_does_not_read_holds_the_agent_back() -> None:
    large = note("x" * 64 * KIBIBYTE)
    async with by_hand() as (chain, first, agent):

        async def pass_all_on() -> None:
            while True:
                await pass_on(first)
                await first.drain()

        async def flood() -> None:
            for _ in range(100):
                agent.write(large)
                await agent.drain()

        passing, flooding = asyncio.create_task(pass_all_on()), asyncio.create_task(flood())
        await asyncio.wait([flooding], timeout=0.3)
        assert not flooding.done()
        received = 0
        while received < 100:
            received += (await soon(chain.receive())).count(b"\n")
        await soon(flooding)
        passing.cancel()
        await asyncio.wait([passing])


async def test_floods_in_both_directions_do_not_wait_for_each_other() -> None:
    """The proxies read and write in one thread: each is stuck while nobody takes what it writes."""
    there, here = memory_pair()
    chain = await way_to(there, [proxy(), proxy()])()
    frame, count = note("x" * 32 * KIBIBYTE) + b"\n", 300

    async def flood(end: Transport) -> None:
        for _ in range(count):
            end.send(frame)
            await asyncio.sleep(0)

    async def take(end: Transport) -> None:
        taken = 0
        while taken < count:
            taken += (await end.receive()).count(b"\n")

    async with tidy_loop():
        ways = [flood(chain), flood(here), take(chain), take(here)]
        await asyncio.wait_for(asyncio.gather(*ways), 30)
        await soon(chain.aclose())


async def test_one_that_stops_reading_is_named_and_ends_the_chain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dragoman.transport.proxy_chain._UNSENT_BYTES", MEBIBYTE)
    async with by_hand() as (chain, first, _):
        first.write(for_successor("x" * MEBIBYTE), for_successor("y" * MEBIBYTE))
        assert await soon(chain.receive()) == b""
        failure = await chain.failure(spoke=True, printed="")
        assert str(failure).startswith("the agent stopped reading its input")
    async with by_hand() as (chain, _, _):
        chain.send(note("x" * 2 * MEBIBYTE) + b"\n")
        assert chain.pending == 0
        assert await soon(chain.receive()) == b""
        failure = await chain.failure(spoke=True, printed="")
        assert str(failure).startswith("the proxy 'p' stopped reading its input (")


async def test_what_flows_towards_the_client_does_not_count_as_unread_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever says it waits; the proxy has two neighbours and one input."""
    monkeypatch.setattr("dragoman.transport.proxy_chain._UNSENT_BYTES", MEBIBYTE)
    large = note("x" * 700 * KIBIBYTE)
    async with by_hand() as (chain, first, agent):
        for _ in range(2):
            agent.write(large)
            await until(lambda: first.unread > 700 * KIBIBYTE)
            chain.send(large + b"\n")
            assert 700 * KIBIBYTE < chain.pending < 701 * KIBIBYTE
            taken = [await first.read_json() for _ in range(2)]
            assert [it["method"] for it in taken] == ["proxy/successor", "note"]
            assert chain.pending == 0
        await settled()  # the agent is held back no longer
        chain.send(large + b"\n")
        agent.write(large)
        await until(lambda: first.unread > 1400 * KIBIBYTE)
        chain.send(large + b"\n")
        assert await soon(chain.receive()) == b""
        assert "stopped reading its input (14" in str(await chain.failure(spoke=True, printed=""))


async def test_an_endless_line_of_the_client_ends_the_chain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dragoman.transport.proxy_chain.MAX_FRAME_BYTES", 1000)
    async with by_hand() as (chain, first, _):
        chain.send(note("before") + b"\n" + b"x" * 900)
        chain.send(b"x" * 101)
        chain.send(b"x" * 900 + b"\n" + note("after") + b"\n")
        assert b"before" in await first.read()
        assert await soon(chain.receive()) == b""
        failure = await chain.failure(spoke=True, printed="")
        told = "the client sent a frame larger than the limit of 1000 bytes"
        assert str(failure) == told
        with pytest.raises(EOFError):
            await first.read()


async def test_what_nests_as_deep_as_it_may_passes_and_what_nests_deeper_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("DEBUG", "dragoman.chain")
    deep = b'{"method":"note","params":%b}' % nested(MAX_DEPTH - 1)
    async with by_hand() as (chain, first, agent):
        chain.send(deep + b"\n")
        passed = b'{"method":"proxy/successor","params":%b}'
        first.write(passed % (b'{"method":"note","params":%b}' % nested(MAX_DEPTH)), passed % deep)
        assert nested(MAX_DEPTH - 1) in await agent.read()
    [line] = [record.message for record in caplog.records]
    assert line.startswith("skipped a line of ")
    assert line.endswith(" bytes from the proxy 'p': nested deeper than 129 levels")


# ── the end ───────────────────────────────────────────────────────────────────────────────────


async def test_our_closing_ends_a_pending_receive_and_may_be_repeated() -> None:
    async with by_hand() as (chain, first, agent):
        receiving = asyncio.create_task(chain.receive())
        await settled()
        await soon(asyncio.gather(chain.aclose(), chain.aclose()))
        await soon(chain.aclose())
        assert await soon(receiving) == b""
        chain.send(note("dropped") + b"\n")
        await soon(chain.drain())
        assert chain.pending == 0
        assert isinstance(await chain.failure(spoke=True, printed=""), ConnectionClosed)
        for wire in (first, agent):
            with pytest.raises(EOFError):
                await wire.read()


@pytest.mark.parametrize("newline", [b"\n", b""], ids=["a whole line", "no newline"])
async def test_the_last_words_of_a_proxy_are_heard(newline: bytes) -> None:
    async with by_hand() as (chain, first, _):
        first.transport.send(note("last words") + newline)
        await first.end()
        assert b"last words" in await soon(chain.receive())
        assert [await soon(chain.receive()) for _ in range(2)] == [b"", b""]
        failure = await chain.failure(spoke=True, printed="")
        assert str(failure) == "the proxy 'p' closed the connection"


async def test_the_last_words_of_the_agent_pass_the_proxy() -> None:
    async with by_hand() as (chain, first, agent):
        agent.write(note("last words"))
        await agent.end()
        await pass_on(first)
        assert b"last words" in await soon(chain.receive())
        assert await soon(chain.receive()) == b""
        assert isinstance(await chain.failure(spoke=True, printed=""), ConnectionClosed)


@pytest.mark.own_time
async def test_the_last_words_of_the_agent_pass_a_proxy_that_reads_late() -> None:
    async with by_hand() as (chain, first, agent):
        agent.write(note("last words"))
        await agent.end()
        await asyncio.sleep(0.6)
        await pass_on(first)
        assert b"last words" in await soon(chain.receive())


@pytest.mark.own_time
async def test_the_last_words_of_the_agent_pass_a_proxy_that_takes_its_time() -> None:
    async with by_hand() as (chain, first, agent):
        agent.write(*(note(number) for number in range(5)))
        await agent.end()
        told = [(await first.read_json())["params"] for _ in range(5)]
        for message in told:
            await asyncio.sleep(0.15)
            first.write(json.dumps(message).encode())
        await soon(until_end(chain, count=5))


@pytest.mark.own_time
async def test_the_last_answer_of_the_agent_passes_a_proxy_that_thinks_about_it() -> None:
    async with by_hand() as (chain, first, agent):
        chain.send(b'{"id":"c","method":"ask"}\n')
        asked = await first.read_json()
        first.write(b'{"id":"p","method":"proxy/successor","params":{"method":"ask"}}')
        agent.write(b'{"id":%d,"result":"yes"}' % (await agent.read_json())["id"])
        await agent.end()
        assert (await first.read_json())["result"] == "yes"
        await asyncio.sleep(0.6)
        first.write(b'{"id":%d,"result":"yes"}' % asked["id"])
        assert json.loads(await soon(chain.receive()))["result"] == "yes"
        assert await soon(chain.receive()) == b""


@pytest.mark.own_time
async def test_a_proxy_that_never_passes_the_last_words_on_does_not_keep_the_chain() -> None:
    async with by_hand() as (chain, _, agent):
        agent.write(note("never read"))
        await agent.end()
        assert await soon(chain.receive()) == b""


async def until_end(chain: ChainTransport, count: int) -> None:
    heard = b""
    while data := await chain.receive():
        heard += data
    assert heard.count(b"\n") == count


async def pass_on(wire: Hand) -> None:
    wire.write(json.dumps((await wire.read_json())["params"]).encode())


async def test_half_a_line_at_the_end_is_noise() -> None:
    async with tidy_loop():
        words = "import sys; sys.stdout.write('{\"half'); sys.exit(4)"
        chain = await way_to(memory_pair()[0], [AgentCommand(sys.executable, ("-c", words))])()
        assert await soon(chain.receive()) == b""
        failure = await chain.failure(spoke=True, printed="")
        assert isinstance(failure, ChainBroken)
        assert str(failure).endswith(
            'ended before it spoke ACP (exited with code 4); it printed:\n{"half'
        )
        await soon(chain.aclose())


async def test_when_the_second_cannot_be_started_the_first_is_ended() -> None:
    ours, theirs = memory_pair()

    async def first() -> Transport:
        return ours

    async def second() -> Transport:
        raise ConnectionLost("it is raining")

    components = [Component("proxy", "a", first), Component("proxy", "b", second, " (2 of 2)")]
    with pytest.raises(ChainBroken) as caught:
        await ChainTransport.start(components)
    assert str(caught.value) == "the proxy 'b' (2 of 2) failed: it is raining"
    assert await soon(theirs.receive()) == b""

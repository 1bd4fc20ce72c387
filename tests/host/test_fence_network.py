"""The network of a fence: which hosts are let through, and what the proxy does with the others.

The proxy listens on the loopback of this machine here; `tests/fence` has it in a fence.
"""

from __future__ import annotations

import asyncio
import gc
import socket
import struct
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from ipaddress import ip_address

import pytest
from support.clients import until
from support.cost import is_done_within
from support.descriptor_shortage import few_descriptors, room_to_spare

from dragoman.host.fence.network.host_patterns import (
    Address,
    read_patterns,
)
from dragoman.host.fence.network.network_rules import MOST_TOLD, HostRefused, NetworkRules
from dragoman.host.fence.network.proxy import Proxy, ProxyLimits, read_request
from dragoman.host.rules.access import Access
from dragoman.host.rules.decision import Explanation
from dragoman.host.rules.policy import Policy
from dragoman.host.rules.rule import Rule
from dragoman.host.workspace.roots import Workspace
from dragoman.session import events as e

PUBLIC = ip_address("93.184.216.34")
INWARD = ip_address("10.1.2.3")


# ── rules ─────────────────────────────────────────────────────────────────────────────────────


class Session:
    """With rules and a record."""

    def __init__(self, *rules: Rule, yolo: bool = False) -> None:
        self.policy = Policy(rules, yolo=yolo)
        self.events: list[e.Event] = []

    def about_host(self, host: str) -> Explanation:
        return self.policy.explain(
            Access(operation="fetch", hosts=(host,)), Workspace("s", "/ws", ())
        )

    def note(self, event: e.Event) -> None:
        self.events.append(event)


def rules_of(*hosts: str, session: Session | None = None) -> NetworkRules:
    rules = NetworkRules(read_patterns(hosts))
    if session is not None:
        rules.sessions = lambda: [session]
    return rules


def test_what_is_listed_is_let_through_and_nothing_else() -> None:
    rules = rules_of("example.com", "localhost:8080")
    assert rules.candidates("example.com", 443) is None
    assert rules.candidates("localhost", 8080) == (ip_address("127.0.0.1"), ip_address("::1"))
    for host, port in (
        ("other.org", 443),
        ("93.184.216.34", 443),
        ("localhost", 8081),
        ("127.0.0.1", 22),
        ("0x7f.1", 22),
    ):
        with pytest.raises(HostRefused, match="not in the fence's list"):
            rules.candidates(host, port)


def test_a_name_does_not_lead_inwards_unless_that_is_listed() -> None:
    assert rules_of("example.com").reachable([INWARD, PUBLIC], 443) == [PUBLIC]
    with pytest.raises(HostRefused, match=r"leads to 10\.1\.2\.3") as raised:
        rules_of("example.com").reachable([INWARD], 443)
    assert raised.value.remedy == "to allow that, list 10.1.2.3:443"
    assert rules_of("example.com", "10.0.0.0/8:443").reachable([INWARD], 443) == [INWARD]


def test_a_rule_that_names_a_host_opens_the_fence_for_it() -> None:
    session = Session(Rule(effect="allow", operation="fetch", host="*.example.org"))
    rules = rules_of(session=session)
    assert rules.candidates("a.example.org", 8443) is None
    with pytest.raises(HostRefused):
        rules.candidates("example.net", 443)


def test_no_rule_opens_what_is_not_on_the_internet() -> None:
    session = Session(Rule(effect="allow", operation="fetch", host="*"))
    for host in ("localhost", "127.0.0.1", "10.1.2.3"):
        with pytest.raises(HostRefused, match="not in the fence's list"):
            rules_of(session=session).candidates(host, 80)
    assert rules_of(session=session).candidates("93.184.216.34", 80) == (PUBLIC,)


@pytest.mark.parametrize(
    "session",
    [Session(yolo=True), Session(Rule(effect="allow", operation="fetch")), Session()],
)
def test_what_is_allowed_to_an_agent_that_asks_does_not_open_the_fence(session: Session) -> None:
    with pytest.raises(HostRefused):
        rules_of(session=session).candidates("example.org", 443)


@pytest.mark.parametrize("effect", ["deny", "ask"])
def test_a_stricter_rule_counts_more_than_the_list(effect: str) -> None:
    session = Session(
        Rule(effect="allow", operation="fetch", host="*"),
        Rule(effect=effect, operation="fetch", host="*.example.com"),  # pyright: ignore[reportArgumentType]
        Rule(effect=effect, operation="fetch", host="93.184.*"),  # pyright: ignore[reportArgumentType]
    )
    rules = rules_of("*.example.com", "93.184.216.34", session=session)
    with pytest.raises(HostRefused, match="a rule"):
        rules.candidates("www.example.com", 443)
    with pytest.raises(HostRefused, match="a rule"):
        rules.reachable([PUBLIC], 443)


def test_a_refused_host_is_told_once_and_then_seldom() -> None:
    session = Session()
    rules = rules_of(session=session)
    for _ in range(150):
        rules.refused("example.org", 443, HostRefused("no"))
    titles = [event.title for event in session.events if isinstance(event, e.AccessDecided)]
    assert titles == [
        "example.org:443",
        "example.org:443 (10 times)",
        "example.org:443 (100 times)",
    ]


def test_many_refused_hosts_are_told_up_to_a_limit() -> None:
    session = Session()
    rules = rules_of(session=session)
    for number in range(MOST_TOLD + 50):
        rules.refused(f"h{number}.example.org", 443, HostRefused("no"))
    assert len(session.events) == MOST_TOLD + 1
    last = session.events[-1]
    assert isinstance(last, e.AccessDecided)
    assert last.host is None
    assert f"more than {MOST_TOLD} hosts" in last.decision.reason


def test_what_was_refused_before_there_was_a_session_is_told_to_the_first() -> None:
    session = Session()
    rules = rules_of()
    rules.refused("example.org", 443, HostRefused("no"))
    rules.sessions = lambda: [session]
    rules.tell()
    rules.tell()
    (event,) = session.events
    assert isinstance(event, e.AccessDecided)
    assert (event.host, event.operation, event.decision.by) == ("example.org", "fetch", "fence")


# ── requests ──────────────────────────────────────────────────────────────────────────────────


def test_a_request_goes_on_with_the_host_of_its_address() -> None:
    request = read_request(
        b"POST http://Example.com:8080/a?b HTTP/1.1\r\nHost: other.org\r\nContent-Length: 3\r\n"
        b"Connection: X-Secret, content-length\r\nX-Secret: 1\r\nProxy-Authorization: Basic x\r\n"
        b"Accept: */*\r\n\r\n"
    )
    assert (request.host, request.port, request.length) == ("Example.com", 8080, 3)
    assert request.head == (
        b"POST /a?b HTTP/1.1\r\nHost: Example.com:8080\r\nContent-Length: 3\r\nAccept: */*\r\n"
        b"Connection: close\r\n\r\n"
    )


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET https://example.com/ HTTP/1.1\r\n\r\n",
        b"GET http://user@example.com/ HTTP/1.1\r\n\r\n",
        b"GET http:///x HTTP/1.1\r\n\r\n",
        b"GET http://example.com:99999/ HTTP/1.1\r\n\r\n",
        b"CONNECT example.com HTTP/1.1\r\n\r\n",
        b"CONNECT example.com:443 HTTP/2\r\n\r\n",
        b"GET http://example.com/ HTTP/1.1\r\nbad header\r\n\r\n",
        b"GET http://example.com/ HTTP/1.1\r\nA: b\nC: d\r\n\r\n",
        b"POST http://e.com/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST http://e.com/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST http://e.com/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"POST http://e.com/ HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST http://e.com/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_a_request_that_could_mean_two_things_is_refused(head: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        read_request(head)


@pytest.mark.parametrize("end", [b"", b"\0", b"\n", b"x\r"])
def test_no_head_takes_long(end: bytes) -> None:
    blanks = b" \t" * 15_000
    head = b"GET http://example.com/ HTTP/1.1\r\nA:%bx%b%b\r\n\r\n" % (blanks, blanks, end)

    def read() -> None:
        with suppress(ValueError):
            read_request(head)

    # Read by one expression, this took time that grows with the cube of the blanks.
    assert is_done_within(0.1, read)


# ── the proxy ─────────────────────────────────────────────────────────────────────────────────


class Server:
    """Keeps what it gets, and answers with `answer` once that has `until` in it."""

    def __init__(self, answer: bytes) -> None:
        self.got = b""
        self.until = b""
        self._answer = answer

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            self.got += data
            if self.until in self.got:
                break
        writer.write(self._answer)
        with suppress(ConnectionError):
            await writer.drain()
            writer.write_eof()
            while data := await reader.read(1 << 16):
                self.got += data
        writer.close()


ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"


@asynccontextmanager
async def world(
    *hosts: str,
    session: Session | None = None,
    found: Callable[[str], Sequence[Address]] = lambda _name: [PUBLIC],
    limits: ProxyLimits | None = None,
    answer: bytes = ANSWER,
) -> AsyncGenerator[tuple[int, int, Server]]:
    """The port of the proxy, and a server with its port; `{port}` in a host is that one."""
    server = Server(answer)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]

    async def lookup(name: str, _port: int) -> list[Address]:
        return list(found(name))

    own = socket.create_server(("127.0.0.1", 0))
    own.setblocking(False)
    rules = rules_of(*(host.format(port=port) for host in hosts), session=session)
    proxy = Proxy([own], rules, limits, lookup)
    try:
        yield own.getsockname()[1], port, server
    finally:
        await proxy.aclose()
        own.close()
        listening.close()


async def asked(proxy: int, *pieces: bytes, size: int = -1) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        async with asyncio.timeout(30):
            return await (reader.read() if size < 0 else reader.readexactly(size))
    finally:
        writer.close()


async def test_a_listed_host_is_reached_by_a_request_and_by_a_tunnel() -> None:
    async with world("127.0.0.1:{port}") as (proxy, port, server):
        got = await asked(proxy, b"GET http://127.0.0.1:%d/x HTTP/1.1\r\nHost: y\r\n\r\n" % port)
        assert got == ANSWER
        assert server.got.startswith(b"GET /x HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % port)
    async with world("localhost:{port}") as (proxy, port, server):
        ready = b"HTTP/1.1 200 Connection established\r\n\r\n"
        size = len(ready) + len(ANSWER)
        head = b"CONNECT localhost:%d HTTP/1.1\r\n\r\n" % port
        assert await asked(proxy, head, b"ping", size=size) == ready + ANSWER
        assert server.got == b"ping"


async def test_bodies_are_passed_on_and_nothing_after_them() -> None:
    async with world("127.0.0.1:{port}") as (proxy, port, server):
        head = b"POST http://127.0.0.1:%d/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" % port
        body = b"3\r\nabc\r\n10;x=y\r\n0123456789abcdef\r\n0\r\n"
        trailers = b"A: x\r\nB: y\n\nGET / HTTP/1.1\nHost: evil.example\n\n\r\n\r\n"
        server.until = body + b"\r\n"
        await asked(proxy, head, body, trailers, b"GET http://evil.example/ HTTP/1.1\r\n\r\n")
        assert server.got.endswith(body + b"\r\n")
    async with world("127.0.0.1:{port}") as (proxy, port, server):
        head = b"POST http://127.0.0.1:%d/ HTTP/1.1\r\nContent-Length: 3\r\n\r\n" % port
        server.until = b"abc"
        await asked(proxy, head, b"abcGET / HTTP/1.1\r\n\r\n")
        assert server.got.endswith(b"\r\n\r\nabc")


@pytest.mark.parametrize("size", [b"0x10", b"-2", b"+3", b"1_0", b" 3", b"", b"3 x"])
async def test_a_chunk_whose_size_can_be_read_in_two_ways_goes_nowhere(size: bytes) -> None:
    async with world("127.0.0.1:{port}") as (proxy, port, server):
        head = b"POST http://127.0.0.1:%d/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" % port
        server.until = b"never"
        await asked(proxy, head, size + b"\r\nGET / HTTP/1.1\r\n\r\n\r\n")
        assert server.got.endswith(b"\r\n\r\n")
        assert b"GET" not in server.got


async def test_nothing_follows_a_chunk_that_is_longer_than_its_size() -> None:
    async with world("127.0.0.1:{port}") as (proxy, port, server):
        head = b"POST http://127.0.0.1:%d/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" % port
        server.until = b"never"
        await asked(proxy, head, b"3\r\nabcGET / HTTP/1.1\r\n\r\n")
        assert server.got.endswith(b"\r\n\r\n3\r\nabc")


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (b"CONNECT other.org:443", "not in the fence's list"),
        (b"CONNECT 127.0.0.1:{port}", "not in the fence's list"),
        (b"CONNECT 2130706433:{port}", "not in the fence's list"),
        (b"CONNECT [::ffff:127.0.0.1]:{port}", "not in the fence's list"),
        (b"CONNECT example.com:22", "not in the fence's list"),
        (b"GET http://localhost:{port}/", "not in the fence's list"),
        (b"CONNECT inward.example.com:443", "leads to 10.1.2.3"),
    ],
)
async def test_a_refused_host_is_answered_and_told(target: bytes, reason: str) -> None:
    session = Session()
    hosts = ("example.com", "*.example.com")
    async with world(*hosts, session=session, found=lambda _: [INWARD]) as (proxy, port, server):
        request = target.replace(b"{port}", b"%d" % port)
        got = await asked(proxy, request + b" HTTP/1.1\r\n\r\n")
        assert got.startswith(b"HTTP/1.1 403 ")
        assert reason.encode() in got
        assert b"to allow" not in got  # that is not for the agent to do
        assert not server.got
    (event,) = session.events
    assert isinstance(event, e.AccessDecided)
    assert reason in event.decision.reason
    assert "to allow" in event.decision.reason


async def test_a_name_that_is_refused_is_not_looked_up() -> None:
    asked_for: list[str] = []

    def found(name: str) -> list[Address]:
        asked_for.append(name)
        return []

    async with world("example.com", found=found) as (proxy, _, _):
        await asked(proxy, b"CONNECT secret.evil.example:443 HTTP/1.1\r\n\r\n")
        await asked(proxy, b"CONNECT example.com:443 HTTP/1.1\r\n\r\n")
    assert asked_for == ["example.com"]


async def test_the_address_that_was_checked_is_connected_to() -> None:
    """A name that means something else when it is looked up again gains nothing."""
    answers = iter([[ip_address("127.0.0.1")], [INWARD]])
    hosts = ("rebound.example.com:{port}", "127.0.0.1:{port}")
    async with world(*hosts, found=lambda _: next(answers)) as (proxy, port, _):
        request = b"GET http://rebound.example.com:%d/ HTTP/1.1\r\n\r\n" % port
        assert await asked(proxy, request) == ANSWER
        assert (await asked(proxy, request)).startswith(b"HTTP/1.1 403 ")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", b"400"),
        (b"GET http://example.com/ HTTP/1.1\r\nA: " + b"x" * 5000 + b"\r\n\r\n", b"431"),
        (b"CONNECT nowhere.example.com:443 HTTP/1.1\r\n\r\n", b"502"),
        (b"GET http", b"504"),
    ],
)
async def test_what_cannot_be_passed_on_gets_an_answer(sent: bytes, status: bytes) -> None:
    limits = ProxyLimits(head=4096, head_seconds=0.2)
    async with world("*.example.com", found=lambda _: [], limits=limits) as (proxy, _, _):
        assert (await asked(proxy, sent)).startswith(b"HTTP/1.1 " + status)


@pytest.mark.parametrize(
    ("most", "room"), [(2, nullcontext()), (128, room_to_spare(4))], ids=["fence", "process"]
)
async def test_connections_are_limited_and_free_again(
    most: int, room: AbstractContextManager[None]
) -> None:
    """Those of all fences leave what is kept for others, with a descriptor at each end."""
    limits = ProxyLimits(connections=most)
    async with world("127.0.0.1:{port}", limits=limits) as (proxy, port, _):
        with room:
            await _are_limited_to_two(proxy, port)


async def _are_limited_to_two(proxy: int, port: int) -> None:
    held = [await asyncio.open_connection("127.0.0.1", proxy) for _ in range(2)]
    request = b"GET http://127.0.0.1:%d/ HTTP/1.1\r\n\r\n" % port
    for _, writer in held:
        writer.write(b"C")
        await writer.drain()
    got = await asked(proxy)
    assert got.startswith(b"HTTP/1.1 503 ")
    for reader, writer in held:
        writer.close()
        await reader.read()
    while (got := await asked(proxy, request)).startswith(b"HTTP/1.1 503 "):
        continue  # their ends are noticed in a moment
    assert got == ANSWER


async def test_programs_of_one_fence_leave_connections_to_those_of_others() -> None:
    """However many they ask for: where all have few descriptors, half of what is there."""
    with few_descriptors(512):
        async with world() as (greedy, _, _), world() as (other, _, _):
            wanted = [asyncio.create_task(asked(greedy)) for _ in range(512 // 8)]
            await until(lambda: sum(each.done() for each in wanted) == len(wanted) // 2)
            assert {each.result()[:13] for each in wanted if each.done()} == {b"HTTP/1.1 503 "}
            got = await asked(other, b"GET http://example.org/ HTTP/1.1\r\n\r\n")
            assert got.startswith(b"HTTP/1.1 403 ")
        await asyncio.gather(*wanted)


async def test_a_program_that_does_not_read_stops_its_server_and_nothing_else() -> None:
    """What waits between the two is bounded."""
    flood = 64 << 20
    async with world("127.0.0.1:{port}", answer=b"x" * flood) as (proxy, port, _):
        _, writer = await asyncio.open_connection("127.0.0.1", proxy)
        writer.write(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\nflood" % port)
        await writer.drain()
        other = b"CONNECT other.org:443 HTTP/1.1\r\n\r\n"
        assert (await asked(proxy, other)).startswith(b"HTTP/1.1 403 ")
        writer.close()


async def test_a_tunnel_that_breaks_on_both_sides_at_once_leaves_nothing_to_complain_of() -> None:
    complaints: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, each: complaints.append(each))
    far: asyncio.Future[asyncio.StreamWriter] = asyncio.get_running_loop().create_future()

    async def accept(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far.set_result(writer)

    listening = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    async with listening, world(f"127.0.0.1:{port}") as (proxy, _, _):
        before = len(asyncio.all_tasks())
        reader, near = await asyncio.open_connection("127.0.0.1", proxy)
        near.write(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % port)
        await reader.readuntil(b"\r\n\r\n")
        for writer in (near, await far):
            _reset(writer)
        await until(lambda: len(asyncio.all_tasks()) == before)
    gc.collect()
    assert complaints == []


def _reset(writer: asyncio.StreamWriter) -> None:
    """Break a connection, rather than end it."""
    connected = writer.get_extra_info("socket")
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def test_a_connection_in_which_nothing_moves_is_closed() -> None:
    limits = ProxyLimits(idle_seconds=0.2)
    async with world("127.0.0.1:{port}", limits=limits) as (proxy, port, _):
        head = b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % port
        assert (await asked(proxy, head)).endswith(b"\r\n\r\n")

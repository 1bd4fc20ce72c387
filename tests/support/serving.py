"""A server on a real port, in this process or in its own, and a client that has its token."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import httpx
from support.peers import tidy_loop

from dragoman import Client, HostCapabilities, Policy
from dragoman.agents.settings.settings_file import Settings
from dragoman.data_directory import home_id
from dragoman.host.snapshots.snapshots import Snapshots
from dragoman.hub.cluster.host_service import Presence
from dragoman.hub.hub import Hub
from dragoman.hub.running.settings_launcher import SettingsLauncher
from dragoman.session.facts import EVERYTHING, Offer, OnLimit
from dragoman.store.base import Store
from dragoman.store.open import open_store
from dragoman.store.postgres.store import open_postgres
from dragoman.store.store_limits import StoreLimits
from dragoman.transport.transport import Transport
from dragoman.web.app import make_app
from dragoman.web.context import Server
from dragoman.web.server.guard import AllowedHosts
from dragoman.web.server.http_server import AsgiServer
from dragoman.web.streams.frame_ring import Frames
from dragoman.web.uploads import Uploads

TOKEN = "a-token-for-tests-of-256-bits-or-thereabouts"
SECONDS = 60.0


class Connectable(Protocol):
    def connect(self) -> Transport: ...


class FakeLauncher(SettingsLauncher):
    """Agents of this process by name; other names are looked for as usual."""

    def __init__(
        self,
        agents: Mapping[str, Connectable],
        policy: Policy,
        protocol: Literal[1, 2] = 1,
        on_limit: OnLimit = "fail",
    ) -> None:
        super().__init__(Settings, policy, new_tap=Frames)
        self._agents = agents
        self._at_limit: OnLimit = on_limit
        self._protocol = protocol

    @property
    def default(self) -> str:
        return next(iter(self._agents), "demo")

    def client(self, agent: str, cwd: str, offer: Offer = EVERYTHING) -> Client:
        if agent not in self._agents:
            return super().client(agent, cwd, offer)
        tap = Frames()
        client = Client.start(
            self._agents[agent].connect(),
            name=agent,
            policy=self.policy,
            protocol=self._protocol,
            capabilities=HostCapabilities(
                read_files=offer.files, write_files=offer.files, terminals=offer.terminals
            ),
            tap=tap,
            on_limit=self._at_limit,
        )
        self.taps[client] = tap
        return client

    def is_shared(self, agent: str) -> bool:
        return True if agent in self._agents else super().is_shared(agent)


@dataclass
class Served:
    """A server that runs, and how to reach it."""

    port: int
    http: httpx.AsyncClient
    server: Server
    cwd: Path
    running: AsgiServer
    log: list[tuple[str, str, int]] = field(default_factory=list[tuple[str, str, int]])

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def connections(self) -> int:
        """How many are open on the server's side."""
        return len(self.running.server_state.connections)

    async def call(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """What it answers, which must be good."""
        response = await self.http.request(method, path, json=body, **options)
        assert response.is_success, (response.status_code, response.text)
        return response.json() if response.content else None

    async def refused(
        self, method: str, path: str, body: Any = None, **options: Any
    ) -> tuple[int, str]:
        """The status and the code of an error."""
        response = await self.http.request(method, path, json=body, **options)
        error = response.json()["error"]
        assert isinstance(error["message"], str)
        return response.status_code, error["code"]

    async def new_session(self, **fields: Any) -> str:
        body = {"cwd": str(self.cwd), **fields}
        return (await self.call("POST", "/api/sessions", body))["id"]

    async def prompt(self, session_id: str, text: str = "go") -> str:
        path = f"/api/sessions/{session_id}/prompt"
        return (await self.call("POST", path, {"text": text}))["turn"]

    async def detail(self, session_id: str) -> dict[str, Any]:
        return await self.call("GET", f"/api/sessions/{session_id}")

    async def until(self, session_id: str, status: str) -> dict[str, Any]:
        """The session, once it has this status and no turn waits to begin."""
        return await self.once(session_id, lambda found: found["status"] == status)

    async def once(self, session_id: str, shows: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """The session, once it shows this."""
        async with asyncio.timeout(SECONDS):
            while not shows(found := await self.detail(session_id)):
                await _a_moment()
        return found

    async def done(self, session_id: str, text: str = "go") -> dict[str, Any]:
        """The session after one turn."""
        await self.prompt(session_id, text)
        return await self.until(session_id, "idle")


async def _a_moment() -> None:
    await asyncio.sleep(0.02)


@asynccontextmanager
async def served(
    folder: Path, agents: Mapping[str, Connectable] | None = None, **options: Any
) -> AsyncGenerator[Served]:
    """With the demo agent where no others are given; nothing is left behind."""
    async with tidy_loop(), also_served(folder, agents, **options) as web:
        yield web


@asynccontextmanager
async def also_served(
    folder: Path,
    agents: Mapping[str, Connectable] | None = None,
    *,
    policy: Policy | None = None,
    origins: tuple[str, ...] = (),
    page: Path | None = None,
    on_disk: bool = False,
    database: str | None = None,
    host: str | None = None,
    protocol: Literal[1, 2] = 1,
    store_limits: StoreLimits | None = None,
    snapshots: Path | None = None,
    on_limit: OnLimit = "fail",
) -> AsyncGenerator[Served]:
    """The same beside another one; with `host` it takes sessions from others under that name. The
    store is in memory, on disk, or in a PostgreSQL `database`; `snapshots` are kept there."""
    opening = (
        open_store(folder / "home" if on_disk else None, store_limits)
        if database is None
        else open_postgres(database, folder / "homes" / (host or "one"), store_limits)
    )
    kept = None if snapshots is None else Snapshots(snapshots)
    async with _hub(
        folder, agents or {}, policy, opening, host, protocol, kept, on_limit
    ) as server:
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        log: list[tuple[str, str, int]] = []
        app = make_app(
            server,
            token=TOKEN,
            hosts=AllowedHosts("127.0.0.1", port),
            origins=origins,
            page=page or folder / "no page",
            log=lambda method, path, status, seconds: log.append((method, path, status)),
        )
        running = AsgiServer(app, server.closing)
        serving = asyncio.create_task(running.serve([listener]))
        await running.ready.wait()
        try:
            async with client(port) as http:
                yield Served(port, http, server, folder, running, log)
        finally:
            running.end()
            await serving


@asynccontextmanager
async def _hub(
    folder: Path,
    agents: Mapping[str, Connectable],
    policy: Policy | None,
    opening: Awaitable[Store],
    host: str | None,
    protocol: Literal[1, 2],
    snapshots: Snapshots | None,
    on_limit: OnLimit,
) -> AsyncGenerator[Server]:
    store = await opening
    launcher = FakeLauncher(agents, policy or Policy(stored=store.rules), protocol, on_limit)
    try:
        # Those on PostgreSQL have a folder each, whose id is their home, as hosts have.
        home = host if host is None or store.is_local else home_id(folder / "homes" / host)
        async with Hub(store, launcher, home=home, label=host, snapshots=snapshots) as hub:
            if host is not None:
                names = list(agents)
                await hub.be_host(Presence(name=host, agents=lambda: names, cwd=str(folder)))
            uploads = Uploads(folder / "uploads")
            yield Server(hub=hub, launcher=launcher, uploads=uploads, cwd=str(folder))
    finally:
        await store.aclose()


def client(port: int, token: str = TOKEN) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{port}",
        headers={"authorization": f"Bearer {token}"},
        timeout=SECONDS,
        trust_env=False,
        verify=False,  # plain HTTP: reading whom to trust takes longer than many a test
    )


# ── server-sent events ────────────────────────────────────────────────────────────────────────


@dataclass
class Sent:
    """One server-sent event."""

    id: str | None
    event: str
    data: str

    @property
    def json(self) -> Any:
        return json.loads(self.data)


async def sent_events(response: httpx.Response) -> AsyncIterator[Sent]:
    """What a stream tells, without its comments."""
    fields: dict[str, str] = {}
    async for line in response.aiter_lines():
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
            continue
        if "data" in fields:
            yield Sent(fields.get("id"), fields.get("event", "message"), fields["data"])
        fields = {}


STREAM = {"accept": "text/event-stream"}

"""`dragoman serve`, as the command line calls it: from options to a server, and to its end.

The end is in order: the streams, the turns, the agents, then the store; nothing is left running.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
from starlette.types import ASGIApp

from dragoman.agents.listing import list_agents
from dragoman.agents.settings import Retention, load_settings
from dragoman.data_directory import data_directory, running_directory
from dragoman.errors import ConfigError, DragomanError
from dragoman.host.rules.decision import flag_rules
from dragoman.host.rules.policy import Policy
from dragoman.host.rules.rule import Rule
from dragoman.hub.first_session import first_session
from dragoman.hub.host_directory import home_of
from dragoman.hub.host_service import Presence
from dragoman.hub.hub import Hub
from dragoman.hub.launcher import SettingsLauncher
from dragoman.hub.outage_notices import told_of_outages
from dragoman.hub.retention import in_words, keep_pruning
from dragoman.process import descriptors
from dragoman.session.facts import Offer
from dragoman.store.open import open_when_there
from dragoman.web.app import make_app
from dragoman.web.context import Server
from dragoman.web.frame_ring import Frames
from dragoman.web.server.connections import IDLE_SECONDS, Connections
from dragoman.web.server.deadline import GRACE_SECONDS, Deadline
from dragoman.web.server.host_header import Hosts, in_brackets, is_loopback
from dragoman.web.server.protocol import Protocol, State
from dragoman.web.server.token import kept_token, new_token
from dragoman.web.uploads import Uploads, keep_clean
from dragoman.wire.framing import MAX_FRAME_BYTES

_GRACE_SECONDS = 3
"""For requests that are being answered when the server ends."""
_ACCEPTED_AT_ONCE = 4
"""Few, so that earlier connections are heard in between. Asyncio needs about five rounds from
accepting a connection to closing one that is cut off, and accepts so many in each of them: these
are open beyond the cap."""
_BACKLOG = 2048
_NOT_ACCEPTED = "socket.accept() out of system resource"
_PONG_SECONDS = 180.0
"""A pong waits behind what its sender does not read yet; slow readers are judged elsewhere."""
_OPEN_SECONDS = 60.0
"""For a browser to start and to read what leads it to the page."""
_SOCKET_PROTOCOL = "dragoman.web.server.socket_protocol:SocketProtocol"
"""Imported when there are sockets: not every server has them."""
ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Where to find, from here, a server that listens everywhere."""


class Settings(msgspec.Struct, kw_only=True):
    """The options of `dragoman serve`."""

    host: str
    port: int
    token_file: str | None = None
    origins: Sequence[str] = ()
    agent: str | None = None
    cwd: str
    settings: str | None = None
    rules: Sequence[Rule] = ()
    write: bool = False
    execute: bool = False
    yolo: bool = False
    no_files: bool = False
    no_terminals: bool = False
    name: str | None = None
    headless: bool = False
    grace_seconds: float = GRACE_SECONDS
    """From a signal until what still runs is cut off; the process is gone at most 2 s later."""
    open_page: Callable[[str], Callable[[], None]] | None = None
    """Opens an address in a browser; what it returns deletes what the browser was given."""


def serve(settings: Settings, announce: Callable[[str], None], log: Callable[[str], None]) -> None:
    """Serve until a signal arrives.

    `announce` receives the address, `log` one line per request and what an operator should know.
    Raises ConfigError, UnknownAgent, StoreError, and DragomanError when the address cannot be used.
    """
    descriptors.raise_limit()
    load_settings(settings.settings)  # mistakes there are reported now, not to the first client
    with Deadline(lambda sentence: log(noted(sentence)), settings.grace_seconds) as deadline:
        asyncio.run(_run(settings, deadline, announce, log))


async def _run(
    settings: Settings,
    deadline: Deadline,
    announce: Callable[[str], None],
    log: Callable[[str], None],
) -> None:
    if settings.headless:
        await _run_headless(settings, deadline, announce, log)
    else:
        path = settings.token_file
        token = new_token() if path is None else kept_token(Path(path))
        listener = listen(settings.host, settings.port)
        await _serve(settings, token, listener, deadline, announce, log)
    deadline.all_is_done()


def listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        reason = (error.strerror or str(error)).lower()
        raise DragomanError(f"{in_brackets(host)}:{port}: {reason}") from error
    return listener


async def _run_headless(
    settings: Settings,
    deadline: Deadline,
    announce: Callable[[str], None],
    log: Callable[[str], None],
) -> None:
    """What other hosts call for, and nothing that listens."""
    ending = asyncio.Event()
    async with _running(settings, "", log) as (_, name):
        deadline.on_signal(ending.set)
        announce(f"host {name}, without a page")
        await ending.wait()


async def _serve(
    settings: Settings,
    token: str,
    listener: socket.socket,
    deadline: Deadline,
    announce: Callable[[str], None],
    log: Callable[[str], None],
) -> None:
    port = listener.getsockname()[1]
    used = asyncio.Event()

    def logged(method: str, path: str, status: int, seconds: float) -> None:
        if path.startswith("/api/") and status == 200:
            used.set()
        log(log_line(method, path, status, seconds))

    async with _running(settings, _reachable(settings.host, port), log) as (server, _):
        app = make_app(
            server,
            token=token,
            hosts=Hosts(settings.host, port),
            origins=settings.origins,
            log=logged,
        )
        running = Uvicorn(app, server.closing)
        deadline.on_signal(running.end)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(running.serve([listener]))
            await running.ready.wait()
            announce(address(settings, port, token))
            if settings.open_page is not None:
                first = await first_session(server.hub)
                where = "" if first is None else f"&to=/s/{first}"
                forget = settings.open_page(address(settings, port, token) + where)
                tasks.create_task(_when_used(forget, used, server.closing))


async def _when_used(forget: Callable[[], None], *events: asyncio.Event) -> None:
    """Once the page asks for something with the token, the server ends, or nobody comes."""
    waits = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=_OPEN_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        forget()
        for wait in waits:
            wait.cancel()


def _reachable(host: str, port: int) -> str:
    """Where other machines find the server, "" when they do not."""
    if is_loopback(host):
        return ""
    return f"http://{in_brackets(socket.gethostname() if host in ANYWHERE else host)}:{port}"


@asynccontextmanager
async def _running(
    settings: Settings, reachable: str, log: Callable[[str], None]
) -> AsyncGenerator[tuple[Server, str]]:
    """A server, and what it is called among hosts."""
    store = await open_when_there(lambda sentence: log(noted(sentence)))
    try:
        policy = Policy(
            settings.rules,
            write=settings.write,
            execute=settings.execute,
            yolo=settings.yolo,
            stored=store.rules,
        )
        launcher = SettingsLauncher(
            lambda: load_settings(settings.settings),
            policy,
            new_tap=Frames,
            offer=Offer(files=not settings.no_files, terminals=not settings.no_terminals),
        )
        home = home_of(store, data_directory())
        if settings.agent is not None and home is None:  # else another host may have it
            launcher.target(settings.agent)
        async with Hub(
            store, launcher, notes=running_directory(), home=home, label=settings.name
        ) as hub:
            uploads = Uploads(data_directory() / "uploads")
            name = await hub.be_host(
                Presence(
                    name=settings.name or socket.gethostname(),
                    agents=partial(_startable, launcher),
                    address=reachable,
                    cwd=settings.cwd,
                    renamed=settings.name is None,
                )
            )
            server = Server(
                hub=hub,
                launcher=launcher,
                uploads=uploads,
                cwd=settings.cwd,
                agent=settings.agent,
                given=given_rules(settings),
            )
            tidying = [
                asyncio.create_task(_prune(server, launcher, log)),
                asyncio.create_task(keep_clean(uploads, store)),
            ]
            try:
                async with told_of_outages(store, lambda sentence: log(noted(sentence))):
                    yield server, name
            finally:
                for task in tidying:
                    task.cancel()
                await asyncio.wait(tidying)
            if cut := sum(live.session.busy for live in hub.live.values()):
                log(noted(f"{cut} running turn{'s are' if cut > 1 else ' is'} cut off"))
    finally:
        await store.aclose()


async def _prune(server: Server, launcher: SettingsLauncher, log: Callable[[str], None]) -> None:
    """Old sessions, as the settings say."""

    def retention() -> Retention:
        return launcher.settings().retention

    await keep_pruning(
        server.hub, retention, lambda pruned: log(noted(f"pruned {in_words(pruned)}"))
    )


def given_rules(settings: Settings) -> tuple[Rule, ...]:
    """What holds for all sessions of this server and cannot be revoked while it runs."""
    flags = flag_rules(write=settings.write, execute=settings.execute, yolo=settings.yolo)
    return (*settings.rules, *flags)


def _startable(launcher: SettingsLauncher) -> list[str]:
    """The agents there are; none while the settings cannot be read."""
    with suppress(ConfigError):
        return [each.name for each in list_agents(launcher.settings()) if each.state != "missing"]
    return []


class Uvicorn(uvicorn.Server):
    """Ends when `end` is called, the streams first; a second call does not wait for anything."""

    def __init__(
        self,
        app: ASGIApp,
        closing: asyncio.Event,
        *,
        sockets: bool = False,
        connections: Connections | None = None,
    ) -> None:
        config = uvicorn.Config(
            app,
            http=Protocol,
            ws=_SOCKET_PROTOCOL if sockets else "none",
            ws_max_size=MAX_FRAME_BYTES,
            ws_per_message_deflate=False,
            ws_ping_timeout=_PONG_SECONDS,
            lifespan="off",
            loop="asyncio",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_GRACE_SECONDS,
            timeout_keep_alive=IDLE_SECONDS,
            backlog=_ACCEPTED_AT_ONCE,
        )
        super().__init__(config)
        self._connections = connections or Connections()
        self.server_state = State(self._connections)
        # At its lower levels it logs headers, paths and queries, and so would show the token.
        logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
        self.ready = asyncio.Event()
        self._closing = closing

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Left to whoever runs it."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(_BACKLOG)
        loop = asyncio.get_running_loop()
        self._on_error = loop.get_exception_handler()
        loop.set_exception_handler(self._make_room)
        self.ready.set()

    def _make_room(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """When a connection could not be accepted, which asyncio tries again a second later."""
        if str(context.get("message")).startswith(_NOT_ACCEPTED):
            self._connections.no_descriptors()
        elif self._on_error is not None:
            self._on_error(loop, context)
        else:
            loop.default_exception_handler(context)

    def end(self) -> None:
        self._closing.set()
        self.force_exit = self.should_exit
        self.should_exit = True


def address(settings: Settings, port: int, token: str) -> str:
    """Where the page is, with the token in the part that no browser sends."""
    host = in_brackets(ANYWHERE.get(settings.host, settings.host))
    return f"http://{host}:{port}/#token={token}"


def noted(sentence: str) -> str:
    return f"{_now()} {sentence}"


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S")


def log_line(method: str, path: str, status: int, seconds: float) -> str:
    """One line a request; no query, no header, no body: they may hold secrets."""
    return f"{_now()} {method} {path} {status or '-'} {seconds * 1000:.0f} ms"

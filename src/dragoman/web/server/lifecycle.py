"""Runs `dragoman serve`: turns options into a server, and serves until it is stopped.

It ends the streams, the turns, the agents and then the store; nothing is left running.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import tempfile
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from dragoman.agents.listing import list_agents
from dragoman.agents.settings.settings_file import Retention, load_settings
from dragoman.data_directory import data_directory
from dragoman.errors import CommandRefused, ConfigError, DragomanError
from dragoman.host.fence.fence_terms import NetworkTerms
from dragoman.host.rules.policy import Policy
from dragoman.host.rules.rule import Rule
from dragoman.hub.assembly import limits_in, new_hub
from dragoman.hub.cluster import commands as c
from dragoman.hub.cluster.host_service import Presence
from dragoman.hub.hub import Hub
from dragoman.hub.maintenance import told_of_outages
from dragoman.hub.running.settings_launcher import SettingsLauncher
from dragoman.hub.stored.retention import in_words, keep_pruning
from dragoman.process import descriptors
from dragoman.session.events import PermissionRequested, TurnEnded
from dragoman.session.facts import EVERYTHING, FenceMode, Offer
from dragoman.session.limits.spending_limits import SpendingLimit
from dragoman.store.base import Store
from dragoman.store.open import open_when_there
from dragoman.store.records import SessionFilter
from dragoman.web.app import make_app
from dragoman.web.context import Server
from dragoman.web.server.deadline import GRACE_SECONDS, Deadline
from dragoman.web.server.guard import AllowedHosts, in_brackets, is_loopback
from dragoman.web.server.http_server import (
    ANYWHERE,
    AsgiServer,
    Door,
    Operator,
    serving,
)
from dragoman.web.server.pairing import pairing_address, reachable_origin
from dragoman.web.streams.frame_ring import Frames
from dragoman.web.uploads import Uploads, keep_clean

logger = logging.getLogger("dragoman.web")

_OPEN_SECONDS = 60.0
"""For a browser to start and to read what leads it to the page."""


class ShowPairing(Protocol):
    """Shows how to pair a device of this name; `is_local` if only this machine finds the server."""

    def __call__(self, name: str, address: str, *, is_local: bool) -> None: ...


class ServeOptions(Door, kw_only=True):
    """The options of `dragoman serve`."""

    agent: str | None = None
    cwd: str
    settings: str | None = None
    rules: Sequence[Rule] = ()
    """They hold for all sessions, and cannot be revoked while the server runs."""
    offer: Offer = EVERYTHING
    limits: tuple[SpendingLimit, ...] = ()
    fence: FenceMode | None = None
    network: NetworkTerms | None = None
    """For every agent; None leaves it to the settings."""
    name: str | None = None
    headless: bool = False
    grace_seconds: float = GRACE_SECONDS
    """From a signal until what still runs is cut off; the process is gone at most 2 s later."""
    open_page: Callable[[str], Callable[[], None]] | None = None
    """Opens an address in a browser; what it returns deletes what the browser was given."""
    pair: str | None = None
    """The name of a device to pair."""
    show_pairing: ShowPairing | None = None


def serve(
    settings: ServeOptions, announce: Callable[[str], None], log: Callable[[str], None]
) -> None:
    """Serve until a signal arrives.

    `announce` receives the address, `log` one line per request and what an operator should know.
    Raises ConfigError, UnknownAgent, StoreError, and DragomanError when the address cannot be used.
    """
    descriptors.raise_limit()
    load_settings(settings.settings)  # mistakes there are reported now, not to the first client
    operator = Operator(announce, log)
    run = _run_headless if settings.headless else _serve
    with Deadline(operator.note, settings.grace_seconds) as deadline:
        asyncio.run(run(settings, operator, deadline))


async def _run_headless(settings: ServeOptions, operator: Operator, deadline: Deadline) -> None:
    """What other hosts call for, and nothing that listens."""
    ending = asyncio.Event()
    async with _running(settings, "", operator) as (_, name):
        deadline.on_signal(ending.set)
        operator.announce(f"host {name}, headless")
        await ending.wait()
    deadline.all_is_done()


async def _serve(settings: ServeOptions, operator: Operator, deadline: Deadline) -> None:
    token, listener = settings.token(), settings.listen()
    port = listener.getsockname()[1]
    used = asyncio.Event()

    def logged(method: str, path: str, status: int, seconds: float) -> None:
        if path.startswith("/api/") and status == 200:
            used.set()
        operator.note_request(method, path, status, seconds)

    async with _running(settings, _reachable(settings.host, port), operator) as (server, _):
        app = make_app(
            server,
            token=token,
            hosts=AllowedHosts(settings.host, port),
            origins=settings.origins,
            log=logged,
        )
        page = f"{settings.address('http', port)}/#token={token}"
        async with serving(AsgiServer(app, server.closing), listener, deadline) as tasks:
            operator.announce(page)
            await _pair(settings, port, server)
            if settings.open_page is not None:
                first = await first_session(server.hub)
                where = "" if first is None else f"&to=/s/{first}"
                forget = settings.open_page(page + where)
                tasks.create_task(_when_used(forget, used, server.closing))
    deadline.all_is_done()


async def _pair(settings: ServeOptions, port: int, server: Server) -> None:
    if settings.pair is None or settings.show_pairing is None:
        return
    _, code = await server.visitors.book.pairing(settings.pair)
    origin = reachable_origin(settings.host, port, settings.origins)
    is_local = is_loopback(urlsplit(origin).hostname or "")
    settings.show_pairing(settings.pair, pairing_address(origin, code), is_local=is_local)


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
    settings: ServeOptions, reachable: str, operator: Operator
) -> AsyncGenerator[tuple[Server, str]]:
    """A server, and what it is called among hosts."""
    store = await open_when_there(operator.note)
    try:
        launcher = _launcher(settings, store)
        kept = limits_in(launcher.settings)
        made = new_hub(store, launcher, label=settings.name, snapshots=kept)
        if settings.agent is not None and made.hosts.home is None:  # else another host may have it
            launcher.target(settings.agent)
        async with made as hub:
            uploads = Uploads(data_directory() / "uploads")
            name = await hub.be_host(_presence(settings, reachable, launcher))
            server = Server(
                hub=hub,
                launcher=launcher,
                uploads=uploads,
                cwd=settings.cwd,
                agent=settings.agent,
                given=settings.rules,
            )
            tidying = [
                asyncio.create_task(_prune(server, launcher, operator)),
                asyncio.create_task(keep_clean(uploads, store)),
            ]
            server.notices.start()
            try:
                async with told_of_outages(store, operator.note):
                    yield server, name
            finally:
                server.visitors.end()
                await server.notices.aclose()
                for task in tidying:
                    task.cancel()
                await asyncio.wait(tidying)
            if cut := sum(live.session.busy for live in hub.live.values()):
                operator.note(f"{cut} running turn{'s are' if cut > 1 else ' is'} cut off")
    finally:
        await store.aclose()


def _launcher(settings: ServeOptions, store: Store) -> SettingsLauncher:
    return SettingsLauncher(
        lambda: load_settings(settings.settings),
        Policy(settings.rules, stored=store.rules),
        new_tap=Frames,
        offer=settings.offer,
        fence=settings.fence,
        network=settings.network,
        limits=settings.limits,
    )


def _presence(settings: ServeOptions, reachable: str, launcher: SettingsLauncher) -> Presence:
    return Presence(
        name=settings.name or socket.gethostname(),
        agents=partial(_startable, launcher),
        address=reachable,
        cwd=settings.cwd,
        renamed=settings.name is None,
    )


async def _prune(server: Server, launcher: SettingsLauncher, operator: Operator) -> None:
    """Old sessions, as the settings say."""

    def retention() -> Retention:
        return launcher.settings().retention

    await keep_pruning(
        server.hub, retention, lambda pruned: operator.note(f"pruned {in_words(pruned)}")
    )


def _startable(launcher: SettingsLauncher) -> list[str]:
    """The agents there are; none while the settings cannot be read."""
    with suppress(ConfigError):
        return [each.name for each in list_agents(launcher.settings()) if each.state != "missing"]
    return []


_DEMO_PROMPT = "Improve @README.md a little and show me what you did"
_DEMO_README = "# A scratch project\n\nNothing in here matters.\n"
_DEMO_SECONDS = 20.0


async def first_session(hub: Hub) -> str | None:
    """The sample session of a new user, a whole turn with the demo agent; its id, None where there
    are others already or it did not come to its end. It works in a directory made for it, so
    everything that the demo agent asks for is allowed, once."""
    if await hub.store.sessions(SessionFilter(limit=1)):
        return None
    folder = Path(tempfile.mkdtemp(prefix="dragoman-demo-"))
    (folder / "README.md").write_text(_DEMO_README)
    try:
        async with asyncio.timeout(_DEMO_SECONDS):
            return await _demo_turn(hub, str(folder))
    except (DragomanError, TimeoutError) as error:
        logger.warning("the first session could not be made: %s", error)
        return None


async def _demo_turn(hub: Hub, folder: str) -> str:
    live = await hub.create("demo", folder)
    await hub.send(live.id, c.Prompt(_DEMO_PROMPT))
    async for events in hub.watch(live.id):
        for stored in events:
            match stored.decode():
                case PermissionRequested(request_id=request, options=options):
                    once = next(option.id for option in options if option.kind == "allow_once")
                    with suppress(CommandRefused):  # a rule of the user's has answered
                        await hub.send(live.id, c.AnswerPermission(request, once))
                case TurnEnded():
                    return live.id
                case _:
                    pass
    return live.id

"""Runs `dragoman acp`: a hub of its own behind one editor, and what runs when the editor leaves."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import msgspec

from dragoman.agents.settings.settings_file import load_settings
from dragoman.editor.acp_agent import EditorConnection
from dragoman.editor.desk import OnClose
from dragoman.editor.editor_launcher import EditorLauncher, EditorPlace
from dragoman.editor.open_editors import Editors
from dragoman.editor.own_terms import NO_TERMS, OwnTerms
from dragoman.host.fence.fence_terms import NetworkTerms
from dragoman.host.rules.policy import Policy
from dragoman.host.rules.rule import Rule
from dragoman.hub.assembly import limits_in, new_hub
from dragoman.hub.hub import Hub
from dragoman.process import descriptors
from dragoman.session.facts import EVERYTHING, FenceMode, Offer
from dragoman.session.limits.spending_limits import SpendingLimit
from dragoman.store.open import open_default
from dragoman.transport.transport import Transport

logger = logging.getLogger("dragoman.editor")

_LOOK_SECONDS = 0.2
_UNANSWERED_SECONDS = 3600.0
"""How long a turn that only waits for an answer keeps the process after its editor has left."""


class EditorOptions(msgspec.Struct, kw_only=True, frozen=True):
    """The options of `dragoman acp`."""

    agent: str | None = None
    settings: str | None = None
    rules: Sequence[Rule] = ()
    offer: Offer = EVERYTHING
    limits: tuple[SpendingLimit, ...] = ()
    fence: FenceMode | None = None
    network: NetworkTerms | None = None
    terms: OwnTerms = NO_TERMS
    on_close: OnClose = "continue"


async def serve(options: EditorOptions, transport: Transport) -> None:
    """Serve one editor until it has left and nothing runs here. Signals end it at once, in
    order."""
    descriptors.raise_limit()
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stopped.set)
    places: dict[str, EditorPlace] = {}
    async with _late_hub(options, places) as door:
        async with EditorConnection(
            transport,
            door.hub,
            door.agents,
            places,
            door.editors,
            agent=options.agent,
            on_close=options.on_close,
            terms=options.terms,
        ) as editor:
            await _first(editor.wait_ended(), stopped.wait())
        if options.on_close == "continue" and door.opened is not None:
            await _first(_until_idle(door.opened), stopped.wait())


class _Door:
    """Opens the hub when it is first needed; after a failure, when it is needed next."""

    def __init__(
        self, options: EditorOptions, places: dict[str, EditorPlace], stack: AsyncExitStack
    ) -> None:
        self.opened: Hub | None = None
        self.editors = Editors()
        self.agents = EditorLauncher(
            lambda: load_settings(options.settings),
            Policy(options.rules),
            offer=options.offer,
            fence=options.fence,
            network=options.network,
            limits=options.limits,
            places=places,
            editors=self.editors,
        )
        self._rules = options.rules
        self._stack = stack
        self._opening = asyncio.Lock()

    async def hub(self) -> Hub:
        """Raises StoreError."""
        async with self._opening:
            if self.opened is None:
                self.opened = await self._open()
        return self.opened

    async def _open(self) -> Hub:
        store = await open_default()
        self._stack.push_async_callback(store.aclose)
        self.agents.policy = Policy(self._rules, stored=store.rules)
        kept = limits_in(self.agents.settings)
        return await self._stack.enter_async_context(new_hub(store, self.agents, snapshots=kept))


@asynccontextmanager
async def _late_hub(
    options: EditorOptions, places: dict[str, EditorPlace]
) -> AsyncGenerator[_Door]:
    async with AsyncExitStack() as stack:
        yield _Door(options, places, stack)


async def _first(*waits: Coroutine[Any, Any, object]) -> None:
    tasks = [asyncio.create_task(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


async def _until_idle(hub: Hub) -> None:
    """Until no turn runs here, nor waits; what waits for an answer alone has an hour."""
    working = time.monotonic()
    while any(not live.idle for live in hub.live.values()):
        if any(not live.idle and not live.state.pending for live in hub.live.values()):
            working = time.monotonic()
        if time.monotonic() - working > _UNANSWERED_SECONDS:
            return
        await asyncio.sleep(_LOOK_SECONDS)

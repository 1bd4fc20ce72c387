"""A notifier on a store, and questions that arrive there as from another process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from store.stores import acquire
from store.stores import record as new_record
from support.push_stub import Browser, Pushed, PushStub

from dragoman import Policy
from dragoman.agents.settings.notice_settings import NoticeSettings
from dragoman.agents.settings.settings_file import Settings
from dragoman.hub.hub import Hub
from dragoman.hub.running.settings_launcher import SettingsLauncher
from dragoman.notices.notice_board import Notices
from dragoman.notices.push.subscriptions import Subscription
from dragoman.session.events import PermissionRequested, PermissionSettled, TurnEnded
from dragoman.session.facts import Decision, PermissionOption
from dragoman.store.base import Store
from dragoman.store.records import Batch, Lease, SessionChange, Status, encode_event

OPTIONS = [
    PermissionOption("yes", "Allow", "allow_once"),
    PermissionOption("always", "Always", "allow_always"),
    PermissionOption("no", "Reject", "reject_once"),
]


@dataclass
class Sessions:
    """Sessions of another process: what it records of them."""

    store: Store
    leases: dict[str, Lease] = field(default_factory=dict[str, Lease])
    seqs: dict[str, int] = field(default_factory=dict[str, int])
    open: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """The questions that wait."""

    async def begin(self, session_id: str) -> None:
        folder = f"/project/{session_id}"
        await self.store.create_session(new_record(session_id, cwd=folder, title="A secret title"))
        self.leases[session_id] = await acquire(self.store, session_id)
        self.seqs[session_id] = 0
        self.open[session_id] = set()

    async def ask(self, session_id: str, request: str, **fields: Any) -> str:
        """A question; the key of its notice."""
        self.open[session_id].add(request)
        given: dict[str, Any] = {"title": "run make", "argv": ["make", "all"], "options": OPTIONS}
        event = PermissionRequested(request_id=request, operation="execute", **(given | fields))
        return await self._append(session_id, event, "waiting")

    async def settle(self, session_id: str, request: str) -> str:
        self.open[session_id].discard(request)
        status: Status = "waiting" if self.open[session_id] else "idle"
        decision = Decision(effect="allow", by="person", reason="answered")
        return await self._append(session_id, PermissionSettled(request, "yes", decision), status)

    async def end_turn(self, session_id: str, **fields: Any) -> str:
        return await self._append(session_id, TurnEnded("t", **fields), "idle")

    async def _append(self, session_id: str, event: Any, status: Status) -> str:
        seq = self.seqs[session_id] = self.seqs[session_id] + 1
        event.seq, event.at = seq, self.store.now()
        change = SessionChange(status=status)
        batch = Batch(first_seq=seq, events=[encode_event(event)], change=change, said=[])
        await self.store.append(self.leases[session_id], batch)
        return f"{session_id}:{seq}"


@asynccontextmanager
async def hub_on(store: Store) -> AsyncGenerator[Hub]:
    launcher = SettingsLauncher(Settings, Policy(stored=store.rules))
    async with Hub(store, launcher) as hub:
        yield hub


def settings_for(stub: PushStub, **fields: Any) -> NoticeSettings:
    return NoticeSettings(services=(stub.origin,), **fields)


@asynccontextmanager
async def notifying(
    hub: Hub, folder: Path, settings: NoticeSettings, pauses: tuple[float, ...] = (0.01, 0.01)
) -> AsyncGenerator[Notices]:
    notices = Notices(hub, lambda: settings, folder / "data", pauses=pauses)
    notices.start()
    try:
        yield notices
    finally:
        await notices.aclose()


async def subscribed(
    notices: Notices, stub: PushStub, browser: Browser, name: str = "one", **fields: Any
) -> Subscription:
    wanted = Subscription(
        id="",
        server_key="",
        created_at=0,
        **stub.subscription(browser, name),
        **fields,
    )
    return await notices.devices.subscribe(wanted)


async def until_marked(store: Store, keys: set[str], target: str) -> None:
    """Until it was told, or need not be, for each of these."""
    wanted = {f"{key}:{target}" for key in keys}
    async with asyncio.timeout(60):
        while True:
            marks = await store.shared("notice")
            if all(marks.get(key) == b"{}" for key in wanted):
                return
            await asyncio.sleep(0.002)


def read(pushed: Pushed, browser: Browser) -> dict[str, Any]:
    return json.loads(browser.read(pushed.body))

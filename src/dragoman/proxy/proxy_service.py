"""Runs `dragoman proxy`: a component between the conductor of a chain and its next component."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Coroutine, Sequence
from typing import Any

import msgspec

from dragoman.errors import CommandRefused
from dragoman.host.rules.policy import Policy
from dragoman.host.rules.rule import Rule
from dragoman.hub.cluster import commands as c
from dragoman.hub.cluster.command_inbox import Inbox
from dragoman.proxy.chronicle import Chronicle
from dragoman.proxy.passage import Passage
from dragoman.proxy.proxied_session import ProxiedSession
from dragoman.proxy.session_book import SessionBook
from dragoman.store.base import Store, renewed_leases
from dragoman.store.open import open_default
from dragoman.store.records import Lease, SessionChange
from dragoman.transport.transport import Transport

logger = logging.getLogger("dragoman.proxy")

_ELSEWHERE = "the session belongs to another program, which `dragoman proxy` records: use that one"


class ProxyOptions(msgspec.Struct, kw_only=True, frozen=True):
    """The options of `dragoman proxy`."""

    agent: str | None = None
    rules: Sequence[Rule] = ()


async def serve(options: ProxyOptions, transport: Transport) -> None:
    """Be a proxy until the conductor closes the connection, or a signal ends it. Raises
    StoreError."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stopped.set)
    store = await open_default()
    try:
        await _either(pass_through(options, transport, store), stopped.wait())
    finally:
        await store.aclose()


async def pass_through(options: ProxyOptions, transport: Transport, store: Store) -> None:
    """Be a proxy on this connection, until it ends; sessions that are open then are closed."""
    book = SessionBook(store)
    chronicle = Chronicle(book, Policy(options.rules, stored=store.rules), options.agent)
    passage = Passage(transport, chronicle)
    windows = _Windows(book, chronicle, passage)
    async with renewed_leases(store, book.owner):
        windows.start()
        try:
            await passage.run()
        finally:
            await windows.aclose()
            await chronicle.aclose()


async def _either(*waits: Coroutine[Any, Any, object]) -> None:
    """Until the first of them ends; raises what that raises."""
    tasks = [asyncio.create_task(wait) for wait in waits]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    for task in done:
        task.result()


class _Windows:
    """Carries out what other windows ask of the sessions: they may answer, and stop a turn."""

    def __init__(self, book: SessionBook, chronicle: Chronicle, passage: Passage) -> None:
        self._book = book
        self._chronicle = chronicle
        self._passage = passage
        self._inbox = Inbox(book.store, self._leases, self._serve)

    def start(self) -> None:
        self._unsubscribe = self._book.store.on_command(self._inbox.look)
        self._inbox.start()

    async def aclose(self) -> None:
        self._unsubscribe()
        await self._inbox.aclose()

    def _leases(self) -> list[Lease]:
        return [each.lease for each in self._chronicle.recorders()]

    async def _serve(self, session_id: str, command: c.Command) -> c.Reply:
        session = self._session(session_id)
        match command:
            case c.AnswerPermission():
                session.answer(command)
            case c.Cancel():
                if cancelled := session.is_prompting:
                    self._passage.cancel(session.state.session_id)
                return {"cancelled": cancelled}
            case c.Rename(title):
                change = SessionChange(title=title, renamed=True)
                await self._book.store.change_session(session_id, change)
                record = session.page.recording.record
                record.title, record.renamed = title, True
            case _:
                raise CommandRefused(session_id, "unsupported", _ELSEWHERE)
        await session.page.recording.settled()
        return {}

    def _session(self, session_id: str) -> ProxiedSession:
        for session in self._chronicle.sessions.values():
            if session.id == session_id:
                return session
        raise CommandRefused(session_id, "failed", "the session is no longer running here")

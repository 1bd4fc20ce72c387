"""Commands between processes: what others ask of our sessions, and what we ask of theirs."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from dragoman.errors import CommandRefused, DragomanError, SessionError
from dragoman.hub import commands as c
from dragoman.hub.owner import is_gone
from dragoman.hub.watching import News
from dragoman.store.base import Store
from dragoman.store.records import Command, Lease

logger = logging.getLogger("dragoman.hub")

_BETWEEN_LOOKS = 0.02
_OWNER_SECONDS = 60.0
"""How long an owner may take that is alive but does not answer."""


class Inbox:
    """Looks for commands when something is new in the store, and has `serve` carry them out."""

    def __init__(
        self,
        store: Store,
        leases: Callable[[], Sequence[Lease]],
        serve: Callable[[str, c.Command], Awaitable[c.Reply]],
    ) -> None:
        self._store = store
        self._leases = leases
        self._serve = serve
        self._fresh = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None
        self._serving: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        self._looking = asyncio.create_task(self._keep_looking())

    def look(self) -> None:
        """Something may have come."""
        self._fresh.set()

    async def aclose(self) -> None:
        """Finish what was taken; take nothing more."""
        if self._looking is not None:
            self._looking.cancel()
        if self._serving:
            await asyncio.wait(self._serving, timeout=_BETWEEN_LOOKS)
        for task in self._serving:
            task.cancel()

    async def _keep_looking(self) -> None:
        while True:
            await self._fresh.wait()
            self._fresh.clear()
            try:
                await self._take()
            except DragomanError as error:
                logger.warning("the inbox could not be read: %s", error)
            # What this process stores itself wakes us too: once for many of those is enough.
            await asyncio.sleep(_BETWEEN_LOOKS)

    async def _take(self) -> None:
        leases = self._leases()
        for command in await self._store.take(leases) if leases else ():
            # A task each: one that waits for the agent must not hold up a cancel. They start in
            # order, so prompts keep theirs.
            task = asyncio.create_task(self._carry_out(command))
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)

    async def _carry_out(self, command: Command) -> None:
        result: c.Reply | c.Refusal
        try:
            result = await self._serve(command.session_id, c.decode_command(command.body))
        except CommandRefused as error:
            result = c.Refusal(error.code, str(error))
        except SessionError as error:
            result = c.Refusal("failed", str(error))
        except msgspec.DecodeError:
            result = c.Refusal("unsupported", "the session runs in another version of dragoman")
        except Exception as error:
            logger.exception("a command failed")
            result = c.Refusal("failed", str(error))
        await self._settle(command, result)

    async def _settle(self, command: Command, result: c.Reply | c.Refusal) -> None:
        try:
            await self._store.settle(command.id, c.encode_result(result))
        except DragomanError as error:
            logger.warning("the outcome of a command could not be stored: %s", error)


async def ask_owner(store: Store, news: News, session_id: str, command: c.Command) -> c.Reply:
    """Have the process that owns a session do something.

    Raises CommandRefused when it refuses, ends, or does not answer.
    """
    with news.of(session_id) as fresh:
        command_id = await store.send(session_id, c.encode_command(command))
        deadline = time.monotonic() + _OWNER_SECONDS
        while time.monotonic() < deadline:
            fresh.clear()
            outcome = await store.outcome(command_id)
            if outcome.state == "done":
                return c.decode_result(session_id, outcome.body)
            owner = await store.owner(session_id)
            if owner is None or is_gone(owner):
                sentence = "the process that ran the session has just ended"
                raise CommandRefused(session_id, "owner_gone", sentence)
            await _soon(fresh)
    sentence = "the process that runs the session does not answer"
    raise CommandRefused(session_id, "no_answer", sentence)


async def _soon(fresh: asyncio.Event) -> None:
    """News, or time to see whether the owner is still there."""
    try:
        async with asyncio.timeout(0.5):
            await fresh.wait()
    except TimeoutError:
        return

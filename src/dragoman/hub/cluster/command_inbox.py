"""Commands between processes: received for our sessions, and sent to those of others."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import NoReturn

import msgspec

from dragoman.errors import (
    CommandRefused,
    DragomanError,
    SessionError,
    StoreError,
    UnknownSession,
)
from dragoman.hub.cluster import commands as c
from dragoman.hub.cluster.host_directory import is_there
from dragoman.hub.cluster.owner import is_gone
from dragoman.hub.stored.event_readers import News
from dragoman.store.base import Store
from dragoman.store.outage import failure_logged
from dragoman.store.records import Lease, StoredCommand

logger = logging.getLogger("dragoman.hub")

_BETWEEN_LOOKS = 0.02
_LOOK_SECONDS = 0.5
"""How often to see whether an owner that was asked for something is still there."""
JUST_ENDED = "the process that ran the session has just ended"
_OWNER_SECONDS = 60.0
"""How long an owner that is alive may take to look into its inbox."""
_WORK_SECONDS = 300.0
"""How long it may work on what it found there: an agent may have to be started first."""
_LAST_WORDS_SECONDS = 1.0
"""One that has just given the session up may be about to say what came of it."""
_REFUSAL_SECONDS = 10.0
"""A host that was called and cannot has given it up before it says so."""


class Inbox:
    """Reads commands when the store reports news, and has `serve` carry them out."""

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
        self._hints: set[str] | None = set()
        """The sessions for which something may have come; None for any."""
        self._refusing = False
        self._looking: asyncio.Task[None] | None = None
        self._taking: asyncio.Task[None] | None = None
        self._serving: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        self._looking = asyncio.create_task(self._keep_looking())

    def look(self, session_id: str | None = None) -> None:
        """Something may have come, for a session or for any."""
        if session_id is None:
            self._hints = None
        elif self._hints is not None:
            self._hints.add(session_id)
        self._fresh.set()

    async def refuse(self) -> None:
        """From now on no prompt is taken: its sender has to look for another owner. What was
        begun continues, and can be answered and cancelled."""
        self._refusing = True
        # A look that is under way may have taken something already: that must be notified.
        while self._taking is not None:
            await asyncio.wait([self._taking])

    async def aclose(self) -> None:
        """Finish what was taken; take nothing more."""
        await self.refuse()
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])
        if self._serving:
            await asyncio.wait(self._serving, timeout=_LAST_WORDS_SECONDS)
        for task in self._serving:
            task.cancel()

    async def _keep_looking(self) -> None:
        while True:
            await self._fresh.wait()
            self._fresh.clear()
            self._taking = asyncio.create_task(self._take())
            await asyncio.wait([self._taking])
            self._taking = None
            # What this process stores itself wakes us too: once for many of those is enough.
            await asyncio.sleep(_BETWEEN_LOOKS)

    async def _take(self) -> None:
        taken: Sequence[StoredCommand] = ()
        with failure_logged("the inbox could not be read", logger):
            taken = await self._taken()
        for command in taken:
            # A task each: one that waits for the agent must not hold up a cancel. They start in
            # order, so prompts keep theirs.
            task = asyncio.create_task(self._carry_out(command))
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)

    async def _taken(self) -> list[StoredCommand]:
        hints, self._hints = self._hints, set[str]()
        leases = [each for each in self._leases() if hints is None or each.session_id in hints]
        return await self._store.take(leases, hinted=hints is not None) if leases else []

    async def _carry_out(self, command: StoredCommand) -> None:
        result: c.Reply | c.Refusal
        try:
            asked = c.decode_command(command.body)
            if self._refusing and isinstance(
                asked, c.Prompt | c.RuledPrompt | c.SteerTurn | c.TakeOver
            ):
                result = c.Refusal("owner_gone", JUST_ENDED)
            else:
                result = await self._serve(command.session_id, asked)
        except CommandRefused as error:
            result = c.Refusal(error.code, str(error), error.detail)
        except SessionError as error:
            result = c.Refusal("failed", str(error))
        except msgspec.DecodeError:
            result = c.Refusal("unsupported", "another version of dragoman is running the session")
        except Exception as error:
            logger.exception("a command failed")
            result = c.Refusal("failed", str(error))
        await self._settle(command, result)

    async def _settle(self, command: StoredCommand, result: c.Reply | c.Refusal) -> None:
        try:
            await self._store.settle(command.id, c.encode_result(result))
        except DragomanError as error:
            logger.warning("the outcome of a command could not be stored: %s", error)


async def ask_owner(
    store: Store, news: News, session_id: str, command: c.Command, *, to: str | None = None
) -> c.Reply:
    """Have the process that owns a session do something; while it has none, the host `to`.

    Raises CommandRefused when it refuses, ends, or does not answer; with `owner_gone` and
    `no_answer` nothing of it was done, and nothing will be. Raises UnknownSession, and StoreError
    when it could not even be sent.
    """
    with news.of(session_id) as fresh:
        sending = asyncio.create_task(store.send(session_id, c.encode_command(command), to=to))
        try:
            asked = _Asked(store, session_id, await asyncio.shield(sending), to)
            body = await _answered(asked, fresh)
        except asyncio.CancelledError:
            await asyncio.shield(asyncio.create_task(_take_back(store, sending)))
            raise
    return c.decode_result(session_id, body)


async def _answered(asked: _Asked, fresh: asyncio.Event) -> bytes:
    try:
        while (body := await asked.answer()) is None:
            await _soon(fresh)
    except StoreError as error:
        # It is in the inbox: the owner may find it there before we can.
        asked.fail(str(error))
    return body


class _Asked:
    """A command on its way: who may still carry it out, and until when to wait for that."""

    def __init__(self, store: Store, session_id: str, command_id: int, to: str | None) -> None:
        self._store = store
        self._to = to
        self._session_id = session_id
        self._command_id = command_id
        self._sent = self._seen = time.monotonic()
        self._lost: float | None = None

    async def answer(self) -> bytes | None:
        """The owner's, once it is there."""
        outcome = await self._store.outcome(self._command_id)
        match outcome.state:
            case "done":
                return outcome.body
            case "unknown":
                raise UnknownSession(self._session_id)
            case state if state != "lost" and time.monotonic() < self._seen + _LOOK_SECONDS:
                return None
            case "waiting":
                await self._see_whether_it_waits_in_vain()
            case _:
                await self._see_whether_it_was_lost(outcome.state == "lost")
        return None

    async def _see_whether_it_waits_in_vain(self) -> None:
        if await self._owner_is_gone():
            code, sentence = "owner_gone", JUST_ENDED
        elif time.monotonic() > self._sent + (_WORK_SECONDS if self._to else _OWNER_SECONDS):
            code, sentence = "no_answer", "the process that runs the session does not respond"
        else:
            return
        # What is refused must not be found by a later owner, who would do it anyway.
        if await self._store.withdraw(self._command_id):
            raise CommandRefused(self._session_id, code, sentence)

    async def _see_whether_it_was_lost(self, lost: bool) -> None:
        now = time.monotonic()
        if lost or await self._owner_is_gone():
            self._lost = self._lost or now
            if now > self._lost + (_REFUSAL_SECONDS if self._to else _LAST_WORDS_SECONDS):
                self.fail("the process that ran the session has just ended")
        elif now > self._sent + _WORK_SECONDS:
            self.fail("the process that runs the session does not respond")

    def fail(self, sentence: str) -> NoReturn:
        sentence = f"{sentence}; the command may have been carried out"
        raise CommandRefused(self._session_id, "unsure", sentence)

    async def _owner_is_gone(self) -> bool:
        """And the host that was called too."""
        self._seen = time.monotonic()
        at = await self._store.standing(self._session_id)
        if at.owner is not None and not is_gone(at.owner):
            return False
        return not any(host.id == self._to and is_there(host) for host in at.hosts)


async def _take_back(store: Store, sending: asyncio.Task[int]) -> None:
    with suppress(DragomanError):
        await store.withdraw(await sending)


async def _soon(fresh: asyncio.Event) -> None:
    """News, or time to see whether the owner is still there."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_LOOK_SECONDS):
            await fresh.wait()
    fresh.clear()

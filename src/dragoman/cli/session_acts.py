"""`dragoman sessions fork`, `close`, `delete`, `rename`, `archive` and `answer`."""

from __future__ import annotations

import argparse
import asyncio
import time
from typing import Any

import msgspec

from dragoman.cli.guard import UsageError
from dragoman.cli.hubs import meant, opened_hub, opened_store
from dragoman.cli.session_list import print_json
from dragoman.cli.words import OPERATIONS, command_line
from dragoman.errors import DragomanError, SessionError, SessionOwned, StoreError
from dragoman.hub import commands as c
from dragoman.hub.finding import find_session
from dragoman.hub.hub import Hub
from dragoman.safe_text import reveal
from dragoman.session.state import Pending, PendingPermission
from dragoman.store.records import SessionChange, SessionFilter, SessionRecord


def run(options: argparse.Namespace) -> int:
    asyncio.run(_ACTS[options.action](options))
    return 0


async def _fork(options: argparse.Namespace) -> None:
    async with opened_hub(options.settings) as hub:
        record = await meant(hub.store, options)
        if hub.hosts.has(record):
            print((await hub.fork(record.id, name=options.name)).id)
        else:
            print(await hub.elsewhere.fork(record, options.name))


async def _close(options: argparse.Namespace) -> None:
    async with opened_hub(options.settings) as hub:
        record = await meant(hub.store, options)
        await hub.send(record.id, c.Close())


async def _rename(options: argparse.Namespace) -> None:
    async with opened_hub() as hub:
        record = await meant(hub.store, options)
        await hub.rename(record.id, options.title)


async def _archive(options: argparse.Namespace) -> None:
    async with opened_store() as store:
        record = await meant(store, options)
        await store.change_session(record.id, SessionChange(archived=not options.undo))


# ── deleting ──────────────────────────────────────────────────────────────────────────────────


async def _delete(options: argparse.Namespace) -> None:
    if bool(options.session) == (options.older_than is not None):
        raise UsageError("name the sessions to delete, or say --older-than DAYS")
    async with opened_hub(options.settings) as hub:
        if options.older_than is not None:
            await _delete_old(hub, options.older_than)
            return
        # All of them are looked up first: with a name that is wrong nothing is deleted.
        records = [await find_session(hub.store, word) for word in options.session]
        for record in records:
            await _delete_one(hub, record, local=options.local)


async def _delete_one(hub: Hub, record: SessionRecord, *, local: bool) -> None:
    try:
        await hub.delete(record.id, local=local)
    except (SessionError, StoreError):
        raise
    except DragomanError as error:  # the agent is not there, or does not want to
        sentence = f"{record.agent} does not forget session {record.id}: {error}"
        raise DragomanError(f"{sentence}; --local deletes it here alone") from error


async def _delete_old(hub: Hub, days: float) -> None:
    count = 0
    for record in await _untouched_since(hub, time.time() - days * 86400):
        try:
            await hub.delete(record.id, local=True)
            count += 1
        except SessionOwned:
            continue  # somebody has just begun to use it
    print(f"deleted {count} session{'' if count == 1 else 's'}")


async def _untouched_since(hub: Hub, moment: float) -> list[SessionRecord]:
    everything = await hub.store.sessions(SessionFilter(limit=1_000_000))
    return [record for record in everything if record.updated_at < moment]


# ── answering ─────────────────────────────────────────────────────────────────────────────────


async def _answer(options: argparse.Namespace) -> None:
    async with opened_hub() as hub:
        record = await meant(hub.store, options)
        waiting = (await hub.state(record.id)).pending
        if options.option is None:
            _print_waiting(list(waiting.values()), as_json=options.json)
            return
        if not waiting:
            raise UsageError(f"session {record.id} waits for nothing")
        request = options.request or next(iter(waiting))
        if request not in waiting:
            raise UsageError(f"session {record.id} does not wait for {request}")
        await hub.send(record.id, _answered(waiting[request], options.option))


def _answered(pending: Pending, word: str) -> c.Command:
    if not isinstance(pending, PendingPermission):
        if word not in ("decline", "cancel"):
            raise UsageError("a form can only be declined here: say decline or cancel")
        return c.AnswerElicitation(pending.id, "decline" if word == "decline" else "cancel")
    fitting = [option for option in pending.options if word in (option.id, option.kind)]
    if len(fitting) != 1:
        known = ", ".join(option.id for option in pending.options)
        raise UsageError(f"{word!r} is no single option of it; there are: {known}")
    return c.Answer(pending.id, fitting[0].id)


def _print_waiting(waiting: list[Pending], *, as_json: bool) -> None:
    if as_json:
        print_json([msgspec.to_builtins(pending) for pending in waiting])
    elif not waiting:
        print("it waits for nothing")
    for pending in () if as_json else waiting:
        print(reveal(f"{pending.id}: {_asked(pending)}"))
        for option in pending.options if isinstance(pending, PendingPermission) else ():
            print(reveal(f"    {option.id}  {option.name} ({option.kind})"))


def _asked(pending: Pending) -> str:
    if not isinstance(pending, PendingPermission):
        return pending.message
    subject = command_line(pending.argv) if pending.argv else ", ".join(pending.paths)
    return f"{OPERATIONS.get(pending.operation, pending.operation)} {subject or pending.title}"


_ACTS: dict[str, Any] = {
    "fork": _fork,
    "close": _close,
    "delete": _delete,
    "rename": _rename,
    "archive": _archive,
    "answer": _answer,
}

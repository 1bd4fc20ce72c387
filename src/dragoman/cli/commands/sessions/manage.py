"""`dragoman sessions fork`, `close`, `delete`, `rename` and `archive`."""

from __future__ import annotations

import argparse
import asyncio
import time
from typing import Any

from dragoman.cli.exit_codes import UsageError
from dragoman.cli.run.agent_setup import folder, from_command
from dragoman.cli.run.hub_access import opened_hub, opened_session
from dragoman.errors import (
    CommandRefused,
    DragomanError,
    SessionError,
    SessionOwned,
    StoreError,
    UnknownAgent,
)
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.hub.stored.stored_sessions import find_session
from dragoman.store.records import SessionFilter, SessionRecord


def run(options: argparse.Namespace) -> int:
    asyncio.run(_ACTS[options.action](options))
    return 0


async def _fork(options: argparse.Namespace) -> None:
    cwd = None if options.cwd is None else folder("--cwd", options.cwd)
    async with opened_session(options, options.settings, options.agent_command) as (hub, record):
        _check_agent(record, options)
        if cwd is not None and record.cwd and cwd != record.cwd:
            raise UsageError(f"session {record.id} belongs to {record.cwd}, not to --cwd {cwd}")
        if hub.hosts.has(record):
            print(await _forked(hub, record.id, options.name, cwd))
        else:
            print(await hub.elsewhere.fork(record, options.name))


async def _forked(hub: Hub, session_id: str, name: str | None, cwd: str | None) -> str:
    try:
        return (await hub.fork(session_id, name=name, cwd=cwd)).id
    except UnknownAgent as error:
        raise UsageError(f"the agent of session {session_id} {_hint(error)}") from error
    except CommandRefused as error:
        if error.code != "no_workspace":
            raise
        raise UsageError(f"{error}; set one with --cwd DIR") from error


def _check_agent(record: SessionRecord, options: argparse.Namespace) -> None:
    """Another agent would not know the session. Raises UsageError."""
    if options.agent_command is None:
        return
    name = from_command(options.agent_command, session_of=record.agent).name
    if name != record.agent:
        raise UsageError(f"session {record.id} belongs to {record.agent}, not to {name}")


def _hint(error: UnknownAgent) -> str:
    return f"is {error.name}, which is not in the settings: add it there, or give --agent-command"


async def _close(options: argparse.Namespace) -> None:
    async with opened_session(options, options.settings) as (hub, record):
        await hub.send(record.id, c.Close())


async def _rename(options: argparse.Namespace) -> None:
    if options.title is None and options.name is None:
        raise UsageError("pass the new title as the last argument, or a name with --name")
    if options.title is not None and not options.title.strip():
        raise UsageError("the title is empty; pass it as the last argument, in quotes")
    async with opened_session(options) as (hub, record):
        if options.name is not None:  # first: it may be taken
            await hub.name(record.id, options.name)
        if options.title is not None:
            await hub.rename(record.id, options.title)


async def _archive(options: argparse.Namespace) -> None:
    async with opened_session(options) as (hub, record):
        await hub.archive(record.id, archived=not options.undo)


# ── deleting ──────────────────────────────────────────────────────────────────────────────────


async def _delete(options: argparse.Namespace) -> None:
    if bool(options.session) == (options.older_than is not None):
        raise UsageError("name the sessions to delete, or use --older-than DAYS")
    async with opened_hub(options.settings, options.agent_command) as hub:
        if options.older_than is not None:
            await _delete_old(hub, options.older_than)
            return
        # All of them are looked up first: with a name that is wrong nothing is deleted.
        records = [await find_session(hub.store, word) for word in options.session]
        for record in records:
            _check_agent(record, options)
        for record in records:
            await _delete_one(hub, record, local=options.local)


async def _delete_one(hub: Hub, record: SessionRecord, *, local: bool) -> None:
    try:
        await hub.delete(record.id, local=local)
    except SessionOwned as error:
        hint = f"`dragoman sessions close {record.id}` closes it, and then it can be deleted"
        raise DragomanError(f"{error}; {hint}") from error
    except (SessionError, StoreError):
        raise
    except UnknownAgent as error:
        sentence = f"the agent of session {record.id} {_hint(error)}"
        raise UsageError(f"{sentence}; use --local to delete it only here") from error
    except DragomanError as error:  # the agent is not there, or does not want to
        sentence = f"{record.agent} could not delete session {record.id}: {error}"
        raise DragomanError(f"{sentence}; use --local to delete it only here") from error


async def _delete_old(hub: Hub, days: float) -> None:
    count = 0
    for record in await _untouched_since(hub, time.time() - days * 86400):
        try:
            await hub.delete(record.id, local=True)
            count += 1
        except SessionOwned:
            continue  # someone has just begun to use it
    print(f"deleted {count} session{'' if count == 1 else 's'}")


async def _untouched_since(hub: Hub, moment: float) -> list[SessionRecord]:
    everything = await hub.store.sessions(SessionFilter(limit=1_000_000))
    return [record for record in everything if record.updated_at < moment]


_ACTS: dict[str, Any] = {
    "fork": _fork,
    "close": _close,
    "delete": _delete,
    "rename": _rename,
    "archive": _archive,
}

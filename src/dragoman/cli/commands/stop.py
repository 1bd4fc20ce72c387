"""`dragoman stop`: ends the processes that keep agents warm."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dragoman.cli.options import SESSION_HELP

if TYPE_CHECKING:
    from dragoman.hub.cluster.warm_notes import WarmNote
    from dragoman.store.base import Store
    from dragoman.store.records import SessionRecord

_SECONDS = 20.0
"""How long one may take to end in order, with its agent."""
_BETWEEN_LOOKS = 0.02


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "session", metavar="SESSION", nargs="*", help=f"{SESSION_HELP} (default: all of them)"
    )
    parser.add_argument(
        "--force", action="store_true", help="end those too that are working on a prompt"
    )


def run(options: argparse.Namespace) -> int:
    import asyncio

    return asyncio.run(_stop(options))


async def _stop(options: argparse.Namespace) -> int:
    from dragoman.cli.exit_codes import Exit, tell
    from dragoman.cli.run.hub_access import opened_store

    async with opened_store() as store:
        found = await _meant(store, options.session)
        if not found:
            print("no agent is kept warm")
        code = Exit.DONE
        for note, record in found:
            if record is not None and record.status in ("running", "waiting") and not options.force:
                tell(f"session {record.id} is working on a prompt; --force ends it anyway")
                code = Exit.FAILED
            else:
                await _end(note)
                print(f"stopped {note.session}{'' if record is None else f' ({record.agent})'}")
    return code


async def _meant(store: Store, words: list[str]) -> list[tuple[WarmNote, SessionRecord | None]]:
    """Raises UnknownSession, UsageError for a session whose agent is not kept warm."""
    import os

    from dragoman.cli.exit_codes import UsageError
    from dragoman.hub.cluster.warm_notes import notes
    from dragoman.hub.stored.stored_sessions import find_session

    kept = {note.session: note for note in notes()}
    if not words:
        return [(note, await store.session(note.session)) for note in kept.values()]
    records = [await find_session(store, word, os.getcwd()) for word in words]
    for record in records:
        if record.id not in kept:
            raise UsageError(f"the agent of session {record.id} is not kept warm")
    return [(kept[record.id], record) for record in records]


async def _end(note: WarmNote) -> None:
    """In order; one that does not come to it is killed, and its agent ends with it."""
    import os
    import signal
    from contextlib import suppress

    from dragoman.cli.exit_codes import tell

    with suppress(ProcessLookupError):
        os.kill(note.owner.pid, signal.SIGTERM)
        if not await _has_ended(note):
            tell(f"process {note.owner.pid} does not end, and is killed")
            os.kill(note.owner.pid, signal.SIGKILL)
            await _has_ended(note)


async def _has_ended(note: WarmNote) -> bool:
    import asyncio
    import time

    from dragoman.hub.cluster.owner import is_gone

    deadline = time.monotonic() + _SECONDS
    while not is_gone(note.owner):
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(_BETWEEN_LOOKS)
    return True

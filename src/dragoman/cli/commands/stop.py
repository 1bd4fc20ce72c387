"""`dragoman stop`: ends the processes that keep agents warm."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dragoman.cli.options import SESSION_HELP

if TYPE_CHECKING:
    from dragoman.hub.cluster.held_process import HeldProcess
    from dragoman.hub.cluster.warm_notes import WarmNote
    from dragoman.hub.hub import Hub
    from dragoman.store.base import Store
    from dragoman.store.records import SessionRecord

_SECONDS = 20.0
"""How long one may take to end in order, with its agent."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "session", metavar="SESSION", nargs="*", help=f"{SESSION_HELP} (default: all of them)"
    )
    parser.add_argument(
        "--force", action="store_true", help="also end those that are working on a prompt"
    )


def run(options: argparse.Namespace) -> int:
    import asyncio

    return asyncio.run(_stop(options))


async def _stop(options: argparse.Namespace) -> int:
    from dragoman.cli.exit_codes import Exit, tell
    from dragoman.cli.run.hub_access import opened_hub

    async with opened_hub() as hub:
        found = await _meant(hub.store, options.session)
        if not found:
            print("no agent is kept warm")
        code = Exit.DONE
        for note, record in found:
            if not await _ended(hub, note, force=options.force):
                at_work = "is working on a prompt, or does not answer"
                tell(f"session {note.session} {at_work}; --force ends it anyway")
                code = Exit.FAILED
                continue
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
    records = {each.id: each for each in [await find_session(store, w, os.getcwd()) for w in words]}
    for session_id in records:
        if session_id not in kept:
            raise UsageError(f"the agent of session {session_id} is not kept warm")
    return [(kept[session_id], record) for session_id, record in records.items()]


async def _ended(hub: Hub, note: WarmNote, *, force: bool) -> bool:
    """Whether the process has ended: when it was asked to, or with `force` in any case. No process
    but the one of the note is sent a signal or waited for."""
    import asyncio
    from contextlib import suppress

    from dragoman.hub.cluster.held_process import HeldProcess

    try:
        with HeldProcess.of(note.owner) as process:
            if force:
                await _end(process)
            elif await hub.elsewhere.take_from_warm(note.session):
                with suppress(TimeoutError):
                    await asyncio.wait_for(process.ended(), _SECONDS)
            return process.has_ended
    except ProcessLookupError:
        return True


async def _end(process: HeldProcess) -> None:
    """In order; one that does not come to it is killed, and its agent ends with it."""
    import asyncio
    import signal

    from dragoman.cli.exit_codes import tell

    process.send(signal.SIGTERM)
    process.send(signal.SIGCONT)  # one that is paused would not notice
    try:
        await asyncio.wait_for(process.ended(), _SECONDS)
    except TimeoutError:
        tell(f"process {process.pid} does not end, and is killed")
        process.send(signal.SIGKILL)
        await process.ended()

"""`dragoman sessions show`, `changes` and `revert`: one session, and what it changed."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from contextlib import aclosing

import msgspec

from dragoman.cli.commands.sessions.session_list import print_json
from dragoman.cli.render.status_line import Status
from dragoman.cli.render.style import BOLD, Style, wants_colour
from dragoman.cli.render.terminal_view import painted_diff
from dragoman.cli.run.follower import Follower
from dragoman.cli.run.hub_access import opened_session
from dragoman.cli.run.playback import Playback
from dragoman.errors import CommandRefused, DragomanError, RevertConflict
from dragoman.host.workspace.changes import Change
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.hub.running.written_files import read_written, told_changes
from dragoman.hub.stored.stored_sessions import stored_state, whole_thread
from dragoman.safe_text import reveal
from dragoman.store.base import Store
from dragoman.store.records import SessionRecord, decode_events

_REMARKS = {"agent": " (as reported by the agent)", "imported": " (as the imported file says)"}


def run(options: argparse.Namespace) -> int:
    asyncio.run(_ACTS[options.action](options))
    return 0


async def _show(options: argparse.Namespace) -> None:
    async with opened_session(options) as (hub, record):
        if options.json:
            await _print_state(hub.store, record)
        else:
            await _play(hub.store, record, full=options.full)


async def _print_state(store: Store, record: SessionRecord) -> None:
    """With all of its entries: those that the state has let go are read again, one at a time."""
    state = await stored_state(store, record.id)
    if not state.entries_before:
        print_json(msgspec.to_builtins(state))
        return
    rest = msgspec.structs.replace(state, entries=[], entries_before=0)
    head = msgspec.json.format(msgspec.json.encode(rest), indent=2).decode()
    print(head.removesuffix("\n}") + ',\n  "entries": [')
    line = ""
    async for entry in whole_thread(store, record.id):
        if line:
            print(line + ",")
        line = "    " + msgspec.json.encode(entry).decode()
    print(line + "\n  ]\n}")


async def _play(store: Store, record: SessionRecord, *, full: bool) -> None:
    with Status(sys.stdout, visible=False) as status:
        stage, after = Playback(status, full=full), 0
        stage.introduce(record, (await stored_state(store, record.id)).fence)
        # History that an agent told us is all there is of it here.
        follower = Follower(stage, retells=True)
        while events := await store.events(record.id, after=after):
            for event in decode_events(events):
                follower.take(event)
            after = events[-1].seq
        stage.close()


async def _changes(options: argparse.Namespace) -> None:
    async with opened_session(options, options.settings) as (hub, record):
        changes = await _of(hub, record)
    if options.json:
        print_json([_fields(source, change, record.cwd) for source, change in changes])
    elif not changes:
        print("no changes")
    else:
        _print(changes, record.cwd)


async def _of(hub: Hub, record: SessionRecord) -> list[tuple[str, Change]]:
    """Each with who says so: the host, the agent, or the file it was imported from."""
    written = await read_written(hub.store, record.id)
    ours = written.changes(None)
    known = {(each.is_imported, each.path) for each in ours}
    cwd = (await hub.state(record.id)).cwd
    async with aclosing(hub.thread(record.id)) as thread:
        told = await told_changes(record, thread, cwd, None, written)
    rest = [each for each in told if (each.is_imported, each.path) not in known]
    said = [("host", each) for each in ours] + [("agent", each) for each in rest]
    return [("imported" if each.is_imported else source, each) for source, each in said]


def _fields(source: str, change: Change, root: str) -> dict[str, object]:
    path, diff = str(change.path), change.diff(root)
    return {"path": path, "source": source, "existed": change.existed, "diff": diff}


def _print(changes: list[tuple[str, Change]], root: str) -> None:
    style = Style(colour=wants_colour(sys.stdout))
    for source, change in changes:
        path = os.path.relpath(change.path, root) if root else change.path
        print(style(f"{reveal(path)}{_REMARKS.get(source, '')}", BOLD))
        lines = change.diff(root).removesuffix("\n").split("\n")
        print("\n".join(painted_diff(lines, style, len(lines))))


async def _revert(options: argparse.Namespace) -> None:
    async with opened_session(options, options.settings) as (hub, record):
        try:
            reply = await hub.send(
                record.id, c.Revert(None, options.force, _absolute(options.path))
            )
        except CommandRefused as error:
            if error.code != "conflict":
                raise
            raise DragomanError(f"{error}; use --force to revert it anyway") from error
        except RevertConflict as error:
            raise DragomanError(f"{error}; use --force to revert it anyway") from error
    print("\n".join(map(reveal, reply["paths"])) or "nothing to revert")


def _absolute(paths: list[str]) -> list[str] | None:
    return [os.path.abspath(path) for path in paths] or None


_ACTS = {"show": _show, "changes": _changes, "revert": _revert}

"""`dragoman sessions show`: one session as it appeared when it ran."""

from __future__ import annotations

import argparse
import asyncio
import sys

import msgspec

from dragoman.cli.commands.sessions.session_list import print_json
from dragoman.cli.render.status_line import Status
from dragoman.cli.run.follower import Follower
from dragoman.cli.run.hub_access import opened_session
from dragoman.cli.run.playback import Playback
from dragoman.hub.stored.stored_sessions import stored_state, whole_thread
from dragoman.store.base import Store, event_pages
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
        stage = Playback(status, full=full)
        stage.introduce(record, await stored_state(store, record.id))
        # History that an agent told us is all there is of it here.
        follower = Follower(stage, retells=True)
        async for events in event_pages(store, record.id):
            for event in decode_events(events):
                follower.take(event)
        stage.close()


_ACTS = {"show": _show}

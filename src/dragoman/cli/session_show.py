"""`dragoman sessions show`: a recorded session, shown as it was shown live."""

from __future__ import annotations

import argparse
import asyncio
import sys

import msgspec

from dragoman.cli.hubs import meant, opened_store
from dragoman.cli.retelling import Retelling
from dragoman.cli.session_list import print_json
from dragoman.cli.stage import Stage
from dragoman.cli.status import Status
from dragoman.hub.states import stored_state
from dragoman.store.base import Store
from dragoman.store.records import SessionRecord


def run(options: argparse.Namespace) -> int:
    asyncio.run(_show(options))
    return 0


async def _show(options: argparse.Namespace) -> None:
    async with opened_store() as store:
        record = await meant(store, options)
        if options.json:
            print_json(msgspec.to_builtins(await stored_state(store, record.id)))
        else:
            await _play(store, record, full=options.full)


async def _play(store: Store, record: SessionRecord, *, full: bool) -> None:
    with Status(sys.stdout, visible=False) as status:
        stage, after = Stage(status, full=full), 0
        retelling = Retelling(stage, record)
        while events := await store.events(record.id, after=after):
            for stored in events:
                retelling.tell(stored.decode())
            after = events[-1].seq
        stage.close()

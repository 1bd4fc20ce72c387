"""`dragoman store check`, `copy` and `prune`."""

from __future__ import annotations

import argparse
import asyncio
import time

from dragoman.agents.settings.settings_file import Retention
from dragoman.cli.exit_codes import Exit
from dragoman.cli.run.hub_access import opened_hub
from dragoman.data_directory import data_directory, store_address
from dragoman.hub.cluster.host_directory import home_of
from dragoman.hub.cluster.owner import this_process
from dragoman.hub.stored.retention import in_words, unused, weigh
from dragoman.hub.stored.retention import prune as prune_all
from dragoman.safe_text import reveal
from dragoman.store.open import check_store, open_address, open_default
from dragoman.store.transfer import copy_store


def run(options: argparse.Namespace) -> int:
    if options.action == "check":
        return asyncio.run(check())
    if options.action == "prune":
        return asyncio.run(prune(options))
    return asyncio.run(copy(options.to))


async def check() -> int:
    """Raises StoreError when it cannot be read."""
    found = await check_store(store_address(), data_directory())
    print(found.place)
    print(f"{_count(found.sessions, 'session')}, {_count(found.events, 'event')}")
    for fault in found.faults:
        print(f"  {reveal(fault)}")
    print(f"{_count(len(found.faults), 'fault')} found" if found.faults else "the store is intact")
    return Exit.FAILED if found.faults else Exit.DONE


async def copy(to: str) -> int:
    """Raises StoreError when either cannot be opened, or fails."""
    source = await open_default()
    try:
        target = await open_address(to)
        try:
            home = home_of(target, data_directory())
            copied = await copy_store(source, target, this_process(), home)
        finally:
            await target.aclose()
    finally:
        await source.aclose()
    counts = ((copied.sessions, "session"), (copied.events, "event"), (copied.rules, "rule"))
    print("copied " + ", ".join(_count(*each) for each in counts))
    for remark in copied.remarks:
        print(f"  {reveal(remark)}")
    return Exit.FAILED if copied.remarks else Exit.DONE


async def prune(options: argparse.Namespace) -> int:
    """Raises StoreError."""
    retention = Retention(days=options.older_than)
    async with opened_hub() as hub:
        found = await unused(hub.store, retention, project=options.project, agent=options.agent)
        if options.dry_run:
            for record in found:
                day = time.strftime("%Y-%m-%d", time.localtime(record.updated_at))
                print(f"  {record.id}  {day}  {reveal(record.title or record.cwd)}")
            print(f"would prune {in_words(await weigh(hub.store, found))}")
            return Exit.DONE
        print(f"pruned {in_words(await prune_all(hub, found, retention))}")
        await hub.folders.prune()
    return Exit.DONE


def _count(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"

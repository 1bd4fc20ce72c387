"""Appends to a session of a store that is locked, and says when all of it is kept. Argument: the
data directory. It is killed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from dragoman.store.open import open_store
from dragoman.store.records import Batch, Owner
from dragoman.store.store_limits import StoreLimits

ME = Owner("me", "machine", 1, "today", "here")


def say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


async def main() -> None:
    store = await open_store(Path(sys.argv[1]), StoreLimits(locked_seconds=0.1))
    lease = await store.acquire("s", ME, seconds=60, gone=lambda _: None)
    await store.append(lease, Batch(first_seq=1, events=[b'{"seq":1}']))
    say("ready")
    await asyncio.to_thread(sys.stdin.readline)
    batches = [Batch(first_seq=seq, events=[b'{"seq":%d}' % seq]) for seq in range(2, 21)]
    appends = [asyncio.create_task(store.append(lease, batch)) for batch in batches]
    while not store.has_kept("s", 20):  # noqa: ASYNC110 - what it asks has no event
        await asyncio.sleep(0.01)
    say("kept")
    await asyncio.gather(*appends)


asyncio.run(main())

"""Races others for the session "s": whoever gets it writes until somebody takes it over.

Arguments: the directory, its name, and how many events to try. Everybody counts as gone, so that a
session changes hands all the time. Prints the events that were acknowledged, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from contextlib import suppress
from pathlib import Path

from dragoman.errors import LeaseLost
from dragoman.store.base import Store
from dragoman.store.open import open_store
from dragoman.store.records import Batch, Owner


async def taken_over(store: Store, me: Owner) -> None:
    """Wait for somebody else: on a busy machine they might run one after the other. The last one
    waits in vain."""
    with suppress(TimeoutError):
        async with asyncio.timeout(5):
            while (await store.owner("s")) == me:  # noqa: ASYNC110
                await asyncio.sleep(0.005)


async def main(directory: str, name: str, tries: str) -> None:
    store, chosen = await open_store(Path(directory)), random.Random(name)
    me, acknowledged, fenced = Owner(name, "m", 1, "x"), list[int](), 0
    for number in range(int(tries)):
        lease = await store.acquire("s", me, seconds=60, gone=lambda who: True)
        if number == 0:
            await taken_over(store, me)
        record = await store.session("s")
        last = 0 if record is None else record.last_seq
        try:
            for seq in range(last + 1, last + 1 + chosen.randrange(1, 6)):
                body = json.dumps({"seq": seq, "by": name}).encode()
                await store.append(lease, Batch(first_seq=seq, events=[body]))
                acknowledged.append(seq)
        except LeaseLost:
            fenced += 1
    await store.aclose()
    sys.stdout.write(json.dumps({"acknowledged": acknowledged, "fenced": fenced}))


sys.stdout.write("ready\n")
sys.stdout.flush()
sys.stdin.readline()
asyncio.run(main(*sys.argv[1:]))

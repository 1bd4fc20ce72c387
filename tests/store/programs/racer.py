"""Races others for the session "s": whoever gets it writes until somebody takes it over.

Arguments: the directory, its name, and how many events to try. Everybody counts as gone, so that a
session changes hands all the time. Prints the events that were acknowledged, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from pathlib import Path

from dragoman.errors import LeaseLost
from dragoman.store.open import open_store
from dragoman.store.records import Batch, Owner


async def main(directory: str, name: str, tries: str) -> None:
    store, chosen = await open_store(Path(directory)), random.Random(name)
    me, acknowledged, fenced = Owner(name, "m", 1, "x"), list[int](), 0
    for _ in range(int(tries)):
        lease = await store.acquire("s", me, seconds=60, gone=lambda who: True)
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

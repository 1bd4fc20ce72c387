"""Owns a session and appends to it while its database cannot be reached, until it is killed.

Arguments: the address, the directory, and the session. Says "ready" before, and then waits for a
line of input.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from dragoman.store.postgres.store import open_postgres
from dragoman.store.records import Batch, Owner


async def main(address: str, directory: str, session_id: str) -> None:
    store = await open_postgres(address, Path(directory))
    owner = Owner("leaver", "m", 1, "x")
    lease = await store.acquire(session_id, owner, seconds=60, gone=lambda _: None)
    await store.append(lease, Batch(first_seq=1, events=[b'{"seq":1}']))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    batches = [Batch(first_seq=seq, events=[b'{"seq":%d}' % seq]) for seq in range(2, 21)]
    await asyncio.gather(*(store.append(lease, each) for each in batches))


asyncio.run(main(*sys.argv[1:]))

"""Opens a store when told to, writes twenty events of its own session, and prints how many are
there. Arguments: the directory, and the session's id."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from dragoman.store.open import open_store
from dragoman.store.records import Batch, Owner, SessionRecord


async def main(directory: str, session_id: str) -> None:
    store = await open_store(Path(directory))
    record = SessionRecord(id=session_id, agent="a", cwd=session_id, created_at=1, updated_at=1)
    await store.create_session(record)
    owner = Owner(session_id, "m", 1, "x")
    lease = await store.acquire(session_id, owner, seconds=60, gone=lambda who: False)
    for seq in range(1, 21):
        await store.append(lease, Batch(first_seq=seq, events=[b'{"seq":%d}' % seq]))
    found = len(await store.events(session_id))
    await store.aclose()
    sys.stdout.write(f"{found}\n")


sys.stdout.write("ready\n")
sys.stdout.flush()
sys.stdin.readline()
asyncio.run(main(*sys.argv[1:]))

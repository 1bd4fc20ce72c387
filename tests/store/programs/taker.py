"""Tries once to own the session "s", and says whether it could. Arguments: directory and name."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from dragoman.errors import SessionOwned
from dragoman.store.open import open_store
from dragoman.store.records import Owner


async def main(directory: str, name: str) -> None:
    store = await open_store(Path(directory))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    try:
        await store.acquire("s", Owner(name, "m", 1, "x"), seconds=60, gone=lambda who: None)
        sys.stdout.write("won")
    except SessionOwned:
        sys.stdout.write("lost")
    await store.aclose()


asyncio.run(main(*sys.argv[1:]))

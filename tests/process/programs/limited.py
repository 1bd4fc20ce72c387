"""Raises its limit of descriptors, then prints it and those of what it starts."""

from __future__ import annotations

import asyncio
import os

from dragoman.process import contained, descriptors, spawn
from dragoman.process.child import Process
from dragoman.process.start_order import Order

ORDER = Order(["sh", "-c", "ulimit -Sn; ulimit -Hn"], dict(os.environ), "/", tty=False)


async def main() -> None:
    descriptors.raise_limit(700)
    os.write(1, b"%d\n" % descriptors.limit())
    await _ended(await contained.spawn(ORDER, (0, 1, 2)))
    reader, writer = descriptors.pipe()  # which a fork does not keep, unless it is handed to it
    await _ended(await spawn.spawn_portable(ORDER, (0, writer, writer)))
    descriptors.close(writer)  # so that nothing is read, not waited for, where it was not handed
    os.write(1, os.read(reader, 100))


async def _ended(process: Process) -> None:
    await process.wait()
    await process.stop()


asyncio.run(main())

"""Our column of the one shot: the client in `ours`, in a program that is in a hurry."""

from __future__ import annotations

import dragoman

dragoman.warm_up()  # the helper gets ready while the rest is imported

import asyncio  # noqa: E402
import sys  # noqa: E402

from bench.clients.ours import main  # noqa: E402

asyncio.run(main(*sys.argv[1:]))

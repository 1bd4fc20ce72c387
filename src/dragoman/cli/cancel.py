"""`dragoman cancel`: stops the turn of a session, wherever it runs."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "session",
        metavar="SESSION",
        help="its id or the beginning of it, its name, or the agent's id",
    )


def run(options: argparse.Namespace) -> int:
    import asyncio

    asyncio.run(_cancel(options))
    return 0


async def _cancel(options: argparse.Namespace) -> None:
    from dragoman.cli.hubs import meant, opened_hub
    from dragoman.hub import commands as c

    async with opened_hub() as hub:
        record = await meant(hub.store, options)
        reply = await hub.send(record.id, c.Cancel())
    print("cancelled" if reply.get("cancelled") else f"nothing runs in session {record.id}")

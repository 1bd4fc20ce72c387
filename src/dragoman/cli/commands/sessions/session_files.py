"""`dragoman sessions export`, `import` and `recover`: sessions in files."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from contextlib import ExitStack
from typing import BinaryIO

from dragoman.cli.exit_codes import UsageError
from dragoman.cli.render.markdown.transcript import transcript
from dragoman.cli.render.printed_json import json_line
from dragoman.cli.run.agent_setup import folder
from dragoman.cli.run.hub_access import opened_hub, opened_session, opened_store
from dragoman.data_directory import data_directory
from dragoman.hub.cluster.owner import this_process
from dragoman.safe_text import reveal
from dragoman.store.archive import Archive, exported, import_session, read_archive
from dragoman.store.records import SessionFilter


def run(options: argparse.Namespace) -> int:
    match options.action:
        case "export":
            asyncio.run(_export(options))
        case "import" if options.agent is not None:
            asyncio.run(_adopt(options, os.path.abspath(options.cwd or ".")))
        case "import":
            cwd = "" if options.cwd is None else folder("--cwd", options.cwd)
            asyncio.run(_import(_read(options.what), cwd))
        case _:
            _recover(force=options.force)
    return 0


async def _export(options: argparse.Namespace) -> None:
    async with opened_session(options) as (hub, record):
        with ExitStack() as stack:
            out: BinaryIO = sys.stdout.buffer
            if options.output is not None:
                out = stack.enter_context(_private(options.output))
            if _is_document(options):
                async for piece in transcript(record, hub.thread(record.id)):
                    out.write(piece.encode("utf-8", "replace"))
                return
            async for line in exported(hub.store, record.id):
                out.write(line if options.output is not None else json_line(line))


def _is_document(options: argparse.Namespace) -> bool:
    name = options.output or ""
    return options.format == "md" or (options.format is None and name.lower().endswith(".md"))


def _private(path: str) -> BinaryIO:
    """What agents and people said is for its owner alone."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    try:
        return os.fdopen(os.open(path, flags, 0o600), "wb")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {_reason(error)}") from error


def _read(path: str) -> Archive:
    if path == "-":
        return read_archive(sys.stdin.buffer, "standard input")
    try:
        with open(path, "rb") as file:
            return read_archive(file, path)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {_reason(error)}") from error


def _reason(error: OSError) -> str:
    return (error.strerror or "error").lower()


async def _import(archive: Archive, cwd: str) -> None:
    async with opened_store() as store:
        new_id = f"s-{os.urandom(8).hex()}"
        record = await import_session(store, archive, new_id, this_process(), cwd=cwd)
    print(record.id)


async def _adopt(options: argparse.Namespace, cwd: str) -> None:
    async with opened_hub(options.settings) as hub:
        wanted = SessionFilter(agent=options.agent, agent_session_id=options.what)
        if known := await hub.store.sessions(wanted):
            raise UsageError(f"{options.what} is already recorded as {known[0].id}")
        live = await hub.adopt(options.agent, options.what, cwd)
        await live.take_title()
        print(live.id)


def _recover(*, force: bool) -> None:
    from dragoman.store.sqlite.recovery import check, recover

    faults = check(data_directory())
    if not faults and not force:
        print("the store is intact; use --force to rebuild it anyway")
        return
    for fault in faults:
        print(f"damaged: {fault}")
    report = recover(data_directory())
    counts = ((report.sessions, "session"), (report.events, "event"), (report.rules, "rule"))
    print("rebuilt " + ", ".join(f"{n} {word}{'' if n == 1 else 's'}" for n, word in counts))
    for remark in report.remarks:
        print(f"  {reveal(remark)}")
    if report.set_aside is not None:
        print(f"the previous files are in {report.set_aside}")

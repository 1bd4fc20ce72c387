"""`dragoman sessions export`, `import` and `recover`: sessions in files."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import ExitStack, aclosing
from typing import BinaryIO

import msgspec

from dragoman.agents.settings.secret_values import secret_values
from dragoman.agents.settings.settings_file import load_settings
from dragoman.cli.exit_codes import UsageError, tell
from dragoman.cli.render.markdown.transcript import transcript
from dragoman.cli.render.printed_json import json_line
from dragoman.cli.run.agent_setup import folder
from dragoman.cli.run.hub_access import opened_hub, opened_session, opened_store
from dragoman.data_directory import data_directory
from dragoman.hub.cluster.owner import this_process
from dragoman.hub.hub import Hub
from dragoman.redactor.event_redactor import learn_events, redacted_events
from dragoman.redactor.text_redactor import Redactor, hint, in_json
from dragoman.safe_text import reveal
from dragoman.store.archive import Archive, exported, import_session, read_archive
from dragoman.store.base import event_pages
from dragoman.store.mirror_lines import event_lines, header_line
from dragoman.store.records import SessionFilter, SessionRecord
from dragoman.web.api.session_page import session_page


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
    form = options.format or _form_of(options.output or "")
    redact = options.redact if options.redact is not None else form == "html" or options.review
    redactor = _redactor(options.settings) if redact else None
    async with opened_session(options) as (hub, record):
        if options.review:
            _review(await _bodies(hub, record.id), redactor or _redactor(options.settings))
            return
        pieces = _pieces(hub, record, form, redactor)
        # What is refused makes no file, and empties none.
        first = await anext(pieces, b"")
        with ExitStack() as stack:
            out: BinaryIO = sys.stdout.buffer
            if options.output is not None:
                out = stack.enter_context(_private(options.output))
            escaped = form == "jsonl" and options.output is None
            out.write(json_line(first) if escaped else first)
            async for piece in pieces:
                out.write(json_line(piece) if escaped else piece)
    if redactor is not None:
        tell(_removed_words(redactor, "removed"))


def _form_of(name: str) -> str:
    ending = os.path.splitext(name)[1].lower()
    return {".md": "md", ".html": "html", ".htm": "html"}.get(ending, "jsonl")


def _redactor(settings: str | None) -> Redactor:
    return Redactor(secret_values(load_settings(settings), os.environ))


async def _pieces(
    hub: Hub, record: SessionRecord, form: str, redactor: Redactor | None
) -> AsyncGenerator[bytes]:
    """What is written, piece by piece."""
    match form:
        case "html":
            for piece in session_page(record, await _bodies(hub, record.id), redactor):
                yield piece
        case "md":
            if redactor is not None:
                learn_events(await _bodies(hub, record.id), redactor)
            async for text in transcript(record, hub.thread(record.id)):
                shown = text if redactor is None else redactor.redacted(text)
                yield shown.encode("utf-8", "replace")
        case _ if redactor is not None:
            yield (
                msgspec.json.encode(in_json(msgspec.json.decode(header_line(record)), redactor))
                + b"\n"
            )
            bodies = await _bodies(hub, record.id)
            for body in redacted_events(lambda: bodies, redactor):
                yield event_lines([body])
        case _:
            async for line in exported(hub.store, record.id):
                yield line


async def _bodies(hub: Hub, session_id: str) -> list[bytes]:
    async with aclosing(event_pages(hub.store, session_id)) as pages:
        return [event.body async for page in pages for event in page]


def _review(bodies: list[bytes], redactor: Redactor) -> None:
    for _ in redacted_events(lambda: bodies, redactor):
        pass
    for secret, kind in redactor.removed.items():
        print(f"{kind}: {reveal(hint(secret))}")
    tell(_removed_words(redactor, "would be removed"))


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


def _removed_words(redactor: Redactor, verb: str) -> str:
    counts = redactor.counts
    if not counts:
        return "no secret was found"
    kinds = ", ".join(f"{kind} ({count})" for kind, count in counts.most_common())
    count = counts.total()
    return f"{count} secret{'' if count == 1 else 's'} {verb}: {reveal(kinds)}"


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

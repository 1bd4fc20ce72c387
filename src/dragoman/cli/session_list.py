"""`dragoman sessions list` and `search`: a line each for people, JSON for programs."""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from datetime import UTC, datetime
from typing import Any

import msgspec

from dragoman.cli.guard import UsageError
from dragoman.cli.hubs import opened_hub, opened_store
from dragoman.cli.streams import terminal_width
from dragoman.safe_text import single_line
from dragoman.store.records import Hit, SessionFilter, SessionRecord

_FOUND = {"\x01": "", "\x02": ""}


def run(options: argparse.Namespace) -> int:
    if options.action == "search":
        asyncio.run(_search(options))
        return 0
    folder = None if options.cwd is None else os.path.abspath(options.cwd)
    asyncio.run((_known if options.known else _list)(options, folder))
    return 0


# ── recorded ──────────────────────────────────────────────────────────────────────────────────


async def _list(options: argparse.Namespace, folder: str | None) -> None:
    wanted = SessionFilter(
        cwd=folder,
        agent=options.agent,
        status=options.status,
        archived=options.archived,
        limit=options.limit,
    )
    async with opened_store() as store:
        records = await store.sessions(wanted)
    if options.json:
        print_json([session_fields(record) for record in records])
    elif not records:
        print("no sessions")
    else:
        print("\n".join(_table(records)))


def session_fields(record: SessionRecord) -> dict[str, Any]:
    """A session as programs see it."""
    return {
        "id": record.id,
        "name": record.name,
        "title": record.title,
        "agent": record.agent,
        "agentSessionId": record.agent_session_id,
        "cwd": record.cwd,
        "status": record.status,
        "createdAt": iso(record.created_at),
        "updatedAt": iso(record.updated_at),
        "archived": record.archived,
        "parent": record.parent,
        "lastSeq": record.last_seq,
    }


def _table(records: list[SessionRecord]) -> list[str]:
    now = time.time()
    rows = [
        (r.id, r.status, ago(now - r.updated_at), r.agent, short(r.cwd), _called(r))
        for r in records
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    return [_row(row, widths) for row in rows]


def _row(row: tuple[str, ...], widths: list[int]) -> str:
    cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)]
    return single_line("  ".join([*cells, row[-1]]), max(terminal_width(), 40)).rstrip()


def _called(record: SessionRecord) -> str:
    return f"[{record.name}] {record.title or ''}" if record.name else record.title or ""


# ── what the agent knows ──────────────────────────────────────────────────────────────────────


async def _known(options: argparse.Namespace, folder: str | None) -> None:
    if options.agent is None:
        raise UsageError("--known needs the agent's name: -a NAME")
    here = folder or os.getcwd()
    async with opened_hub(options.settings) as hub, hub.using(options.agent, here) as client:
        known = [info async for info in client.list_sessions(folder)]
    known = known[: options.limit]
    if options.json:
        print_json([msgspec.to_builtins(info) for info in known])
    elif not known:
        print(f"{options.agent} knows no sessions")
    for info in () if options.json else known:
        words = f"{info.id}  {info.updated_at or ''}  {short(info.cwd)}  {info.title or ''}"
        print(single_line(words, max(terminal_width(), 40)).rstrip())


# ── search ────────────────────────────────────────────────────────────────────────────────────


async def _search(options: argparse.Namespace) -> None:
    async with opened_store() as store:
        hits = await store.search(options.words, limit=options.limit)
        records = {hit.session_id: await store.session(hit.session_id) for hit in hits}
    if options.json:
        print_json([_hit_fields(hit, records[hit.session_id]) for hit in hits])
    elif not hits:
        print("nothing found")
    for hit in () if options.json else hits:
        record = records[hit.session_id]
        title = "" if record is None else record.title or ""
        print(single_line(f"{hit.session_id}:{hit.seq}  {title}", max(terminal_width(), 40)))
        print(single_line(f"    {hit.kind}: {_snippet(hit)}", max(terminal_width(), 40)))


def _hit_fields(hit: Hit, record: SessionRecord | None) -> dict[str, Any]:
    return {
        "session": hit.session_id,
        "seq": hit.seq,
        "kind": hit.kind,
        "snippet": _snippet(hit),
        "title": None if record is None else record.title,
    }


def _snippet(hit: Hit) -> str:
    return hit.snippet.translate(str.maketrans(_FOUND))


# ── words ─────────────────────────────────────────────────────────────────────────────────────


def print_json(value: object) -> None:
    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def ago(seconds: float) -> str:
    """How long ago, in one unit."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return "now"


def short(path: str) -> str:
    home = os.path.expanduser("~")
    return f"~{path[len(home) :]}" if path == home or path.startswith(f"{home}/") else path

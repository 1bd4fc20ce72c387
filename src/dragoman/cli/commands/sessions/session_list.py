"""`dragoman sessions list` and `search`: a line each for people, JSON for programs."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

import msgspec

from dragoman.agents.settings.settings_file import load_settings
from dragoman.cli.exit_codes import UsageError
from dragoman.cli.render.event_text import called
from dragoman.cli.render.printed_json import indented_json
from dragoman.cli.render.usage_words import cost_sum, duration, in_short, token_sum
from dragoman.cli.run.hub_access import opened_hub, opened_store
from dragoman.cli.standard_streams import terminal_width
from dragoman.client.capabilities import SessionInfo
from dragoman.hub.running.agent_pool import KnownSession, known_sessions
from dragoman.hub.stored.spent import spent_by
from dragoman.hub.stored.usage_report import used_today
from dragoman.safe_text import columns, single_line
from dragoman.schema.model import wire_name
from dragoman.session.limits.model_prices import all_prices
from dragoman.session.limits.spending import Spending
from dragoman.store.base import Store
from dragoman.store.records import Hit, SessionFilter, SessionRecord, public_fields

Hosts: TypeAlias = dict[str, str]
Used: TypeAlias = Mapping[str, Spending]

_SHORT_ID = 10
_ROOM_FOR_USED = 110
"""Columns of a terminal from which on a list says what sessions have used."""
_NOT_COUNTED = ("toolCalls", "waited", "parked")
"""By `spent_by`."""
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
        hosts = None if store.is_local else await _hosts(store)
        spent: Used = {} if options.names else await _spent(store, records, options)
        today = Spending() if options.names or options.json else await _today(store, options)
    if options.names:
        print("\n".join(word for record in records for word in (record.name, record.id) if word))
    elif options.json:
        print_json(
            [
                session_fields(each)
                | _whereabouts(each, hosts)
                | {"spent": _counted(spent[each.id])}
                for each in records
            ]
        )
    elif not records:
        print("no sessions")
    else:
        print("\n".join(_table(records, hosts, spent)))
        _tell_of_more(records, options.limit)
        if today.turns:
            print(f"all sessions today: {in_short(today)}")


async def _spent(store: Store, records: list[SessionRecord], options: argparse.Namespace) -> Used:
    """For programs that ask for JSON, and people with room for it."""
    if not (options.json or (sys.stdout.isatty() and room() >= _ROOM_FOR_USED)):
        return {}
    prices = all_prices(load_settings(options.settings).prices)
    return {record.id: await spent_by(store, record, prices) for record in records}


async def _today(store: Store, options: argparse.Namespace) -> Spending:
    """For people; nothing for programs."""
    if not sys.stdout.isatty():
        return Spending()
    return await used_today(store, all_prices(load_settings(options.settings).prices))


def _counted(spent: Spending) -> dict[str, Any]:
    """Without what is not counted for a list, which would be 0."""
    fields = msgspec.to_builtins(spent)
    return {name: fields[name] for name in fields if name not in _NOT_COUNTED}


async def _hosts(store: Store) -> Hosts:
    """The names of hosts by their homes; a store of this machine has none."""
    return {host.home: host.name for host in await store.hosts() if host.home is not None}


def _whereabouts(record: SessionRecord, hosts: Hosts | None) -> dict[str, str | None]:
    return {} if hosts is None else {"host": hosts.get(record.home or "")}


def session_fields(record: SessionRecord) -> dict[str, Any]:
    """A session as programs see it."""
    return {wire_name(name): _plain(value) for name, value in public_fields(record).items()}


def _plain(value: Any) -> Any:
    return value.isoformat(timespec="milliseconds") if isinstance(value, datetime) else value


def _table(records: list[SessionRecord], hosts: Hosts | None, spent: Used) -> list[str]:
    now, folder, id_length = time.time(), max(room() // 5, 12), _shortest(records)
    rows = [
        (
            r.id[:id_length],
            r.status,
            ago(now - r.updated_at),
            shortened(r.agent, folder),
            *(() if hosts is None else (shortened(hosts.get(r.home or "", "-"), folder),)),
            shortened(_folder(r), folder),
            *(_used(spent[r.id]) if spent else ()),
            called(r.name, r.title),
        )
        for r in records
    ]
    host = () if hosts is None else ("HOST",)
    used = ("TOKENS", "COST", "TIME") if spent else ()
    headings = ("SESSION", "STATUS", "AGE", "AGENT", *host, "FOLDER", *used, "[NAME] TITLE")
    return table(headings, rows)


def _used(spent: Spending) -> tuple[str, str, str]:
    """Nothing where no turn ever ran."""
    if not spent.turns:
        return "", "", ""
    return token_sum(spent), cost_sum(spent), duration(spent.seconds)


def _folder(record: SessionRecord) -> str:
    """One that was imported has none until it is given one."""
    return short(record.cwd) if record.cwd else "(imported)"


def _shortest(records: list[SessionRecord]) -> int:
    """How much of an id is needed; all of it where programs may read."""
    if not sys.stdout.isatty():
        return room()
    length = _SHORT_ID
    while len({record.id[:length] for record in records}) < len(records):
        length += 2
    return length


def _tell_of_more(records: list[SessionRecord], limit: int) -> None:
    if len(records) == limit and sys.stdout.isatty():
        print(f"there may be more; use --limit N to show more than {limit}")


# ── what the agent knows ──────────────────────────────────────────────────────────────────────


async def _known(options: argparse.Namespace, folder: str | None) -> None:
    if options.agent is None:
        raise UsageError("--known needs an agent: -a NAME")
    here = folder or os.getcwd()
    async with opened_hub(options.settings) as hub, hub.using(options.agent, here) as client:
        archived = "only" if options.archived else None
        known = await known_sessions(client, folder, archived=archived, limit=options.limit)
    if options.json:
        print_json([_known_fields(each, options.agent) for each in known])
    elif not known:
        print(f"{options.agent} knows no sessions")
    else:
        print("\n".join(_known_table(known)))


def _known_table(known: list[KnownSession]) -> list[str]:
    folder = max(room() // 4, 12)
    rows = [
        (x.info.id, _standing(x), _age(x.info), shortened(short(x.info.cwd), folder), x.info.title)
        for x in known
    ]
    headings = ("AGENT'S ID", "STATUS", "AGE", "FOLDER", "TITLE")
    shown = [n for n in range(len(headings)) if n != 1 or any(row[n] for row in rows)]
    return table([headings[n] for n in shown], [[row[n] or "" for n in shown] for row in rows])


def _standing(known: KnownSession) -> str:
    words = [known.status or "", "archived" if known.info.archived else ""]
    return ", ".join(filter(None, words))


def _age(info: SessionInfo) -> str:
    """Nothing where the agent does not say when, or not in a way that can be read."""
    try:
        moment = datetime.fromisoformat(info.updated_at or "")
    except ValueError:
        return ""
    return ago(time.time() - (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def _known_fields(known: KnownSession, agent: str) -> dict[str, Any]:
    info = known.info
    return {
        "agentSessionId": info.id,
        "agent": agent,
        "title": info.title,
        "cwd": info.cwd,
        "updatedAt": info.updated_at,
        "archived": info.archived,
        "status": known.status,
    }


# ── search ────────────────────────────────────────────────────────────────────────────────────


async def _search(options: argparse.Namespace) -> None:
    async with opened_store() as store:
        hits = await store.search(options.words, limit=options.limit)
        records = {hit.session_id: await store.session(hit.session_id) for hit in hits}
    if options.json:
        print_json([_hit_fields(hit, records[hit.session_id]) for hit in hits])
    elif not hits:
        print("nothing found")
    for record in () if options.json else filter(None, records.values()):
        print(single_line(f"{record.id}  {called(record.name, record.title)}", room()).rstrip())
        for line in _found_in(record, hits):
            print(single_line(line, room()))


def _found_in(record: SessionRecord, hits: list[Hit]) -> list[str]:
    lines = [f"  {h.kind}: {_snippet(h)}" for h in hits if h.session_id == record.id]
    return list(dict.fromkeys(lines))  # a title may have been reported more than once


def _hit_fields(hit: Hit, record: SessionRecord | None) -> dict[str, Any]:
    return {
        "session": hit.session_id,
        "seq": hit.seq,
        "kind": hit.kind,
        "snippet": _snippet(hit),
        "title": None if record is None else record.title,
    }


def _snippet(hit: Hit) -> str:
    return " ".join(hit.snippet.translate(str.maketrans(_FOUND)).split())


# ── words ─────────────────────────────────────────────────────────────────────────────────────


def print_json(value: object) -> None:
    print(indented_json(value))


def ago(seconds: float) -> str:
    """How long ago, in one unit."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return "now"


def short(path: str) -> str:
    home = os.path.expanduser("~")
    return f"~{path[len(home) :]}" if path == home or path.startswith(f"{home}/") else path


_GAP = "  "
_ANY = 100_000


def room() -> int:
    """The columns of a line; anything but a terminal has room for all of it."""
    return max(terminal_width(), 40) if sys.stdout.isatty() else _ANY


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of it; the last column gets what room the others leave."""
    safe = [[single_line(cell, _ANY) for cell in row] for row in (header, *rows)]
    widths = [max(columns(row[at]) for row in safe) for at in range(len(header) - 1)]
    return [_line(row, widths) for row in safe]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [cell + " " * (width - columns(cell)) for cell, width in zip(row, widths, strict=False)]
    return single_line(_GAP.join([*cells, row[-1]]), room()).rstrip()


def shortened(path: str, width: int) -> str:
    """The end of a path, which tells more than its beginning."""
    return path if len(path) <= width else f"…{path[-width + 1 :]}"

"""Endpoints for sessions: list, create, read, change, fork, delete; search and costs of all."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from dragoman.agents.settings.limit_settings import BadLimit, read_limits
from dragoman.errors import ConfigError, DragomanError, UnknownSession
from dragoman.hub.cluster import commands as c
from dragoman.hub.running.running_session import RunningSession
from dragoman.hub.stored.spent import used_turns
from dragoman.hub.stored.usage_report import total_of, usage_rows
from dragoman.session.content import Content
from dragoman.session.limits.model_prices import all_prices
from dragoman.session.limits.spending_limits import OF_THE_SESSION, SessionLimits
from dragoman.session.state import (
    AgentEntry,
    AnyEntry,
    SessionState,
    Subagent,
    Terminal,
    ThoughtEntry,
    UserEntry,
)
from dragoman.session.state_limits import ROW
from dragoman.store.records import Owner, SessionFilter, SessionRecord, Standing
from dragoman.web.api.hosts import Whereabouts, move_session
from dragoman.web.context import Server
from dragoman.web.failures import RequestFailed
from dragoman.web.last_turn import Ended
from dragoman.web.placement import WantedPlace, begin, folder, system_prompt_from
from dragoman.web.shapes.server_shapes import MoveBody
from dragoman.web.shapes.session_shapes import (
    CostAmount,
    CostList,
    CostsQuery,
    DeleteQuery,
    Detail,
    DetailQuery,
    EntryPage,
    ForkBody,
    Hits,
    HitShape,
    LimitList,
    LimitShape,
    ListQuery,
    NewSession,
    RunningAgent,
    SearchQuery,
    SessionEdit,
    SessionPage,
    Summary,
    UsageList,
    UsageQuery,
    summary_fields,
)
from dragoman.web.uploads import delete_with_sessions

_TERMINAL_TAIL = 64 * 1024
_TERMINAL_TAILS = 2 * 1024 * 1024
"""Of all terminals, the newest first."""
_SUBAGENTS = 2 * 1024 * 1024
_SUBAGENT_ENTRIES = 200
"""What the entries of all subagents weigh, and how many of each are sent."""
_LARGEST_ANSWER = 8 * 1024 * 1024
_WIDEST = 6
"""Bytes of a character in JSON."""
_encoder = msgspec.json.Encoder()
"""What the entries of one answer weigh."""
_MAX_PAGES = 20
"""Of the store, that are searched for the words of one request."""


# ── lists ─────────────────────────────────────────────────────────────────────────────────────


async def list_sessions(server: Server, query: ListQuery) -> SessionPage:
    try:
        # Its position is from before the list: a reader continuing from there sees an event twice
        # rather than never.
        seen = await server.hub.store.overview(_filter(query, query.before))
        records, cursor = await _page(server, query, seen.sessions)
    except UnknownSession:
        raise RequestFailed(400, "unknown_cursor", "`before` does not name a session") from None
    where = Whereabouts(server, seen.hosts)
    summaries = (_summary(server, each, seen.owners.get(each.id), where) for each in records)
    sessions = list(await asyncio.gather(*summaries))
    return SessionPage(sessions=sessions, next=cursor, position=seen.position)


async def _page(
    server: Server, query: ListQuery, page: list[SessionRecord]
) -> tuple[list[SessionRecord], str | None]:
    """The records, and the cursor for the next page; `page` are the first that were read."""
    found: list[SessionRecord] = []
    before = query.before
    for _ in range(_MAX_PAGES):
        for record in page:
            if _speaks_of(record, query.q):
                if len(found) == query.limit:
                    return found, found[-1].id
                found.append(record)
            before = record.id
        if len(page) < query.limit:
            return found, None
        page = await server.hub.store.sessions(_filter(query, before))
    return found, before


def _filter(query: ListQuery, before: str | None) -> SessionFilter:
    wanted = msgspec.convert(query, SessionFilter, from_attributes=True)
    return msgspec.structs.replace(wanted, before=before)


def _speaks_of(record: SessionRecord, words: str | None) -> bool:
    text = " ".join(filter(None, (record.title, record.name, record.cwd, record.id))).lower()
    return all(word in text for word in (words or "").lower().split())


async def _summary(
    server: Server, record: SessionRecord, owner: Owner | None, where: Whereabouts
) -> Summary:
    ended = await server.endings.last(record)
    host = where.of(record, owner)
    return Summary(**summary_fields(record, server.owner_shape(owner), host, ended))


async def summary(server: Server, session_id: str) -> Summary:
    record, at = await _standing(server, session_id)
    return await _summary(server, record, at.owner, Whereabouts(server, at.hosts))


async def _standing(server: Server, session_id: str) -> tuple[SessionRecord, Standing]:
    """With the record of a session that runs here as it is now. Raises UnknownSession."""
    at = await server.hub.store.standing(session_id)
    live = server.hub.live.get(session_id)
    record = at.record if live is None else live.record
    if record is None:
        raise UnknownSession(session_id)
    return record, at


async def summary_of(server: Server, live: RunningSession) -> Summary:
    """Of a session that was just opened: with what its agent said about it."""
    await live.recording.stored()
    return await summary(server, live.id)


# ── one of them ───────────────────────────────────────────────────────────────────────────────


async def create(server: Server, body: NewSession) -> Summary:
    prompt = system_prompt_from(body.system_prompt)
    told = msgspec.structs.replace(body, system_prompt=prompt)
    wanted = msgspec.convert(told, WantedPlace, from_attributes=True)
    wanted = msgspec.structs.replace(wanted, own_limits=_limits_of(server, body))
    offer = msgspec.structs.replace(wanted.offer, fence=body.fence)
    wanted = msgspec.structs.replace(wanted, offer=offer)
    try:
        session_id = await begin(server, wanted)
    except ConfigError as error:
        if error.file != "fence":
            raise
        raise RequestFailed(400, "invalid", str(error)) from None
    try:
        if body.mode is not None:
            await server.hub.send(session_id, c.SetMode(body.mode))
        for option, value in body.config.items():
            await server.hub.send(session_id, c.SetConfig(option, value))
    except DragomanError:
        await server.hub.send(session_id, c.Close())
        await server.hub.delete(session_id)
        raise
    return await summary(server, session_id)


def _limits_of(server: Server, body: NewSession) -> SessionLimits:
    """Raises RequestFailed."""
    fields = LimitShape.__struct_fields__
    told = ({name: getattr(each, name) for name in fields} for each in body.limits)
    entries = [{name: value for name, value in each.items() if value is not None} for each in told]
    agents = [body.agent or server.default_agent(body.cwd, body.host)]
    try:
        limits = read_limits(entries, agents, "this session")
    except BadLimit as error:
        sentence = f"{error.place}: expected {error.expected}".replace("tool_calls", "toolCalls")
        raise RequestFailed(400, "invalid", sentence) from None
    named = (msgspec.structs.replace(each, source=OF_THE_SESSION) for each in limits)
    return SessionLimits(limits=tuple(named), on_limit=body.on_limit)


async def limits(server: Server, session_id: str) -> LimitList:
    await _standing(server, session_id)
    live = server.hub.live.get(session_id)
    watch = None if live is None else live.session.limit_watch
    return LimitList(limits=[] if watch is None else watch.bound)


def _ended(state: SessionState) -> Ended | None:
    last = state.turns[-1] if state.turns else None
    if last is None or (ending := last.ending) is None:
        return None
    return Ended(ending, last.error is not None)


async def show(server: Server, session_id: str, query: DetailQuery) -> Detail:
    record, at = await _standing(server, session_id)
    where = Whereabouts(server, at.hosts)
    # The last to be waited for: the state of a session that runs continues while anything else is.
    state = await server.hub.state(session_id)
    older: Sequence[AnyEntry] = ()
    if query.before is not None and query.before <= state.entries_before:
        older = await server.hub.past.entries(session_id, query.before, query.entries)
        state = await server.hub.state(session_id)
    first, entries = _shown(state, older, query)
    # The state may be ahead of what is stored: a reader continues after what it was shown.
    host = where.of(record, at.owner)
    fields = summary_fields(record, server.owner_shape(at.owner), host, _ended(state))
    fields["last_seq"] = state.last_seq
    return Detail(
        **fields,
        resume_on=where.offered(record, host),
        running_agent=_running_agent(server.hub.live.get(session_id)),
        additional_directories=record.additional_directories,
        offer=record.offer,
        system_prompt=record.system_prompt,
        pending=list(state.pending.values()),
        last_turn=state.turns[-1] if state.turns else None,
        stopped=_stopped(state),
        terminals=_terminals(state),
        subagents=_subagents(state),
        entries=entries,
        first_entry=first,
        **{name: getattr(state, name) for name in _AS_IN_STATE},
    )


async def subagent_entries(
    server: Server, session_id: str, subagent_id: str, query: DetailQuery
) -> EntryPage:
    """As `show` does it for the session's own thread."""
    state = await _state_with(server, session_id, subagent_id)
    older: Sequence[AnyEntry] = ()
    if query.before is not None and query.before <= state.thread_of(subagent_id).entries_before:
        past = server.hub.past
        older = await past.entries(session_id, query.before, query.entries, subagent_id)
        state = await _state_with(server, session_id, subagent_id)
    thread = state.thread_of(subagent_id)
    first, entries = _shown(thread, older, query)
    return EntryPage(entries=entries, first_entry=first, entry_count=thread.entry_count)


async def _state_with(server: Server, session_id: str, subagent_id: str) -> SessionState:
    state = await server.hub.state(session_id)
    if subagent_id not in state.subagents:
        sentence = f"there is no subagent {subagent_id} in this session"
        raise RequestFailed(404, "unknown_subagent", sentence)
    return state


_AS_IN_STATE = [
    "continuity",
    "fence",
    "network",
    "turn",
    "modes",
    "config_options",
    "commands",
    "usage",
    "queue",
    "parked",
    "activity",
    "background",
    "plan",
    "programs",
    "programs_before",
    "entry_count",
]
"""The fields of a `Detail` that are those of the state."""


def _shown(
    state: SessionState, older: Sequence[AnyEntry], query: DetailQuery
) -> tuple[int, list[AnyEntry]]:
    """The number of the first entry that is sent, and those that are: as many of the last as were
    asked for, and fit."""
    if older:
        last, entries = query.before or 0, older
    else:
        last = state.entry_count if query.before is None else min(query.before, state.entry_count)
        end = last - state.entries_before
        entries = state.entries[max(0, end - query.entries) : max(0, end)]
    # What certainly fits is not encoded to know how large it is.
    is_small = _WIDEST * sum(ROW + entry.size for entry in entries) <= _LARGEST_ANSWER
    fitting: list[AnyEntry] = []
    size = 0
    for entry in map(_compact, reversed(entries)):
        size += 0 if is_small else len(_encoder.encode(entry))
        if fitting and size > _LARGEST_ANSWER:
            break
        fitting.append(entry)
    return last - len(fitting), fitting[::-1]


def _subagents(state: SessionState) -> list[Subagent]:
    """Each with the end of its thread, the newest first to be given room."""
    fitting: list[Subagent] = []
    size = 0
    for child in reversed(state.subagents.values()):
        entries: list[AnyEntry] = []
        for entry in reversed(child.thread.entries[-_SUBAGENT_ENTRIES:]):
            size += ROW + entry.size
            if size > _SUBAGENTS:
                break
            entries.append(_compact(entry))
        gone = child.thread.entry_count - len(entries)
        thread = msgspec.structs.replace(
            child.thread, entries=entries[::-1], entries_before=gone, places={}
        )
        fitting.append(msgspec.structs.replace(child, thread=thread))
    return fitting[::-1]


def _stopped(state: SessionState) -> dict[str, str]:
    ended = ((turn.id, turn.stop_reason) for turn in state.turns)
    return {turn: reason for turn, reason in ended if reason not in (None, "end_turn")}


def _running_agent(live: RunningSession | None) -> RunningAgent | None:
    if live is None:
        return None
    client = live.agent.client
    return RunningAgent(
        name=client.agent_info.title or client.agent_info.name,
        version=client.agent_info.version,
        protocol_version=client.protocol_version,
        capabilities=client.capabilities,
    )


def _compact(entry: AnyEntry) -> AnyEntry:
    """Its words in one piece."""
    if isinstance(entry, (UserEntry, AgentEntry, ThoughtEntry)):
        return msgspec.structs.replace(entry, pieces=_fewer(entry.pieces))
    return entry


def _fewer(pieces: Sequence[str | Content]) -> list[str | Content]:
    fewer: list[str | Content] = []
    words: list[str] = []
    for piece in pieces:
        if isinstance(piece, str):
            words.append(piece)
            continue
        fewer += ["".join(words)] if words else []
        fewer.append(piece)
        words = []
    return [*fewer, "".join(words)] if words else fewer


def _terminals(state: SessionState) -> list[Terminal]:
    told: list[Terminal] = []
    room = _TERMINAL_TAILS
    for terminal in reversed(state.terminals.values()):
        length = min(terminal.size, room, _TERMINAL_TAIL)
        output = terminal.output[-length:] if length else ""
        told.append(msgspec.structs.replace(terminal, pieces=[output] if output else []))
        room -= length
    return told[::-1]


async def edit(server: Server, session_id: str, body: SessionEdit) -> Summary:
    hub = server.hub
    await hub.record(session_id)
    if body.cwd is not None:
        await hub.give_folder(session_id, folder(body.cwd))
    if body.name is not None:
        await hub.name(session_id, body.name)
    if body.title is not None:
        await hub.rename(session_id, body.title)
    if body.archived is not None:
        await hub.archive(session_id, archived=body.archived)
    return await summary(server, session_id)


async def delete(server: Server, session_id: str, query: DeleteQuery) -> None:
    await server.hub.delete(session_id, local=query.local)
    with suppress(DragomanError, OSError):  # the server tries again
        await delete_with_sessions(server.uploads, server.hub.store)


async def fork(server: Server, session_id: str, body: ForkBody) -> Summary:
    hub = server.hub
    record = await hub.record(session_id)
    if not hub.hosts.has(record):
        return await summary(server, await hub.elsewhere.fork(record, body.name))
    cwd = None if body.cwd is None else folder(body.cwd)
    return await summary_of(server, await hub.fork(session_id, name=body.name, cwd=cwd))


async def move(server: Server, session_id: str, body: MoveBody) -> Summary:
    await move_session(server, session_id, body)
    return await summary(server, session_id)


# ── over all of them ──────────────────────────────────────────────────────────────────────────


async def search(server: Server, query: SearchQuery) -> Hits:
    found = await server.hub.store.search(query.q, limit=query.limit)
    titles: dict[str, str | None] = {}
    for session_id in {hit.session_id for hit in found}:
        record = await server.hub.store.session(session_id)
        titles[session_id] = None if record is None else record.title
    return Hits(
        hits=[
            HitShape(
                session_id=hit.session_id,
                title=titles[hit.session_id],
                seq=hit.seq,
                kind=hit.kind,
                snippet=hit.snippet,
            )
            for hit in found
        ]
    )


async def costs(server: Server, query: CostsQuery) -> CostList:
    amounts = await server.costs.since(query.since)
    return CostList(
        costs=[CostAmount(amount=amounts[each], currency=each) for each in sorted(amounts)]
    )


async def usage(server: Server, query: UsageQuery) -> UsageList:
    prices = all_prices(server.launcher.settings().prices)
    rows = await usage_rows(used_turns(server.hub.store, query.since, prices), query.by)
    return UsageList(rows=rows, total=total_of(rows))

"""Endpoints for events: pages of JSON, streams with a cursor, exports."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

from starlette.requests import Request
from starlette.responses import Response

from dragoman.hub.maintenance import outages
from dragoman.store.archive import exported
from dragoman.store.base import events_of_types
from dragoman.store.records import StoredEvent, utc
from dragoman.store.store_limits import READ_BYTES
from dragoman.web.context import Server
from dragoman.web.failures import RequestFailed
from dragoman.web.routing.route import EVENT_STREAM, JSON, JSON_LINES
from dragoman.web.shapes.server_shapes import LARGEST_CURSOR
from dragoman.web.shapes.session_shapes import (
    AllEventsQuery,
    EventsQuery,
    FrameList,
    FrameShape,
    FramesQuery,
)
from dragoman.web.streams.frame_ring import Frames
from dragoman.web.streams.sse import (
    HEADERS,
    HEARTBEAT,
    PIECE_BYTES,
    RETRY,
    Scope,
    at_frame,
    gone_frame,
    reset_frame,
    store_frame,
)
from dragoman.web.streams.stream_response import Pace, StreamedResponse, merged, with_beats

GATHER_SECONDS = 0.03
"""The first event is sent at once; what follows it within this time goes out together."""


# ── one session ───────────────────────────────────────────────────────────────────────────────


async def session_events(
    server: Server, session_id: str, query: EventsQuery, request: Request
) -> Response | StreamedResponse:
    record = await server.hub.record(session_id)
    if EVENT_STREAM not in request.headers.get("accept", ""):
        return await _page(server, session_id, query, record.last_seq)
    after = _cursor(request, query.after) or 0
    told = _told_from(after, record.last_seq, start=0)
    pace = Pace()
    batches = server.hub.watch(session_id, 0 if told else after)
    live = _live(server, batches, "session", pace, query.coalesce)
    return _stream(_told_first(told, live), pace)


async def _page(server: Server, session_id: str, query: EventsQuery, last: int) -> Response:
    if query.types:
        events = await _chosen(server, session_id, query)
    else:
        events = await server.hub.store.events(session_id, after=query.after, limit=query.limit)
    body = b",".join(event.body for event in events)
    last = max(last, events[-1].seq if events else 0)
    return Response(b'{"events":[%b],"last":%d}' % (body, last), media_type=JSON)


async def _chosen(server: Server, session_id: str, query: EventsQuery) -> list[StoredEvent]:
    """Of the types that are wanted, as many as a page has room for."""
    found: list[StoredEvent] = []
    size = 0
    wanted = query.types.split(",")
    async for event in events_of_types(server.hub.store, session_id, wanted, after=query.after):
        size += len(event.body)
        if found and size > READ_BYTES:
            break
        found.append(event)
        if len(found) == query.limit:
            break
    return found


def _told_from(after: int, last: int, *, start: int) -> bytes:
    """What to tell a reader whose cursor is ahead of all there is."""
    if after <= last:
        return b""
    return reset_frame("this cursor is unknown", start)


# ── all of them ───────────────────────────────────────────────────────────────────────────────


async def all_events(server: Server, query: AllEventsQuery, request: Request) -> StreamedResponse:
    last = await server.hub.store.last_position()
    after = _cursor(request, query.after)
    if after is None:
        after, told = last, at_frame(last)
    else:
        told = _told_from(after, last, start=last)
    pace = Pace()
    listed = server.roster.frames(await server.roster.begin())
    happens = merged(server.hub.watch_all(min(after, last)), listed, _outages(server))
    live = _live(server, happens, "all", pace, query.coalesce)
    return _stream(_told_first(told, live), pace)


async def _outages(server: Server) -> AsyncGenerator[bytes]:
    """For a person who looks at a page on which nothing happens."""
    async for away in outages(server.hub.store):
        yield store_frame(away)


# ── streams ───────────────────────────────────────────────────────────────────────────────────


def _cursor(request: Request, after: int | None) -> int | None:
    """What a reader that was cut off saw last counts before where it first began."""
    told = request.headers.get("last-event-id")
    if told is None:
        return after
    if not (told.isascii() and told.isdigit()) or int(told) > LARGEST_CURSOR:
        raise RequestFailed(400, "invalid", "Last-Event-ID must be the id of an event")
    return int(told)


def _stream(live: AsyncGenerator[bytes], pace: Pace) -> StreamedResponse:
    return StreamedResponse(live, {"content-type": EVENT_STREAM, **HEADERS}, pace)


async def _told_first(told: bytes, live: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    try:
        yield RETRY + told
        async for piece in live:
            yield piece
    finally:
        await live.aclose()


async def _live(
    server: Server,
    batches: AsyncIterator[list[StoredEvent] | bytes],
    scope: Scope,
    pace: Pace,
    coalesce: bool | None,
) -> AsyncGenerator[bytes]:
    """A piece at a time; while a reader is slow to take one, the next grows, and is joined."""
    beating = with_beats(batches, server.closing)
    try:
        async for events in beating:
            if events is None:
                yield HEARTBEAT
                continue
            if isinstance(events, bytes):
                yield events
                continue
            joined = pace.slow if coalesce is None else coalesce
            for piece in server.batches.pieces(events, scope, joined=joined):
                yield piece
            await asyncio.sleep(GATHER_SECONDS)
    finally:
        await beating.aclose()
    if not server.closing.is_set():
        yield gone_frame()  # nothing else ends the events of a session


# ── archives ──────────────────────────────────────────────────────────────────────────────────


async def export(server: Server, session_id: str) -> StreamedResponse:
    record = await server.hub.record(session_id)
    name = f'attachment; filename="{record.id}.jsonl"'
    headers = {"content-type": JSON_LINES, "content-disposition": name}
    return StreamedResponse(_lines(server, session_id), headers)


async def _lines(server: Server, session_id: str) -> AsyncGenerator[bytes]:
    lines: list[bytes] = []
    size = 0
    async for line in exported(server.hub.store, session_id):
        lines.append(line)
        size += len(line)
        if size >= PIECE_BYTES:
            yield b"".join(lines)
            lines, size = [], 0
    yield b"".join(lines)


# The endpoint for the raw frames of a session that runs here.


async def frames(server: Server, session_id: str, query: FramesQuery) -> FrameList:
    await server.hub.record(session_id)
    live = server.hub.live.get(session_id)
    tap = None if live is None else server.launcher.taps.get(live.agent.client)
    if live is None or not isinstance(tap, Frames):
        return FrameList(frames=[], last=query.after, lost=False)
    kept = list(tap.of(live.session.id, query.after))[: query.limit]
    return FrameList(
        frames=[
            FrameShape(
                seq=frame.seq,
                at=utc(frame.at),
                direction=frame.direction,
                size=frame.size,
                text=frame.text,
                cut=frame.cut,
            )
            for frame in kept
        ],
        last=kept[-1].seq if len(kept) == query.limit else tap.last,
        lost=tap.lost(query.after),
    )

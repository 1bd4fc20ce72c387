"""The endpoint for the raw frames of a session that runs here."""

from __future__ import annotations

from dragoman.store.records import utc
from dragoman.web.context import Server
from dragoman.web.shapes.session_shapes import FrameList, FrameShape, FramesQuery
from dragoman.web.streams.frame_ring import Frames


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

"""What waits on a stream: how much it counts, and in which pieces it goes."""

from __future__ import annotations

import asyncio

import pytest
from support.peers import soon

from dragoman.bridge.http_connections import ConnectionTally, Mailbox


async def test_many_small_frames_count_for_more_than_their_bytes() -> None:
    tally = ConnectionTally(1000)
    mailbox = Mailbox(tally)
    for _ in range(20):
        mailbox.put(b"{}")
    with pytest.raises(TimeoutError):
        await tally.room(0.01)
    events = mailbox.events()
    await anext(events)
    await events.aclose()
    await soon(tally.room(0.01))


@pytest.mark.own_time
async def test_a_large_frame_goes_in_pieces_that_each_make_room() -> None:
    tally = ConnectionTally(0)
    mailbox = Mailbox(tally)
    frame = b'"' + b"x" * (1 << 20) + b'"'
    mailbox.put(frame)
    mailbox.end()
    room = asyncio.create_task(tally.room(0.5))
    pieces: list[bytes] = []
    async for piece in mailbox.events():
        pieces.append(piece)
        await asyncio.sleep(0.05)  # all of them take longer than any one may
    await soon(room)
    assert b"".join(pieces) == b"data: " + frame + b"\n\n"
    assert max(map(len, pieces)) <= 64 * 1024


async def test_a_reader_that_leaves_in_the_middle_of_a_frame_leaves_nothing_counted() -> None:
    tally = ConnectionTally(0)
    mailbox = Mailbox(tally)
    mailbox.put(b"x" * (1 << 20))
    events = mailbox.events()
    await anext(events)
    await events.aclose()
    await soon(tally.room(0.01))

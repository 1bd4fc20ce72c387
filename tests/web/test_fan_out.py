"""Many readers of one busy session: all are told everything, and the server does not grow."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import pytest
from support.raw_http import request
from support.server_process import ServerProcess, StartedProcess

STREAM = {"accept": "text/event-stream"}
MIB = 1024 * 1024
RATE = 1_000


def _resident(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().split("\n")
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) * 1024


async def _ids(server: ServerProcess, session_id: str, last: bytes) -> int:
    """How many events one reader is told until the turn has ended."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=MIB)
    headers = {"host": f"127.0.0.1:{server.port}", "authorization": f"Bearer {server.token}"}
    writer.write(request("GET", f"/api/sessions/{session_id}/events", headers | STREAM))
    count, rest = 0, b""
    try:
        while last not in rest:
            data = await reader.read(MIB)
            if not data:
                raise EOFError
            rest = rest[-64:] + data
            # A frame that was cut in two is counted with its second half.
            count += rest.count(b"\nid: ") - rest[: len(rest) - len(data)].count(b"\nid: ")
        # The next may have come along with it.
        return count - rest[rest.index(last) :].count(b"\nid: ")
    finally:
        writer.close()


async def _turn(server: ServerProcess, readers: int, events: int) -> tuple[list[int], int]:
    """How many events each reader of a turn was told, and by how much the server grew."""
    with server.http as http:
        body = {"agent": "steady", "cwd": str(server.workspace)}
        session_id = http.post("/api/sessions", json=body).json()["id"]
        before = _resident(server.process.pid)
        tasks = [
            asyncio.create_task(_ids(server, session_id, b'"turn_ended"')) for _ in range(readers)
        ]
        prompt = {"text": f"{events} {RATE}"}
        await asyncio.to_thread(http.post, f"/api/sessions/{session_id}/prompt", json=prompt)
        counts = await asyncio.gather(*tasks)
        return counts, _resident(server.process.pid) - before


@pytest.mark.parametrize(
    ("readers", "events"),
    [
        (10, 2_000),
        pytest.param(100, 20_000, marks=[pytest.mark.soak, pytest.mark.within(180)]),
    ],
)
async def test_readers_are_told_everything_and_the_server_does_not_grow_with_them(
    readers: int, events: int, tmp_path: Path
) -> None:
    with closing(StartedProcess(tmp_path)) as server:
        _, alone = await _turn(server, 1, events)
        counts, grown = await _turn(server, readers, events)
        assert len(counts) == readers
        assert set(counts) == {counts[0]}
        assert counts[0] > events
        assert grown - alone < 16 * MIB, (alone, grown)

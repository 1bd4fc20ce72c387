"""The server is killed in the middle of a turn: its readers come back and miss nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from support.server_process import SECONDS, ServerProcess, free_port, server_process

STREAM = {"accept": "text/event-stream"}


def _events(response: httpx.Response) -> Iterator[dict[str, Any]]:
    for line in response.iter_lines():
        if line.startswith("data: "):
            yield json.loads(line[6:])


def _read(server: ServerProcess, session_id: str, log: list[dict[str, Any]], most: int) -> None:
    """Read on from where the log ends: so many events, or to the end of the turn."""
    headers = {**STREAM, "last-event-id": str(log[-1]["seq"] if log else 0)}
    path = f"/api/sessions/{session_id}/events"
    with server.http as http, http.stream("GET", path, headers=headers) as response:
        for number, event in enumerate(_events(response), 1):
            log.append(event)
            if number == most or event["type"] == "turn_ended":
                return


def _stored(server: ServerProcess, session_id: str) -> list[dict[str, Any]]:
    with server.http as http:
        page = http.get(f"/api/sessions/{session_id}/events?limit=5000").json()
    assert page["last"] == page["events"][-1]["seq"]
    return page["events"]


def _read_over_the_end(
    response: httpx.Response, server: ServerProcess, log: list[dict[str, Any]]
) -> None:
    """Kill the server while this reader is attached, and read what was on the way."""
    try:
        for event in _events(response):
            log.append(event)
            if len(log) == 200:
                server.kill()
    except httpx.TransportError:
        return
    raise AssertionError("the stream ended as if nothing had happened")


def test_after_kill_9_a_reader_resumes_by_id_and_sees_each_event_once(tmp_path: Path) -> None:
    words = ["--port", str(free_port()), "--token-file", str(tmp_path / "token")]
    log: list[dict[str, Any]] = []
    with server_process(tmp_path, *words) as server, server.http as http:
        body = {"agent": "endless", "cwd": str(server.workspace)}
        session_id = http.post("/api/sessions", json=body).json()["id"]
        http.post(f"/api/sessions/{session_id}/prompt", json={"text": "go"})
        path = f"/api/sessions/{session_id}/events"
        with http.stream("GET", path, headers=STREAM) as response:
            _read_over_the_end(response, server, log)
        address = server.address
    with server_process(tmp_path, *words) as server:
        assert server.address == address
        _read(server, session_id, log, 10_000)
        stored = _stored(server, session_id)
        assert [event["seq"] for event in log] == list(range(1, len(log) + 1))
        assert log == stored[: len(log)]
        assert log[-1]["type"] == "turn_ended"
        assert log[-1]["interrupted"] is True


def test_a_cut_turn_is_recorded_as_interrupted_soon_after_the_start(tmp_path: Path) -> None:
    with server_process(tmp_path) as server, server.http as http:
        body = {"agent": "endless", "cwd": str(server.workspace)}
        session_id = http.post("/api/sessions", json=body).json()["id"]
        http.post(f"/api/sessions/{session_id}/prompt", json={"text": "go"})
        server.kill()
    with server_process(tmp_path) as server, server.http as http:
        path = f"/api/sessions/{session_id}"
        deadline = time.monotonic() + SECONDS
        found = http.get(path).json()
        while (found["status"], found["owner"]) != ("interrupted", None):
            assert time.monotonic() < deadline, found
            time.sleep(0.05)
            found = http.get(path).json()
        assert (found["turn"], found["lastTurn"]["status"]) == (None, "interrupted")

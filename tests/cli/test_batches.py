"""The updates of one read go on record together, in the command line and in the server."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import httpx
from support.command import PROGRAMS, SECONDS, Dragoman
from support.server_process import server_process

from dragoman.session.events import AgentMessage
from dragoman.store.mirror_lines import is_header
from dragoman.store.records import decode_event

AGENT = PROGRAMS / "one_write.py"
COUNT = 20


def settings(user: Dragoman) -> str:
    server = {"command": sys.executable, "args": ["-I", "-S", str(AGENT)]}
    return str(user.write_settings({"agent_servers": {"it": server}}))


def are_together(state: Path) -> None:
    """A batch has one time; only the first update is recorded before it is known that more of them
    follow."""
    (mirror,) = (state / "sessions").glob("*.jsonl")
    lines = [line for line in mirror.read_bytes().splitlines() if not is_header(line)]
    said = [event for event in map(decode_event, lines) if isinstance(event, AgentMessage)]
    assert [event.text for event in said] == [f"{number} " for number in range(COUNT)]
    assert len({event.at for event in said}) <= 2


def test_the_command_line_records_the_updates_of_one_read_together(dragoman: Dragoman) -> None:
    assert dragoman("--settings", settings(dragoman), "--agent", "it", "go").code == 0
    are_together(dragoman.state)


def test_a_server_records_the_updates_of_one_read_together(
    dragoman: Dragoman, tmp_path: Path
) -> None:
    with (
        server_process(tmp_path, "--settings", settings(dragoman)) as server,
        server.http as http,
    ):
        body = {"agent": "it", "cwd": str(server.workspace)}
        path = f"/api/sessions/{call(http, 'POST', '/api/sessions', body)['id']}"
        call(http, "POST", f"{path}/prompt", {"text": "go"})
        deadline = time.monotonic() + SECONDS
        while call(http, "GET", path)["lastTurn"] is None:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert server.end() == 0
    are_together(tmp_path / "state")


def call(http: httpx.Client, method: str, path: str, body: Any = None) -> Any:
    response = http.request(method, path, json=body)
    assert response.is_success, response.text
    return response.json() if response.content else None

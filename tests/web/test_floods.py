"""An agent that says far too much: the server's memory is bounded, given back, and nobody else
notices."""

from __future__ import annotations

import re
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.server_process import ServerProcess, StartedProcess

MIB = 1024 * 1024
PEAK = 96 * MIB
"""What one session may add: its state, what is on its way to the disk, an answer that has it all,
and what the allocator does not give back at once."""
LEFT = 32 * MIB
SECONDS = 900.0
_FIRST = {"text": 2, "tools": 2_000, "terminal": 2}


class Trial:
    def __init__(self, server: ServerProcess, http: httpx.Client) -> None:
        self.server = server
        self.http = http

    def call(self, method: str, path: str, body: Any = None) -> Any:
        response = self.http.request(method, path, json=body)
        assert response.is_success, response.text
        return response.json() if response.content else None

    def begin(self, agent: str, text: str) -> str:
        body = {"agent": agent, "cwd": str(self.server.workspace)}
        session = self.call("POST", "/api/sessions", body)["id"]
        self.call("POST", f"/api/sessions/{session}/prompt", {"text": text})
        return session

    def detail(self, session: str, query: str = "entries=0") -> dict[str, Any]:
        return self.call("GET", f"/api/sessions/{session}?{query}")

    def wait(self, session: str) -> dict[str, Any]:
        deadline = time.monotonic() + SECONDS
        while (found := self.detail(session))["turn"] is not None:
            assert time.monotonic() < deadline, found["turn"]
            time.sleep(0.2)
        return found

    def memory(self, name: str = "VmRSS") -> int:
        status = Path(f"/proc/{self.server.process.pid}/status").read_text()
        found = re.search(rf"^{name}:\s+(\d+) kB", status, re.MULTILINE)
        assert found is not None
        return int(found[1]) * 1024


def flooded(home: Path, what: str, count: int, words: int) -> dict[str, int]:
    """What it took, beside a turn that says so many words and must not notice."""
    with closing(StartedProcess(home, "--yolo")) as server, server.http as http:
        http.timeout = httpx.Timeout(60.0)
        trial = Trial(server, http)
        # What a process takes once and keeps does not count.
        first = trial.begin("floods", f"{what} {_FIRST[what]}")
        trial.wait(first)
        trial.detail(first, "entries=10000")
        trial.call("POST", f"/api/sessions/{first}/close")
        before = trial.memory()
        beside = trial.begin("steady", f"{words} 50")
        session = trial.begin("floods", f"{what} {count}")
        ended = trial.wait(session)
        assert ended["lastTurn"].get("stopReason") == "end_turn", ended["lastTurn"]
        answer = http.get(f"/api/sessions/{session}?entries=10000")
        assert len(answer.content) < 16 * MIB
        older = _older(trial, session) if what == "tools" else 0
        peak = trial.memory("VmHWM")
        trial.wait(beside)
        assert _words(trial, beside) == [f"w{number}" for number in range(words)]
        trial.call("POST", f"/api/sessions/{session}/close")
        left = _settled(trial, before + LEFT)
    return {"peak": peak - before, "left": left - before, "older": older}


def _older(trial: Trial, session: str) -> int:
    """Entries that are no longer at hand are still told, by their numbers."""
    told = trial.detail(session, "entries=50&before=100")
    titles = [entry["title"] for entry in told["entries"]]
    # The first entry is the prompt.
    assert titles == [f"Change file {number} of many" for number in range(49, 99)]
    assert told["firstEntry"] == 50
    return len(titles)


def _words(trial: Trial, session: str) -> list[str]:
    [answer] = [e for e in trial.detail(session, "entries=10")["entries"] if e["type"] == "agent"]
    return "".join(answer["pieces"]).split()


def _settled(trial: Trial, enough: int) -> int:
    """What is given back is given back soon, not at once."""
    deadline = time.monotonic() + 60
    while (now := trial.memory()) > enough and time.monotonic() < deadline:
        time.sleep(0.2)
    return now


@pytest.mark.parametrize(("what", "count"), [("text", 20), ("tools", 12_000), ("terminal", 20)])
def test_a_flood_is_bounded_and_nobody_else_notices(tmp_path: Path, what: str, count: int) -> None:
    measured = flooded(tmp_path, what, count, words=50)
    assert measured["peak"] < PEAK
    assert measured["left"] < LEFT


@pytest.mark.soak
@pytest.mark.parametrize(("what", "count"), [("text", 300), ("tools", 300_000), ("terminal", 300)])
def test_a_long_flood_is_bounded_no_less(tmp_path: Path, what: str, count: int) -> None:
    measured = flooded(tmp_path, what, count, words=2_000)
    assert measured["peak"] < PEAK
    assert measured["left"] < LEFT

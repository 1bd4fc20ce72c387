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
MANY_PEAK = 128 * MIB
"""Likewise, of as many entries as there can be that have as much in them as they can."""
WIDE_PEAK = 288 * MIB
"""Likewise, of characters that take four bytes each: they do so wherever they are kept, and again
in the JSON of a state."""
LEFT = 32 * MIB
SECONDS = 900.0
_COUNTED = ("tools", "plans", "messages")


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
        first = trial.begin("floods", f"{what} {2_000 if what in _COUNTED else 2}")
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


def check(measured: dict[str, int], peak: int) -> None:
    assert measured["peak"] < peak, measured
    assert measured["left"] < LEFT, measured


@pytest.mark.parametrize(
    ("what", "count", "peak"),
    [
        ("text", 20, PEAK),
        ("tools", 12_000, PEAK),
        ("terminal", 20, PEAK),
        ("calls", 20, MANY_PEAK),
        ("escaped", 20, MANY_PEAK),
        ("wide", 80, WIDE_PEAK),
    ],
)
def test_a_flood_is_bounded_and_nobody_else_notices(
    tmp_path: Path, what: str, count: int, peak: int
) -> None:
    check(flooded(tmp_path, what, count, words=50), peak)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("what", "count", "peak"),
    [
        ("text", 300, PEAK),
        ("tools", 300_000, PEAK),
        ("terminal", 300, PEAK),
        ("calls", 300, MANY_PEAK),
        ("escaped", 100, MANY_PEAK),
        ("wide", 300, WIDE_PEAK),
        ("unknown", 300, MANY_PEAK),
        ("plans", 300_000, MANY_PEAK),
        ("messages", 300_000, MANY_PEAK),
    ],
)
def test_a_long_flood_is_bounded_no_less(tmp_path: Path, what: str, count: int, peak: int) -> None:
    check(flooded(tmp_path, what, count, words=2_000), peak)

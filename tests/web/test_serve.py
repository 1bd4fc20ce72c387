"""`dragoman serve` as a user runs it: its address, its refusals, its log and its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from support.server_process import COMMAND, ServerProcess, server_process
from support.warm_command import warm_command

from dragoman.process.process_tree import children

SECONDS = 60.0


def _refused(home: Path, *words: str) -> tuple[int, str]:
    """The exit code and the line of a server that does not start."""
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "DRAGOMAN_HOME": str(home / "state")}
    command = [str(COMMAND), "serve", *words]
    code, out, err = warm_command().run(command, env, home, b"", SECONDS)
    assert out == b""
    return code, err.decode()


def _descendants(pid: int) -> set[int]:
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        below = children(waiting.pop())
        waiting += below
        found.update(below)
    return found


def _alive(pids: set[int]) -> set[int]:
    return {pid for pid in pids if Path(f"/proc/{pid}").exists() and not _is_zombie(pid)}


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


# ── the start ─────────────────────────────────────────────────────────────────────────────────


def test_the_address_is_printed_and_the_page_is_there(tmp_path: Path) -> None:
    with server_process(tmp_path) as server, server.http as http:
        assert server.origin.startswith("http://127.0.0.1:")
        assert len(server.token) == 43
        assert http.get("/healthz").json()["status"] == "ok"
        assert http.get("/api/agents").json()["agents"][0]["name"] == "steady"
        assert httpx.get(f"{server.origin}/api/agents", trust_env=False).status_code == 401


def test_an_address_that_others_can_reach_needs_a_flag(tmp_path: Path) -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1"):
        code, line = _refused(tmp_path, "--host", host)
        assert code == 2
        assert "--allow-remote" in line
        assert "run commands as you" in line


def test_with_the_flag_it_serves_there(tmp_path: Path) -> None:
    with server_process(tmp_path, "--host", "0.0.0.0", "--allow-remote") as server:
        assert server.origin.startswith("http://127.0.0.1:")
        with server.http as http:
            assert http.get("/api/agents").status_code == 200
            evil = {"host": f"evil.example:{server.port}"}
            assert http.get("/api/agents", headers=evil).status_code == 421


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--port", "99999"], "65535"),
        (["--port", "x"], "65535"),
        (["--allow-origin", "*"], "origin"),
        (["--allow-origin", "https://a.example/path"], "origin"),
        (["--allow-origin", "null"], "origin"),
        (["--cwd", "nowhere"], "no such directory"),
        (["--policy", "nowhere.json"], "nowhere.json"),
        (["--settings", "nowhere.json"], "nowhere.json"),
        (["--token-file", "no/where"], "token"),
        (["prompt"], "unexpected"),
    ],
)
def test_what_it_does_not_understand_is_said_in_one_line(
    words: list[str], part: str, tmp_path: Path
) -> None:
    code, line = _refused(tmp_path, *words)
    assert code == 2
    assert part in line
    assert line.count("\n") == 1


def test_a_port_that_is_taken_is_said_in_one_line(tmp_path: Path) -> None:
    with server_process(tmp_path) as server:
        code, line = _refused(tmp_path, "--port", str(server.port))
        assert code == 1
        assert f":{server.port}: address already in use" in line


def test_the_address_and_the_token_are_kept_over_restarts(tmp_path: Path) -> None:
    token = ["--token-file", str(tmp_path / "token")]
    with server_process(tmp_path, *token) as server:
        first = server.address
        assert server.end() == 0
    with server_process(tmp_path, *token, "--port", str(server.port)) as server:
        assert server.address == first
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600


def test_another_front_end_may_call_when_its_origin_is_allowed(tmp_path: Path) -> None:
    friend = "https://front.example"
    with server_process(tmp_path, "--allow-origin", friend) as server, server.http as http:
        answer = http.get("/api/agents", headers={"origin": friend})
        assert answer.headers["access-control-allow-origin"] == friend
        assert http.get("/api/agents", headers={"origin": "https://evil"}).status_code == 403


def test_a_browser_is_not_started_with_the_token_in_its_arguments(tmp_path: Path) -> None:
    told = tmp_path / "told"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$@" > {told}.new\nmv {told}.new {told}\n')
    browser.chmod(0o755)
    with server_process(tmp_path, "--open", BROWSER=f"{browser} %s") as server:
        deadline = time.monotonic() + SECONDS
        while not told.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        words = told.read_text().strip()
        assert server.token not in words
        page = Path(words.removeprefix("file://"))
        assert f"url={server.address}" in page.read_text()
        assert page.stat().st_mode & 0o777 == 0o600


def test_nothing_of_the_server_is_imported_before_it_is_needed() -> None:
    code = "import sys, dragoman.cli.commands.serve, dragoman.cli.commands.run; print(*sys.modules)"
    modules = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert not {"starlette", "uvicorn", "dragoman.web"} & set(modules)


# ── the log ───────────────────────────────────────────────────────────────────────────────────


def test_the_log_has_a_line_a_request_and_no_secrets(tmp_path: Path) -> None:
    with server_process(tmp_path) as server, server.http as http:
        http.get("/api/search?q=canary-query")
        http.get("/api/agents", headers={"x-canary": "canary-header"})
        http.post("/api/sessions", json={"agent": "canary-body"})
        http.get("/nothing%0a%1b%5b31m")
        httpx.get(f"{server.origin}/api/agents?token={server.token}", trust_env=False)
        server.end()
        log = server.errors.read_text()
        assert "GET /api/search 200" in log
        assert "POST /api/sessions 404" in log
        assert "GET /api/agents 401" in log
        assert "GET /nothing%0a%1b%5b31m 400" in log
        assert len(log.strip().split("\n")) == 5
        assert server.token not in log
        assert "canary" not in log


def test_uploads_of_sessions_that_are_gone_are_deleted_after_the_start(tmp_path: Path) -> None:
    uploads = tmp_path / "state" / "uploads"
    for store in ("sqlite", "another"):
        (uploads / store).mkdir(parents=True)
        (uploads / store / ".sessions").write_text(f"{store} s-gone\n")
    with server_process(tmp_path):
        deadline = time.monotonic() + SECONDS
        while (uploads / "sqlite").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
    assert (uploads / "another").exists()


# ── the end ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_streams_turns_and_processes(number: int, tmp_path: Path) -> None:
    with server_process(tmp_path, "--exec") as server, server.http as http:
        body = {"agent": "waiting", "cwd": str(server.workspace)}
        session_id = http.post("/api/sessions", json=body).json()["id"]
        http.post(f"/api/sessions/{session_id}/prompt", json={"text": "go"})
        _said(server, session_id, "it runs")
        below = _descendants(server.process.pid)
        assert len(below) >= 2
        path = f"/api/sessions/{session_id}/events"
        stream = {"accept": "text/event-stream"}
        with http.stream("GET", path, headers=stream) as response:
            lines = response.iter_lines()
            next(lines)
            server.process.send_signal(number)
            for _ in lines:
                pass  # the stream ends in order: else this would raise
        assert server.process.wait(SECONDS) == 0
        _gone(below)
    with server_process(tmp_path) as server, server.http as http:
        found = http.get(f"/api/sessions/{session_id}").json()
        assert (found["status"], found["turn"], found["owner"]) == ("idle", None, None)


def _said(server: ServerProcess, session_id: str, words: str) -> None:
    deadline = time.monotonic() + SECONDS
    with server.http as http:
        while words not in http.get(f"/api/sessions/{session_id}").text:
            assert time.monotonic() < deadline
            time.sleep(0.02)


def _gone(pids: set[int]) -> None:
    deadline = time.monotonic() + SECONDS
    while _alive(pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert _alive(pids) == set()


def test_a_second_signal_does_not_wait_for_a_stubborn_turn(tmp_path: Path) -> None:
    with server_process(tmp_path) as server:
        server.process.send_signal(signal.SIGINT)
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(SECONDS) == 0

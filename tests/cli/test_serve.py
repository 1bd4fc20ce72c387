"""`dragoman serve` on a terminal: which browser is opened, and what is said at its end."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.server_process import SECONDS, ServerProcess, server_process

NO_BROWSER = "dragoman: no graphical browser found; open the address above in one yourself\n"


def program(folder: Path, name: str, told: Path) -> None:
    """Writes down what it was started with."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f'#!/bin/sh\necho "{name} $1" > {told}.new\n/bin/mv {told}.new {told}\n')
    path.chmod(0o755)


def eventually(seen: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not seen():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(
    "variables",
    [{}, {"DISPLAY": ":7"}, {"BROWSER": "lynx"}, {"BROWSER": "lynx %s", "DISPLAY": ":7"}],
)
def test_a_browser_of_terminals_is_never_started(tmp_path: Path, variables: dict[str, str]) -> None:
    told = tmp_path / "told"
    for name in ("www-browser", "lynx", "w3m"):
        program(tmp_path / "bin", name, told)
    variables = {"PATH": str(tmp_path / "bin"), "TERM": "screen", **variables}
    with server_process(tmp_path, "--open", **variables) as server:
        eventually(lambda: NO_BROWSER in server.errors.read_text())
        with server.http as http:
            assert http.get("/healthz").status_code == 200
    assert not told.exists()
    assert not list((tmp_path / "state").glob("open*"))


def test_a_browser_with_windows_is_opened_where_there_is_a_display(tmp_path: Path) -> None:
    told = tmp_path / "told"
    for name in ("x-www-browser", "lynx"):
        program(tmp_path / "bin", name, told)
    variables = {"PATH": str(tmp_path / "bin"), "TERM": "screen", "DISPLAY": ":7"}
    with server_process(tmp_path, "--open", **variables) as server:
        eventually(told.exists)
        assert told.read_text().startswith("x-www-browser file://")
        assert NO_BROWSER not in server.errors.read_text()


def left(home: Path) -> list[Path]:
    """Files with the token in them."""
    return list((home / "state").glob("open*"))


def opened(folder: Path) -> dict[str, str]:
    """The variables with which a browser is started that reads nothing."""
    program(folder / "bin", "x-www-browser", folder / "told")
    return {"PATH": str(folder / "bin"), "TERM": "screen", "DISPLAY": ":7"}


def test_what_leads_a_browser_to_the_page_is_deleted_once_the_page_is_used(tmp_path: Path) -> None:
    with server_process(tmp_path, "--open", **opened(tmp_path)) as server, server.http as http:
        eventually((tmp_path / "told").exists)
        [path] = left(tmp_path)
        assert server.token in path.read_text()
        assert path.stat().st_mode & 0o777 == 0o600
        http.get("/")  # by anybody
        assert left(tmp_path) == [path]
        http.get("/api/sessions")
        eventually(lambda: not left(tmp_path))


def test_what_leads_a_browser_to_the_page_goes_with_the_server(tmp_path: Path) -> None:
    with server_process(tmp_path, "--open", **opened(tmp_path)) as server:
        eventually((tmp_path / "told").exists)
        assert server.end() == 0
    assert left(tmp_path) == []


def test_what_a_killed_server_left_is_deleted_at_the_next_start(tmp_path: Path) -> None:
    with server_process(tmp_path, "--open", **opened(tmp_path)) as server:
        eventually((tmp_path / "told").exists)
        server.kill()
    (tmp_path / "state" / "open.html").touch()  # as older versions left it
    assert len(left(tmp_path)) == 2
    with server_process(tmp_path):
        assert left(tmp_path) == []


# ── the end ───────────────────────────────────────────────────────────────────────────────────


def prompted(server: ServerProcess, agent: str) -> str:
    """A session whose turn runs, or has ended."""
    with server.http as http:
        place = {"agent": agent, "cwd": str(server.workspace)}
        session = http.post("/api/sessions", json=place).json()["id"]
        assert http.post(f"/api/sessions/{session}/prompt", json={"text": "go"}).is_success
    return session


def status(server: ServerProcess, session: str) -> str:
    with server.http as http:
        return http.get(f"/api/sessions/{session}").json()["status"]


def test_the_end_says_that_turns_were_cut_off(tmp_path: Path) -> None:
    with server_process(tmp_path) as server:
        session = prompted(server, "endless")
        eventually(lambda: status(server, session) == "running")
        assert server.end() == 0
    assert server.errors.read_text().rstrip().endswith("1 running turn is cut off")


def test_the_end_says_nothing_when_nothing_ran(tmp_path: Path) -> None:
    with server_process(tmp_path) as server:
        session = prompted(server, "steady")
        eventually(lambda: status(server, session) == "idle")
        assert server.end() == 0
    assert "cut off" not in server.errors.read_text()

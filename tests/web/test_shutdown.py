"""The server ends when it is told to, whatever waits for good in it; and nothing in a workspace
makes it wait."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest
from support.server_process import ServerProcess, StartedProcess, server_process
from support.unread_output import fill, unread_fifo

from dragoman.agents.settings.settings_file import load_settings
from dragoman.errors import ConfigError
from dragoman.host.rules.policy_file import load_policy
from dragoman.host.workspace.regular_file import open_regular, read_regular
from dragoman.web.server import deadline
from dragoman.web.server.deadline import Deadline

STUCK = Path(__file__).parent / "programs" / "stuck.py"


class StuckProcess(StartedProcess):
    def __init__(self, home: Path, how: str) -> None:
        (home / "state").mkdir(mode=0o700)
        self._how = how
        super().__init__(home)

    def command(self, settings: str) -> list[str]:
        return [sys.executable, str(STUCK), self._how, settings]


def running(server: ServerProcess) -> str:
    """A session in a turn that does not end."""
    with server.http as http:
        body = {"agent": "endless", "cwd": str(server.workspace)}
        session_id = http.post("/api/sessions", json=body).json()["id"]
        http.post(f"/api/sessions/{session_id}/prompt", json={"text": "go"})
    return session_id


def agents_of(server: ServerProcess) -> list[int]:
    """The pids of the agents that it runs."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            command = (path / "cmdline").read_bytes()
            where = os.readlink(path / "cwd")
        except OSError:
            continue
        if b"agents.py:endless" in command and where == str(server.workspace):
            found.append(int(path.name))
    return found


def status_after_recovery(home: Path, session_id: str) -> str:
    with server_process(home) as server, server.http as http:
        while (found := http.get(f"/api/sessions/{session_id}").json()["status"]) == "running":
            pass
        return found


def test_a_thread_that_waits_for_good_does_not_hold_up_the_end(tmp_path: Path) -> None:
    with closing(StuckProcess(tmp_path, "thread")) as server:
        running(server)
        assert agents_of(server)
        assert server.end() == 0  # in order: it is put away before
        assert not agents_of(server)
    assert server.errors.read_text().rstrip().endswith("1 running turn is cut off")


def test_an_event_loop_that_waits_for_good_does_not_hold_up_the_end(tmp_path: Path) -> None:
    with closing(StuckProcess(tmp_path, "loop")) as server:
        session_id = running(server)
        [agent] = agents_of(server)
        assert server.end() == 1
    assert "the server did not stop within 1 s; killing it now" in server.errors.read_text()
    while Path(f"/proc/{agent}").exists():
        pass  # its keeper has seen that the server is gone
    (tmp_path / "state" / "fifo").unlink()
    assert status_after_recovery(tmp_path, session_id) == "interrupted"


def test_a_log_that_nobody_reads_does_not_hold_up_the_end(tmp_path: Path) -> None:
    with (
        unread_fifo(tmp_path / "stderr") as fifo,
        closing(StuckProcess(tmp_path, "log")) as server,
    ):
        running(server)
        [agent] = agents_of(server)
        fill(fifo)
        with server.http as http:
            http.get("/healthz")  # its line is what the event loop waits with
        assert server.end() == 1
        while Path(f"/proc/{agent}").exists():
            pass


def test_a_server_answers_and_ends_while_nobody_reads_its_log(tmp_path: Path) -> None:
    with unread_fifo(tmp_path / "stderr") as fifo, server_process(tmp_path) as server:
        fill(fifo)
        with server.http as http:
            for _ in range(3):
                assert http.get("/healthz").status_code == 200
        assert server.end() == 0


# ── what is not a file ────────────────────────────────────────────────────────────────────────


def test_a_fifo_for_a_gitignore_holds_nothing_up(tmp_path: Path) -> None:
    with server_process(tmp_path) as server, server.http as http:
        os.mkfifo(server.workspace / ".gitignore")
        (server.workspace / "found.txt").touch()
        body = {"agent": "steady", "cwd": str(server.workspace)}
        session_id = http.post("/api/sessions", json=body).json()["id"]
        for _ in range(10):
            found = http.get(f"/api/sessions/{session_id}/files?q=found").json()
            assert [each["path"] for each in found["files"]] == ["found.txt"]
        assert http.get("/api/policies").status_code == 200
        assert server.end() == 0


@pytest.mark.parametrize("links", [False, True])
@pytest.mark.parametrize("kind", ["fifo", "folder", "device"])
def test_what_is_not_a_regular_file_is_refused_at_once(
    tmp_path: Path, kind: str, links: bool
) -> None:
    path = tmp_path / "it"
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case _:
            path = Path("/dev/zero")
    with pytest.raises(OSError, match=r"not a regular file|directory"):
        read_regular(path, 10, links=links)


def test_links_are_followed_only_where_a_person_chose_the_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here")
    link = tmp_path / "link"
    link.symlink_to("file")
    assert read_regular(link, 4, links=True) == b"here"
    with pytest.raises(OSError, match="symbolic links"):
        open_regular(link)


def test_no_more_is_read_than_there_is_room_for(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("12345")
    assert read_regular(tmp_path / "file", 5) == b"12345"
    with pytest.raises(OSError, match="larger than 4 bytes"):
        read_regular(tmp_path / "file", 4)


def test_settings_and_rules_that_are_no_files_are_refused_in_words(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo.json"
    os.mkfifo(fifo)
    with pytest.raises(ConfigError, match="not a regular file"):
        load_settings(fifo)
    with pytest.raises(ConfigError, match="not a regular file"):
        load_policy(fifo, home="/")


@pytest.mark.parametrize("all_done", [True, False])
def test_a_server_is_gone_within_thirty_seconds_of_a_signal(
    all_done: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts the seconds that it would wait, without waiting them."""
    waited: list[float] = []
    codes: list[int] = []

    def wait(seconds: float) -> bool:
        waited.append(0.99 * seconds if all_done else seconds)  # as late as can be
        return all_done

    monkeypatch.setattr(deadline, "time", SimpleNamespace(sleep=waited.append))
    monkeypatch.setattr(deadline, "os", SimpleNamespace(_exit=_exit_into(codes)))
    monkeypatch.setattr(deadline, "kill_all", lambda: None)
    it = Deadline(lambda sentence: None)
    monkeypatch.setattr(it, "_all_done", SimpleNamespace(wait=wait))
    it._begun.put(True)  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(SystemExit):
        it._wait()  # pyright: ignore[reportPrivateUsage]
    assert codes == [0 if all_done else 1]
    assert len(waited) == 2
    assert sum(waited) <= 30


def _exit_into(codes: list[int]) -> Callable[[int], NoReturn]:
    def exit_(code: int) -> NoReturn:
        codes.append(code)
        raise SystemExit

    return exit_

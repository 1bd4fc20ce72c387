"""Where the demo agent keeps its sessions: private, bounded, and safe from odd names."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec
import pytest

from dragoman.testing import AgentSession
from dragoman.testing.demo.demo_agent import StoredSessions


def update(text: str, kind: str = "agent_message_chunk") -> msgspec.Raw:
    wire = {"sessionUpdate": kind, "content": {"type": "text", "text": text}}
    return msgspec.Raw(msgspec.json.encode(wire))


def texts(session: AgentSession) -> list[str]:
    return [msgspec.json.decode(line)["content"]["text"] for line in session.history]


def session_of(name: str, *history: msgspec.Raw) -> AgentSession:
    return AgentSession(id=name, cwd="/x", mode="ask", title="T", history=list(history))


def modes(folder: Path) -> set[int]:
    return {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


def test_what_was_kept_is_found_again(tmp_path: Path) -> None:
    session = session_of("a", update("hi", "user_message_chunk"), update("\u2028 é"))
    session.options, session.cost = {"verbose": True}, 0.5
    StoredSessions(str(tmp_path))["a"] = session
    found = StoredSessions(str(tmp_path))["a"]
    assert texts(found) == ["hi", "\u2028 é"]
    assert msgspec.structs.replace(found, history=[]) == msgspec.structs.replace(
        session, history=[]
    )


def test_it_is_for_its_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    old = os.umask(0)
    try:
        StoredSessions.at_home()["a"] = session_of("a")
    finally:
        os.umask(old)
    assert modes(tmp_path) == modes(tmp_path / "home") == {0o700}
    assert modes(tmp_path / "home" / "demo-agent") == {0o600}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"DRAGOMAN_HOME": "{}/here"}, "here/demo-agent"),
        ({"XDG_DATA_HOME": "{}/data"}, "data/dragoman/demo-agent"),
        ({"HOME": "{}"}, ".local/share/dragoman/demo-agent"),
    ],
)
def test_it_lies_where_dragoman_keeps_things(
    variables: dict[str, str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DRAGOMAN_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(tmp_path))
    StoredSessions.at_home()["a"] = session_of("a")
    assert (tmp_path / expected / "a.jsonl").is_file()


def test_where_nothing_can_be_kept_memory_has_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "file" / "home"))
    sessions = StoredSessions.at_home()
    sessions["a"] = session_of("a")
    assert sessions["a"].title == "T"


def test_a_session_that_cannot_be_kept_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sessions = StoredSessions(str(tmp_path))
    (tmp_path / "a.jsonl").mkdir()
    sessions["a"] = session_of("a")
    assert "could not be kept" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["../a", "a/b", "", ".", "..", "a\0b", "a\n", "x" * 65, "/etc/x"])
def test_a_name_that_is_no_id_reaches_no_file(name: str, tmp_path: Path) -> None:
    sessions = StoredSessions(str(tmp_path / "folder"))
    assert name not in sessions
    with pytest.raises(KeyError):
        sessions[name] = session_of(name)
    assert list(tmp_path.iterdir()) == []


def test_a_broken_file_is_no_session(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("not JSON\n")
    assert "a" not in StoredSessions(str(tmp_path))


def test_the_newest_sessions_come_first_and_the_oldest_go(tmp_path: Path) -> None:
    sessions = StoredSessions(str(tmp_path), max_sessions=3)
    for n, name in enumerate("abcd"):
        sessions[name] = session_of(name)
        os.utime(tmp_path / f"{name}.jsonl", (n, n))
    assert list(sessions) == ["d", "c", "b"]
    assert len(sessions) == 3


def test_of_a_long_conversation_the_oldest_turns_go(tmp_path: Path) -> None:
    history: list[msgspec.Raw] = []
    for n in range(10):
        history += [update(f"q{n}", "user_message_chunk"), update("a" * 100)]
    sessions = StoredSessions(str(tmp_path), max_history_bytes=1000)
    sessions["a"] = session_of("a", *history)
    kept = texts(sessions["a"])
    assert kept[0] == "q7"
    assert kept[-1] == "a" * 100
    assert sum(len(memoryview(line)) for line in sessions["a"].history) <= 1000

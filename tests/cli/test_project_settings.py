"""Settings of a project: they count once they are trusted, and never name a program."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support.command import Dragoman, refused
from support.screen import needs_tmux, on_screen

from dragoman.agents.settings.project_settings import ProjectSettings, read_project_settings
from dragoman.agents.settings.settings_file import Settings
from dragoman.errors import ConfigError


def written(dragoman: Dragoman, content: object) -> Path:
    path = dragoman.workspace / ".dragoman" / "settings.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def trusted(dragoman: Dragoman, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_HOME", str(dragoman.state))
    found = read_project_settings(str(dragoman.workspace))
    assert found is not None
    found.trust()


def test_nothing_counts_before_it_is_trusted(
    user: Dragoman, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(user, {"agent": "lethe"})
    done = user("hello")
    assert done.code == 0
    assert (
        done.err
        == f"dragoman: {path} is not trusted; look at it, then run `dragoman config trust`\n"
    )
    trusted(user, monkeypatch)
    assert user("--session", "a", "hello").err == ""
    agents = {each["agent"] for each in json.loads(user("sessions", "list", "--json").out)}
    assert agents == {"memo", "lethe"}
    written(user, {"agent": "memo"})
    assert "is not trusted" in user("hello").err


def test_an_option_counts_more(user: Dragoman, monkeypatch: pytest.MonkeyPatch) -> None:
    written(user, {"agent": "lethe", "limits": [{"turns": 1}]})
    trusted(user, monkeypatch)
    assert user("-a", "memo", "--session", "s", "hello").code == 0
    assert json.loads(user("sessions", "list", "--json").out)[0]["agent"] == "memo"
    assert user("--session", "s", "again").code == 6  # the limit of the project


def test_a_session_keeps_its_agent_whatever_the_project_prefers(
    user: Dragoman, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    user("-a", "memo", "--session", "s", "one")
    session = json.loads(user("sessions", "list", "--json").out)[0]["id"]
    written(user, {"agent": "lethe"})
    trusted(user, monkeypatch)
    assert "2. two" in user("--resume", session, "two", cwd=tmp_path).out
    assert "3. three" in user("--resume", session, "three").out
    assert "4. four" in user("--session", "s", "four").out
    assert "5. five" in user("--continue", "five").out
    assert "6. six" in user("--fork", session, "six", cwd=tmp_path).out
    agents = {each["agent"] for each in json.loads(user("sessions", "list", "--json").out)}
    assert agents == {"memo"}


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ({"agent_servers": {"x": {"command": "sh"}}}, "agent_servers: expected"),
        ({"mcpServers": {}}, "mcpServers: expected"),
        ({"fence": "off"}, "fence: expected"),
        ({"agnt": "x"}, "agnt: expected a known key; did you mean agent?"),
        ({"agent": ["sh"]}, "agent: expected the name of an agent"),
        ({"system_prompt": {"file": "/etc/passwd"}}, "system_prompt: expected a text"),
        ([], "expected an object"),
    ],
)
def test_what_a_project_cannot_say_is_one_line(
    dragoman: Dragoman, content: object, complaint: str
) -> None:
    path = written(dragoman, content)
    done = dragoman("config", "trust")
    refused(done, str(path), complaint)


def test_a_link_and_a_file_elsewhere_are_not_the_projects(tmp_path: Path) -> None:
    (tmp_path / "a" / ".dragoman").mkdir(parents=True)
    (tmp_path / "elsewhere.json").write_text("{}")
    (tmp_path / "a" / ".dragoman" / "settings.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(ConfigError, match="not a link"):
        read_project_settings(str(tmp_path / "a"))
    one, other = (ProjectSettings(f"/{name}/settings.json", b"{}") for name in "ab")
    assert one.digest != other.digest


@pytest.mark.parametrize("what", ["link", "fifo", "large", "folder"])
def test_what_cannot_be_the_projects_settings_is_one_line_and_the_run_goes_on(
    user: Dragoman, what: str
) -> None:
    path = written(user, {"agent": "lethe"})
    why = {
        "link": "a file in the project, not a link",
        "fifo": "a readable file (not a regular file)",
        "large": "a readable file (larger than 65536 bytes)",
        "folder": "a readable file (Is a directory)",
    }[what]
    match what:
        case "link":
            path.rename(user.home / "elsewhere")
            path.symlink_to(user.home / "elsewhere")
        case "large":
            path.write_text(" " * (64 << 10) + "{}")
        case _:
            path.unlink()
            (os.mkfifo if what == "fifo" else os.mkdir)(path)
    for words in (("-a", "memo", "hello"), ("hello",)):
        done = user(*words, seconds=60)
        ending = "the settings of this project do not apply"
        assert done.err == f"dragoman: {path}: expected {why}; {ending}\n"
        assert done.code == 0
    refused(user("config", "trust", seconds=60), str(path), why)


def test_they_apply_to_a_command_too(user: Dragoman, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("--agent-command", user.agent("remembering", "memory.py"), "--session", "s")
    written(user, {"agent": "lethe", "limits": [{"turns": 1}]})
    assert "is not trusted" in user(*words, "one").err
    trusted(user, monkeypatch)
    again = user(*words, "two")
    assert again.code == 6
    assert "and limits[0].turns of this project's settings allows 1 turn" in again.err


def test_limits_are_added_and_lift_none() -> None:
    ours = ProjectSettings("/p/s.json", b'{"limits": [{"turns": 9}]}')
    both = ours.over(ProjectSettings("/p/s.json", b'{"limits": [{"turns": 2}]}').over(Settings()))
    assert [limit.most for limit in both.limits] == [2, 9]


@needs_tmux
def test_a_person_looks_at_the_file_and_trusts_it(user: Dragoman) -> None:
    written(user, {"agent": "lethe"})
    with on_screen(
        user.command("config", "trust"), env=user.env, cwd=user.workspace, width=100
    ) as shown:
        assert '{"agent": "lethe"}' in shown.wait_for("[y/N]")
        shown.enter("y")
        assert "trusted, until the file changes" in shown.wait_for("exit code 0")
    assert user("hello").err == ""
    assert "is trusted as it is" in user("config", "trust").out


def test_without_a_person_nothing_is_trusted(user: Dragoman) -> None:
    written(user, {"agent": "lethe"})
    done = user("config", "trust")
    assert done.code == 2
    assert "needs a person at a terminal" in done.err
    assert "is not trusted" in user("hello").err

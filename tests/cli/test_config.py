"""The settings without an editor, and with one: `agents add`, `agents default`, `config`."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path

import pytest
from support.command import Dragoman, Json, refused


def agents(dragoman: Dragoman) -> dict[str, Json]:
    return json.loads(dragoman.settings.read_text())["agent_servers"]


def editor(folder: Path, old: str, new: str) -> dict[str, str]:
    """Replaces a word in the file it is given."""
    program = folder / "editor.py"
    program.write_text(
        "import sys\n"
        "from pathlib import Path\n"
        "old, new, path = sys.argv[1:]\n"
        "Path(path).write_text(Path(path).read_text().replace(old, new))\n"
    )
    return {"EDITOR": shlex.join([sys.executable, str(program), old, new])}


# ── agents ────────────────────────────────────────────────────────────────────────────────────


def test_an_agent_is_added_with_all_that_follows_the_dashes(dragoman: Dragoman) -> None:
    words = ("--env", "KEY=a=b", "--", "sh", "-c", "echo $KEY", "--env", "--")
    done = dragoman("agents", "add", "mine", *words)
    assert done.out == (f"added to {dragoman.settings} as mine; try: dragoman agents doctor mine\n")
    command = {"command": "sh", "args": ["-c", "echo $KEY", "--env", "--"], "env": {"KEY": "a=b"}}
    assert agents(dragoman) == {"mine": command}
    assert dragoman.settings.stat().st_mode & 0o777 == 0o600
    assert dragoman("agents", "add", "far", "--", "wss://x.example/acp").code == 0
    assert agents(dragoman)["far"] == {"url": "wss://x.example/acp"}
    assert list(agents(dragoman)) == ["mine", "far"]


def test_an_added_agent_runs_and_the_default_is_the_one_chosen(dragoman: Dragoman) -> None:
    assert dragoman("agents", "default").out == "demo\n"
    command = ("--", sys.executable, "-m", "dragoman.testing.demo")
    assert dragoman("agents", "add", "one", "--", "false").code == 0
    assert dragoman("agents", "add", "two", "--default", *command).code == 0
    assert dragoman("agents", "default").out == "two\n"
    assert dragoman("-o", "simple", "/think it").out == "I have thought about it.\n"
    assert dragoman("agents", "default", "one").code == 0
    assert dragoman("-o", "simple", "/think it").code == 1
    assert list(agents(dragoman)) == ["one", "two"]


def test_a_known_agent_becomes_the_default_by_its_name(dragoman: Dragoman) -> None:
    done = dragoman("agents", "default", "goose")
    assert done.out == f"goose is the default agent in {dragoman.settings}\n"
    assert agents(dragoman) == {"goose": {"command": "goose", "args": ["acp"]}}


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("add", "mine", "--", "x"), "already has an agent 'mine'; --replace replaces it"),
        (("add", "new"), "pass its command after --: dragoman agents add new -- CMD ARGS"),
        (("add", "new", "--env", "KEY", "--", "x"), "--env KEY: expected NAME=VALUE"),
        (("add", "new", "--", "wss://x.example", "y"), "takes no arguments and no --env"),
        (("default", "nobody"), "there is no agent 'nobody'; available: mine, claude"),
    ],
)
def test_what_cannot_be_written_changes_nothing(
    dragoman: Dragoman, words: tuple[str, ...], complaint: str
) -> None:
    text = dragoman.write_settings({"agent_servers": {"mine": {"command": "sh"}}}).read_text()
    refused(dragoman("agents", *words), complaint)
    assert dragoman.settings.read_text() == text


def test_an_agent_is_replaced_in_its_place(dragoman: Dragoman) -> None:
    dragoman.write_settings({"agent_servers": {"a": {"command": "sh"}, "b": {"command": "sh"}}})
    assert dragoman("agents", "add", "a", "--replace", "--", "true").code == 0
    assert list(agents(dragoman)) == ["a", "b"]
    assert agents(dragoman)["a"]["command"] == "true"


# ── the file ──────────────────────────────────────────────────────────────────────────────────


def test_the_path_is_printed_whether_or_not_there_is_a_file(dragoman: Dragoman) -> None:
    assert dragoman("config", "path").out == f"{dragoman.settings}\n"
    elsewhere = {"DRAGOMAN_SETTINGS": str(dragoman.home / "other.json")}
    assert dragoman("config", "path", env=elsewhere).out == f"{dragoman.home}/other.json\n"
    assert dragoman("config", "show").out == "{}\n"


def test_what_is_shown_has_no_secrets(dragoman: Dragoman) -> None:
    dragoman.write_settings(
        {
            "agent_servers": {
                "a": {"command": "sh", "args": ["-c"], "env": {"KEY": "hush1"}},
                "b": {"url": "wss://x.example/acp#token=hush2", "headers": {"X-Key": "hush3"}},
                "c": {"url": "wss://u:hush6@x.example:1/acp?key=hush7"},
            },
            "mcp_servers": [
                {"name": "m", "command": "x", "env": [{"name": "K", "value": "hush4"}]},
                {"name": "n", "url": "https://hush8@x.example?hush9", "headers": {"X": "hush5"}},
            ],
        }
    )
    done = dragoman("config", "show")
    assert done.code == 0
    assert "hush" not in done.out
    shown = json.loads(done.out)
    assert shown["agent_servers"]["a"] == {"command": "sh", "args": ["-c"], "env": {"KEY": "…"}}
    assert shown["agent_servers"]["b"]["url"] == "wss://x.example/acp"
    assert shown["agent_servers"]["c"]["url"] == "wss://x.example:1/acp"
    assert shown["mcp_servers"][1]["url"] == "https://x.example"


def test_settings_that_are_not_sound_are_not_shown(dragoman: Dragoman) -> None:
    dragoman.write_settings('{"agent_servers": [}')
    refused(dragoman("config", "show"), str(dragoman.settings))
    refused(dragoman("config", "show", "--settings", "none.json"), "none.json", "there is none")


def test_an_edit_counts_once_it_is_sound(dragoman: Dragoman, tmp_path: Path) -> None:
    dragoman.write_settings({"agent_servers": {"mine": {"command": "sh"}}})
    before = dragoman.settings.read_text()
    done = dragoman("config", "edit", env=editor(tmp_path, "command", "comand"))
    refused(done, "expected a known key; did you mean command?", "nothing was changed")
    assert dragoman.settings.read_text() == before
    # The text that was typed is there again, and is mended.
    done = dragoman("config", "edit", env=editor(tmp_path, '"comand": "sh"', '"command": "true"'))
    assert done.out == f"{dragoman.settings} was saved\n"
    assert agents(dragoman) == {"mine": {"command": "true"}}
    assert os.listdir(dragoman.settings.parent) == ["settings.json"]


def test_an_edit_of_what_was_changed_meanwhile_is_kept_apart(
    dragoman: Dragoman, tmp_path: Path
) -> None:
    settings = dragoman.write_settings({"agent_servers": {"mine": {"command": "sh"}}})
    program = tmp_path / "editor.py"
    other = '{"agent_servers": {"theirs": {"command": "true"}}}'
    program.write_text(f"open({str(settings)!r}, 'w').write({other!r})")
    variables = {"VISUAL": shlex.join([sys.executable, str(program)])}
    done = dragoman("config", "edit", env=variables)
    refused(done, "was changed in the meantime", f"your text is kept in {settings}.edited")
    assert settings.read_text() == other


@pytest.mark.parametrize(
    ("command", "complaint"),
    [("no-such-editor", "cannot be started"), ("false", "ended with code 1; nothing was changed")],
)
def test_an_editor_that_fails_changes_nothing(
    dragoman: Dragoman, command: str, complaint: str
) -> None:
    refused(dragoman("config", "edit", env={"EDITOR": command}), complaint)
    assert not dragoman.settings.exists()
    assert os.listdir(dragoman.settings.parent) == []

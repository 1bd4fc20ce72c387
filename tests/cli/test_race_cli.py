"""`dragoman race` and `dragoman races`, with scripted entrants."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from support.command import Dragoman, refused
from support.folders import git


@pytest.fixture
def project(dragoman: Dragoman) -> Path:
    named = {name: shlex.split(dragoman.agent(name, "entrants.py")) for name in ("small", "pretty")}
    dragoman.write_settings(
        {
            "agent_servers": {
                name: {"command": words[0], "args": words[1:]} for name, words in named.items()
            }
        }
    )
    folder = dragoman.workspace
    (folder / "mathematics.py").write_text("def add(a, b):\n    return a - b\n")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


CHECK = f"{sys.executable} -S -c 'import mathematics as m; assert m.add(1, 2) == 3'"
RACE = ("race", "make it add", "--fence=off", "-a", "pretty")


def test_a_race_is_run_shown_exported_replayed_and_merged(
    dragoman: Dragoman, project: Path, tmp_path: Path
) -> None:
    done = dragoman(*RACE, "-a", "small", "--check", CHECK)
    assert done.code == 0, done
    assert "✓ wins: passed" in done.out
    assert "✗ the check exited with code 1" in done.out
    assert "small wins: nobody else passed" in done.out
    assert "pretty: running\n" in done.err
    assert git(project, "status", "--porcelain") == ""
    assert "make it add" in dragoman("races", "list").out
    assert "small wins" in dragoman("races", "show").out
    exported = dragoman("races", "export", "last").out
    (file := tmp_path / "race.json").write_text(exported)
    assert "the verdict follows from the record" in dragoman("races", "replay", str(file)).out
    file.write_text(exported.replace('"winner": "small"', '"winner": "pretty"'))
    refused(dragoman("races", "replay", str(file)), "leads to another verdict", code=1)
    session = json.loads(exported)["entrants"][1]["session"]
    assert "make it add" in dragoman("sessions", "show", session).out
    assert "merged 1 file" in dragoman("races", "merge").out
    assert "a + b" in (project / "mathematics.py").read_text()
    assert git(project, "log", "--format=%s") == "make it add\nfirst\n"
    race = json.loads(exported)["id"]
    assert dragoman("races", "delete", race).code == 0
    assert git(project, "for-each-ref", "refs/heads/dragoman") == ""


def test_where_nobody_passes_the_code_says_so(dragoman: Dragoman, project: Path) -> None:
    done = dragoman(*RACE, "--check", CHECK, "--pick", "--json")
    assert done.code == 1
    assert json.loads(done.out)["verdict"]["winner"] is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("race", "t", "-a", "pretty"), "--check CMD is required"),
        (("race", "t", "--check", "true"), "name entrants with -a"),
        (("race", "t", "-a", "nobody", "--check", "true"), "nobody"),
        (("race", "-a", "pretty", "--check", "true"), "pass the task"),
        (("race", " ", "-a", "pretty", "--check", "true"), "the task is empty"),
        (("race", "t", "-a", "pretty:99", "--check", "true"), "1 to 32 entrants"),
    ],
)
def test_what_makes_no_race_is_refused_at_once(
    dragoman: Dragoman, project: Path, words: tuple[str, ...], said: str
) -> None:
    refused(dragoman(*words), said)


def test_an_unknown_race_is_named(dragoman: Dragoman) -> None:
    refused(dragoman("races", "show", "r-nothing"), "there is no race r-nothing", code=1)

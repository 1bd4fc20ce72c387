"""`dragoman conformance`: what it prints, what it writes, and how it exits."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from support.command import Done, Dragoman

PROGRAM = Path(__file__).parents[1] / "support" / "programs" / "leaving_agent.py"
ONLY = ("--only", "initialize.agent-info", "--only", "initialize.answer")


def examine(dragoman: Dragoman, *words: str) -> Done:
    """An agent that does not name itself."""
    return dragoman("conformance", "agent", *words, "--", sys.executable, "-S", str(PROGRAM))


def test_the_verdicts_are_printed_with_the_frames_that_show_them(dragoman: Dragoman) -> None:
    done = examine(dragoman, *ONLY)
    assert (done.code, done.err) == (0, "")
    assert done.lines[1].split() == ["pass", "initialize.answer", "must"]
    assert done.lines[2].split()[:3] == ["FAIL", "initialize.agent-info", "should"]
    assert done.lines[-1] == "1 passed, 1 failed (0 must, 1 should, 0 may), 0 skipped"


@pytest.mark.parametrize(("level", "code"), [("must", 0), ("should", 1), ("may", 1)])
def test_the_exit_code_goes_by_the_level(dragoman: Dragoman, level: str, code: int) -> None:
    assert examine(dragoman, *ONLY, "--fail-on", level).code == code


def test_reports_are_written_beside_what_is_printed(dragoman: Dragoman, tmp_path: Path) -> None:
    files = [tmp_path / f"report{ending}" for ending in (".json", ".xml", ".md", ".svg")]
    reports = [word for file in files for word in ("--report", str(file))]
    done = examine(dragoman, *ONLY, *reports, "--json")
    told = json.loads(done.out)
    assert told["counts"]["should"] == {"pass": 0, "fail": 1, "skip": 0}
    assert json.loads(files[0].read_text())["counts"] == told["counts"]
    assert all(file.stat().st_size > 100 for file in files)


def test_checks_are_listed_and_explained(dragoman: Dragoman) -> None:
    listed = dragoman("conformance", "agent", "--list", "--only", "modes")
    assert [line.split()[0] for line in listed.lines] == [
        "modes.current",
        "modes.set",
        "modes.unknown",
    ]
    rows = json.loads(dragoman("conformance", "agent", "--list", "--json").out)
    assert {"id", "level", "version", "says", "page", "does", "expects"} == set(rows[0])
    told = dragoman("conformance", "agent", "--explain", "modes.set")
    assert told.lines[0] == "modes.set (must, version 1 of the protocol)"
    assert "https://agentclientprotocol.com/protocol/v1/session-modes" in told.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "pass the agent's command after --: dragoman conformance agent -- CMD"),
        ("-a demo -- sh", "pass the agent's command after --, or its name with -a, not both"),
        ("--only modes.sat", "no check is called modes.sat; did you mean modes.set?"),
        ("--explain nothing", "no check is called nothing; --list lists them"),
        ("--report x.pdf -- sh", "--report x.pdf: the name must end in .json, .xml, .md, .svg"),
        ("-- ws://localhost/acp more", "an agent with an address takes no arguments"),
        ("-- http://[", "an address that cannot be parsed"),
        ("--prompt tiny=x -- sh", "--prompt tiny=x: expected KIND=TEXT, with short, long or work"),
    ],
)
def test_a_wrong_line_is_refused_in_a_sentence(dragoman: Dragoman, words: str, said: str) -> None:
    done = dragoman("conformance", "agent", *shlex.split(words))
    assert done.code == 2
    assert said in done.err
    assert done.out == ""


def test_an_agent_that_cannot_be_started_fails_every_check(dragoman: Dragoman) -> None:
    done = dragoman("conformance", "agent", "--only", "session.new", "--", "/no/such/agent")
    assert done.code == 1
    assert "the agent cannot be started" in done.out


def test_an_agent_of_this_name_is_examined(dragoman: Dragoman) -> None:
    done = dragoman("conformance", "agent", "-a", "demo", "--only", "modes")
    assert (done.code, done.err) == (0, "")
    assert done.lines[-1] == "3 passed, 0 failed, 0 skipped"


# ── clients ───────────────────────────────────────────────────────────────────────────────────

CLIENT = PROGRAM.with_name("starting_client.py")
STARTS = (sys.executable, "-S", str(CLIENT), "{agent}")


def test_a_client_is_started_with_the_agent_that_it_names(dragoman: Dragoman) -> None:
    only = ("--only", "session.folder", "--only", "initialize.flags")
    done = dragoman("conformance", "client", *only, "--", *STARTS)
    assert (done.code, done.err) == (0, "")
    assert done.lines[-1] == "2 passed, 0 failed, 0 skipped"


def test_a_client_of_this_directory_is_found(dragoman: Dragoman) -> None:
    only = ("--only", "session.folder")
    words = (sys.executable, "-S", CLIENT.name, "{agent}")
    done = dragoman("conformance", "client", *only, "--", *words, cwd=CLIENT.parent)
    assert done.lines[-1] == "1 passed, 0 failed, 0 skipped"


def test_a_scene_that_needs_a_hand_says_which(dragoman: Dragoman) -> None:
    done = dragoman("conformance", "client", "--only", "cancel.notifies", "--", *STARTS)
    assert done.lines[1].split()[:3] == ["skip", "cancel.notifies", "must"]
    assert "it needs a person, or --answer cancel=COMMAND" in done.out


def test_a_hand_starts_the_client_or_helps_it(dragoman: Dragoman, tmp_path: Path) -> None:
    line = shlex.join(STARTS)
    only = ("--only", "files.write", "--only", "cancel.notifies", "--timeout", "2")
    mark = tmp_path / "helped"
    hands = ("--answer", f"allow={line}", "--answer", f"cancel=sh -c 'echo {{pid}} > {mark}'")
    done = dragoman("conformance", "client", *only, *hands, "--", *STARTS)
    assert "the client does not offer to write files" in done.out
    assert "session/cancel did not come within 2 s" in done.out
    assert done.code == 1
    assert int(mark.read_text()) > 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("-- my-client", "pass the client's command after --, with {agent} in it"),
        ("--answer jump=x -- c {agent}", "--answer jump=x: expected ACTION=COMMAND"),
        ("--answer allow= -- c {agent}", "--answer allow=: expected ACTION=COMMAND"),
        ("--answer 'allow=a \"b' -- c {agent}", "No closing quotation"),
        ("--only modes -- c {agent}", "no check is called modes"),
    ],
)
def test_a_wrong_line_about_a_client_is_refused(dragoman: Dragoman, words: str, said: str) -> None:
    done = dragoman("conformance", "client", *shlex.split(words))
    assert done.code == 2
    assert said in done.err


def test_a_client_that_cannot_be_started_fails(dragoman: Dragoman) -> None:
    only = ("--only", "session.folder")
    done = dragoman("conformance", "client", *only, "--", "/no/such/client", "{agent}")
    assert done.code == 1
    assert "the client cannot be started" in done.out

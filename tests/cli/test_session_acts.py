"""What is done with sessions beside talking in them: shown, answered, renamed, let go."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

import pytest
from support.command import COMMAND, Dragoman, refused
from support.screen import Screen, needs_tmux, on_screen

from dragoman.cli.commands.sessions.undo import explained
from dragoman.errors import CommandRefused, RevertConflict
from dragoman.hub.running.running_session import refused as as_refused


@contextmanager
def running(user: Dragoman, *words: str) -> Generator[subprocess.Popen[bytes]]:
    """A run in which the agent has begun to answer."""
    with user.started(*words, "--", "wait") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"started\n"
        yield process


# ── shown ─────────────────────────────────────────────────────────────────────────────────────


def test_parts_of_a_session_are_json_as_the_help_says(user: Dragoman) -> None:
    help_ = " ".join(user("sessions", "show", "--help").out.split())
    assert "--programs, an object with `programs` and `leftOut`; with --refused, a list" in help_
    assert user("-a", "demo", "--session", "fix", "please begin").code == 5
    programs = json.loads(user("sessions", "show", "fix", "--programs", "--json").out)
    assert programs == {"programs": [], "leftOut": 0}
    refusals = json.loads(user("sessions", "show", "fix", "--refused", "--json").out)
    assert "permission_settled" in {each["type"] for each in refusals}


def test_a_turn_that_was_stopped_is_shown_as_stopped(user: Dragoman) -> None:
    with running(user, "--session", "fix") as process:
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 130
    user("--session", "fix", "go on")
    shown = user("sessions", "show", "fix").lines
    stopped = shown.index("the turn was cancelled")
    assert shown.index("started") < stopped < shown.index("› go on")
    assert "the turn was cancelled" not in shown[stopped + 1 :]


def test_a_turn_that_failed_is_shown_with_its_error(dragoman: Dragoman) -> None:
    assert dragoman("--session", "fix", "/fail").code == 1
    shown = dragoman("sessions", "show", "fix")
    assert shown.lines[-1].startswith("the turn failed: the demo agent failed, as requested")


def test_a_turn_that_the_agent_cut_short_is_shown_with_why(dragoman: Dragoman) -> None:
    dragoman("--session", "fix", "hello", agent="early_stop")
    assert dragoman("sessions", "show", "fix").lines[-1] == "the turn ended early: max_tokens"


# ── answered ──────────────────────────────────────────────────────────────────────────────────


@contextmanager
def asking(user: Dragoman) -> Generator[Screen]:
    """A window in which a form of the demo agent waits."""
    command = [str(COMMAND), "--session", "fix", "/ask"]
    with on_screen(command, env=user.env, cwd=user.workspace) as screen:
        screen.wait_for("? A few questions")
        yield screen


@needs_tmux
def test_a_form_is_listed_with_its_fields_and_filled_in_from_outside(dragoman: Dragoman) -> None:
    with asking(dragoman) as screen:
        listed = dragoman("sessions", "answer", "fix")
        assert listed.lines[0].endswith(": A few questions, to show a form")
        assert listed.lines[1:] == [
            "    name  Name (a text, at least 1 character)",
            "    colour  Colour (one of red, green, blue; else green)",
            "    count  How many (a whole number, 1 to 10; optional)",
            "    gift  It is a gift (yes or no; else no)",
            "    accept name=… [colour=…] [count=…] [gift=…], decline, or cancel",
        ]
        for words, complaint in (
            (("yes",), "a form is answered with accept, decline or cancel, not 'yes'"),
            (("accept",), "the form needs name=…"),
            (("accept", "nome=x"), "the form has no field 'nome'; it has: name, colour, count"),
            (("accept", "name=x", "count=y"), "count: expected a whole number, 1 to 10, not 'y'"),
            (("accept", "x"), "expected OPTION=VALUE"),
            (("decline", "name=x"), "decline takes no fields"),
        ):
            refused(dragoman("sessions", "answer", "fix", *words), complaint)
        assert dragoman("sessions", "answer", "fix", "accept", "name=Ada", "count=3").code == 0
        screen.wait_for("exit code 0")
    shown = dragoman("sessions", "show", "fix").lines
    assert {"- name: Ada", "- count: 3", "- colour: green", "- gift: False"} <= set(shown)


@needs_tmux
def test_a_permission_takes_no_values(dragoman: Dragoman) -> None:
    command = [str(COMMAND), "--session", "fix", "hello"]
    with on_screen(command, env=dragoman.env, cwd=dragoman.workspace) as screen:
        screen.wait_for("choose 1-")
        done = dragoman("sessions", "answer", "fix", "allow_once", "name=x")
        refused(done, "unexpected 'name=x': a permission takes one option")
        screen.press("C-c")
        assert screen.exit_code() == 130


# ── renamed, counted ──────────────────────────────────────────────────────────────────────────


def test_an_empty_title_is_refused(user: Dragoman) -> None:
    user("--session", "fix", "one")
    for title in ("", "  "):
        refused(user("sessions", "rename", "fix", title), "the title is empty")
    [found] = json.loads(user("sessions", "list", "--json").out)
    assert found["title"] == "one"


def test_a_session_gets_a_name_that_continues_it(user: Dragoman) -> None:
    assert user("-o", "simple", "one").out == "1. one\n"
    assert user("--session", "taken", "-o", "simple", "one").code == 0
    [_, unnamed] = json.loads(user("sessions", "list", "--json").out)
    assert unnamed["name"] is None
    done = user("sessions", "rename", unnamed["id"], "A title", "--name", "taken")
    refused(done, "another session in this directory is named taken", code=1)
    refused(user("sessions", "rename", "taken"), "the new title as the last argument, or a name")
    assert user("sessions", "rename", unnamed["id"], "--name", "fix").code == 0
    assert user("--session", "fix", "-o", "simple", "two").out == "2. two\n"
    [found, _] = json.loads(user("sessions", "list", "--json").out)
    assert (found["id"], found["title"]) == (unnamed["id"], "one")


@pytest.mark.parametrize("count", ["0", "-3", "x"])
def test_a_list_of_less_than_one_is_refused(user: Dragoman, count: str) -> None:
    for words in (("list",), ("search", "x")):
        done = user("sessions", *words, "--limit", count)
        refused(done, f"--limit: expected a whole number of at least 1, not {count}")


# ── let go ────────────────────────────────────────────────────────────────────────────────────


def test_a_session_that_runs_is_deleted_once_it_was_closed(user: Dragoman) -> None:
    with running(user, "--session", "fix") as process:
        [found] = json.loads(user("sessions", "list", "--json").out)
        hint = f"`dragoman sessions close {found['id']}` closes it, and then it can be deleted"
        refused(user("sessions", "delete", "fix"), "is run by process", hint, code=1)
        assert user("sessions", "close", "fix").code == 0
        process.wait(120)
    assert user("sessions", "delete", "fix").code == 0
    assert json.loads(user("sessions", "list", "--json").out) == []


def known(user: Dragoman) -> list[str]:
    listed = user("sessions", "list", "--known", "-a", "demo", "--json")
    return [each["agentSessionId"] for each in json.loads(listed.out)]


def test_a_session_that_nothing_was_asked_in_is_forgotten_by_the_agent_too(
    dragoman: Dragoman,
) -> None:
    for words, code in (
        (("--list-modes", "--list-commands"), 0),
        (("--mode", "bogus", "hi"), 2),
        (("--model", "bogus", "hi"), 2),
        (("--set", "foo=bar", "hi"), 2),
    ):
        assert dragoman(*words).code == code
        assert known(dragoman) == []


def test_a_session_that_was_asked_something_before_stays(dragoman: Dragoman) -> None:
    assert dragoman("--session", "fix", "/think").code == 0
    [before] = known(dragoman)
    assert dragoman("--session", "fix", "--mode", "bogus", "hi").code == 2
    assert dragoman("--resume", before, "--list-modes").code == 0
    assert known(dragoman) == [before]


def test_a_session_whose_id_was_wanted_stays(dragoman: Dragoman) -> None:
    saved = dragoman.home / "id"
    assert dragoman("--no-store", "--save-session", str(saved), "--list-modes").code == 0
    assert known(dragoman) == [saved.read_text().strip()]
    assert dragoman("--no-store", "--resume", saved.read_text().strip(), "/think").code == 0


def test_what_a_session_changed_is_shown_and_undone(user: Dragoman) -> None:
    file = user.workspace / "dragoman-demo.txt"
    assert user("-a", "demo", "--session", "fix", "--yolo", "please begin").code == 0
    shown = user("sessions", "changes", "fix")
    assert shown.lines[0] == "dragoman-demo.txt"
    assert "  +You asked: please begin" in shown.lines
    [change] = json.loads(user("sessions", "changes", "fix", "--json").out)
    assert (change["path"], change["source"]) == (str(file), "host")
    undone = user("sessions", "revert", "fix")
    assert (undone.code, undone.lines) == (0, [str(file)])
    assert not file.exists()
    assert user("sessions", "revert", "fix").lines == ["nothing to revert"]
    assert user("sessions", "changes", "fix").lines == ["no changes"]


_BY_ITSELF = """
from pathlib import Path
from dragoman.testing import AgentTurn, ScriptedAgent

async def answer(turn: AgentTurn) -> None:
    (Path(turn.cwd) / "notes.txt").write_text("changed")

ScriptedAgent(answer).serve_stdio()
"""


def test_without_its_snapshots_one_line_says_what_is_not_known(user: Dragoman) -> None:
    (user.workspace / "notes.txt").write_text("mine")
    program = user.home / "agent.py"
    program.write_text(_BY_ITSELF)
    alone = {"command": sys.executable, "args": [str(program)]}
    user.write_settings({"agent_servers": {"alone": alone}})
    assert user("-a", "alone", "--session", "fix", "please begin").code == 0
    assert user("sessions", "changes", "fix").lines[0].startswith("notes.txt")
    [snapshots] = user.state.rglob("snapshots")
    shutil.rmtree(snapshots)
    shown = user("sessions", "changes", "fix")
    assert (shown.code, shown.lines) == (0, ["no changes were seen"])
    reason = f"the snapshots of {user.workspace} are not in this data directory"
    assert (shown.err.startswith(f"incomplete: {reason}"), shown.err.count("\n")) == (True, 1)
    refused(user("sessions", "revert", "fix"), f"nothing was reverted: {reason}", code=1)
    assert (user.workspace / "notes.txt").read_text() == "changed"


def test_a_hunk_is_undone_and_the_revert_too(user: Dragoman) -> None:
    file = user.workspace / "dragoman-demo.txt"
    for name, text in ((".gitignore", "*.log\n"), ("a.log", "never watched\n")):
        (user.workspace / name).write_text(text)
    assert user("-a", "demo", "--session", "fix", "--yolo", "please begin").code == 0
    shown = user("sessions", "changes", "fix", "--turn", "-1", "--json")
    assert shown.err == "left out: what git ignores (a.log)\n"
    [change] = json.loads(shown.out)
    assert (change["status"], change["by"], change["binary"]) == ("added", ["host"], False)
    assert (change["added"], change["removed"], len(change["turns"])) == (1, 0, 1)
    [hunk] = change["hunks"]
    assert (hunk["by"], hunk["lines"]) == (["host"], ["+You asked: please begin"])
    assert user("sessions", "revert", "fix", "--hunk", hunk["id"]).lines == [str(file)]
    assert not file.exists()
    gone = user("sessions", "revert", "fix", "--hunk", hunk["id"])
    refused(gone, "look at the changes again", code=1)
    refused(user("sessions", "changes", "fix", "--turn", "7"), "no turn 7: the session has 1")


def test_a_rewind_prints_the_session_to_continue_with(user: Dragoman) -> None:
    file = user.workspace / "dragoman-demo.txt"
    assert user("-a", "demo", "--session", "fix", "--yolo", "please begin").code == 0
    done = user("sessions", "rewind", "fix", "1")
    told = "a new conversation: the agent remembers nothing (nothing was said before)\n"
    assert (done.code, done.err, len(done.lines)) == (0, f"{file}\n{told}", 1)
    assert not file.exists()
    assert user("--resume", done.lines[0], "/think").code == 0
    nothing = user("sessions", "rewind", "fix", "1", "--no-files", "--no-conversation")
    refused(nothing, "leave nothing to do")


def test_the_agent_hears_the_whole_summary_of_a_rewound_session(user: Dragoman) -> None:
    assert user("-a", "demo", "--session", "fix", "--yolo", "please begin").code == 0
    assert user("--session", "fix", "--yolo", "please continue").code == 0
    done = user("sessions", "rewind", "fix", "-1", "--summary")
    assert (done.code, len(done.lines)) == (0, 1)
    [turn] = json.loads(user("sessions", "show", done.lines[0], "--json").out)["turns"]
    assert (turn["status"], turn["stopReason"]) == ("completed", "end_turn")


def test_what_was_changed_since_is_undone_by_force_alone(user: Dragoman) -> None:
    file = user.workspace / "dragoman-demo.txt"
    assert user("-a", "demo", "--session", "fix", "--yolo", "please begin").code == 0
    file.write_text("mine")
    refused = user("sessions", "revert", "fix", "dragoman-demo.txt")
    assert refused.code == 1
    choices = "use --keep FILE to leave a file as it is, --force to revert all others anyway"
    assert refused.err.endswith(f"; {choices}\n")
    assert file.read_text() == "mine"
    assert user("sessions", "revert", "fix", "--force").lines == [str(file)]
    assert not file.exists()


def test_force_is_offered_only_where_it_helps() -> None:
    both = "use --keep FILE to leave a file as it is, --force to revert all others anyway"
    changed, closed = {"a": "it has changed since"}, {"a": "permission denied"}
    offered = {
        str(explained(error)).rpartition("; ")[2]
        for error in (RevertConflict(changed), elsewhere(changed, by_force=True))
    }
    assert offered == {both}
    offered = {
        str(explained(error)).rpartition("; ")[2]
        for error in (RevertConflict(closed, by_force=False), elsewhere(closed, by_force=False))
    }
    assert offered == {"use --keep FILE to leave a file as it is"}
    moved = CommandRefused("s", "conflict", "session s is now running on b")
    assert explained(moved) is moved


def elsewhere(reasons: dict[str, str], *, by_force: bool) -> CommandRefused:
    """The same, as it comes from another process."""
    return as_refused("s", RevertConflict(reasons, by_force=by_force))


# ── of an agent without a name ────────────────────────────────────────────────────────────────


def test_a_session_of_a_command_is_forked_and_deleted_with_it(dragoman: Dragoman) -> None:
    command = dragoman.agent("remembering", "memory.py")
    assert dragoman("--agent-command", command, "--session", "fix", "hello").code == 0
    for words in (("fork", "fix"), ("delete", "fix")):
        refused(dragoman("sessions", *words), "not in the settings", "give --agent-command")
    other = dragoman.agent("remembering", "memory.py").replace(sys.executable, "/bin/other")
    refused(dragoman("sessions", "fork", "fix", "--agent-command", other), "not to other")
    forked = dragoman("sessions", "fork", "fix", "--agent-command", command)
    assert (forked.code, forked.err) == (0, "")
    answer = dragoman("--agent-command", command, "--resume", forked.out.strip(), "again")
    assert "2. again" in answer.out
    assert dragoman("sessions", "delete", "fix", "--agent-command", command).code == 0
    assert "hello" not in dragoman("sessions", "show", "fix").out

"""Signing in and out: by name before there is a prompt, and in the terminal one runs in."""

from __future__ import annotations

import shlex
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path

from support.command import PROGRAMS, Dragoman
from support.screen import Screen, needs_tmux, on_screen

WITH_LOGIN = PROGRAMS / "terminal_login.py"


def named(dragoman: Dragoman, name: str, *command: str) -> None:
    """Have the settings name this agent."""
    entry = {"command": command[0], "args": list(command[1:])}
    dragoman.write_settings({"agent_servers": {name: entry}})


def scripted(dragoman: Dragoman, agent: str, name: str = "it") -> None:
    named(dragoman, name, *shlex.split(dragoman.agent(agent)))


# ── agents login ──────────────────────────────────────────────────────────────────────────────


def test_login_lists_the_ways_there_are(dragoman: Dragoman) -> None:
    scripted(dragoman, "signed_out")
    done = dragoman("agents", "login", "it")
    assert (done.code, done.err) == (0, "")
    assert done.lines == [
        "  oauth: Log in - opens a browser",
        "  term: Log in here, in this terminal",
    ]


def test_login_adds_what_our_own_table_knows(dragoman: Dragoman) -> None:
    scripted(dragoman, "signed_out", name="gemini")
    done = dragoman("agents", "login", "gemini")
    assert done.lines[-1].startswith(
        "  outside Dragoman: set `GEMINI_API_KEY`, or run `gemini` once"
    )


def test_login_goes_the_way_that_was_chosen(dragoman: Dragoman) -> None:
    scripted(dragoman, "opening_in_time")
    done = dragoman("agents", "login", "it", "oauth")
    assert (done.code, done.out) == (0, "signed in to it\n")


def test_what_is_typed_for_an_agent_without_a_name_works(dragoman: Dragoman) -> None:
    """The line that the refusal gives, as it stands there."""
    refused = dragoman("hello", agent="opening_in_time")
    line = shlex.split(refused.err.split("\n")[1].removesuffix("  Log in"))
    assert line[:3] == ["dragoman", "agents", "login"]
    done = dragoman(*line[1:])
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("signed in to ")


def test_login_takes_a_name_or_a_command(dragoman: Dragoman) -> None:
    command = dragoman.agent("signed_out")
    for words in (("login", "it", "oauth"), ("logout", "it")):
        done = dragoman("agents", *words, "--agent-command", command)
        assert done.code == 2
        assert done.err == "dragoman: name the agent or use --agent-command, not both\n"


def test_login_by_an_unknown_way_says_which_there_are(dragoman: Dragoman) -> None:
    scripted(dragoman, "signed_out")
    done = dragoman("agents", "login", "it", "password")
    assert done.code == 2
    assert done.err == ("dragoman: no sign-in method 'password'; available: oauth, term\n")


def test_login_in_a_terminal_needs_one(dragoman: Dragoman) -> None:
    named(dragoman, "it", "setsid", "-w", sys.executable, str(WITH_LOGIN))
    command = ["setsid", "-w", *dragoman.command("agents", "login", "it", "term")]
    done = subprocess.run(
        command, env=dragoman.env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 8
    assert "signing in needs a terminal; run WHO=Ada setsid" in done.stderr


def test_what_is_refused_names_the_variable_of_an_agent_in_the_settings(
    dragoman: Dragoman,
) -> None:
    scripted(dragoman, "signed_out_without_ways", name="auggie")
    done = dragoman("-a", "auggie", "hello")
    assert done.code == 8
    assert done.err == (
        "dragoman: auggie requires you to sign in first:\n"
        "  outside Dragoman: set `AUGMENT_SESSION_AUTH`, or run `auggie login`\n"
    )


def test_what_is_refused_says_what_to_type_for_each_way(dragoman: Dragoman) -> None:
    scripted(dragoman, "signed_out")
    done = dragoman("-a", "it", "hello")
    assert done.code == 8
    assert done.err == (
        "dragoman: it requires you to sign in first:\n"
        "  dragoman agents login it oauth  Log in: opens a browser\n"
        "  dragoman agents login it term   Log in here\n"
    )


def test_what_is_refused_in_a_turn_says_the_same(dragoman: Dragoman) -> None:
    scripted(dragoman, "signed_out_later")
    done = dragoman("-a", "it", "hello")
    assert done.code == 8
    assert done.err == (
        "dragoman: it requires you to sign in first:\n  dragoman agents login it k  Key\n"
    )


# ── agents logout ─────────────────────────────────────────────────────────────────────────────


def test_logout_signs_out(dragoman: Dragoman) -> None:
    scripted(dragoman, "signed_out")
    done = dragoman("agents", "logout", "it")
    assert (done.code, done.out) == (0, "signed out of it\n")


def test_logout_of_an_agent_that_does_not_offer_it_fails(dragoman: Dragoman) -> None:
    scripted(dragoman, "without_mcp")
    done = dragoman("agents", "logout", "it")
    assert (done.code, done.err) == (1, "dragoman: the agent does not support logout\n")


# ── in the terminal ───────────────────────────────────────────────────────────────────────────


def screen(dragoman: Dragoman, *words: str) -> AbstractContextManager[Screen]:
    named(dragoman, "it", sys.executable, str(WITH_LOGIN))
    command = dragoman.command(*words)
    return on_screen(command, env=dragoman.env, cwd=dragoman.workspace)


@needs_tmux
def test_a_terminal_method_runs_the_agents_own_program_here(dragoman: Dragoman) -> None:
    with screen(dragoman, "agents", "login", "it", "term") as shown:
        shown.wait_for("code for Ada?")
        shown.enter("1234")
        shown.wait_for("exit code 0")
    assert Path(dragoman.env["HOME"], "token").exists()


@needs_tmux
def test_a_terminal_method_chosen_in_a_run_signs_in_and_goes_on(dragoman: Dragoman) -> None:
    with screen(dragoman, "hello") as shown:
        shown.wait_for("requires you to sign in first:\n  1. 'term' (Log in here)\n  2. Give up\n")
        shown.enter("1")
        shown.wait_for("code for Ada?")
        shown.enter("1234")
        assert "it knows you" in shown.wait_for("exit code 0")


@needs_tmux
def test_a_sign_in_that_fails_says_so(dragoman: Dragoman) -> None:
    with screen(dragoman, "agents", "login", "it", "term") as shown:
        shown.wait_for("code for Ada?")
        shown.enter("wrong")
        ended = shown.wait_for("exit code 8")
        assert "signing in failed: the agent's command exited with code 3" in ended


@needs_tmux
def test_a_device_code_is_shown_and_used(dragoman: Dragoman) -> None:
    named(dragoman, "it", sys.executable, str(PROGRAMS / "device_login.py"))
    command = dragoman.command("agents", "login", "it", "device")
    with on_screen(command, env=dragoman.env, cwd=dragoman.workspace) as shown:
        assert "Enter the code ABCD-1234" in shown.wait_for("done? [y/N]")
        assert "https://example.com/device" in shown.text()
        shown.enter("y")
        shown.wait_for("signed in to it")


def test_a_device_code_with_nobody_to_show_it_to_is_a_refusal(dragoman: Dragoman) -> None:
    named(dragoman, "it", sys.executable, str(PROGRAMS / "device_login.py"))
    done = dragoman("agents", "login", "it", "device")
    assert (done.code, done.out) == (8, "")

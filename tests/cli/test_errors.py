"""Bad input: one clear line that says what, where, and what to do."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from pathlib import Path

import pytest
from support.command import Dragoman

from dragoman.cli.exit_codes import sentence
from dragoman.cli.run.agent_setup import from_command


def test_an_unknown_agent_lists_the_names_and_says_where_they_come_from(
    dragoman: Dragoman,
) -> None:
    file = dragoman.write_settings({"agent_servers": {"mine": {"command": "x"}}})
    done = dragoman("-a", "yours", "x")
    assert done.code == 2
    assert done.err.startswith("dragoman: there is no agent 'yours'; known agents: mine, demo, ")
    assert done.err.endswith(f"; others go into agent_servers in {file}\n")
    assert done.err.count("\n") == 1
    done = dragoman("-a", "gemni", "x")
    assert done.code == 2
    assert done.err.startswith("dragoman: there is no agent 'gemni', did you mean gemini? known a")


def test_a_command_that_is_not_there(dragoman: Dragoman) -> None:
    done = dragoman("--agent-command", "no-such-agent --acp", "x")
    assert done.code == 1
    assert done.err == "dragoman: could not start 'no-such-agent': command not found in PATH\n"


def test_a_command_that_cannot_be_run(dragoman: Dragoman) -> None:
    script = dragoman.workspace / "agent"
    script.write_text("#!/bin/sh\n")
    done = dragoman("--agent-command", str(script), "x")
    assert done.code == 1
    assert done.err.startswith(f"dragoman: could not start '{script}': ")
    assert "is not executable" in done.err


def test_an_agent_that_prints_a_banner_and_exits(dragoman: Dragoman) -> None:
    done = dragoman("--agent-command", "echo This command has moved", "x")
    assert done.code == 1
    assert done.err == (
        "dragoman: the agent 'echo' ended before it spoke ACP (exited with code 0); it printed:\n"
        "This command has moved\n"
    )


def test_an_agent_that_only_complains_is_quoted_from_its_end(dragoman: Dragoman) -> None:
    done = dragoman("--agent-command", "sh -c 'seq 1 99 >&2; exit 3'", "x")
    assert done.code == 1
    first, *quoted = done.err.strip().split("\n")
    assert "ended before it spoke ACP (exited with code 3)" in first
    assert quoted == ["…", *map(str, range(90, 100))]


def test_an_agent_that_crashes_in_a_turn(dragoman: Dragoman) -> None:
    done = dragoman("x", agent="crashing")
    assert done.code == 1
    assert done.out == "last words\n"
    assert "dragoman: the agent 'dragoman.testing.serve' exited with code 7" in done.err


def test_an_agent_that_answers_with_an_error(dragoman: Dragoman) -> None:
    done = dragoman("x", agent="refusing")
    assert done.err == "dragoman: quota used up (code 429)\n"


def test_an_agent_that_wants_a_sign_in_says_how_for_each_way(dragoman: Dragoman) -> None:
    done = dragoman("x", agent="signed_out")
    assert done.code == 8
    first, *ways = done.err.splitlines()
    assert first.endswith("requires you to sign in first:")
    assert [way.split()[-1] for way in ways] == ["browser", "here"]
    assert all(way.startswith("  dragoman agents login --agent-command ") for way in ways)


def test_an_agent_that_names_no_way_to_sign_in(dragoman: Dragoman) -> None:
    done = dragoman("x", agent="signed_out_without_ways")
    assert done.code == 8
    assert "offers no method; sign in with its own command" in done.err


def test_an_agent_that_wants_a_sign_in_only_when_prompted(dragoman: Dragoman) -> None:
    done = dragoman("x", agent="signed_out_later")
    assert done.code == 8
    assert done.err.endswith(" k  Key\n")


@pytest.mark.parametrize(
    "words",
    [
        ("--agent-command", "ws://127.0.0.1:1/acp?key=CANARY#token=CANARY", "x"),
        ("--agent-command", "HTTP://127.0.0.1:1/acp", "x"),
        ("-a", "far", "x"),
    ],
)
def test_a_remote_agent_that_cannot_be_reached(dragoman: Dragoman, words: tuple[str, ...]) -> None:
    far = {"url": "http://127.0.0.1:1/acp", "headers": {"X-Key": "CANARY"}}
    dragoman.write_settings({"agent_servers": {"far": far}})
    done = dragoman(*words)
    assert done.code == 1
    assert "could not reach " in done.err
    assert "://127.0.0.1:1/acp: " in done.err
    assert "CANARY" not in done.out + done.err


def test_an_address_that_is_none_is_a_usage_error(dragoman: Dragoman) -> None:
    done = dragoman("--agent-command", "wss://", "x")
    assert done.code == 2
    assert "name a host" in done.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--cwd", "nowhere"), "--cwd nowhere: no such directory"),
        (("--cwd", "file"), "--cwd file: not a directory"),
        (("--add-dir", "nowhere"), "--add-dir nowhere: no such directory"),
        (("--attach", "nowhere.png"), "nowhere.png cannot be read: no such file or directory"),
        (("--attach", "."), ". cannot be read: is a directory"),
        (("-f", "nowhere.md"), "nowhere.md cannot be read: no such file or directory"),
    ],
)
def test_a_path_that_is_not_there(
    dragoman: Dragoman, words: tuple[str, ...], sentence: str
) -> None:
    (dragoman.workspace / "file").touch()
    prompt = () if "-f" in words else ("x",)
    done = dragoman(*words, *prompt, agent="quiet")
    assert (done.code, done.err) == (2, f"dragoman: {sentence}\n")


def test_an_attachment_that_can_be_opened_but_not_read(dragoman: Dragoman) -> None:
    done = dragoman("--attach", "/proc/self/mem", "x", agent="quiet")
    assert done.code == 2
    assert done.err == "dragoman: /proc/self/mem cannot be read: input/output error\n"


def test_a_prompt_and_a_prompt_file_are_one_too_many(dragoman: Dragoman) -> None:
    done = dragoman("-f", "x.md", "and this", agent="quiet")
    assert done.code == 2
    assert "not both" in done.err


@pytest.mark.parametrize(
    ("words", "known"),
    [
        (("--mode", "x"), "there is no mode 'x'; there are: code, ask"),
        (("--model", "x"), "'brain' cannot be 'x'; it can be: small, large"),
        (("--set", "x=1"), "there is no option 'x'; there are: brain, loud"),
        (("--set", "loud=x"), "the option 'loud' is on or off"),
    ],
)
def test_what_the_agent_does_not_have_is_refused_with_what_it_has(
    dragoman: Dragoman, words: tuple[str, ...], known: str
) -> None:
    done = dragoman(*words, "x", agent="telling")
    assert done.code == 2
    assert known in done.err
    assert done.out == ""


def test_an_agent_without_modes_says_so(dragoman: Dragoman) -> None:
    done = dragoman("--mode", "x", "x", agent="modeless")
    assert (done.code, done.err) == (2, "dragoman: the agent does not support modes\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "expected strict JSON"),
        ("[]", "expected an object"),
        ('{"rules": [{"effect": "allow", "colour": "red"}]}', "rules[0].colour: expected only"),
        ('{"rules": [{"effect": "maybe"}]}', "rules[0].effect: expected allow, ask or deny"),
    ],
)
def test_a_bad_policy_names_the_file_and_the_place(
    dragoman: Dragoman, text: str, expected: str
) -> None:
    file = dragoman.home / "rules.json"
    file.write_text(text)
    done = dragoman("--policy", str(file), "x", agent="quiet")
    assert done.code == 2
    assert done.err.startswith(f"dragoman: {file}: ")
    assert expected in done.err
    assert done.err.count("\n") == 1


def test_a_policy_that_is_not_there(dragoman: Dragoman) -> None:
    done = dragoman("--policy", "nowhere.toml", "x", agent="quiet")
    assert done.code == 2
    assert "nowhere.toml: expected a readable file" in done.err


def broken(dragoman: Dragoman, tmp_path: Path) -> dict[str, str]:
    """An environment in which something of ours fails in a way nobody foresaw."""
    (tmp_path / "sitecustomize.py").write_text(
        "import dragoman.cli.commands.run as turn\n"
        "def fail(job): raise RuntimeError('\\x1b[31mboom')\n"
        "turn.run_job = fail\n"
    )
    return {"PYTHONPATH": str(tmp_path)}


def test_an_internal_error_is_one_line_without_a_traceback(
    dragoman: Dragoman, tmp_path: Path
) -> None:
    done = dragoman("x", agent="quiet", env=broken(dragoman, tmp_path))
    assert done.code == 1
    assert done.err == "dragoman: internal error: RuntimeError: boom (--debug shows where)\n"


def test_debug_shows_the_traceback_and_the_log(dragoman: Dragoman, tmp_path: Path) -> None:
    done = dragoman("--debug", "x", agent="quiet", env=broken(dragoman, tmp_path))
    assert done.code == 1
    assert "Traceback (most recent call last):" in done.err
    assert "in fail" in done.err
    assert "DEBUG:" in dragoman("--debug", "x", agent="quiet").err


def test_a_known_agent_that_is_not_there_comes_with_how_to_get_it(dragoman: Dragoman) -> None:
    done = dragoman("-a", "gemini", "x", env={"PATH": "/usr/bin:/bin"})
    assert done.code == 1
    assert done.err.startswith("dragoman: could not start 'gemini': command not found in PATH; ")
    assert "to install: npm install " in done.err


def test_a_server_is_not_started_for_an_agent_that_is_not_there(dragoman: Dragoman) -> None:
    done = dragoman("serve", "-a", "nope")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("dragoman: there is no agent 'nope'; known agents: ")
    assert done.err.count("\n") == 1


def test_a_session_without_a_name_is_none(dragoman: Dragoman) -> None:
    done = dragoman("--session", " ", "x")
    assert (done.code, done.out) == (2, "")
    assert "--session: the name must not be empty" in done.err


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        ("no-such-agent --acp", "arguments go into args, one string each"),
        ("$HOME/no-such-agent", "variables are not expanded, only a leading ~"),
    ],
)
def test_a_command_that_is_written_wrong_says_how_it_is_written(
    dragoman: Dragoman, command: str, hint: str
) -> None:
    dragoman.write_settings({"agent_servers": {"mine": {"command": command}}})
    done = dragoman("x")
    assert done.code == 1
    assert done.err.endswith(f"; {hint}\n")


def test_a_command_may_begin_in_the_home_of_the_user(dragoman: Dragoman) -> None:
    dragoman.write_settings({"agent_servers": {"mine": {"command": "~/no-such-agent"}}})
    done = dragoman("x")
    assert f"could not start '{dragoman.home}/no-such-agent': no such file" in done.err


def test_a_program_that_is_no_agent_is_taken_for_none(dragoman: Dragoman) -> None:
    done = dragoman("--agent-command", "cat", "x")
    assert done.code == 1
    assert "is this an ACP agent?" in done.err


@pytest.mark.parametrize("words", [("x",), ("sessions", "list")])
def test_a_data_directory_that_cannot_be_used_says_what_to_do(
    dragoman: Dragoman, tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "file").touch()
    done = dragoman(*words, env={"DRAGOMAN_HOME": str(tmp_path / "file")})
    assert done.code == 1
    assert "; $DRAGOMAN_HOME can name another directory, --no-store keeps no record" in done.err


@pytest.mark.parametrize(
    ("number", "path", "is_hinted"),
    [
        (errno.EACCES, "{home}", True),
        (errno.ENOSPC, "{home}/sessions.db", True),
        (errno.EACCES, "{base}/missing", True),  # could not be made
        (errno.ENOTDIR, "{base}/missing", True),
        (errno.EACCES, "{base}", False),
        (errno.EISDIR, "{base}", False),
        (errno.EISDIR, "{home}", False),
        (errno.ENOENT, "{home}/policy.json", False),
        (errno.EACCES, "/", False),
        (errno.EACCES, "{base}/other", False),
    ],
)
def test_another_data_directory_is_advised_only_where_it_helps(
    number: int, path: str, is_hinted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "missing" / "home"
    monkeypatch.setenv("DRAGOMAN_HOME", str(home))
    error = OSError(number, os.strerror(number), path.format(home=home, base=tmp_path))
    assert ("$DRAGOMAN_HOME" in sentence(error)) == is_hinted
    monkeypatch.setenv("DRAGOMAN_HOME", "relative")
    assert sentence(error).startswith(error.filename)


def test_a_data_directory_is_the_same_in_every_folder(dragoman: Dragoman) -> None:
    done = dragoman("x", env={"DRAGOMAN_HOME": "here"})
    assert done.code == 2
    assert done.err == "dragoman: $DRAGOMAN_HOME: expected an absolute path, not 'here'\n"
    assert not (dragoman.workspace / "here").exists()


def test_what_is_wrong_with_an_action_points_at_its_own_help(dragoman: Dragoman) -> None:
    done = dragoman("sessions", "export", "fix", "--shape", "md")
    assert done.code == 2
    assert done.err == ("dragoman: no such option: --shape; see dragoman sessions export --help\n")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [("--version",), ("--help",), ("policy", "list", "--help")])
def test_a_version_that_cannot_be_written_is_a_failure(
    dragoman: Dragoman, words: tuple[str, ...], unbuffered: str
) -> None:
    """Nor a help, whether or not Python buffers it."""
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            dragoman.command(*words),
            env=dragoman.env | {"PYTHONUNBUFFERED": unbuffered},
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
        )
    assert done.returncode == 1
    assert done.stderr == b"dragoman: no space left on device\n"


def test_a_file_that_is_no_text_is_no_prompt(dragoman: Dragoman, tmp_path: Path) -> None:
    (tmp_path / "picture").write_bytes(b"\x89PNG\0\xff")
    done = dragoman("-f", str(tmp_path / "picture"), agent="telling")
    assert done.code == 2
    assert "picture is not text; --attach FILE sends a file as it is" in done.err
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    done = dragoman("-f", str(tmp_path / "latin"), agent="telling")
    assert done.code == 0
    assert "latin is not valid UTF-8; invalid bytes are sent as \ufffd" in done.err


def test_a_dash_is_standard_input(dragoman: Dragoman) -> None:
    done = dragoman("-", agent="telling", stdin="piped in")
    assert "text='piped in'" in done.out


@pytest.mark.parametrize(
    ("agent", "flags", "hint"),
    [
        ("asking", (), "see --write, --exec, --yolo and --policy"),
        ("asking", ("--write",), "--write did not cover it"),
        ("writing", (), "see --write, --exec, --yolo and --policy"),
        ("writing", ("--exec",), "--exec did not cover it"),
        ("insisting", ("--write",), "--write did not cover it"),
    ],
)
def test_a_refusal_says_which_flag_did_not_count(
    dragoman: Dragoman, agent: str, flags: tuple[str, ...], hint: str
) -> None:
    done = dragoman(*flags, "x", agent=agent)
    assert done.code == 5
    more = "; --yolo or a rule (--policy) may allow it" if flags else ""
    assert done.err.endswith(f"was refused; {hint}{more}\n")


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ("writing", ("--write", ".git/config")),
        ("writing", ("--write", "/etc/dragoman-test")),
        ("writing", ("--exec", "--no-files", "x")),
        ("writing", ("--write", "--no-files", "x")),
        ("asking", ("--write", "--policy", "rules.json", "x")),
        ("asking", ("--policy", "rules.json", "x")),
        ("questioning", ("--exec", "x")),
    ],
)
def test_what_no_flag_would_change_is_refused_without_naming_one(
    dragoman: Dragoman, agent: str, words: tuple[str, ...]
) -> None:
    rules = {"rules": [{"effect": "ask", "operation": "execute"}]}
    (dragoman.workspace / "rules.json").write_text(json.dumps(rules))
    done = dragoman(*words, agent=agent)
    assert done.code == 5
    assert done.err.endswith("every permission request was refused\n")


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("python3 /opt/agent.py --acp", "agent.py"),
        ("/usr/bin/python3.12 -m some.agent", "some.agent"),
        ("python3 agent.py -c x", "agent.py"),
        ("python3 -X dev agent.py", "python3"),
        ("python3 -W ignore agent.py", "python3"),
        ("python3 -u -m some.agent", "python3"),
        ("python3 -m", "python3"),
        ("node --require ./pre.js main.js", "node"),
        ("node --eval 'x y'", "node"),
        ("bash -lc 'exec /opt/agent --flag'", "bash"),
        ("perl -m strict agent.pl", "perl"),
        ("npx -y @x/agent", "npx"),
        ("python3", "python3"),
        ("node dist/index.js", "index.js"),
        ("sh -c 'exec agent'", "sh"),
        ("python3 -c 'print(1)'", "python3"),
        ("goose acp", "goose"),
    ],
)
def test_an_agent_is_called_by_its_script_not_by_its_interpreter(command: str, name: str) -> None:
    assert from_command(command).name == name

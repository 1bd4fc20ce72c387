"""`dragoman agents doctor`: a well agent gets a clean bill, and each fault is named."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from support.command import Done, Dragoman

PATIENTS = Path(__file__).parent / "programs" / "patients.py"
ALONE = ("rude", "lingering")
"""Patients that need a process of their own: what they do to it is what is found."""


def doctor(dragoman: Dragoman, patient: str, *words: str) -> Done:
    alone = [sys.executable, "-m", "dragoman.testing.serve", f"{PATIENTS}:{patient}"]
    shared = dragoman.agent(patient, PATIENTS.name)
    command = shlex.join(alone) if patient in ALONE else shared
    return dragoman("agents", "doctor", "--agent-command", command, *words)


def grades(done: Done) -> dict[str, str]:
    """The grade of each check, from the report for people."""
    found = re.findall(r"^  (pass|warn|FAIL|skip)  ([a-z ]+?) {2,}", done.out, re.MULTILINE)
    return {check: grade for grade, check in found}


def findings(done: Done) -> dict[str, Any]:
    return {finding["check"]: finding for finding in json.loads(done.out)["findings"]}


ALWAYS = {
    *("start", "handshake", "version", "capabilities", "session", "prompt", "cancel", "modes"),
    *("list", "fork", "close", "unknown method", "unknown session", "broken line", "requests"),
    *("output", "complaints", "exit", "nothing left", "load", "resume", "delete"),
}


def test_a_well_agent_passes_every_check(dragoman: Dragoman) -> None:
    """The demo agent: it offers everything, also to a second process."""
    done = dragoman("agents", "doctor", "demo")
    assert (done.code, done.err) == (0, "")
    assert set(grades(done)) == {*ALWAYS, "start again", "handshake again"}
    assert set(grades(done).values()) == {"pass"}
    assert done.lines[-1] == "24 passed, 0 warnings, 0 failed, 0 skipped"
    # A switch among them, which an agent does not tell of to clients that know none.
    assert re.search("^  pass  session .* 3 modes, 3 options$", done.out, re.MULTILINE)


def test_an_agent_that_can_delete_is_left_without_a_session(dragoman: Dragoman) -> None:
    assert dragoman("agents", "doctor", "demo").code == 0
    assert dragoman("sessions", "list", "--known", "-a", "demo").out == "demo knows no sessions\n"


def test_what_is_not_advertised_is_not_asked_for(dragoman: Dragoman) -> None:
    done = doctor(dragoman, "well")
    assert done.code == 0
    assert set(grades(done)) == ALWAYS
    assert {check for check, grade in grades(done).items() if grade != "pass"} == {
        *("load", "resume", "delete")
    }
    assert "The Well One 3" in done.out
    assert done.lines[-1] == "19 passed, 0 warnings, 0 failed, 3 skipped"


def test_every_rudeness_is_named(dragoman: Dragoman) -> None:
    done = doctor(dragoman, "rude", "--json", "--timeout", "5")
    assert done.code == 1
    report, found = json.loads(done.out), findings(done)
    assert report["result"] == "fail"
    expected = {
        "handshake": ("warn", "agentInfo.name is missing"),
        "prompt": ("warn", "the update agent_message_chunk came after the response"),
        "cancel": ("warn", "the cancelled turn ended with 'end_turn'"),
        "unknown method": ("warn", "the unknown method got a result"),
        "requests": ("warn", "fs/read_text_file was called, but is not offered"),
        "output": ("warn", "a line is not a message: a line that is no"),
        "complaints": ("pass", "1 line on standard error, ending with: rude agent: warming up"),
        "nothing left": ("warn", "left running: sleep"),
        "load": ("fail", "session/load is advertised but not implemented"),
        "list": ("skip", "the agent does not advertise sessionCapabilities.list"),
    }
    for check, (grade, words) in expected.items():
        assert found[check]["grade"] == grade, found[check]
        assert words in found[check]["text"]
    assert report["counts"]["fail"] == 1


def test_an_agent_that_wants_a_sign_in_is_no_failure(dragoman: Dragoman) -> None:
    done = doctor(dragoman, "signed_out")
    assert done.code == 0
    assert grades(done)["session"] == "warn"
    assert "requires a sign-in first: -32000 log in first; it offers browser" in done.out
    assert grades(done)["prompt"] == "skip"
    assert "the agent has exited" not in done.out
    assert done.lines[-2] == "11 passed, 1 warning, 0 failed, 10 skipped"
    assert done.lines[-1] == "to sign in: dragoman agents login --agent-command …"


def test_what_is_known_of_an_agent_is_said_beside_what_was_found(dragoman: Dragoman) -> None:
    command = shlex.split(dragoman.agent("crashing_at_strangers", PATIENTS.name))
    entry = {"command": command[0], "args": command[1:]}
    dragoman.write_settings({"agent_servers": {"hermes": entry}})
    done = dragoman("agents", "doctor", "hermes")
    assert done.code == 0
    assert "it got an internal error: -32603 who?" in done.out
    assert "\nknown of Hermes Agent:\n  It edits files and runs commands itself" in done.out
    assert grades(done)["exit"] == "pass"


def test_modes_that_are_an_option_are_switched_too(dragoman: Dragoman) -> None:
    done = doctor(dragoman, "with_modes_as_an_option")
    assert done.code == 0
    assert "switched to another and back" in done.out


def test_another_protocol_version_is_a_failure(dragoman: Dragoman) -> None:
    done = doctor(dragoman, "from_the_future")
    assert done.code == 1
    assert "requested protocol version 1, got 7" in done.out


def test_a_turn_that_cannot_be_cancelled_is_a_failure(dragoman: Dragoman) -> None:
    done = doctor(dragoman, "stubborn", "--timeout", "2")
    assert done.code == 1
    assert grades(done)["cancel"] == "FAIL"
    # What does not need the session to be free goes on.
    assert grades(done)["unknown method"] == "pass"


@pytest.mark.soak  # it is given its five seconds
def test_an_agent_that_stays_when_its_input_ends_is_told_so(dragoman: Dragoman) -> None:
    done = doctor(dragoman, "lingering")
    assert done.code == 0
    assert "it did not exit within 5 s of the end of its input" in done.out


@pytest.mark.parametrize(
    ("command", "check", "words"),
    [
        ("/no/such/agent", "start", "could not start '/no/such/agent'"),
        ("sh -c 'echo Welcome; exit 3'", "handshake", "ended before it spoke ACP"),
    ],
)
def test_what_is_no_agent_fails_in_a_sentence(
    dragoman: Dragoman, command: str, check: str, words: str
) -> None:
    done = dragoman("agents", "doctor", "--agent-command", command)
    assert done.code == 1
    assert grades(done)[check] == "FAIL"
    assert words in done.out
    assert "Traceback" not in done.out + done.err


def test_a_known_agent_that_is_not_there_can_be_installed(dragoman: Dragoman) -> None:
    done = dragoman("agents", "doctor", "goose", env={"PATH": "/nowhere"})
    assert done.code == 1
    assert done.lines[-1] == "to install it: npm install -g @aaif/goose-acp"


def test_arguments_and_environment_stay_secret(dragoman: Dragoman) -> None:
    entry = {"command": "sh", "args": ["-c", "exit 1", "CANARY"], "env": {"KEY": "CANARY"}}
    dragoman.write_settings({"agent_servers": {"mine": entry}})
    for words in ((), ("--json",)):
        done = dragoman("agents", "doctor", "mine", *words)
        assert done.code == 1
        assert "CANARY" not in done.out + done.err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("nobody",), "there is no agent 'nobody'; known agents: demo, claude"),
        (("demo", "--agent-command", "x"), "name the agent or use --agent-command, not both"),
        (("demo", "--timeout", "0"), "--timeout"),
        (("--agent-command", "wss://"), "--agent-command: an address must start with ws://"),
    ],
)
def test_what_cannot_be_examined_is_a_usage_error(
    dragoman: Dragoman, words: tuple[str, ...], complaint: str
) -> None:
    done = dragoman("agents", "doctor", *words)
    assert done.code == 2
    assert complaint in done.err

"""What the flags, a policy file and the lack of anyone to ask come to, seen from outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.command import Done, Dragoman


def offers(done: Done) -> dict[str, object]:
    """What was advertised to the agent."""
    sent = next(frame for frame in done.frames if frame.get("method") == "initialize")
    return sent["params"]["clientCapabilities"]


def policy(dragoman: Dragoman, *rules: dict[str, object]) -> tuple[str, str]:
    file = dragoman.home / "rules.json"
    file.write_text(json.dumps({"rules": rules}))
    return "--policy", str(file)


def test_a_write_without_a_flag_is_refused_and_said_so(dragoman: Dragoman) -> None:
    done = dragoman("notes.txt", agent="writing")
    assert done.code == 5
    assert "could not: " in done.out
    assert not (dragoman.workspace / "notes.txt").exists()
    assert f"dragoman: refused to write {dragoman.workspace}/notes.txt: " in done.err
    assert "see --write, --exec, --yolo and --policy" in done.err


@pytest.mark.parametrize("flag", ["--write", "--yolo"])
def test_a_flag_allows_writes_inside_the_workspace(dragoman: Dragoman, flag: str) -> None:
    done = dragoman(flag, "deep/notes.txt", agent="writing")
    assert done.code == 0
    assert (dragoman.workspace / "deep" / "notes.txt").read_text() == "written\n"
    assert "[diff] +written" in done.lines


@pytest.mark.parametrize("flag", ["--write", "--yolo"])
def test_no_flag_allows_writes_outside(dragoman: Dragoman, flag: str, tmp_path: Path) -> None:
    done = dragoman(flag, str(tmp_path / "notes.txt"), agent="writing")
    assert done.code == 5
    assert not (tmp_path / "notes.txt").exists()
    assert "writes outside the workspace are always refused" in done.err


@pytest.mark.parametrize(("flag", "code"), [("--exec", 0), ("--yolo", 0), ("--write", 5)])
def test_a_command_runs_with_the_flag_for_it(dragoman: Dragoman, flag: str, code: int) -> None:
    done = dragoman(flag, "echo ran; pwd", agent="running")
    assert done.code == code
    assert ("exit=0 output=ran" in done.out) == (code == 0)
    assert (str(dragoman.workspace) in done.out) == (code == 0)


def test_a_request_of_the_agent_is_answered_by_the_flags(dragoman: Dragoman) -> None:
    assert dragoman("-o", "simple", "x", agent="asking").out == "chosen=reject\n"
    done = dragoman("--exec", "x", agent="asking")
    assert done.code == 0
    assert done.lines == [
        "[tool] Run the tests (pending)",
        "[permission] run make test: allowed (--exec allows it)",
        "chosen=allow",
    ]
    refused = dragoman("x", agent="asking")
    assert "[permission] run make test: refused (there is nobody to ask)" in refused.lines


def test_two_ways_to_say_yes_are_a_question_and_never_answered_by_a_flag(
    dragoman: Dragoman,
) -> None:
    done = dragoman("--yolo", "-o", "simple", "x", agent="questioning")
    assert (done.code, done.out) == (5, "chosen=n\n")


def test_where_there_is_no_way_to_refuse_it_is_cancelled_and_said_why(dragoman: Dragoman) -> None:
    done = dragoman("-o", "simple", "x", agent="insisting")
    assert done.out == "chosen=None\n"
    assert "the request offers no way to refuse" in done.err


def test_a_policy_file_allows_and_denies(dragoman: Dragoman) -> None:
    allow = policy(dragoman, {"effect": "allow", "operation": "write", "path": "**/notes.txt"})
    assert dragoman(*allow, "notes.txt", agent="writing").code == 0
    assert dragoman(*allow, "other.txt", agent="writing").code == 5
    deny = policy(dragoman, {"effect": "deny", "operation": "write", "path": "**/notes.txt"})
    done = dragoman(*deny, "--yolo", "notes.txt", agent="writing")
    assert done.code == 5
    assert "denies it" in done.err


def test_every_policy_file_counts(dragoman: Dragoman) -> None:
    deny, allow, broken = (dragoman.home / name for name in ("deny", "allow", "broken"))
    deny.write_text('{"rules": [{"effect": "deny", "operation": "write"}]}')
    allow.write_text('{"rules": [{"effect": "allow", "operation": "write"}]}')
    broken.write_text("{")
    for both in ((deny, allow), (allow, deny)):
        words = [word for file in both for word in ("--policy", str(file))]
        assert dragoman(*words, "x", agent="writing").code == 5
    words = ["--policy", str(broken), "--policy", str(allow)]
    assert dragoman(*words, "x", agent="writing").code == 2


def test_a_policy_can_be_toml(dragoman: Dragoman) -> None:
    file = dragoman.home / "rules.toml"
    file.write_text('[[rules]]\neffect = "allow"\noperation = "execute"\n')
    assert dragoman("--policy", str(file), "true", agent="running").code == 0


def test_writing_is_advertised_only_when_something_could_allow_it(dragoman: Dragoman) -> None:
    silent = offers(dragoman("-j", "x", agent="quiet"))
    assert silent["fs"] == {"readTextFile": True}
    assert silent["terminal"] is True
    for words in (("--write",), policy(dragoman, {"effect": "allow", "operation": "write"})):
        offered = offers(dragoman(*words, "-j", "x", agent="quiet"))
        assert offered["fs"] == {"readTextFile": True, "writeTextFile": True}


def test_files_and_terminals_can_be_switched_off(dragoman: Dragoman) -> None:
    offered = offers(dragoman("--yolo", "--no-files", "-j", "x", agent="quiet"))
    assert (offered.get("fs"), offered["terminal"]) == ({}, True)
    done = dragoman("--yolo", "--no-terminals", "-j", "true", agent="running")
    assert not offers(done).get("terminal")
    error = next(frame["error"] for frame in done.frames if "error" in frame)
    assert error["code"] == -32601


def test_a_session_that_began_without_files_goes_on_without_them(dragoman: Dragoman) -> None:
    words = ("--on-reset", "new", "--session", "s", "-j", "x")
    began = offers(dragoman("--no-files", *words, agent="quiet"))
    assert (began.get("fs"), began["terminal"]) == ({}, True)
    later = offers(dragoman(*words, agent="quiet"))
    assert (later.get("fs"), later["terminal"]) == ({}, True)


def test_elicitation_is_not_advertised_when_nobody_can_be_asked(dragoman: Dragoman) -> None:
    done = dragoman("-j", "x", agent="eliciting")
    assert offers(done).get("elicitation") is None
    error = next(frame["error"] for frame in done.frames if "error" in frame)
    assert error["code"] == -32601


def test_prompting_needs_a_terminal(dragoman: Dragoman) -> None:
    done = dragoman("--on-ask", "prompt", "x", agent="quiet")
    assert (done.code, done.out) == (2, "")
    assert done.err == "dragoman: --on-ask prompt needs a terminal\n"

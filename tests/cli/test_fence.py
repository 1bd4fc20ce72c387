"""`--fence`: an agent that never asks is held all the same, and every face says how."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from support.command import PROGRAMS, Dragoman, refused

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a fence needs Linux")

WRITER = f"{sys.executable} -m dragoman.testing.serve {PROGRAMS / 'lone_writer.py'}:writer"


@pytest.fixture
def fenced(dragoman: Dragoman) -> Dragoman:
    """The agent `writer` is fenced, and may read its own program, which may be in `/tmp`."""
    write_settings(dragoman, {"mode": "require", "read": [str(PROGRAMS)]})
    return dragoman


def write_settings(dragoman: Dragoman, fence: object, **more: object) -> None:
    command, *args = shlex.split(WRITER)
    writer = {"command": command, "args": args, "fence": fence}
    dragoman.write_settings({"agent_servers": {"writer": writer}} | more)


def test_it_writes_inside_and_nowhere_else(fenced: Dragoman) -> None:
    inside, elsewhere = fenced.workspace / "inside", Path("/tmp") / f"{fenced.home.name}-elsewhere"
    outside = Path(sys.prefix) / f"dragoman-{fenced.home.name}-outside"
    done = fenced("-o", "simple", "--session", "s", f"{inside} {elsewhere} {outside}")
    written = [f"{inside.name}: written", f"{elsewhere.name}: written"]
    assert done.lines == [*written, f"{outside.name}: Read-only file system"]
    assert inside.read_text() == "written by itself\n"
    assert not elsewhere.exists()  # its /tmp is its own, and gone
    assert list((fenced.state / "fences").iterdir()) == []
    try:
        assert fenced("-o", "simple", "--fence=off", str(outside)).lines[-1].endswith(": written")
    finally:
        outside.unlink(missing_ok=True)


def test_a_session_says_how_it_is_fenced(fenced: Dragoman) -> None:
    fenced("-o", "simple", "--session", "s", str(fenced.workspace / "x"))
    assert "fenced (namespaces)" in fenced("sessions", "show", "s").lines
    assert json.loads(fenced("sessions", "show", "s", "--json").out)["fence"] == "namespaces"


def test_the_option_alone_means_on_and_takes_no_prompt(dragoman: Dragoman) -> None:
    done = dragoman("--fence", "-a", "demo", "-o", "json", "hello")
    assert done.code in (0, 5), done.err
    refused(dragoman("--fence=maybe", "x"), "invalid choice: 'maybe'")


def test_the_fence_is_printed_with_its_reasons(fenced: Dragoman) -> None:
    (fenced.workspace / ".envrc").touch()
    done = fenced("policy", "fence", "-a", "writer")
    assert done.lines[0].startswith("built with ")
    assert f"  {fenced.workspace}  (the workspace)" in done.lines
    assert f"  {fenced.workspace / '.envrc'}  (it runs when you enter the directory)" in done.lines
    assert f"  {fenced.state}  (rules, sessions and tokens of Dragoman)" in done.lines
    printed = json.loads(fenced("policy", "fence", "-a", "writer", "--json").out)
    assert {"path", "mode", "reason"} == set(printed["places"][0])


def test_an_explanation_says_what_the_kernel_would_do(fenced: Dragoman) -> None:
    words = ("policy", "explain", "--fenced", "--agent", "writer", "--operation", "write", "--path")
    inside = fenced(*words, "x.txt")
    assert inside.lines[-1].endswith("if the agent does this itself in a fence: let through")
    outside = fenced(*words, "/etc/x", "--json")
    kernel = json.loads(outside.out)["kernel"]
    assert kernel == {"refused": True, "reason": "it is outside the workspace"}
    command = fenced("policy", "explain", "--fenced", "--", "git", "push")
    assert "not that it runs" in command.lines[-1]


def test_a_remote_agent_cannot_be_fenced(dragoman: Dragoman) -> None:
    done = dragoman("--fence=require", "--agent-command", "ws://127.0.0.1:9/", "x")
    refused(done, "it does not run on this machine; nothing was started")


@pytest.mark.parametrize(
    ("fence", "place", "problem"),
    [
        ("maybe", "fence", "one of off, on, require, not 'maybe'"),
        ({"mod": "on"}, "fence.mod", "did you mean mode?"),
        ({"write": ["cache"]}, "fence.write[0]", "an absolute path, not 'cache'"),
        ({"write": "/tmp"}, "fence.write", "a list, not a string"),
    ],
)
def test_wrong_settings_are_one_clear_line(
    dragoman: Dragoman, fence: object, place: str, problem: str
) -> None:
    write_settings(dragoman, fence)
    refused(dragoman("x"), f"agent_servers.writer.{place}", problem)


def test_folders_that_cannot_be_fenced_are_one_clear_line(dragoman: Dragoman) -> None:
    write_settings(dragoman, {"write": [str(dragoman.home / "nowhere")]})
    refused(dragoman("x"), "a folder that exists", "nowhere")
    write_settings(dragoman, {"write": ["/"]})
    refused(dragoman("x"), "a folder other than /")
    write_settings(dragoman, "on")
    refused(dragoman("--cwd", str(dragoman.home), "x"), "apart from Dragoman's data")

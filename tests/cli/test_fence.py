"""`--fence`: an agent that never asks is held all the same, and every face says how."""

from __future__ import annotations

import json
import shlex
import sys
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
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


def test_a_session_is_continued_in_the_fence_of_its_folders(fenced: Dragoman) -> None:
    (more := fenced.home / "more").mkdir()
    said = fenced("-o", "simple", "--session", "s", "--add-dir", str(more), str(more / "one"))
    assert said.lines == ["one: written"], said
    said = fenced("-o", "simple", "--on-reset", "new", "--session", "s", str(more / "two"))
    assert said.lines == ["two: written"], said


def test_a_session_says_how_it_is_fenced(fenced: Dragoman) -> None:
    fenced("-o", "simple", "--session", "s", str(fenced.workspace / "x"))
    assert "fenced (namespaces), network: all" in fenced("sessions", "show", "s").lines
    assert json.loads(fenced("sessions", "show", "s", "--json").out)["fence"] == "namespaces"


@pytest.fixture
def server() -> Generator[str]:
    """The address of a server of this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Hello) as serving:
        thread = threading.Thread(target=serving.serve_forever, daemon=True)
        thread.start()
        yield f"127.0.0.1:{serving.server_port}"
        serving.shutdown()
        thread.join()


class Hello(BaseHTTPRequestHandler):
    """Says hello, or sends a caller elsewhere."""

    def do_GET(self) -> None:
        self.send_response(302 if self.path == "/elsewhere" else 200)
        self.send_header("Location", "http://elsewhere.example/")
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, format: str, *_: object) -> None:  # noqa: A002
        """Not on the terminal of the tests."""


def test_it_reaches_the_hosts_of_its_list_and_no_others(fenced: Dragoman, server: str) -> None:
    urls = f"http://{server}/ http://{server}/elsewhere http://other.example/"
    done = fenced("-o", "simple", "--session", "s", "--fence-network", server, urls)
    hello, redirected, other = done.lines
    assert hello == "hello"
    assert redirected.startswith("403 Dragoman: the fence refused elsewhere.example:80")
    assert other.startswith("403 Dragoman: the fence refused other.example:80")
    assert "refused to connect to other.example:80" in done.err
    shown = fenced("sessions", "show", "s").lines
    assert f"fenced (namespaces), network: {server}" in shown
    lines = map(json.loads, fenced("sessions", "export", "s").lines)
    events = [each for each in lines if each.get("type") == "access"]
    hosts = [each["host"] for each in events if each["decision"]["by"] == "fence"]
    assert hosts == ["elsewhere.example", "other.example"]


def test_without_a_network_it_reaches_nothing(fenced: Dragoman, server: str) -> None:
    done = fenced("-o", "simple", "--fence-network=none", f"http://{server}/ http://a.example/")
    refused_at_once, unknown = done.lines
    assert refused_at_once == "[Errno 111] Connection refused"
    assert "name resolution" in unknown or "not known" in unknown
    assert fenced("-o", "simple", f"http://{server}/").lines == ["hello"]


def test_a_rule_opens_the_fence_and_another_closes_it(fenced: Dragoman, server: str) -> None:
    words = ("-o", "simple", "--fence-network", f"{server},no.example", "http://name.invalid/")
    assert "403 Dragoman: the fence refused" in fenced(*words).out
    fenced("policy", "add", "--allow", "--operation", "fetch", "--host", "name.invalid")
    assert "502 Dragoman: " in fenced(*words).out  # let through, and it has no address
    fenced("policy", "add", "--deny", "--operation", "fetch", "--host", "127.*")
    done = fenced(*words[:-1], f"http://{server}/")
    assert "hello" not in done.out
    assert "denies it" in done.err


def test_hosts_on_the_command_line_are_read_with_care(dragoman: Dragoman) -> None:
    done = dragoman("--fence-network", "a.org,b.org:0", "x")
    refused(done, "--fence-network: expected a port from 1 to 65535")


def test_the_network_is_printed_with_its_reasons(fenced: Dragoman) -> None:
    write_settings(fenced, {"network": ["a.org:443", "localhost:5432"]})
    done = fenced("policy", "fence", "-a", "writer")
    assert "  a.org:443  (the settings say so: port 443)" in done.lines
    own = "the settings say so: the server of this machine on port 5432"
    assert f"  localhost:5432  ({own})" in done.lines
    printed = json.loads(fenced("policy", "fence", "-a", "writer", "--json").out)
    assert printed["network"] == ["a.org:443", "localhost:5432"]
    words = ("policy", "explain", "--fenced", "--agent", "writer", "--operation", "fetch", "--host")
    assert fenced(*words, "a.org").lines[-1].endswith("in a fence: let through")
    assert "refused, it is not in the fence's list of hosts" in fenced(*words, "b.org").lines[-1]


def test_the_option_alone_means_on_and_takes_no_prompt(dragoman: Dragoman) -> None:
    done = dragoman("--fence", "-a", "demo", "-o", "json", "hello")
    assert done.code in (0, 5), done.err
    refused(dragoman("--fence=maybe", "x"), "invalid choice: 'maybe'")


@pytest.mark.parametrize("words", [("require", "x"), ("require",), ("off", "-a", "demo", "x")])
def test_a_mode_after_a_space_is_no_prompt(dragoman: Dragoman, words: tuple[str, ...]) -> None:
    done = dragoman("--fence", *words)
    refused(done, f"--fence takes its value after an equals sign: --fence={words[0]}")
    assert "--fence[={off,on,ask,require}]" in dragoman("--help").out


def test_a_word_after_two_dashes_is_the_prompt_even_if_it_is_a_mode(dragoman: Dragoman) -> None:
    done = dragoman("-a", "demo", "-o", "json", "--fence", "--", "on")
    assert done.code in (0, 5), done.err
    assert '"text":"on"' in done.out


def test_the_fence_is_printed_with_its_reasons(fenced: Dragoman) -> None:
    (fenced.workspace / ".envrc").touch()
    done = fenced("policy", "fence", "-a", "writer")
    assert done.lines[0].startswith("built with ")
    assert f"  {fenced.workspace}  (the workspace)" in done.lines
    assert f"  {fenced.workspace / '.envrc'}  (it runs when you enter the directory)" in done.lines
    assert f"  {fenced.state}  (rules, sessions and tokens of Dragoman)" in done.lines
    printed = json.loads(fenced("policy", "fence", "-a", "writer", "--json").out)
    assert {"path", "mode", "reason"} == set(printed["places"][0])


def test_the_folders_that_a_start_would_make_are_printed(dragoman: Dragoman) -> None:
    own = str(dragoman.home / ".codex")
    said = "it is made when the agent starts"
    lines = dragoman("policy", "fence", "-a", "codex").lines
    assert any(line.startswith(f"  {own}  (") and said in line for line in lines)
    words = ("policy", "explain", "--fenced", "--agent", "codex", "--operation", "write", "--path")
    assert dragoman(*words, f"{own}/x").lines[-1].endswith("in a fence: let through")


def test_an_explanation_says_what_the_kernel_would_do(fenced: Dragoman) -> None:
    words = ("policy", "explain", "--fenced", "--agent", "writer", "--operation", "write", "--path")
    inside = fenced(*words, "x.txt")
    assert inside.lines[-1].endswith("if the agent does this itself in a fence: let through")
    outside = fenced(*words, "/etc/x", "--json")
    kernel = json.loads(outside.out)["kernel"]
    assert kernel == {"refused": True, "reason": "it is outside the workspace"}
    private = fenced(*words, "/tmp/x").lines[-1]
    assert "in a fence: let through, but /tmp is private to the session: empty" in private
    asked = ("policy", "explain", "--fenced", "--operation", "read", "--path", "/tmp/x", "--json")
    kernel = json.loads(fenced(*asked).out)["kernel"]
    assert kernel["refused"]
    assert kernel["reason"].startswith("/tmp is private to the session")
    command = fenced("policy", "explain", "--fenced", "--", "git", "push")
    assert command.lines[-1].endswith("let through")
    words = ("policy", "add", "--deny", "--scope", "user", "--prefix", "--", "git", "push")
    fenced(*words)
    denied = fenced("policy", "explain", "--fenced", "--", "env", "git", "push")
    assert "itself in a fence: refused, your rule" in denied.lines[-1]


def test_a_remote_agent_cannot_be_fenced(dragoman: Dragoman) -> None:
    done = dragoman("--fence=require", "--agent-command", "ws://127.0.0.1:9/", "x")
    refused(done, "it does not run on this machine; nothing was started")


@pytest.mark.parametrize(
    ("fence", "place", "problem"),
    [
        ("maybe", "fence", "one of off, on, ask, require, not 'maybe'"),
        ({"mod": "on"}, "fence.mod", "did you mean mode?"),
        ({"write": ["cache"]}, "fence.write[0]", "an absolute path, not 'cache'"),
        ({"write": "/tmp"}, "fence.write", "a list, not a string"),
        ({"network": "some"}, "fence.network", '"all", "none" or a list of hosts, not'),
        (
            {"network": ["a.org:x"]},
            "fence.network",
            "a port from 1 to 65535, or *,",
        ),
        ({"network": ["https://a.org"]}, "fence.network", "a host such as example.com:443"),
        ({"network": ["localhost"]}, "fence.network", "a port after this machine's own address"),
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


@pytest.mark.parametrize("network", ["all", "none", "localhost:9"])
def test_a_terminal_starts_in_its_folder_whatever_the_network(
    dragoman: Dragoman, network: str
) -> None:
    fence = ("--fence=require", "--fence-network", network)
    done = dragoman("-a", "demo", "--exec", *fence, "/run sh -c 'pwd > here'")
    assert (dragoman.workspace / "here").read_text() == f"{dragoman.workspace}\n", done.out

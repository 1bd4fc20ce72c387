"""One turn: the prompt's ways in, what is set before it, what goes along with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import Dragoman


def test_the_prompt_is_the_argument(dragoman: Dragoman) -> None:
    done = dragoman("say it", agent="telling")
    assert done.code == 0
    assert "block TextContent(text='say it'" in done.out
    assert done.err == ""


def test_run_spelled_out_is_the_same(dragoman: Dragoman) -> None:
    assert (
        "text='say it'"
        in dragoman("run", "say it", "--agent-command", dragoman.agent("telling")).out
    )


def test_two_dashes_force_a_prompt(dragoman: Dragoman) -> None:
    done = dragoman("--", "agents", agent="telling")
    assert "text='agents'" in done.out
    done = dragoman("--", "--help", agent="telling")
    assert "text='--help'" in done.out


def test_without_a_prompt_standard_input_is_read_to_its_end(dragoman: Dragoman) -> None:
    done = dragoman(agent="telling", stdin="first\nsecond\n")
    assert r"text='first\nsecond\n'" in done.out


def test_what_is_piped_in_follows_the_prompt(dragoman: Dragoman, tmp_path: Path) -> None:
    done = dragoman("review this", agent="telling", stdin="a diff\n")
    assert r"text='review this\n\na diff\n'" in done.out
    done = dragoman("-f", "-", "review this", agent="telling", stdin="a diff\n")
    assert r"text='review this\n\na diff\n'" in done.out
    done = dragoman("alone", agent="telling", stdin="\n")
    assert "text='alone'" in done.out


def test_a_file_on_standard_input_follows_the_prompt(dragoman: Dragoman, tmp_path: Path) -> None:
    (tmp_path / "diff").write_text("a diff")
    with (
        open(tmp_path / "diff") as file,
        dragoman.started("review this", agent="telling", stdin=file.fileno()) as process,
    ):
        out, _ = process.communicate(timeout=60)
    assert rb"text='review this\n\na diff'" in out


def test_a_pipe_that_nobody_writes_to_does_not_hold_up_a_prompt(dragoman: Dragoman) -> None:
    reader, writer = os.pipe()
    with dragoman.started("go", agent="telling", stdin=reader) as process:
        out, err = process.communicate(timeout=60)
    os.close(reader)
    os.close(writer)
    assert b"text='go'" in out
    assert err.startswith(b"dragoman: standard input is not part of the prompt: nothing arrived")


def test_the_prompt_can_come_from_a_file(dragoman: Dragoman, tmp_path: Path) -> None:
    (tmp_path / "prompt.md").write_text("from a file")
    done = dragoman("-f", str(tmp_path / "prompt.md"), agent="telling", stdin="not this")
    assert "text='from a file'" in done.out
    done = dragoman("--file", "-", agent="telling", stdin="from the pipe")
    assert "text='from the pipe'" in done.out


@pytest.mark.parametrize(
    ("words", "size", "said"),
    [
        (["-f", "large"], 64 << 20, "large has more than 48 MiB"),
        ([], 64 << 20, "standard input has more than 48 MiB"),
        (["-f", "large"], 20 << 20, "the prompt has 125829"),  # as JSON, a NUL is six bytes
    ],
)
def test_a_prompt_that_is_too_large_is_refused_before_anything_happens(
    dragoman: Dragoman, words: list[str], size: int, said: str
) -> None:
    large = dragoman.workspace / "large"
    with large.open("wb") as file:
        file.write(b"x")
        file.truncate(size)
    done = dragoman(*words, agent="telling", stdin="" if words else large.read_bytes())
    assert (done.code, done.out) == (2, "")
    [line] = done.err.splitlines()
    assert line.startswith(f"dragoman: {said}")
    assert dragoman("sessions", "list").out == "no sessions\n"


def test_bytes_that_are_no_text_are_replaced(dragoman: Dragoman) -> None:
    done = dragoman(agent="telling", stdin=b"caf\xe9 \xf0\x9f\x99\x82")
    assert done.code == 0
    assert "text='caf\ufffd \U0001f642'" in done.out


def test_mode_model_and_options_are_set_before_the_prompt(dragoman: Dragoman) -> None:
    done = dragoman("--mode", "ask", "--model", "large", "--set", "loud=on", "go", agent="telling")
    assert done.code == 0
    assert "mode=ask options={'brain': 'large', 'loud': True}" in done.out
    assert "[mode] ask" in done.lines


def test_set_is_repeatable_and_later_ones_win(dragoman: Dragoman) -> None:
    done = dragoman("--set", "brain=large", "--set", "brain=small", "go", agent="telling")
    assert "'brain': 'small'" in done.out


def test_the_workspace_is_where_we_are_or_where_cwd_says(
    dragoman: Dragoman, tmp_path: Path
) -> None:
    assert f"cwd='{dragoman.workspace}'" in dragoman("go", agent="telling").out
    (tmp_path / "extra").mkdir()
    done = dragoman(
        "--cwd", str(tmp_path), "--add-dir", str(tmp_path / "extra"), "go", agent="telling"
    )
    assert f"cwd='{tmp_path}'" in done.out
    assert f"additional_directories=['{tmp_path}/extra']" in done.out


def test_an_agent_from_the_settings_starts_in_the_workspace_with_its_environment(
    dragoman: Dragoman, tmp_path: Path
) -> None:
    words = dragoman.command(agent="looking")[2].split()
    entry = {"command": words[0], "args": words[1:], "env": {"SPOKEN": "yes"}}
    dragoman.write_settings({"agent_servers": {"mine": entry}})
    done = dragoman("-a", "mine", "--cwd", str(tmp_path), "go", env={"SPOKEN": "no"})
    assert f"folder {tmp_path}" in done.out
    assert "variable yes" in done.out


def test_an_agent_that_was_typed_starts_where_it_was_typed(
    dragoman: Dragoman, tmp_path: Path
) -> None:
    done = dragoman("--cwd", str(tmp_path), "go", agent="looking", env={"SPOKEN": "inherited"})
    assert f"folder {dragoman.workspace}" in done.out
    assert "variable inherited" in done.out


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a.png", b"\x89PNG", "ImageContent(data='iVBORw=='"),
        ("a.wav", b"RIFF", "AudioContent(data='UklGRg=='"),
        ("a.py", b"print()", "TextResourceContents(text='print()'"),
        ("a.bin", b"\xff\x00", "BlobResourceContents(blob='/wA='"),
    ],
)
def test_an_attachment_becomes_the_block_that_fits_it(
    dragoman: Dragoman, name: str, data: bytes, expected: str
) -> None:
    (dragoman.workspace / name).write_bytes(data)
    assert expected in dragoman("--attach", name, "see", agent="telling").out


def test_what_the_agent_does_not_take_is_sent_as_a_link_and_said_so(dragoman: Dragoman) -> None:
    (dragoman.workspace / "a.png").write_bytes(b"\x89PNG")
    (dragoman.workspace / "b.txt").write_bytes(b"text")
    done = dragoman("--attach", "a.png", "--attach", "b.txt", "see", agent="plain_telling")
    assert done.out.count("block ResourceLink(") == 2
    assert "dragoman: a.png was sent as a link: the agent does not accept images" in done.err
    assert "dragoman: b.txt was sent as a link" in done.err


def test_an_attachment_beyond_the_limit_is_sent_as_a_link(dragoman: Dragoman) -> None:
    with (dragoman.workspace / "big.bin").open("wb") as file:
        file.truncate(10 * 1024 * 1024 + 1)
    done = dragoman("--attach", "big.bin", "see", agent="telling")
    assert "block ResourceLink(" in done.out
    assert "big.bin is larger than 10 MiB and is attached as a link" in done.err


def test_mcp_servers_are_forwarded_as_lists_and_those_left_out_are_named(
    dragoman: Dragoman,
) -> None:
    servers = [
        {"name": "files", "command": "/bin/files", "env": {"A": "b"}},
        {"name": "web", "type": "http", "url": "https://mcp.example", "headers": {"H": "v"}},
    ]
    settings = dragoman.write_settings({"mcp_servers": servers})
    done = dragoman("--settings", str(settings), "-o", "jsonl", "go", agent="telling")
    sent = next(frame for frame in done.frames if frame.get("method") == "session/new")
    assert sent["params"]["mcpServers"] == [
        {
            "name": "files",
            "command": "/bin/files",
            "args": [],
            "env": [{"name": "A", "value": "b"}],
        },
        {
            "type": "http",
            "name": "web",
            "url": "https://mcp.example",
            "headers": [{"name": "H", "value": "v"}],
        },
    ]
    done = dragoman("--settings", str(settings), "go", agent="without_mcp")
    assert done.code == 0
    assert "MCP server 'web' left out: the agent has no HTTP transport" in done.err


def servers_passed_on(dragoman: Dragoman, *words: str) -> dict[str, str]:
    done = dragoman(*words, "-o", "jsonl", "go", agent="telling")
    sent = next(frame for frame in done.frames if frame.get("method") == "session/new")
    servers = sent["params"]["mcpServers"]
    return {server["name"]: server.get("command", server.get("url")) for server in servers}


def test_mcp_servers_are_read_as_other_programs_write_them(dragoman: Dragoman) -> None:
    named = {
        "files": {"type": "stdio", "command": "/bin/files"},
        "web": {"type": "streamable-http", "url": "https://mcp.example"},
    }
    settings = dragoman.write_settings(
        {"mcp_servers": [{"name": "own", "command": "/bin/own"}], "mcpServers": named}
    )
    assert servers_passed_on(dragoman, "--settings", str(settings)) == {
        "own": "/bin/own",
        "files": "/bin/files",
        "web": "https://mcp.example",
    }
    more = dragoman.workspace / "mcp.json"
    more.write_text('{"mcpServers": {"own": {"command": "/bin/other"}, "new": {"command": "n"}}}')
    words = ("--settings", str(settings), "--mcp-config", str(more))
    assert servers_passed_on(dragoman, *words) == {
        "own": "/bin/other",
        "files": "/bin/files",
        "web": "https://mcp.example",
        "new": "n",
    }


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{}", "mcpServers: expected an object of MCP servers, by name"),
        ('{"mcpServers": []}', "mcpServers: expected an object, not a list"),
        (
            '{"mcpServers": {"a": {}}}',
            "mcpServers.a: expected either a command (a string) or a url",
        ),
        (
            '{"mcpServers": {"a": {"type": "http"}}}',
            "mcpServers.a.url: expected a non-empty string",
        ),
        ('{"mcpServers": {"a": {"type": "tcp"}}}', 'a.type: expected "stdio", "http" or "sse"'),
        ('{"mcpservers": {}}', "mcpservers: expected a known key; did you mean mcpServers?"),
        (None, "mcp.json: expected a file, but there is none"),
    ],
)
def test_a_file_of_mcp_servers_that_is_wrong_is_one_line(
    dragoman: Dragoman, text: str | None, sentence: str
) -> None:
    if text is not None:
        (dragoman.workspace / "mcp.json").write_text(text)
    done = dragoman("--mcp-config", "mcp.json", "go", agent="telling")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert sentence in done.err


def test_python_dash_m_is_the_same_command(dragoman: Dragoman) -> None:
    command = [sys.executable, "-m", "dragoman", "--version"]
    assert subprocess.check_output(command, text=True, timeout=120) == dragoman("--version").out


def test_without_settings_the_default_is_the_demo_agent(dragoman: Dragoman) -> None:
    done = dragoman("-j", "--list-caps")
    assert json.loads(done.lines[0])["params"]["name"] == "demo"

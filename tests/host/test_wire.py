"""What an agent sees of files and terminals: real ones, asked for over the wire."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from support.permission_scene import Scene, scene
from support.raw_agent import Json

from dragoman import Policy, Rule
from dragoman.host.workspace.files import MAX_BYTES
from dragoman.session import events as e


async def files(s: Scene, verb: str, path: str, **more: Any) -> Json:
    return await s.result(f"fs/{verb}_text_file", {"sessionId": "s1", "path": path, **more})


async def terminal(s: Scene, verb: str, terminal_id: str) -> Json:
    return await s.result(f"terminal/{verb}", {"sessionId": "s1", "terminalId": terminal_id})


async def test_an_agent_reads_a_file_changes_it_and_writes_it_back(tmp_path: Path) -> None:
    path = tmp_path / "main.py"
    path.write_bytes(b"\xef\xbb\xbfprint('old')\r\nlast")
    async with scene(tmp_path, policy=Policy(write=True)) as s:
        text = (await files(s, "read", str(path)))["result"]["content"]
        assert text == "\ufeffprint('old')\r\nlast"
        told = await files(s, "write", str(path), content=text.replace("old", "new"))
        assert told["result"] == {}
        assert path.read_bytes() == b"\xef\xbb\xbfprint('new')\r\nlast"
        last = await files(s, "read", str(path), line=2, limit=1)
        assert last["result"] == {"content": "last"}


async def test_an_agent_runs_a_command_and_sees_its_output(tmp_path: Path) -> None:
    async with scene(tmp_path, policy=Policy(execute=True)) as s:
        told = await s.run("echo one; echo two >&2; pwd; exit 3")
        known = told["result"]["terminalId"]
        assert (await terminal(s, "wait_for_exit", known))["result"]["exitCode"] == 3
        output = (await terminal(s, "output", known))["result"]
        assert output["output"] == f"one\ntwo\n{tmp_path}\n"
        assert (output["truncated"], output["exitStatus"]["exitCode"]) == (False, 3)
        assert (await terminal(s, "kill", known))["result"] == {}
        assert (await terminal(s, "release", known))["result"] == {}
        for verb in ("output", "wait_for_exit", "kill"):
            assert (await terminal(s, verb, known))["error"]["code"] == -32002
        assert (await terminal(s, "release", known))["result"] == {}
        assert s.session.state.terminals[known].output == output["output"]


async def test_a_command_that_was_killed_has_the_name_of_the_signal(tmp_path: Path) -> None:
    async with scene(tmp_path, policy=Policy(execute=True)) as s:
        known = (await s.run("sleep", "60"))["result"]["terminalId"]
        assert (await terminal(s, "kill", known))["result"] == {}
        ended = (await terminal(s, "wait_for_exit", known))["result"]
        assert ended == {"exitCode": None, "signal": "SIGTERM"}
        output = (await terminal(s, "output", known))["result"]
        assert output["exitStatus"] == {"exitCode": None, "signal": "SIGTERM"}
        assert (await terminal(s, "output", known))["result"]["exitStatus"] == ended


# What, what is asked for, the code, and what the answer says of it.
REFUSALS: list[tuple[str, Json, int, Json]] = [
    ("fs/read_text_file", {"path": "{root}/../out"}, -32602, {"reason": "outside the workspace"}),
    ("fs/write_text_file", {"path": "/out", "content": ""}, -32602, {"path": "/out"}),
    ("fs/read_text_file", {"path": "{root}/large"}, -32602, {"size": MAX_BYTES + 1}),
    ("fs/read_text_file", {"path": "{root}/binary"}, -32602, {"reason": "not text"}),
    ("fs/read_text_file", {"path": "{root}/none"}, -32002, {"path": "{root}/none"}),
    (
        "fs/write_text_file",
        {"path": "{root}/" + "x" * 300, "content": ""},
        -32603,
        {"reason": "file name too long"},
    ),
    ("fs/write_text_file", {"path": "{root}/secret", "content": ""}, -32603, {}),
    ("terminal/output", {"terminalId": "term_0"}, -32002, {"terminalId": "term_0"}),
    ("terminal/release", {"terminalId": "term_0"}, -32002, {"terminalId": "term_0"}),
    (
        "terminal/create",
        {"command": "no-such-program", "args": ["x"]},
        -32603,
        {"reason": "command not found in PATH"},
    ),
    ("terminal/create", {"command": "ls", "cwd": "/"}, -32602, {"path": "/"}),
    ("terminal/create", {"command": "git", "args": ["push"]}, -32603, {}),
]


@pytest.mark.parametrize(("method", "params", "code", "data"), REFUSALS)
async def test_each_refusal_has_its_code_and_says_why(
    method: str, params: Json, code: int, data: Json, tmp_path: Path
) -> None:
    (tmp_path / "large").write_bytes(b"x" * (MAX_BYTES + 1))
    (tmp_path / "binary").write_bytes(b"\x7fELF\0")
    deny = [
        Rule(effect="deny", operation="write", path="secret"),
        Rule(effect="deny", argv_prefix=("git", "push")),
    ]
    asked = {key: _placed(value, tmp_path) for key, value in params.items()}
    policy = Policy(deny, write=True, execute=True)
    async with scene(tmp_path, attended=False, policy=policy) as s:
        error = (await s.result(method, {"sessionId": "s1", **asked}))["error"]
        assert error["code"] == code
        assert error["message"]
        for key, value in data.items():
            assert error["data"][key] == _placed(value, tmp_path)
        assert not any(isinstance(event, e.FileWritten | e.TerminalStarted) for event in s.heard)
    assert sorted(os.listdir(tmp_path)) == ["binary", "large"]


def _placed(value: Any, root: Path) -> Any:
    return value.replace("{root}", str(root)) if isinstance(value, str) else value

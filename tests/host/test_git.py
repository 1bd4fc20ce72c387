"""Commands that read a repository run nothing that an agent could write there unasked."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from host.watching import OK, bench
from support.permission_scene import scene

from dragoman import Policy, Rule

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="terminals need Linux or macOS"),
    pytest.mark.skipif(shutil.which("git") is None, reason="there is no git"),
]

# A folder of the agent's that git takes for a repository, and a program that it would start.
FILES = {
    "HEAD": "ref: refs/heads/main\n",
    "config": '[core]\nbare = false\nworktree = .\nfsmonitor = "touch {pwned}; false"\n',
    "objects/x": "",
    "refs/heads/x": "",
}


def lay_out(folder: Path, pwned: Path) -> None:
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("{pwned}", str(pwned)))


async def test_the_policy_of_the_documentation_runs_no_code_of_the_agents(tmp_path: Path) -> None:
    rule = Rule(effect="allow", operation="execute", argv=("git", "status"))
    pwned, docs = tmp_path / "PWNED", tmp_path / "docs"
    async with scene(tmp_path, attended=False, policy=Policy([rule], write=True)) as s:
        told = [
            await s.write(text.replace("{pwned}", str(pwned)), f"docs/{name}")
            for name, text in FILES.items()
        ]
        assert "error" in told[-1], "the file that makes it a repository asks"
        # Whoever allowed that, or had it from elsewhere, is safe from it all the same.
        lay_out(docs, pwned)
        ran = await s.run("git", "status", cwd=str(docs))
        params = {"sessionId": "s1", "terminalId": ran["result"]["terminalId"]}
        assert "result" in await s.result("terminal/wait_for_exit", params)
        output = (await s.result("terminal/output", params))["result"]["output"]
    assert "bare repository" in output
    assert not pwned.exists()


async def test_a_monitor_named_in_a_repository_is_not_started(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        assert await b.wait(await b.create("git", "init", "-q", ".")) == OK
        pwned = tmp_path / "PWNED"
        set_up = await b.create("git", "config", "core.fsmonitor", f"touch {pwned}; false")
        assert await b.wait(set_up) == OK
        assert await b.wait(await b.create("git", "status")) == OK
    assert not pwned.exists()


@pytest.mark.parametrize(("count", "kept"), [("1", "theirs"), ("", ""), ("0", "")])
async def test_settings_that_are_in_the_environment_already_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: str, kept: str
) -> None:
    monkeypatch.setenv("GIT_CONFIG_COUNT", count)
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "user.name")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "theirs")
    async with bench(tmp_path) as b:
        for key, value in (("user.name", kept), ("safe.bareRepository", "explicit")):
            await b.wait(await b.create("git", "config", "--get", key))
            assert b.told.text.split() == [value] * bool(value)
            b.told.all.clear()

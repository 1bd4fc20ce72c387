"""A program that cannot be started: the error says which step failed, and why."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from process.running import ENV, output_of

from dragoman.errors import CommandNotFound, StartError


@pytest.mark.usefixtures("kind")
async def test_a_refusal_says_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("not a program")
    (tmp_path / "broken").write_text("#!/nowhere/python -x\n")
    (tmp_path / "text").write_text("no shebang\n")
    (tmp_path / "link").symlink_to("gone")
    for name in ("broken", "text"):
        (tmp_path / name).chmod(0o755)
    at = str(tmp_path)
    await refused("nonexistent-command", reason="command not found", error=CommandNotFound)
    await refused(f"{at}/missing", reason="no such file", error=CommandNotFound)
    await refused("", reason="the command is empty", error=CommandNotFound)
    await refused(at, reason="is a directory")
    await refused(f"{at}/plain", reason="is not executable")
    await refused(f"{at}/broken", reason="interpreter of .* does not exist: '/nowhere/python'")
    await refused(f"{at}/text", reason="not a program this system can run")
    await refused(f"{at}/link", reason="a link to a file that does not exist")
    await refused("true", reason="directory '.*/no' does not exist", cwd=f"{at}/no")
    await refused("true", reason="directory '.*' is not a directory", cwd=f"{at}/plain")
    await refused("true", "x" * 1_000_000, reason="environment are too large")
    await refused("true", "a\0b", reason="NUL")
    await refused("true", reason="'='", env={"A=B": ""})


async def refused(
    *argv: str,
    reason: str,
    error: type[StartError] = StartError,
    cwd: str | None = None,
    env: Mapping[str, str] = ENV,
) -> None:
    with pytest.raises(StartError, match=reason) as caught:
        await output_of(*argv, cwd=cwd, env=env)
    assert type(caught.value) is error
    assert caught.value.command == argv[0]

"""A program that uses the library sees and undoes what happened, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman import Client
from dragoman.testing import AgentTurn, ScriptedAgent


async def test_snapshots_of_a_library_session_end_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    folder = tmp_path / "project"
    folder.mkdir()

    async def write(turn: AgentTurn) -> None:
        turn.tool_call("call", "run it", kind="execute", status="completed")
        (folder / "new.txt").write_text(turn.text)

    kept = tmp_path / "home" / "snapshots"
    async with Client.start(ScriptedAgent(write).connect()) as client:
        session = await client.new_session(str(folder))
        session.track_changes()
        turn = session.prompt("hello\n")
        await turn
        [file] = (await session.changes(turn)).files
        assert (file.path, file.by) == (str(folder / "new.txt"), ["agent"])
        assert list(kept.glob("*/git"))
        await session.revert(turn)
        assert not exists(folder / "new.txt")
        await session.close()
    assert list(kept.glob("*/git")) == list((kept / "turns").iterdir()) == []


def exists(path: Path) -> bool:
    return path.exists()

"""Sessions over HTTP: made, steered, looked at, and forgotten."""

from __future__ import annotations

from pathlib import Path

from support.serving import served

from dragoman.testing import ScriptedAgent
from dragoman.testing.steps import say


async def test_a_session_is_made_prompted_and_shown(tmp_path: Path) -> None:
    agent = ScriptedAgent([say("hello "), say("world")])
    async with served(tmp_path, {"scripted": agent}) as web:
        session_id = await web.new_session()
        found = await web.done(session_id, "greet me")
        assert found["agent"] == "scripted"
        assert found["title"] == "greet me"
        assert [entry["type"] for entry in found["entries"]] == ["user", "agent"]
        assert found["entries"][1]["pieces"] == ["hello world"]
        assert found["owner"]["here"] is True

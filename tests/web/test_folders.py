"""What happened in folders, over HTTP: who did it, hunk by hunk, and the way back."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.serving import Served, served

from dragoman.testing import AgentTurn, ScriptedAgent


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def lines(**changed: str) -> str:
    numbers = {str(number): f"{number}\n" for number in range(40)}
    return "".join((numbers | {name[1:]: text for name, text in changed.items()}).values())


@asynccontextmanager
async def edited(folder: Path) -> AsyncGenerator[tuple[Served, str, list[str]]]:
    """A session whose agent has written by itself in two turns; its id, and those of the turns."""

    async def write(turn: AgentTurn) -> None:
        turn.tool_call(turn.text, "run it", kind="execute", status="completed")
        (folder / turn.text).write_text(lines(n3="three\n", n30="thirty\n"))
        if turn.text == "two":
            (folder / "tool.sh").chmod(0o755)
            (folder / "old").rename(folder / "new")

    (folder / "one").write_text(lines())
    (folder / "tool.sh").write_text("#!/bin/sh\n")
    (folder / "old").write_text(lines())
    agents = {"it": ScriptedAgent(write)}
    async with served(folder, agents, snapshots=folder.parent / "snapshots") as web:
        session_id = await web.new_session()
        turns = [await told_turn(web, session_id, text) for text in ("one", "two")]
        yield web, session_id, turns


def exists(folder: Path, name: str) -> bool:
    return (folder / name).exists()


async def told_turn(web: Served, session_id: str, text: str) -> str:
    """Once the folder was read after it: what is written from then on is not the turn's."""
    await web.done(session_id, text)
    tracker = web.server.hub.live[session_id].session.tracker
    assert tracker is not None
    await tracker.settled()
    found = await web.detail(session_id)
    return [each for each in found["entries"] if each["type"] == "user"][-1]["turnId"]


async def changes(web: Served, session_id: str, **query: str) -> dict[str, Any]:
    found = await web.call("GET", f"/api/sessions/{session_id}/changes", params=query)
    assert found["tracked"]
    return {Path(each["path"]).name: each for each in found["changes"]}


async def test_each_file_says_what_happened_and_who_did_it(folder: Path) -> None:
    async with edited(folder) as (web, session_id, [first, second]):
        found = await changes(web, session_id)
        assert {name: each["status"] for name, each in found.items()} == {
            "one": "modified",
            "two": "added",
            "tool.sh": "modified",
            "new": "renamed",
        }
        assert all(each["by"] == ["agent"] for each in found.values())
        assert found["new"]["oldPath"] == str(folder / "old")
        assert (found["tool.sh"]["oldMode"], found["tool.sh"]["newMode"]) == ("100644", "100755")
        one = found["one"]
        assert (one["added"], one["removed"], one["turns"]) == (2, 2, [first])
        assert [(hunk["by"], hunk["turns"]) for hunk in one["hunks"]] == [(["agent"], [first])] * 2
        assert {*await changes(web, session_id, turnId=second)} == {"two", "tool.sh", "new"}


async def test_a_hunk_is_put_back_and_that_is_undone(folder: Path) -> None:
    async with edited(folder) as (web, session_id, _):
        path = f"/api/sessions/{session_id}/revert"
        hunk = (await changes(web, session_id))["one"]["hunks"][0]["id"]
        done = await web.call("POST", path, {"hunks": [hunk], "paths": [str(folder / "tool.sh")]})
        assert sorted(done["paths"]) == [str(folder / "one"), str(folder / "tool.sh")]
        assert (folder / "one").read_text() == lines(n30="thirty\n")
        assert not (folder / "tool.sh").stat().st_mode & 0o100
        assert await web.refused("POST", path, {"hunks": [hunk]}) == (409, "conflict")
        await web.call("POST", path, {"turnId": done["restoreId"]})
        assert (folder / "one").read_text() == lines(n3="three\n", n30="thirty\n")


async def test_a_conflict_is_chosen_over_http(folder: Path) -> None:
    async with edited(folder) as (web, session_id, _):
        path = f"/api/sessions/{session_id}/revert"
        (folder / "two").write_text("mine\n")
        assert await web.refused("POST", path) == (409, "conflict")
        done = await web.call("POST", path, {"choices": {str(folder / "two"): "keep"}})
        assert done["kept"] == [str(folder / "two")]
        assert (folder / "two").read_text() == "mine\n"
        assert (folder / "one").read_text() == lines()


async def test_a_rewind_gives_the_session_to_continue_with(folder: Path) -> None:
    async with edited(folder) as (web, session_id, [_, second]):
        path = f"/api/sessions/{session_id}/rewind"
        done = await web.call("POST", path, {"turnId": second})
        assert (done["continuity"], done["prompt"]) == ("reset", "two")
        assert done["reason"] == "the last message of the agent before has no id to fork at"
        assert done["session"] != session_id
        there = [name for name in ("one", "two", "old", "new", "tool.sh") if exists(folder, name)]
        assert there == ["one", "old", "tool.sh"]
        assert await web.refused("POST", path, {"turnId": "unknown"}) == (404, "unknown_turn")

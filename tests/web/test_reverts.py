"""What sessions wrote, over HTTP: listed, and reverted."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.serving import Served, served

from dragoman import Policy
from dragoman.host.snapshots.line_history import Compared, Version, compared
from dragoman.host.workspace.diffs import MAX_WORK
from dragoman.schema import v1
from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.steps import (
    tool_call,
    tool_call_update,
    write_file,
)


async def test_changes_are_listed_and_reverted(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old\n")
    agent = ScriptedAgent([write_file(str(tmp_path / "a.txt"), "new\n")])
    async with served(tmp_path, {"scripted": agent}) as web:
        session_id = await web.new_session()
        await _allowed(web, session_id)
        path = f"/api/sessions/{session_id}"
        [change] = (await web.call("GET", f"{path}/changes"))["changes"]
        assert (change["before"], change["after"]) == ("old\n", "new\n")
        assert (change["source"], change["existed"]) == ("host", True)
        assert "-old\n+new\n" in change["diff"]
        for odd in ("", "a.txt"):
            refused = await web.refused("POST", f"{path}/revert", {"paths": [odd]})
            assert refused == (400, "invalid")
        for misspelt in ({"turnID": "x"}, {"turn_id": "x"}, {"path": ["x"]}):
            refused = await web.refused("POST", f"{path}/revert", misspelt)
            assert refused == (400, "invalid")
        reverted = await web.call("POST", f"{path}/revert")
        assert reverted == {"paths": [str(tmp_path / "a.txt")]}
        assert (await web.call("GET", f"{path}/changes"))["changes"] == []
    assert (tmp_path / "a.txt").read_text() == "old\n"


async def test_changes_are_compared_off_the_loop_and_share_one_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spent: list[tuple[int, int]] = []

    def seen(versions: Sequence[Version], name: str, work: int) -> Compared:
        spent.append((threading.get_ident(), work))
        return compared(versions, name, work)

    monkeypatch.setattr("dragoman.host.snapshots.folder_changes.compared", seen)
    names = [f"{number}.txt" for number in range(20)]
    agent = ScriptedAgent([write_file(str(tmp_path / name), "new\n") for name in names])
    async with served(tmp_path, {"scripted": agent}, policy=Policy(write=True)) as web:
        session_id = await web.new_session()
        await web.done(session_id, "go")
        changes = (await web.call("GET", f"/api/sessions/{session_id}/changes"))["changes"]
    assert len(changes) == len(spent) == 20
    assert {(each["added"], each["removed"]) for each in changes} == {(1, 0)}
    assert threading.get_ident() not in {thread for thread, _ in spent}
    assert sum(work for _, work in spent) <= 20_000_000 < 20 * MAX_WORK


async def test_an_answer_with_changes_is_bounded(tmp_path: Path) -> None:
    async def script(turn: AgentTurn) -> None:
        for number in range(24):
            await turn.write_text_file(str(tmp_path / f"{number}"), "x" * 900_000)

    agents = {"scripted": ScriptedAgent(script)}
    async with served(tmp_path, agents, policy=Policy(write=True)) as web:
        session_id = await web.new_session()
        turn_id = await web.prompt(session_id)
        await web.until(session_id, "idle")
        told = await web.http.get(f"/api/sessions/{session_id}/changes")
        assert len(told.content) < 9 * 2**20
        answer = told.json()
        assert (len(answer["changes"]), answer["complete"]) == (24, True)
        first, last = answer["changes"][0], answer["changes"][-1]
        assert len(first["after"]) == 900_000 < len(first["diff"])
        assert (last["after"], last["before"]) == (None, None)
        too_much = "Not shown: too large for one response"
        assert last["diff"] == f"{too_much}; request a single turn\n"
        turn = await web.http.get(f"/api/sessions/{session_id}/changes", params={"turnId": turn_id})
        assert turn.json()["changes"][-1]["diff"] == f"{too_much}\n"


async def test_files_that_have_no_room_in_an_answer_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.web.api.folders._LARGEST_ANSWER", 4_000)
    agent = ScriptedAgent([write_file(str(tmp_path / str(each)), "new\n") for each in range(20)])
    async with served(tmp_path, {"scripted": agent}, policy=Policy(write=True)) as web:
        session_id = await web.new_session()
        await web.done(session_id, "go")
        answer = await web.call("GET", f"/api/sessions/{session_id}/changes")
    assert 0 < len(answer["changes"]) < 20
    assert not answer["complete"]


@pytest.mark.parametrize(("count", "complete"), [(2, True), (4, False)])
async def test_files_of_which_an_agent_tells_too_many_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, complete: bool
) -> None:
    for module in ("hub.running.written_files", "hub.session_folders"):
        monkeypatch.setattr(f"dragoman.{module}.MAX_CHANGES", 3)

    async def script(turn: AgentTurn) -> None:
        diffs = [v1.Diff(path=str(tmp_path / str(each)), new_text="new") for each in range(count)]
        turn.tool_call("t", "Edit", kind="edit", status="completed", content=diffs)

    async with served(tmp_path, {"scripted": ScriptedAgent(script)}) as web:
        session_id = await web.new_session()
        await web.done(session_id, "go")
        answer = await web.call("GET", f"/api/sessions/{session_id}/changes")
    assert len(answer["changes"]) == min(count, 3)
    assert answer["complete"] is complete


async def test_changes_are_known_from_the_record_when_nothing_runs(tmp_path: Path) -> None:
    agent = ScriptedAgent([write_file(str(tmp_path / "b.txt"), "new\n")])
    async with served(tmp_path, {"scripted": agent}) as web:
        session_id = await web.new_session()
        await _allowed(web, session_id)
        before = await web.call("GET", f"/api/sessions/{session_id}/changes")
        await web.call("POST", f"/api/sessions/{session_id}/close")
        assert await web.call("GET", f"/api/sessions/{session_id}/changes") == before
        assert len(before["changes"]) == 1


async def test_what_was_written_before_a_restart_is_reverted_with_what_came_after(
    tmp_path: Path,
) -> None:
    first, second, third = (tmp_path / name for name in ("a.txt", "b.txt", "c.bin"))
    first.write_text("old\n")
    third.write_bytes(b"\0\1")

    async def script(turn: AgentTurn) -> None:
        await turn.write_text_file(str(tmp_path / turn.text), f"{turn.text} is new\n")

    agents, policy = {"scripted": ScriptedAgent(script)}, Policy(write=True)
    async with served(tmp_path, agents, policy=policy, on_disk=True) as web:
        session_id = await web.new_session()
        for each in (first, second, third):
            await web.done(session_id, each.name)
    path = f"/api/sessions/{session_id}/revert"
    async with served(tmp_path, agents, policy=policy, on_disk=True) as web:
        await web.done(session_id, first.name)
        changes = (await web.call("GET", f"/api/sessions/{session_id}/changes"))["changes"]
        assert [change["existed"] for change in changes] == [True, False, True]
        assert await web.call("POST", path) == {"paths": [str(first), str(second)]}
        assert (first.read_text(), second.exists()) == ("old\n", False)
        # What it held is not on record, and nobody takes it for a file that was not there.
        assert third.read_text() == "c.bin is new\n"
        assert await web.call("POST", path) == {"paths": []}


def _edit(path: Path, text: str) -> ScriptedAgent:
    """An agent that shows what it changes, and has us write it."""
    diff = v1.Diff(path=str(path), new_text=text)
    return ScriptedAgent(
        [
            tool_call("edit", "Edit", kind="edit", content=[diff]),
            write_file(str(path), text),
            tool_call_update("edit", status="completed"),
        ]
    )


@pytest.mark.parametrize("close", [False, True])
async def test_what_was_reverted_is_no_change_any_more(tmp_path: Path, close: bool) -> None:
    async with served(tmp_path, {"scripted": _edit(tmp_path / "a.txt", "new\n")}) as web:
        session_id = await web.new_session()
        await _allowed(web, session_id)
        path = f"/api/sessions/{session_id}"
        [change] = (await web.call("GET", f"{path}/changes"))["changes"]
        assert change["source"] == "host"
        await web.call("POST", f"{path}/revert")
        if close:
            await web.call("POST", f"{path}/close")
        assert (await web.call("GET", f"{path}/changes"))["changes"] == []
        events = (await web.call("GET", f"{path}/events?types=file_reverted"))["events"]
        assert [event["path"] for event in events] == [str(tmp_path / "a.txt")]


async def test_what_one_turn_wrote_stays_when_a_later_one_is_reverted(tmp_path: Path) -> None:
    async def script(turn: AgentTurn) -> None:
        await turn.write_text_file(str(tmp_path / "a.txt"), f"{turn.text}\n")

    agent = ScriptedAgent(script)
    async with served(tmp_path, {"scripted": agent}, policy=Policy(write=True)) as web:
        session_id = await web.new_session()
        path = f"/api/sessions/{session_id}"
        await web.done(session_id, "one")
        turn = await web.prompt(session_id, "two")
        await web.until(session_id, "idle")
        [change] = (await web.call("GET", f"{path}/changes?turnId={turn}"))["changes"]
        assert (change["before"], change["after"]) == ("one\n", "two\n")
        await web.call("POST", f"{path}/revert", {"turnId": turn})
        [change] = (await web.call("GET", f"{path}/changes"))["changes"]
        assert (change["before"], change["after"]) == (None, "one\n")
    assert (tmp_path / "a.txt").read_text() == "one\n"


async def _allowed(web: Served, session_id: str) -> None:
    """One turn in which everything that is asked is allowed."""
    await web.prompt(session_id)
    [pending] = (await web.until(session_id, "waiting"))["pending"]
    option = next(each["id"] for each in pending["options"] if each["kind"] == "allow_once")
    path = f"/api/sessions/{session_id}/permissions/{pending['id']}"
    await web.call("POST", path, {"optionId": option})
    await web.until(session_id, "idle")

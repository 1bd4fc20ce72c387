"""What a session wrote before it was run here: undone with what came after, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.hubs import hub_with, stored_events

from dragoman import Policy
from dragoman.errors import StoreAway
from dragoman.hub import commands as c
from dragoman.hub.hub import Hub
from dragoman.hub.owner import this_process
from dragoman.hub.written import Written
from dragoman.session import events as e
from dragoman.session.content import Text
from dragoman.store.archive import Archive, import_session
from dragoman.store.records import encode_event
from dragoman.testing import AgentTurn, ScriptedAgent

WRITES = Policy(write=True)


async def writes(turn: AgentTurn) -> None:
    """As the prompt says it: a path and a word."""
    path, text = turn.text.split()
    await turn.write_text_file(os.path.join(turn.session.cwd, path), text)


async def done(hub: Hub, session_id: str, prompt: str) -> str:
    live = await hub.open(session_id)
    turn = await live.prompt(prompt)
    await turn
    return turn.id


async def undone(hub: Hub, session_id: str, turn_id: str | None = None) -> list[str]:
    reply = await hub.send(session_id, c.Revert(turn_id))
    return [Path(path).name for path in reply["paths"]]


async def test_what_was_written_in_another_life_is_undone_turn_by_turn(tmp_path: Path) -> None:
    file = tmp_path / "a"
    async with hub_with(tmp_path, ScriptedAgent(writes), policy=WRITES) as hub:
        session_id = (await hub.create("it", str(tmp_path))).id
        turns: list[str] = []
        for number in range(3):
            turns.append(await done(hub, session_id, f"a {number}"))
            await hub.detach(hub.live[session_id])
        assert await undone(hub, session_id, turns[2]) == ["a"]
        assert file.read_text() == "1"
        await hub.detach(hub.live[session_id])
        assert await undone(hub, session_id, turns[2]) == []
        assert await undone(hub, session_id, turns[1]) == ["a"]
        assert file.read_text() == "0"
        assert await undone(hub, session_id) == ["a"]
        assert not file.exists()


async def test_a_fork_undoes_nothing_of_the_session_it_came_from(tmp_path: Path) -> None:
    async with hub_with(tmp_path, ScriptedAgent(writes), policy=WRITES) as hub:
        parent = (await hub.create("it", str(tmp_path))).id
        await done(hub, parent, "a parent")
        fork = (await hub.fork(parent)).id
        assert await undone(hub, fork) == []
        await done(hub, fork, "b fork")
        await hub.detach(hub.live[fork])
        assert await undone(hub, fork) == ["b"]
        assert (tmp_path / "a").read_text() == "parent"


async def test_what_an_import_tells_is_not_undone(tmp_path: Path) -> None:
    hook = tmp_path / "hook"
    hook.write_text("harmless")
    async with hub_with(tmp_path, ScriptedAgent(writes), policy=WRITES) as hub:
        live = await hub.create("it", str(tmp_path))
        told: list[e.Event] = [
            *await stored_events(hub, live.id),
            e.TurnStarted("t", [Text("go")]),
            e.FileWritten(str(hook), "harmless", "harmful"),
            e.FileWritten(str(tmp_path / "new"), "x", created=True),
            e.TurnEnded("t", "end_turn"),
        ]
        for seq, event in enumerate(told, 1):
            event.seq = seq
        archive = Archive(live.record, [encode_event(event) for event in told])
        await import_session(hub.store, archive, "s-imported", this_process())
        await hub.give_folder("s-imported", str(tmp_path))
        opened = await hub.open("s-imported", on_reset="new")
        assert [Path(change.path).name for change in await opened.told()] == ["hook", "new"]
        (tmp_path / "new").write_text("x")
        assert await undone(hub, "s-imported") == []
        assert (hook.read_text(), (tmp_path / "new").exists()) == ("harmless", True)


async def test_what_is_outside_the_folders_of_today_does_not_keep_the_rest_from_being_undone(
    tmp_path: Path,
) -> None:
    (here := tmp_path / "here").mkdir()
    (there := tmp_path / "there").mkdir()
    async with hub_with(tmp_path, ScriptedAgent(writes), policy=WRITES) as hub:
        session_id = (await hub.create("it", str(there))).id
        await done(hub, session_id, "a then")
        await hub.detach(hub.live[session_id])
        await hub.open_here(session_id, cwd=str(here), on_reset="new")
        await done(hub, session_id, f"{here}/a now")
        assert await undone(hub, session_id) == ["a"]
        assert ((there / "a").read_text(), (here / "a").exists()) == ("then", False)


async def test_what_was_written_here_is_undone_while_the_store_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*words: object, **options: object) -> None:
        raise StoreAway("the store", "it is gone")

    async with hub_with(tmp_path, ScriptedAgent(writes), policy=WRITES) as hub:
        session_id = (await hub.create("it", str(tmp_path))).id
        await done(hub, session_id, "a before")
        await hub.detach(hub.live[session_id])
        turn_id = await done(hub, session_id, "b now")
        with monkeypatch.context() as patch:
            patch.setattr(hub.store, "events", away)
            assert await undone(hub, session_id, turn_id) == ["b"]
        assert await undone(hub, session_id) == ["a"]


def fed(*events: e.Event) -> Written:
    written = Written()
    for event in events:
        written.feed(event)
    return written


def test_a_file_whose_content_is_not_told_is_not_taken_for_a_new_one() -> None:
    written = fed(e.FileWritten("/a", "x"), e.FileWritten("/b", "x", created=True))
    assert [(each.path, each.existed, each.is_kept) for each in written.changes(None)] == [
        ("/a", True, False),
        ("/b", False, True),
    ]
    assert [each.is_kept for each in written.to_undo()] == [False, True]


def test_what_is_written_between_turns_belongs_to_none() -> None:
    written = fed(
        e.TurnStarted("t", []),
        e.FileWritten("/a", "1", "0"),
        e.TurnEnded("t", "end_turn"),
        e.FileWritten("/a", "2", "1"),
    )
    [change] = written.changes("t")
    assert (change.before, change.after) == (b"0", b"1")
    assert [each.turn for each in written.to_undo()] == ["t", None]

"""What a session wrote before it was run here: undone with what came after, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.hubs import hub_with, stored_events

from dragoman import Policy
from dragoman.errors import CommandRefused, StoreAway
from dragoman.host.workspace.changes import MAX_KEPT_BYTES
from dragoman.hub.cluster import commands as c
from dragoman.hub.cluster.owner import this_process
from dragoman.hub.hub import Hub
from dragoman.hub.running.written_files import MAX_PATH, Written
from dragoman.schema import v1
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
        assert session_id not in hub.live
        await hub.open(session_id)
        assert await undone(hub, session_id, turns[2]) == []
        assert await undone(hub, session_id, turns[1]) == ["a"]
        assert file.read_text() == "0"
        assert await undone(hub, session_id) == ["a"]
        assert not file.exists()


async def test_what_was_written_for_an_agent_that_cannot_continue_is_undone(tmp_path: Path) -> None:
    agent = ScriptedAgent(writes)
    agent.capabilities = v1.AgentCapabilities()
    file = tmp_path / "a"
    file.write_text("before")
    async with hub_with(tmp_path, agent, policy=WRITES) as hub:
        session_id = (await hub.create("it", str(tmp_path))).id
        await done(hub, session_id, "a agent")
        await hub.detach(hub.live[session_id])
        received = len(agent.received)
        file.write_text("person")
        with pytest.raises(CommandRefused) as refused:
            await undone(hub, session_id)
        assert (refused.value.code, list(refused.value.detail["reasons"])) == (
            "conflict",
            [str(file)],
        )
        assert file.read_text() == "person"
        with pytest.raises(CommandRefused, match="there are no snapshots of the folder"):
            await hub.send(session_id, c.Restore(force=True, choices={str(file): "keep"}))
        reply = await hub.send(session_id, c.Revert(force=True))
        assert (reply["paths"], file.read_text()) == ([str(file)], "before")
        events = await stored_events(hub, session_id)
        assert [x.path for x in events if isinstance(x, e.FileReverted)] == [str(file)]
        assert len(agent.received) == received


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


@pytest.mark.parametrize("is_open", [False, True])
async def test_a_revert_says_that_a_link_is_in_place_of_the_folder(
    tmp_path: Path, is_open: bool
) -> None:
    (work := tmp_path / "work").mkdir()
    (other := tmp_path / "other").mkdir()
    (other / "a").write_text("agent")
    async with hub_with(tmp_path, ScriptedAgent(writes), policy=WRITES) as hub:
        session_id = (await hub.create("it", str(work))).id
        turn_id = await done(hub, session_id, "a agent")
        await hub.detach(hub.live[session_id])
        work.rename(tmp_path / "moved")
        work.symlink_to(other)
        if is_open:
            await hub.open(session_id)
        sentence = f"nothing was reverted: {work} was replaced by a link to another folder"
        for command in (c.Revert(), c.Revert(turn_id), c.Revert(paths=[str(work / "a")])):
            with pytest.raises(CommandRefused, match=sentence):
                await hub.send(session_id, command)
        assert (session_id in hub.live, (other / "a").read_text()) == (is_open, "agent")
        work.unlink()
        (tmp_path / "moved").rename(work)
        if is_open:
            await hub.detach(hub.live[session_id])
        assert await undone(hub, session_id) == ["a"]


async def test_a_revert_says_that_nothing_was_written_in_the_folders_of_today(
    tmp_path: Path,
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (work := tmp_path / "work").symlink_to("one")
    async with hub_with(tmp_path, ScriptedAgent(writes), policy=WRITES) as hub:
        session_id = (await hub.create("it", str(work))).id
        await done(hub, session_id, "a agent")
        await hub.detach(hub.live[session_id])
        work.unlink()
        work.symlink_to("two")
        sentence = f"{tmp_path}/one/a is in none of the session's folders"
        with pytest.raises(CommandRefused, match=sentence):
            await undone(hub, session_id)


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


def kept_bytes(written: Written) -> int:
    return sum(change.size for change in written.to_undo())


def test_contents_are_kept_within_a_bound_the_newest_of_them() -> None:
    written = Written(max_kept_bytes=1_000)
    for number in range(100):
        written.feed(e.FileWritten(f"/{number}", "x" * 300, created=True))
        assert kept_bytes(written) <= 1_000
    assert len(written.changes(None)) == 100
    assert [each.path for each in written.changes(None) if each.is_kept] == ["/97", "/98", "/99"]
    written.feed(e.FileReverted("/99"))
    written.feed(e.FileWritten("/last", "x" * 300, created=True))
    assert [each.path for each in written.changes(None) if each.is_kept] == ["/97", "/98", "/last"]
    written.feed(e.FileWritten("/large", "x" * 1_001, created=True))
    assert kept_bytes(written) == 0


def test_the_writes_of_a_turn_to_one_file_are_one_change() -> None:
    written = fed(*(e.FileWritten("/a", f"{n + 1}" * 100, f"{n}" * 100) for n in range(9)))
    [change] = written.to_undo()
    assert (change.before, change.after) == (b"0" * 100, b"9" * 100)
    assert not change.is_disturbed


def test_without_a_word_about_it_no_more_than_the_bound_is_kept() -> None:
    written = Written()
    for number in range(MAX_KEPT_BYTES // (4 << 20) + 4):
        written.feed(e.FileWritten(f"/{number}", "x" * (4 << 20), created=True))
    assert kept_bytes(written) <= MAX_KEPT_BYTES


def test_a_path_that_no_file_can_have_is_left_out() -> None:
    longest = "/" + "a" * (MAX_PATH - 1)
    written = fed(e.FileWritten(longest + "a", "1", "0"), e.FileWritten(longest, "1", "0"))
    assert [each.path for each in written.changes(None)] == [longest]
    assert [each.path for each in written.to_undo()] == [longest]


def test_what_comes_behind_the_most_changes_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.hub.running.written_files.MAX_CHANGES", 3)
    written = fed(*(e.FileWritten(f"/{number}", "1", "0") for number in range(3)))
    assert written.complete
    written.feed(e.FileWritten("/3", "1", "0"))
    assert not written.complete
    written.feed(e.TurnStarted("t", []))
    written.feed(e.FileWritten("/0", "2", "1"))
    # What a file is now is not told wrongly, nor put back to something else.
    assert [(each.path, each.is_kept) for each in written.changes(None)] == [
        ("/0", False),
        ("/1", True),
        ("/2", True),
    ]
    written.feed(e.FileReverted("/1"))
    written.feed(e.FileWritten("/5", "1", "0"))
    assert [each.path for each in written.to_undo()] == ["/0", "/2", "/5"]

"""A session from a file: it has no workspace until a person gives it one, whatever it says."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import ANY

import pytest
from support.hubs import TestLauncher, dead_process, hub_with, stored

from dragoman.errors import CommandRefused, SessionNotContinued, Unsupported
from dragoman.hub.cluster import commands as c
from dragoman.hub.cluster.owner import this_process
from dragoman.hub.hub import Hub
from dragoman.session import events as e
from dragoman.session.content import Text
from dragoman.session.state import AgentEntry, UserEntry
from dragoman.store.archive import Archive, import_session
from dragoman.store.records import SessionRecord, encode_event
from dragoman.testing import ScriptedAgent
from dragoman.testing.steps import say


async def imported(hub: Hub, session_id: str = "s-1", name: str | None = None) -> str:
    """One that claims the whole machine."""
    record = SessionRecord(
        id="theirs",
        agent="it",
        cwd="/",
        created_at=1,
        updated_at=1,
        name=name,
        agent_session_id="known",
        additional_directories=["/etc"],
    )
    opened = e.SessionOpened("known", "/", "new", ["/etc"], seq=1)
    archive = Archive(record, [encode_event(opened)])
    return (await import_session(hub.store, archive, session_id, this_process())).id


@pytest.mark.parametrize(
    "command", [c.Prompt("go"), c.Revert(), c.SetMode("x"), c.EditQueued("q", "go")], ids=repr
)
async def test_it_is_not_run_without_a_folder(tmp_path: Path, command: c.Command) -> None:
    agent = ScriptedAgent([say("hello")])
    async with hub_with(tmp_path, agent) as hub:
        session_id = await imported(hub)
        with pytest.raises(CommandRefused, match="imported from / and has no directory") as caught:
            await hub.send(session_id, command)
        assert caught.value.code == "no_workspace"
        assert not hub.live


async def test_no_way_in_or_out_takes_its_word_for_a_folder(tmp_path: Path) -> None:
    launcher = TestLauncher({"it": ScriptedAgent([say("hello")])})
    async with stored(tmp_path) as store, Hub(store, launcher) as hub:
        session_id = await imported(hub)
        for way in (
            hub.open(session_id, on_reset="new"),
            hub.open_here(session_id, on_reset="new"),
            hub.fork(session_id),
        ):
            with pytest.raises(CommandRefused, match="no directory"):
                await way
        await hub.delete(session_id)
        assert launcher.started == []


async def test_a_folder_that_was_given_is_its_own_from_then_on(tmp_path: Path) -> None:
    agent = ScriptedAgent([say("hello")])
    async with hub_with(tmp_path, agent) as hub:
        session_id = await imported(hub, name="fix")
        await hub.give_folder(session_id, str(tmp_path))
        live = await hub.open(session_id, on_reset="new")
        assert (live.session.cwd, live.record.additional_directories) == (str(tmp_path), [])
        assert live.record.name == "fix"
        await (await live.prompt("go"))
        await hub.detach(live)
        again = await hub.open(session_id)
        assert again.session.cwd == str(tmp_path)
        with pytest.raises(CommandRefused, match="already has a directory"):
            await hub.give_folder(session_id, "/")
        # Another of that name is given the same folder: the first one keeps the name.
        other = await imported(hub, "s-2", "fix")
        await hub.give_folder(other, str(tmp_path))
        assert (await hub.record(other)).name is None


async def test_a_fork_works_where_it_is_told_to(tmp_path: Path) -> None:
    agent = ScriptedAgent([say("hello")])
    async with hub_with(tmp_path, agent) as hub:
        parent = await hub.create("it", str(tmp_path))
        await (await parent.prompt("go"))
        await parent.recording.stored()
        record = parent.record
        events = [each.body for each in await hub.store.events(parent.id)]
        await hub.delete(parent.id, local=True)
        record.cwd = "/"
        await import_session(hub.store, Archive(record, events), "s-1", this_process())
        record.cwd = str(tmp_path)
        fork = await hub.fork("s-1", cwd=str(tmp_path))
        assert fork.session.cwd == str(tmp_path)
        assert fork.record.imported == (await hub.record("s-1")).imported
        assert (await hub.record("s-1")).cwd == ""


async def test_it_does_not_go_on_with_the_conversation_of_another_session(tmp_path: Path) -> None:
    async with hub_with(tmp_path, ScriptedAgent([say("hello")])) as hub:
        mine = await hub.create("it", str(tmp_path))
        await (await mine.prompt("go"))
        await mine.recording.stored()
        events = [each.body for each in await hub.store.events(mine.id)]
        await import_session(hub.store, Archive(mine.record, events), "s-1", this_process())
        await hub.give_folder("s-1", str(tmp_path))
        with pytest.raises(SessionNotContinued, match="belongs to another session here"):
            await hub.open("s-1")
        with pytest.raises(Unsupported):
            await hub.fork("s-1")
        theirs = await hub.open("s-1", on_reset="new")
        assert theirs.session.id != mine.session.id


async def test_a_conversation_that_became_another_sessions_later_is_not_taken_from_it(
    tmp_path: Path,
) -> None:
    agent = ScriptedAgent([say("hello")])
    async with hub_with(tmp_path, agent) as hub:
        record = SessionRecord(id="x", agent="it", cwd="/", created_at=1, updated_at=1)
        record.agent_session_id = "session-1"  # as the agent will call its first
        opened = encode_event(e.SessionOpened("session-1", "/", "new", seq=1))
        await import_session(hub.store, Archive(record, [opened]), "s-1", this_process())
        await hub.give_folder("s-1", str(tmp_path))
        mine = await hub.create("it", str(tmp_path))
        assert mine.session.id == "session-1"
        await (await mine.prompt("go"))
        with pytest.raises(SessionNotContinued, match="belongs to another session here"):
            await hub.send("s-1", c.Prompt("whose?"))
        with pytest.raises(Unsupported):
            await hub.fork("s-1")
        theirs = await hub.open("s-1", on_reset="new")
        assert theirs.session.id != mine.session.id
        await (await mine.prompt("still mine"))
        assert agent.received.count(("session/load", ANY)) == 0


async def test_an_agent_does_not_forget_what_only_a_file_names(tmp_path: Path) -> None:
    agent = ScriptedAgent([say("hello")])
    async with hub_with(tmp_path, agent) as hub:
        session_id = await imported(hub)
        await hub.give_folder(session_id, str(tmp_path))
        await hub.delete(session_id)
        assert "session/delete" not in [method for method, _ in agent.received]


async def test_deleting_it_leaves_the_conversation_of_another_session(tmp_path: Path) -> None:
    agent = ScriptedAgent([say("hello")])
    async with hub_with(tmp_path, agent) as hub:
        record = SessionRecord(id="x", agent="it", cwd="/", created_at=1, updated_at=1)
        record.agent_session_id = "session-1"
        opened = encode_event(e.SessionOpened("session-1", "/", "new", seq=1))
        await import_session(hub.store, Archive(record, [opened]), "s-1", this_process())
        await hub.give_folder("s-1", str(tmp_path))
        mine = await hub.create("it", str(tmp_path))
        await mine.recording.stored()
        await hub.delete("s-1")
        methods = [method for method, _ in agent.received]
        assert "session/delete" not in methods
        await hub.delete(mine.id)
        assert ("session/delete", {"sessionId": "session-1"}) in agent.received


async def test_a_prompt_that_waits_in_the_file_does_not_run(tmp_path: Path) -> None:
    async with hub_with(tmp_path, ScriptedAgent([say("hello")])) as hub:
        record = SessionRecord(id="x", agent="it", cwd="/", created_at=1, updated_at=1)
        told = [
            e.SessionOpened("known", "/", "new", seq=1),
            e.PromptQueued("turn-1", [Text("theirs")], seq=2),
        ]
        archive = Archive(record, [encode_event(event) for event in told])
        await import_session(hub.store, archive, "s-1", this_process(), cwd=str(tmp_path))
        live = await hub.open("s-1", on_reset="new")
        await (await live.prompt("mine"))
        asked = [each for each in live.session.state.entries if isinstance(each, UserEntry)]
        assert [each.text for each in asked] == ["mine"]


@pytest.mark.parametrize("turns", [0, 1])
async def test_its_history_stays_when_whoever_goes_on_with_it_is_killed(
    tmp_path: Path, turns: int
) -> None:
    record = SessionRecord(
        id="theirs", agent="it", cwd="/", created_at=1, updated_at=1, parent="s-parent"
    )
    told: list[e.Event] = [e.AgentMessage(Text("hello"), replay=True, seq=1)]
    if turns:
        told.append(e.TurnStarted("t", [Text("go")], seq=2))
    archive = Archive(record, [encode_event(event) for event in told])
    async with hub_with(tmp_path, ScriptedAgent([say("hello")])) as hub:
        await import_session(hub.store, archive, "s-1", this_process())
        await hub.give_folder("s-1", str(tmp_path))
        await hub.store.acquire("s-1", dead_process(), seconds=60, gone=lambda _: False)
        await hub.maintenance.recover()
        assert isinstance((await hub.state("s-1")).entries[0], AgentEntry)
        opened = await hub.open("s-1", on_reset="new")
        assert isinstance(opened.session.state.entries[0], AgentEntry)


async def test_it_is_no_fork_of_a_session_here(tmp_path: Path) -> None:
    async with hub_with(tmp_path, ScriptedAgent([say("a secret")])) as hub:
        mine = await hub.create("it", str(tmp_path))
        await (await mine.prompt("go"))
        await mine.recording.stored()
        record = SessionRecord(
            id="theirs", agent="it", cwd="/", created_at=1, updated_at=1, parent=mine.id
        )
        await import_session(hub.store, Archive(record, []), "s-1", this_process())
        await hub.give_folder("s-1", str(tmp_path))
        theirs = await hub.open("s-1")
        assert (theirs.record.parent, theirs.session.state.entries) == (None, [])

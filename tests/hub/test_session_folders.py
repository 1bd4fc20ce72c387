"""What happens in the folders of a session is recorded around each turn, and undone on request."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.clients import until
from support.hubs import TestLauncher, dead_process, seen_until, stored, stored_events
from support.peers import SECONDS

from dragoman.errors import (
    CommandRefused,
    InvalidParams,
    ResourceNotFound,
    SessionBusy,
    SessionNotContinued,
)
from dragoman.host.snapshots.git_output import Blob
from dragoman.host.snapshots.journal import Operation, RestoreJournal
from dragoman.host.snapshots.snapshots import Snapshots
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.hub.running.running_session import RunningSession
from dragoman.schema import v1
from dragoman.session import events as e
from dragoman.session.content import Text
from dragoman.session.facts import SystemPrompt
from dragoman.session.state import UserEntry
from dragoman.store.records import Batch, SessionFilter, encode_events
from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.transport.transport import Transport


class Own(ScriptedAgent):
    """Writes by itself, as `act` says, and tells that it ran something unless it is `silent`."""

    def __init__(self, act: Callable[[str], None], *, silent: bool = False) -> None:
        super().__init__(self._play)
        self._act = act
        self._silent = silent
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def _play(self, turn: AgentTurn) -> None:
        turn.say("begun")
        await self.go_on.wait()
        if not self._silent:
            turn.tool_call("call", "run it", kind="execute", status="completed")
        self._act(turn.text)


class LateAgent(Own):
    """Answers nothing until it may."""

    def __init__(self, act: Callable[[str], None]) -> None:
        super().__init__(act)
        self.may_answer = asyncio.Event()

    def connect(self) -> Transport:
        transport = super().connect()
        receive = transport.receive

        async def late() -> bytes:
            await self.may_answer.wait()
            return await receive()

        transport.receive = late
        return transport


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@asynccontextmanager
async def watching(tmp_path: Path, agent: ScriptedAgent) -> AsyncGenerator[Hub]:
    kept = Snapshots(tmp_path / "snapshots")
    async with (
        stored(tmp_path) as store,
        Hub(store, TestLauncher({"it": agent}), snapshots=kept) as hub,
    ):
        yield hub


async def asked(live: RunningSession, text: str) -> str:
    turn = await live.prompt(text)
    async with asyncio.timeout(SECONDS):
        await turn
        assert live.session.tracker is not None
        await live.session.tracker.settled()
    return turn.id


async def test_a_turn_is_recorded_with_what_it_changed(tmp_path: Path, folder: Path) -> None:
    agent = Own(lambda text: void((folder / "new.txt").write_text(text)))
    async with watching(tmp_path, agent) as hub:
        live = await hub.create("it", str(folder))
        turn = await asked(live, "hello\n")
        found = await hub.folders.changes(live.id)
        assert [(each.path, each.by, each.turns) for each in found.files] == [
            (str(folder / "new.txt"), ["agent"], [turn])
        ]
        taken = [x for x in await stored_events(hub, live.id) if isinstance(x, e.WorkspaceSnapshot)]
        assert [(x.moment, x.step_id) for x in taken] == [("turn_start", turn), ("turn_end", turn)]
        assert [(x.path, x.status, x.added) for x in taken[1].files] == [
            (str(folder / "new.txt"), "added", 1)
        ]
        assert (await hub.state(live.id)).snapshot == taken[1]


async def test_folders_are_read_while_the_agent_starts(tmp_path: Path, folder: Path) -> None:
    (folder / "before.txt").write_text("here before\n")
    agent = LateAgent(lambda _: None)
    async with watching(tmp_path, agent) as hub:
        creating = asyncio.create_task(hub.create("it", str(folder)))
        await until(lambda: any((tmp_path / "snapshots").glob("*/git/index")))
        assert not creating.done()
        agent.may_answer.set()
        await asked(await creating, "hello")


async def test_without_a_word_of_the_agent_it_cannot_be_told(tmp_path: Path, folder: Path) -> None:
    agent = Own(lambda text: void((folder / "new.txt").write_text(text)), silent=True)
    async with watching(tmp_path, agent) as hub:
        live = await hub.create("it", str(folder))
        turn = await asked(live, "hello\n")
        [file] = (await hub.folders.changes(live.id, turn)).files
        assert file.by == ["unknown"]


async def test_a_turn_is_undone_after_a_restart(tmp_path: Path, folder: Path) -> None:
    agent = Own(lambda text: void((folder / "new.txt").write_text(text)))
    async with watching(tmp_path, agent) as hub:
        live = await hub.create("it", str(folder))
        turn = await asked(live, "hello\n")
        session_id = live.id
    async with watching(tmp_path, agent) as hub:
        reply = await hub.send(session_id, c.Revert(turn))
        assert reply["paths"] == [str(folder / "new.txt")]
        assert not (folder / "new.txt").exists()
        assert (await hub.folders.changes(session_id)).files == []
        await hub.send(session_id, c.Revert(reply["restore"]))
        assert (folder / "new.txt").read_text() == "hello\n"


async def test_what_an_agent_did_is_undone_that_cannot_continue(
    tmp_path: Path, folder: Path
) -> None:
    agent = Own(lambda text: void((folder / "new.txt").write_text(text)))
    agent.capabilities = v1.AgentCapabilities()
    file = str(folder / "new.txt")
    async with watching(tmp_path, agent) as hub:
        live = await hub.create("it", str(folder))
        await asked(live, "hello\n")
    before = len(agent.received)
    async with watching(tmp_path, agent) as hub:
        await hub.send(live.id, c.Close())
        (folder / "new.txt").write_text("person\n")
        with pytest.raises(CommandRefused) as refused:
            await hub.send(live.id, c.Revert())
        assert (refused.value.code, list(refused.value.detail["reasons"])) == ("conflict", [file])
        reply = await hub.send(live.id, c.Restore(force=True))
        assert (reply["paths"], reply["waits"]) == ([file], False)
        assert not (folder / "new.txt").exists()
        events = await stored_events(hub, live.id)
        assert [x.title for x in events if isinstance(x, e.Notice)][-1].startswith(file)
        assert (await hub.record(live.id)).status == "closed"
        await hub.send(live.id, c.Revert(reply["restore"]))
        assert (folder / "new.txt").read_text() == "person\n"
        assert (await hub.store.standing(live.id)).owner is None
    assert len(agent.received) == before


async def test_without_git_a_revert_says_what_it_cannot_undo(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the session runs or not."""
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    agent = Own(lambda text: void((folder / "new.txt").write_text(text)))
    async with watching(tmp_path, agent) as hub:
        live = await hub.create("it", str(folder))
        await asked(live, "hello\n")
        for _ in range(2):
            with pytest.raises(CommandRefused) as refused:
                await hub.send(live.id, c.Revert())
            assert refused.value.code == "unsupported"
            assert "by itself was not seen: git is not installed" in str(refused.value)
            with pytest.raises(CommandRefused, match="nothing was reverted: git is not installed"):
                await hub.send(live.id, c.Restore(hunks=["h-1"]))
            if live.id in hub.live:
                await hub.detach(live)
        assert live.id not in hub.live
        assert (folder / "new.txt").read_text() == "hello\n"


async def test_a_session_is_reverted_while_it_is_opened(tmp_path: Path, folder: Path) -> None:
    agent = Own(lambda text: void((folder / "new.txt").write_text(text)))
    async with watching(tmp_path, agent) as hub:
        live = await hub.create("it", str(folder))
        await asked(live, "hello\n")
    async with watching(tmp_path, agent) as hub:
        opened, reply = await asyncio.gather(hub.open(live.id), hub.send(live.id, c.Revert()))
        assert reply["paths"] == [str(folder / "new.txt")]
        await asked(opened, "again\n")
        assert (folder / "new.txt").read_text() == "again\n"


async def test_a_turn_is_undone_whose_process_was_killed(tmp_path: Path, folder: Path) -> None:
    async with watching(tmp_path, Own(void)) as hub:
        live = await hub.create("it", str(folder))
        await asked(live, "nothing")
        session_id = live.id
    async with watching(tmp_path, ScriptedAgent()) as hub:
        assert hub.folders.snapshots is not None
        taken = await hub.folders.snapshots.take([str(folder)], session_id)
        (folder / "new.txt").write_text("half")
        await leave_behind(
            hub,
            session_id,
            [e.TurnStarted("cut", [Text("go")]), e.WorkspaceSnapshot("turn_start", "cut", taken)],
        )
        reply = await hub.send(session_id, c.Revert("cut"))
        assert reply["paths"] == [str(folder / "new.txt")]
        events = await stored_events(hub, session_id)
        moments = [x.moment for x in events if isinstance(x, e.WorkspaceSnapshot)]
        assert moments[-4:] == ["turn_start", "turn_end", "restore_start", "restore_end"]
        assert (await hub.record(session_id)).status == "interrupted"


async def leave_behind(hub: Hub, session_id: str, events: list[e.Event]) -> None:
    """As a process does that is killed."""
    first = (await hub.record(session_id)).last_seq + 1
    for seq, event in enumerate(events, first):
        event.seq = seq
    lease = await hub.store.acquire(session_id, dead_process(), seconds=60, gone=lambda _: False)
    await hub.store.append(lease, Batch(first_seq=first, events=encode_events(events)))


async def test_a_revert_during_a_turn_waits_for_its_end(tmp_path: Path, folder: Path) -> None:
    agent = Own(lambda text: void((folder / text).write_text(text)))
    async with watching(tmp_path, agent) as hub:
        live = await hub.create("it", str(folder))
        first = await asked(live, "one")
        agent.go_on.clear()
        turn = await live.prompt("two")
        async with asyncio.timeout(SECONDS):  # one that waits here would wait without end
            reply = await hub.send(live.id, c.Revert(first))
        assert (reply["waits"], reply["paths"]) == (True, [])
        assert (folder / "one").exists()
        with pytest.raises(SessionBusy):
            await hub.folders.rewind(live.id, first)
        agent.go_on.set()
        seen = await seen_until(hub.watch(live.id), e.FileReverted)
        assert any(isinstance(x, e.Notice) and "waits" in x.title for x in seen)
        assert turn.done
        assert not (folder / "one").exists()
        assert (folder / "two").exists()


async def test_what_was_put_back_after_a_turn_is_known_when_the_turn_is_over(
    tmp_path: Path, folder: Path
) -> None:
    agent = Own(lambda text: void((folder / text).write_text(text)))
    async with watching(tmp_path, agent) as hub:
        live = await hub.create("it", str(folder))
        first = await asked(live, "one")
        agent.go_on.clear()
        turn = await live.prompt("two")
        reply = await hub.send(live.id, c.Revert(first))
        agent.go_on.set()
        await turn
        found = await hub.folders.changes(live.id, reply["restore"])
        assert ([each.path for each in found.files], found.tracked) == ([str(folder / "one")], True)
        # One that was refused never happened.
        (folder / "two").write_text("a person's\n")
        agent.go_on.clear()
        turn = await live.prompt("three")
        refused = await hub.send(live.id, c.Revert())
        agent.go_on.set()
        await turn
        found = await hub.folders.changes(live.id, refused["restore"])
        assert (found.files, found.tracked) == ([], False)
        titles = [x.title for x in await stored_events(hub, live.id) if isinstance(x, e.Notice)]
        assert "someone changed it since" in titles[-1]


async def test_a_revert_that_waits_comes_before_the_next_prompt(
    tmp_path: Path, folder: Path
) -> None:
    seen: dict[str, list[str]] = {}

    def act(text: str) -> None:
        seen[text] = sorted(each.name for each in folder.iterdir())
        (folder / text).write_text(text)

    agent = Own(act)
    async with watching(tmp_path, agent) as hub:
        live = await hub.create("it", str(folder))
        first = await asked(live, "one")
        agent.go_on.clear()
        await live.prompt("two")
        await hub.send(live.id, c.Revert(first))
        queued = await live.prompt("three")
        agent.go_on.set()
        async with asyncio.timeout(SECONDS):
            await queued
        assert seen == {"one": [], "two": ["one"], "three": ["two"]}


async def test_a_conflict_names_the_files(tmp_path: Path, folder: Path) -> None:
    file = folder / "a"
    file.write_text("before\n")
    async with watching(tmp_path, Own(lambda text: void(file.write_text(text)))) as hub:
        live = await hub.create("it", str(folder))
        await asked(live, "agent\n")
        file.write_text("person\n")
        with pytest.raises(CommandRefused) as refused:
            await hub.send(live.id, c.Revert())
        assert refused.value.code == "conflict"
        assert set(refused.value.detail["reasons"]) == {str(file)}
        reply = await hub.send(live.id, c.Restore(choices={str(file): "keep"}))
        assert (reply["paths"], reply["kept"]) == ([], [str(file)])
        assert file.read_text() == "person\n"


async def test_a_rewind_restores_files_and_begins_again(tmp_path: Path, folder: Path) -> None:
    agent = Own(lambda text: void((folder / text.split()[0]).write_text(text)))
    async with watching(tmp_path, agent) as hub:
        live = await hub.create("it", str(folder))
        await asked(live, "one")
        second = await asked(live, "two")
        await asked(live, "three")
        done = await hub.folders.rewind(live.id, second, summary=True)
        assert done.prompt == "two"
        assert sorted(done.paths) == [str(folder / "three"), str(folder / "two")]
        assert (done.continuity, done.session != live.id) == ("reset", True)
        new = hub.live[done.session]
        events = await stored_events(hub, new.id)
        [begun] = [x for x in events if isinstance(x, e.TurnStarted)]
        assert "The user: one" in begun.text
        assert "two" not in begun.text
        assert any(isinstance(x, e.Notice) and live.id in x.title for x in events)
        with pytest.raises(CommandRefused, match="no turn"):
            await hub.folders.rewind(live.id, "turn-unknown")


class Forking(Own):
    """Calls itself an agent whose forks may end with a message, and names what it says last."""

    def __init__(self, act: Callable[[str], None], *, version: str = "0.99.0") -> None:
        super().__init__(act)
        self.info = v1.Implementation(name="@agentclientprotocol/claude-agent-acp", version=version)

    async def _play(self, turn: AgentTurn) -> None:
        await super()._play(turn)
        turn.say(f"{turn.text} done", message_id=f"m-{turn.text}")

    def forks(self) -> list[Any]:
        return [params for method, params in self.received if method == "session/fork"]


async def test_a_rewind_forks_the_conversation_where_the_agent_can(
    tmp_path: Path, folder: Path
) -> None:
    agent = Forking(lambda text: void((folder / text).write_text(text)))
    async with watching(tmp_path, agent) as hub:
        live = await hub.create("it", str(folder))
        for text in ("one", "two"):
            await asked(live, text)
        third = await asked(live, "three")
        done = await hub.folders.rewind(live.id, third, summary=True)
        assert (done.continuity, done.reason, done.prompt) == ("continued", None, "three")
        [sent] = agent.forks()
        assert sent["_meta"] == {
            "jetbrains": {"air": {"fork": {"version": 1, "messageId": "m-two"}}}
        }
        new = hub.live[done.session]
        said = [each.text for each in new.session.state.entries if isinstance(each, UserEntry)]
        assert said == ["one", "two"]
        assert new.record.parent == live.id
        await asked(new, "four")
        [file] = (await hub.folders.changes(new.id)).files
        assert file.path == str(folder / "four")
        events = await stored_events(hub, new.id)
        assert any("remembers what" in x.title for x in events if isinstance(x, e.Notice))


@pytest.mark.parametrize(
    ("version", "message", "reason"),
    [
        ("0.98.7", "m", "cannot fork a conversation at an earlier point"),
        ("0.99.0", None, "has no id"),
        ("0.99.0", "gone", "no such message"),
    ],
)
async def test_a_rewind_says_why_the_agent_remembers_nothing(
    tmp_path: Path, folder: Path, version: str, message: str | None, reason: str
) -> None:
    class Telling(Forking):
        async def _play(self, turn: AgentTurn) -> None:
            turn.say("done", message_id=message)

    agent = Telling(lambda _: None, version=version)
    agent.answers["session/fork"] = InvalidParams("no such message")
    async with watching(tmp_path, agent) as hub:
        live = await hub.create("it", str(folder))
        first = await asked(live, "one")
        second = await asked(live, "two")
        done = await hub.folders.rewind(live.id, second)
        assert done.continuity == "reset"
        assert reason in (done.reason or "")
        assert hub.live[done.session].session.state.turns == []
        again = await hub.folders.rewind(live.id, first)
        assert (again.continuity, again.reason) == ("reset", "nothing was said before")
        listed = {each.id for each in await hub.store.sessions(SessionFilter())}
        assert listed == {live.id, done.session, again.session}


async def test_a_rewind_whose_agent_does_not_begin_again_leaves_the_files(
    tmp_path: Path, folder: Path
) -> None:
    agent = Own(lambda text: void((folder / text).write_text(text)))
    async with watching(tmp_path, agent) as hub:
        live = await hub.create("it", str(folder))
        first = await asked(live, "one")
        agent.answers["session/new"] = InvalidParams("no more sessions")
        with pytest.raises(InvalidParams, match="no more sessions"):
            await hub.folders.rewind(live.id, first)
        assert (folder / "one").read_text() == "one"


async def test_a_rewound_session_begins_in_another_process_though_its_agent_kept_nothing_of_it(
    tmp_path: Path, folder: Path
) -> None:
    agent = Own(lambda text: void((folder / text).write_text(text)))
    async with watching(tmp_path, agent) as hub:
        live = await hub.create("it", str(folder))
        done = await hub.folders.rewind(live.id, await asked(live, "one"))
    for method in ("session/load", "session/resume"):
        agent.answers[method] = ResourceNotFound("no such session")
    async with watching(tmp_path, agent) as hub:
        await asked(await hub.open(done.session), "two")
        assert (folder / "two").exists()
        with pytest.raises(SessionNotContinued):  # this one had something to forget
            await hub.open(live.id)


async def test_a_rewound_session_keeps_its_system_prompt(tmp_path: Path, folder: Path) -> None:
    agent = Own(lambda text: void((folder / text).write_text(text)))
    accepts = v1.SessionCapabilities(system_prompt=v1.SessionSystemPromptCapabilities())
    agent.capabilities = v1.AgentCapabilities(session_capabilities=accepts)
    brief = SystemPrompt("Be brief.")
    async with watching(tmp_path, agent) as hub:
        live = await hub.create("it", str(folder), system_prompt=brief)
        done = await hub.folders.rewind(live.id, await asked(live, "one"))
        assert (await hub.record(done.session)).system_prompt == brief


async def test_a_session_that_nobody_runs_says_that_it_was_rewound(
    tmp_path: Path, folder: Path
) -> None:
    agent = Own(lambda text: void((folder / text).write_text(text)))
    agent.capabilities = v1.AgentCapabilities()
    async with watching(tmp_path, agent) as hub:
        live = await hub.create("it", str(folder))
        turn = await asked(live, "one")
    async with watching(tmp_path, agent) as hub:
        done = await hub.folders.rewind(live.id, turn)
        assert done.paths == [str(folder / "one")]
        last = (await stored_events(hub, live.id))[-1]
        assert isinstance(last, e.Notice)
        assert last.title == f"this session was rewound; it continues as {done.session}"


async def test_without_its_snapshots_a_session_says_so_in_one_line(
    tmp_path: Path, folder: Path
) -> None:
    """As in a store that was copied to another machine, or when they were too old."""
    (folder / "file.txt").write_text("before\n")
    agent = Own(lambda text: void((folder / "file.txt").write_text(text)))
    async with watching(tmp_path, agent) as hub:
        live = await hub.create("it", str(folder))
        await asked(live, "hello\n")
    shutil.rmtree(tmp_path / "snapshots")
    async with watching(tmp_path, agent) as hub:
        found = await hub.folders.changes(live.id)
        [problem] = found.problems
        assert problem.reason.startswith(
            f"the snapshots of {folder} are not in this data directory"
        )
        assert "\n" not in problem.reason
        assert (found.files, found.tracked) == ([], False)
        with pytest.raises(CommandRefused, match="nothing was reverted: the snapshots of"):
            await hub.send(live.id, c.Revert())
        assert (folder / "file.txt").read_text() == "hello\n"


async def test_a_revert_that_was_killed_is_finished_at_the_next_start_which_says_so(
    tmp_path: Path, folder: Path
) -> None:
    file, mine = folder / "new.txt", folder / "mine.txt"
    agent = Own(lambda text: void(file.write_text(text)))
    async with watching(tmp_path, agent) as hub:
        live = await hub.create("it", str(folder))
        await asked(live, "hello\n")
        assert hub.folders.snapshots is not None
        shadow = hub.folders.snapshots.shadow(str(folder))
        was = Blob("100644", await shadow.git.keep_content(b"hello\n"))
        half_done = RestoreJournal(
            "restore-1", live.id, [Operation(bytes(each), was, None) for each in (file, mine)]
        )
    mine.write_text("a person's\n")
    left = shadow.directory / "journal" / "restore-1.json"
    left.parent.mkdir(exist_ok=True)
    left.write_bytes(msgspec.json.encode(half_done))
    async with watching(tmp_path, agent) as hub:
        seen = await seen_until(hub.watch(live.id), e.Notice, 2)
        told = [each.title for each in seen if isinstance(each, e.Notice)]
        assert told[-2:] == [
            "a revert was interrupted when its process ended, and has been finished now",
            f"{mine} was not restored: it was changed just now",
        ]
        assert (file.exists(), mine.read_text(), left.exists()) == (False, "a person's\n", False)


async def test_snapshots_are_deleted_with_the_session(tmp_path: Path, folder: Path) -> None:
    agent = Own(lambda text: void((folder / "new.txt").write_text(text)))
    async with watching(tmp_path, agent) as hub:
        live = await hub.create("it", str(folder))
        await asked(live, "hello\n")
        assert hub.folders.snapshots is not None
        shadow = hub.folders.snapshots.shadow(str(folder))
        assert shadow.has(live.id)
        await hub.delete(live.id)
        assert not shadow.has(live.id)


def void(_: object) -> None:
    """For what only writes."""

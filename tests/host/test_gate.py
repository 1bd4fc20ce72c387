"""The gate: what is recorded of what the providers do, ours and others."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from support.clients import opened, until
from support.fake_terminals import FakeTerminals
from support.peers import soon
from support.permission_scene import scene
from support.raw_agent import RawAgent

from dragoman import Policy, Rule
from dragoman.errors import ResourceNotFound, Unsupported
from dragoman.host.permissions.consent import Consent
from dragoman.host.rules.access import file_access
from dragoman.host.terminals.provider import TerminalCommand, TerminalExit, TerminalWatcher
from dragoman.host.workspace.files import MAX_BYTES
from dragoman.host.workspace.roots import Workspace
from dragoman.session import events as e
from dragoman.session.content import Diff
from dragoman.session.state import NoticeEntry


class Hasty(FakeTerminals):
    """Prints and ends before it has said what the terminal is called."""

    async def create(
        self, workspace: Workspace, command: TerminalCommand, watcher: TerminalWatcher
    ) -> str:
        watcher.on_output("x", "fast")
        watcher.on_exit("x", TerminalExit(exit_code=0))
        await asyncio.sleep(0)
        return await super().create(workspace, command, watcher)


class Shelf:
    """Files that are nowhere on a disk."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}

    async def read_text_file(
        self, workspace: Workspace, path: str, *, line: int | None = None, limit: int | None = None
    ) -> str:
        if path not in self.files:
            raise ResourceNotFound(path)
        return self.files[path]

    async def write_text_file(self, workspace: Workspace, path: str, content: str) -> None:
        self.files[path] = content


class Passing(Shelf):
    """Files on the disk, written by someone else."""

    async def write_text_file(self, workspace: Workspace, path: str, content: str) -> None:
        await asyncio.sleep(0)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.close(os.open(path, os.O_CREAT, 0o644))


async def test_a_command_that_is_over_at_once_started_all_the_same(tmp_path: Path) -> None:
    agent = RawAgent()
    heard: list[e.Event] = []

    def listen(session: object, event: e.Event) -> None:
        heard.append(event)

    options = {"policy": Policy(execute=True), "terminals": Hasty(), "listen": listen}
    async with opened(agent, tmp_path, **options) as (_, session):
        await agent.ask("terminal/create", {"sessionId": "s1", "command": "true"}, 1)
        names = [type(event).__name__ for event in heard[-3:]]
        assert names == ["TerminalStarted", "TerminalOutput", "TerminalExited"]
        terminal = session.state.terminals["x"]
        assert (terminal.output, terminal.running, terminal.exit_code) == ("fast", False, 0)
        for number in (2, 3):
            told = await agent.ask(
                "terminal/release", {"sessionId": "s1", "terminalId": "x"}, number
            )
            assert told["result"] == {}
        released = [event for event in heard if isinstance(event, e.TerminalReleased)]
        assert len(released) == 1


class Slow(FakeTerminals):
    """Does not get to say whether the command runs."""

    def __init__(self) -> None:
        super().__init__()
        self.began = asyncio.Event()

    async def create(
        self, workspace: Workspace, command: TerminalCommand, watcher: TerminalWatcher
    ) -> str:
        self.began.set()
        await asyncio.Event().wait()
        raise AssertionError


async def test_a_command_that_is_cancelled_while_it_starts_may_have_run(tmp_path: Path) -> None:
    agent, slow = RawAgent(), Slow()
    options = {"policy": Policy(execute=True), "terminals": slow}
    async with opened(agent, tmp_path, **options) as (_, session):
        params = {"sessionId": "s1", "command": "make", "args": ["test"]}
        asked = asyncio.create_task(agent.ask("terminal/create", params, 1))
        await soon(slow.began.wait())
        agent.send({"method": "$/cancel_request", "params": {"requestId": 1}})
        assert "error" in await soon(asked)
        [notice] = [entry for entry in session.state.entries if isinstance(entry, NoticeEntry)]
        assert "cancelled while it started, and may have run: Run make test" in notice.text


async def test_files_may_be_anywhere(tmp_path: Path) -> None:
    shelf, agent = Shelf(), RawAgent()
    path = str(tmp_path / "a.txt")
    async with opened(agent, tmp_path, policy=Policy(write=True), files=shelf) as (_, session):
        write = {"sessionId": "s1", "path": path, "content": "kept"}
        assert "result" in await agent.ask("fs/write_text_file", write, 1)
        read = await agent.ask("fs/read_text_file", {"sessionId": "s1", "path": path}, 2)
        assert read["result"] == {"content": "kept"}
        with pytest.raises(Unsupported, match="listing changes"):
            session.written()
        with pytest.raises(Unsupported, match="listing changes"):
            await session.revert()
    assert shelf.files == {path: "kept"}
    assert os.listdir(tmp_path) == []


async def test_a_write_that_is_undone_is_told_as_it_was(tmp_path: Path) -> None:
    agent, old, new = RawAgent(), tmp_path / "old", tmp_path / "new"
    old.write_text("before")
    async with opened(agent, tmp_path, policy=Policy(write=True)) as (_, session):
        for number, path in enumerate((old, new), 1):
            write = {"sessionId": "s1", "path": str(path), "content": "after"}
            assert "result" in await agent.ask("fs/write_text_file", write, number)
        await session.revert()
        told = sorted(entry.text for entry in session.state.entries)
    assert told == [f"{new} was deleted, because it was new", f"{old} was restored"]
    assert (old.read_text(), new.exists()) == ("before", False)


@pytest.mark.parametrize("how", ["folder", "link"])
async def test_a_workspace_that_was_replaced_is_refused(tmp_path: Path, how: str) -> None:
    ws, other = tmp_path / "ws", tmp_path / "other"
    for folder in (ws, other):
        folder.mkdir()
        (folder / "a.txt").write_text("there")
    agent = RawAgent()
    async with opened(agent, ws, policy=Policy(yolo=True)):
        ws.rename(tmp_path / "moved")
        if how == "link":
            ws.symlink_to(other)
        else:
            other.rename(ws)
        where = {"sessionId": "s1", "path": str(ws / "a.txt")}
        for number, (method, params) in enumerate(
            [
                ("fs/read_text_file", where),
                ("fs/write_text_file", where | {"content": "x"}),
                ("terminal/create", {"sessionId": "s1", "command": "touch", "args": ["b"]}),
            ]
        ):
            told = await agent.ask(method, params, number)
            assert "was moved or replaced after the session started" in told["error"]["message"]
    assert not (ws / "b").exists()


async def test_a_file_that_changed_while_the_question_waited_is_asked_about_again(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("when asked")
    async with scene(tmp_path) as s:
        await s.begin()
        writing = asyncio.create_task(s.write("new"))
        shown = await s.waiting()
        path.write_text("by a person")
        await s.answer("allow")
        await until(lambda: len(s.requests) == 2)
        assert path.read_text() == "by a person"
        again = await s.waiting()
        await s.answer("allow")
        assert "result" in await soon(writing)
        assert shown.content == [Diff(str(path), "new", "when asked")]
        assert again.content == [Diff(str(path), "new", "by a person")]
        (event,) = [event for event in s.heard if isinstance(event, e.FileWritten)]
        assert (event.before, event.after) == ("by a person", "new")
        (change,) = s.session.written()
        assert change.before == b"by a person"
        (notice,) = [event for event in s.heard if isinstance(event, e.Notice)]
        assert notice.text == f"{path} was changed while the question waited: it is judged again"


async def test_a_file_that_is_meanwhile_as_it_was_allowed_to_be_is_not_asked_about_again(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.txt"
    async with scene(tmp_path) as s:
        await s.begin()
        writing = asyncio.create_task(s.write("new"))
        await s.waiting()
        path.write_text("new")  # as an agent does that also writes by itself
        await s.answer("allow")
        assert "result" in await soon(writing)
    assert len(s.requests) == 1
    assert path.read_text() == "new"


@pytest.mark.parametrize("found", [b"\xff binary", None, b"text"], ids=["binary", "none", "text"])
@pytest.mark.parametrize("then", [b"\xfe binary", None, b"by a person"], ids=["bin", "no", "txt"])
async def test_whatever_was_there_and_is_not_asks_again(
    tmp_path: Path, found: bytes | None, then: bytes | None
) -> None:
    path = tmp_path / "a.txt"

    def put(content: bytes | None) -> None:
        if content is None:
            path.unlink(missing_ok=True)
        else:
            path.write_bytes(content)

    put(found)
    async with scene(tmp_path) as s:
        await s.begin()
        writing = asyncio.create_task(s.write("new"))
        await s.waiting()
        put(then)
        await s.answer("allow")
        if found != then:
            await until(lambda: len(s.requests) == 2)
            assert (path.read_bytes() if path.exists() else None) == then
            await s.answer("allow")
        assert "result" in await soon(writing)
    assert path.read_text() == "new"


async def test_a_file_that_changes_each_time_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("0")
    async with scene(tmp_path) as s:
        await s.begin()
        writing = asyncio.create_task(s.write("new"))
        for number in range(1, 6):
            await until(lambda: len(s.requests) == number)  # noqa: B023 - waited for at once
            path.write_text(str(number))
            await s.answer("allow")
        told = await soon(writing)
    assert "it changed each time a person was asked" in told["error"]["message"]
    assert path.read_text() == "5"


async def test_what_a_rule_allows_is_written_whatever_is_there(tmp_path: Path) -> None:
    """Nobody was shown anything: the writes of an agent to one file follow each other."""
    agent = RawAgent()
    async with opened(agent, tmp_path, policy=Policy(write=True)):
        write = {"sessionId": "s1", "path": str(tmp_path / "a.txt")}
        for number in range(20):
            params = write | {"content": str(number)}
            agent.send({"id": number, "method": "fs/write_text_file", "params": params})
        told = [await agent.answer_to(number) for number in range(20)]
    assert all("result" in each for each in told)
    assert (tmp_path / "a.txt").read_text() == "19"


@pytest.mark.parametrize("of_another_kind", [False, True])
async def test_writes_at_once_do_not_make_a_repository_that_nobody_was_asked_about(
    tmp_path: Path, of_another_kind: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is judged before the other is on the disk."""
    docs = tmp_path / "docs"
    (docs / "refs").mkdir(parents=True)
    judged, both = 0, asyncio.Event()
    permit = Consent.permit

    async def together(consent: Consent, *args: Any, **named: Any) -> bool:
        nonlocal judged
        was_asked = await permit(consent, *args, **named)
        judged += 1
        if judged == 2:
            both.set()
        await both.wait()
        return was_asked

    monkeypatch.setattr(Consent, "permit", together)
    kind = {"files": Passing()} if of_another_kind else {}
    async with scene(tmp_path, attended=False, policy=Policy(write=True), **kind) as s:
        writes = [
            s.ask(
                "fs/write_text_file",
                {"sessionId": "s1", "path": str(docs / name), "content": "x"},
            )
            for name in ("HEAD", "objects/x")
        ]
        told = [await soon(write) for write in writes]
        assert sum("error" in each for each in told) >= 1
        refused = next(each["error"]["message"] for each in told if "error" in each)
        assert "there is nobody to ask" in refused
        assert not ((docs / "HEAD").exists() and (docs / "objects").exists())
        notices = [event.text for event in s.heard if isinstance(event, e.Notice)]
        assert notices
        assert all("a folder that other writes changed" in text for text in notices)


@pytest.mark.parametrize("way", ["link", "folder", "link above"])
async def test_what_is_allowed_outside_is_done_in_the_folder_that_was_judged(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ws, judged, other = tmp_path / "ws", tmp_path / "up" / "judged", tmp_path / "other"
    for folder in (ws, judged, other, other / "judged"):
        folder.mkdir(parents=True)
        (folder / "note.txt").write_text(f"of {folder}")

    def swap() -> None:
        swapped = judged.parent if way == "link above" else judged
        swapped.rename(tmp_path / "moved")
        if way == "folder":
            (other / "judged").rename(judged)
        else:
            swapped.symlink_to(other)

    def swap_back() -> None:
        swapped = judged.parent if way == "link above" else judged
        if way == "folder":
            judged.rename(other / "judged")
        else:
            swapped.unlink()
        (tmp_path / "moved").rename(swapped)

    permit = Consent.permit

    async def then_swapped(consent: Consent, *args: Any, **named: Any) -> bool:
        was_asked = await permit(consent, *args, **named)
        swap()
        return was_asked

    monkeypatch.setattr(Consent, "permit", then_swapped)
    async with scene(ws, policy=Policy(yolo=True)) as s:
        where = {"sessionId": "s1", "path": str(judged / "note.txt")}
        told = await s.result("fs/read_text_file", where)
        assert "was moved or replaced" in told["error"]["message"]
        swap_back()
        told = await s.run("touch", "ran", cwd=str(judged))
        assert "was moved or replaced" in told["error"]["message"]
        swap_back()


async def test_a_yes_outside_the_workspace_is_kept(tmp_path: Path) -> None:
    ws, link, folder = tmp_path / "ws", tmp_path / "link", tmp_path / "folder"
    for each in (ws, folder):
        each.mkdir()
    (folder / "note.txt").write_text("kept")
    link.symlink_to(folder)
    async with scene(ws) as s:
        await s.begin()
        asking = s.ask("fs/read_text_file", {"sessionId": "s1", "path": str(link / "note.txt")})
        await s.answer("allow")
        assert (await soon(asking))["result"] == {"content": "kept"}


async def test_so_it_has_with_files_of_another_kind(tmp_path: Path) -> None:
    shelf, path = Shelf(), str(tmp_path / "a.txt")
    async with scene(tmp_path, files=shelf) as s:
        await s.begin()
        writing = asyncio.create_task(s.write("new"))
        await s.waiting()
        shelf.files[path] = "when answered"
        await s.answer("allow")
        await until(lambda: len(s.requests) == 2)
        assert shelf.files == {path: "when answered"}
        await s.answer("allow")
        assert "result" in await soon(writing)
        (event,) = [event for event in s.heard if isinstance(event, e.FileWritten)]
        assert (event.before, event.after) == ("when answered", "new")


async def test_a_write_that_happens_is_recorded_though_the_agent_gave_it_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncing, release = threading.Event(), threading.Event()
    fsync = os.fsync

    def slow(descriptor: int) -> None:
        syncing.set()
        release.wait(30)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", slow)
    async with scene(tmp_path, policy=Policy(write=True)) as s:
        params = {"sessionId": "s1", "path": str(tmp_path / "a.txt"), "content": "new"}
        writing = s.ask("fs/write_text_file", params)
        await asyncio.to_thread(syncing.wait, 30)
        s.agent.send({"method": "$/cancel_request", "params": {"requestId": "ask 1"}})
        assert (await soon(writing))["error"]["code"] == -32800
        release.set()
        await until(lambda: any(isinstance(event, e.FileWritten) for event in s.heard))
        assert (tmp_path / "a.txt").read_text() == "new"


@pytest.mark.parametrize("content", [b"\x89PNG\0", b"\xff", b"x" * (MAX_BYTES + 1)])
async def test_a_file_that_cannot_be_shown_is_not_passed_off_as_a_new_one(
    content: bytes, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_bytes(content)
    async with scene(tmp_path) as s:
        await s.begin()
        writing = asyncio.create_task(s.write("new"))
        assert "a.txt over what cannot be shown (" in (await s.waiting()).title
        await s.answer("allow")
        assert "result" in await soon(writing)
        (event,) = [event for event in s.heard if isinstance(event, e.FileWritten)]
        assert event.before is None
        assert s.session.written()[0].before == content


async def test_a_name_with_a_slash_behind_it_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")
    async with scene(tmp_path, policy=Policy(yolo=True)) as s:
        for name in ("a.txt/", "a.txt/.", "new/", "new/.."):
            path = {"sessionId": "s1", "path": f"{tmp_path}/{name}"}
            for method, more in (("read", {}), ("write", {"content": "x"})):
                told = await s.result(f"fs/{method}_text_file", path | more)
                assert told["error"]["code"] == -32602
                assert "a directory, not a file" in told["error"]["message"]
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_policy_explains_its_decisions(tmp_path: Path) -> None:
    policy = Policy([Rule(effect="deny", operation="write", path="secret/**")], write=True)
    workspace = Workspace("s", str(tmp_path))
    access = file_access("write", f"{tmp_path}/secret/x", agent="raw", roots=[str(tmp_path)])
    explanation = policy.explain(access, workspace)
    assert explanation.decision == policy.decide(access, workspace)
    assert explanation.decision.effect == "deny"
    assert [considered.matched for considered in explanation.considered] == [True, True]

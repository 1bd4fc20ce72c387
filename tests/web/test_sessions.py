"""Sessions over HTTP: made, listed, looked at, changed, and forgotten."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from page.seeding import told_session
from store.stores import begin, fill
from support.serving import Served, served

from dragoman.schema import v1
from dragoman.session import events as e
from dragoman.session.facts import ProgramRun
from dragoman.store.records import Batch, Lease, Owner, SessionRecord, StoredEvent
from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.steps import plan, say, think, usage
from dragoman.web.api.sessions import show
from dragoman.web.shapes.session_shapes import DetailQuery

MODES = [v1.SessionMode(id="ask", name="Ask"), v1.SessionMode(id="code", name="Code")]


def scripted(**options: Any) -> dict[str, ScriptedAgent]:
    script = [think("hm"), plan(("one", "pending")), say("hello "), say("world"), usage(10, 100)]
    return {"scripted": ScriptedAgent(script, modes=MODES, **options)}


async def test_a_session_is_made_prompted_and_shown(tmp_path: Path) -> None:
    async with served(tmp_path, scripted()) as web:
        made = await web.call("POST", "/api/sessions", {"agent": "scripted", "cwd": str(tmp_path)})
        assert made["agentSessionId"] == "session-1"
        assert (made["status"], made["title"], made["name"]) == ("idle", None, None)
        found = await web.done(made["id"], "greet me")
        assert found["title"] == "greet me"
        kinds = [entry["type"] for entry in found["entries"]]
        assert kinds == ["user", "thought", "plan", "agent"]
        assert found["entries"][3]["pieces"] == ["hello world"]
        assert found["owner"]["here"] is True
        assert found["usage"] == {"used": 10, "size": 100}
        assert found["plan"]["steps"][0]["content"] == "one"
        assert (found["pending"], found["turn"], found["queue"]) == ([], None, [])
        assert found["lastTurn"]["stopReason"] == "end_turn"
        assert found["modes"]["current"] == "ask"
        assert datetime.fromisoformat(found["createdAt"]).utcoffset() is not None


async def test_what_was_left_out_is_the_servers_own(tmp_path: Path) -> None:
    async with served(tmp_path, scripted()) as web:
        made = await web.call("POST", "/api/sessions", {})
        assert (made["agent"], made["cwd"]) == ("scripted", str(tmp_path))


async def test_files_and_terminals_are_switched_off_for_one_session(tmp_path: Path) -> None:
    async def tell(turn: AgentTurn) -> None:
        files = turn.client.fs
        turn.say(f"{bool(files and files.read_text_file)} {bool(turn.client.terminal)}")

    async with served(tmp_path, {"scripted": ScriptedAgent(tell)}) as web:
        offers = [
            None,
            {"files": False},
            {"terminals": False},
            {"files": False, "terminals": False},
        ]
        bodies = [{} if offer is None else {"offer": offer} for offer in offers]
        found = [await web.done(await web.new_session(**body), "tell") for body in bodies]
        said = [each["entries"][-1]["pieces"] for each in found]
        assert said == [["True True"], ["False True"], ["True False"], ["False False"]]
        assert [each["offer"] for each in found] == [
            {"files": True, "terminals": True, "fence": "off"},
            {"files": False, "terminals": True, "fence": "off"},
            {"files": True, "terminals": False, "fence": "off"},
            {"files": False, "terminals": False, "fence": "off"},
        ]
        wrong = {"cwd": str(tmp_path), "offer": {"shell": False}}
        assert await web.refused("POST", "/api/sessions", wrong) == (400, "invalid")


async def test_a_mode_is_set_before_anything_is_said(tmp_path: Path) -> None:
    async with served(tmp_path, scripted()) as web:
        session_id = await web.new_session(mode="code")
        assert (await web.detail(session_id))["modes"]["current"] == "code"
        body = {"cwd": str(tmp_path), "mode": "nonsense"}
        assert await web.refused("POST", "/api/sessions", body) == (400, "invalid")
        assert len((await web.call("GET", "/api/sessions"))["sessions"]) == 1


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"agent": "nobody"}, (404, "unknown_agent")),
        ({"cwd": "relative"}, (400, "invalid")),
        ({"cwd": "/nowhere/at/all"}, (400, "invalid")),
        ({"cwd": 5}, (400, "invalid")),
        ({"config": {"x": 1}}, (400, "invalid")),
        ([], (400, "invalid")),
    ],
)
async def test_what_makes_no_session(body: Any, expected: tuple[int, str], tmp_path: Path) -> None:
    async with served(tmp_path, scripted()) as web:
        assert await web.refused("POST", "/api/sessions", body) == expected


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("none", "{}: no such folder"), ("file", "{}: not a folder")],
)
async def test_a_folder_that_is_not_there_is_named(
    name: str, sentence: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    path = str(tmp_path / name)
    async with served(tmp_path, scripted()) as web:
        answer = await web.http.post("/api/sessions", json={"cwd": path})
        error = answer.json()["error"]
        assert error["message"] == sentence.format(path)
        assert error["detail"] == {"path": path}


async def test_one_that_is_taken_out_of_the_archive_is_not_old(tmp_path: Path) -> None:
    async with served(tmp_path, scripted()) as web:
        store = web.server.hub.store
        record = SessionRecord(id="s-old", agent="scripted", cwd="/", created_at=1, updated_at=1)
        await store.create_session(record)
        await web.call("PATCH", "/api/sessions/s-old", {"archived": True})
        assert (await web.server.hub.record("s-old")).updated_at == 1
        await web.call("PATCH", "/api/sessions/s-old", {"archived": False})
        assert (await web.server.hub.record("s-old")).updated_at > store.now() - 600


async def test_a_list_is_filtered_and_comes_in_pages(tmp_path: Path) -> None:
    agents = {**scripted(), "other": ScriptedAgent()}
    async with served(tmp_path, agents) as web:
        ids = [await web.new_session() for _ in range(3)]
        other = await web.new_session(agent="other", name="Special")
        await web.call("PATCH", f"/api/sessions/{ids[0]}", {"archived": True})

        async def listed(query: str) -> list[str]:
            page = await web.call("GET", f"/api/sessions?{query}")
            return [session["id"] for session in page["sessions"]]

        assert set(await listed("")) == {*ids, other}
        assert await listed("agent=other") == [other]
        assert await listed("q=special") == [other]
        assert await listed("archived=true") == [ids[0]]
        assert await listed("status=running") == []
        assert await listed(f"cwd={tmp_path}/none") == []
        pages = await _pages(web, 3)
        assert [len(page) for page in pages] == [3, 1]
        assert [len(page) for page in await _pages(web, 2)] == [2, 2], "no empty page at the end"
        assert {each for page in pages for each in page} == {*ids, other}
        query = "/api/sessions?before=nobody"
        assert await web.refused("GET", query) == (400, "unknown_cursor")
        assert await web.refused("GET", "/api/sessions?limit=0") == (400, "invalid")


async def _pages(web: Served, limit: int) -> list[list[str]]:
    pages: list[list[str]] = []
    cursor = ""
    while True:
        page = await web.call("GET", f"/api/sessions?limit={limit}{cursor}")
        pages.append([session["id"] for session in page["sessions"]])
        if page["next"] is None:
            return pages
        cursor = f"&before={page['next']}"


async def test_entries_are_shown_from_the_end(tmp_path: Path) -> None:
    async with served(tmp_path, {"scripted": ScriptedAgent([say("answer")])}) as web:
        session_id = await web.new_session()
        for number in range(3):
            await web.done(session_id, f"prompt {number}")
        path = f"/api/sessions/{session_id}"
        found = await web.call("GET", f"{path}?entries=2")
        assert [entry["type"] for entry in found["entries"]] == ["user", "agent"]
        assert (found["firstEntry"], found["entryCount"]) == (4, 6)
        before = await web.call("GET", f"{path}?entries=3&before=4")
        assert (before["firstEntry"], len(before["entries"])) == (1, 3)
        assert await web.refused("GET", f"{path}?entries=x") == (400, "invalid")


@pytest.mark.parametrize("character", ["x", "\1", "\U0001f600"], ids=["plain", "escaped", "wide"])
async def test_the_entries_of_an_answer_are_limited_by_their_bytes(
    tmp_path: Path, character: str
) -> None:
    async def much(turn: AgentTurn) -> None:
        for number in range(12):
            turn.say(character * 1_000_000, message_id=str(number))

    async with served(tmp_path, {"scripted": ScriptedAgent(much)}) as web:
        session_id = await web.new_session()
        await web.done(session_id, "say much")
        path, before, shown = f"/api/sessions/{session_id}", 13, 0
        while before:
            found = await web.call("GET", f"{path}?entries=100&before={before}")
            assert len(msgspec.json.encode(found["entries"])) <= 8 * 1024 * 1024
            assert found["firstEntry"] + len(found["entries"]) == before
            before, shown = found["firstEntry"], shown + len(found["entries"])
        assert shown == 13


LARGE = 2**63


async def test_a_cursor_that_no_store_can_tell_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path, scripted()) as web:
        session_id = await web.new_session()
        path = f"/api/sessions/{session_id}"
        for query in (f"{path}/events?after={LARGE}", f"{path}?before={LARGE}"):
            assert await web.refused("GET", query) == (400, "invalid")
        assert await web.refused("GET", f"/api/events?after={LARGE}") == (400, "invalid")
        assert await web.refused("GET", f"{path}/frames?after={LARGE}") == (400, "invalid")
        assert (await web.call("GET", f"{path}/events?after={LARGE - 1}"))["events"] == []


async def test_what_is_shown_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(tmp_path, scripted()) as web:
        live = web.server.hub.live[await web.new_session()]
        store = web.server.hub.store
        owner, append = store.owner, store.append

        async def meanwhile(session_id: str) -> Owner | None:
            live.session.log.record(e.Notice("meanwhile"))
            return await owner(session_id)

        async def slow(lease: Lease, batch: Batch) -> int:
            await asyncio.sleep(0.05)
            return await append(lease, batch)

        monkeypatch.setattr(store, "owner", meanwhile)
        monkeypatch.setattr(store, "append", slow)
        found = await show(web.server, live.id, DetailQuery())
        assert found.last_seq == live.record.last_seq


async def test_a_session_is_renamed_wherever_it_runs(tmp_path: Path) -> None:
    async with served(tmp_path, scripted()) as web:
        session_id = await web.new_session()
        path = f"/api/sessions/{session_id}"
        assert (await web.call("PATCH", path, {"title": "Mine"}))["title"] == "Mine"
        await web.done(session_id, "something else")
        assert (await web.detail(session_id))["title"] == "Mine"
        await web.call("POST", f"{path}/close")
        assert (await web.call("PATCH", path, {"title": "Still"}))["title"] == "Still"
        assert session_id not in web.server.hub.live


async def test_a_session_is_named_once_in_its_folder(tmp_path: Path) -> None:
    async with served(tmp_path, scripted()) as web:
        first, second = await web.new_session(), await web.new_session()
        path = f"/api/sessions/{first}"
        assert (await web.call("PATCH", path, {"name": "fix"}))["name"] == "fix"
        assert (await web.detail(first))["name"] == "fix"
        again = await web.refused("PATCH", f"/api/sessions/{second}", {"name": "fix"})
        assert again == (409, "name_taken")
        assert await web.refused("PATCH", path, {"name": " "}) == (400, "invalid")
        assert (await web.detail(first))["name"] == "fix"


async def test_a_fork_knows_its_parent(tmp_path: Path) -> None:
    async with served(tmp_path, scripted()) as web:
        session_id = await web.new_session()
        await web.done(session_id, "before the fork")
        path = f"/api/sessions/{session_id}/fork"
        assert await web.refused("POST", path, {"nmae": "twig"}) == (400, "invalid")
        forked = await web.call("POST", path)
        assert forked["parent"] == session_id
        found = await web.detail(forked["id"])
        assert found["entries"][0]["pieces"] == ["before the fork"]


async def test_a_closed_session_is_there_and_a_deleted_one_is_not(tmp_path: Path) -> None:
    async with served(tmp_path, scripted()) as web:
        session_id = await web.new_session()
        path = f"/api/sessions/{session_id}"
        await web.done(session_id)
        await web.call("POST", f"{path}/close")
        found = await web.detail(session_id)
        assert (found["status"], found["owner"]) == ("closed", None)
        await web.call("DELETE", path)
        assert await web.refused("GET", path) == (404, "unknown_session")
        assert await web.refused("DELETE", path) == (404, "unknown_session")


async def test_an_archive_has_a_header_and_every_event(tmp_path: Path) -> None:
    async with served(tmp_path, scripted()) as web:
        session_id = await web.new_session()
        found = await web.done(session_id)
        response = await web.http.get(f"/api/sessions/{session_id}/export")
        assert response.headers["content-type"] == "application/jsonl"
        lines = response.text.split("\n")
        assert '"dragoman":2' in lines[0]
        assert len(lines) == found["lastSeq"] + 2
        assert lines[-1] == ""


async def test_usage_is_added_up(tmp_path: Path) -> None:
    async with served(tmp_path, scripted()) as web:
        for prompt in ("one", "two"):
            await web.done(await web.new_session(), prompt)
        told = await web.call("GET", "/api/usage?since=0&by=project")
        (row,) = told["rows"]
        assert row["spent"]["turns"] == 2
        assert row["spent"]["turnsWithoutCost"] == 2
        assert told["total"] == row["spent"]
        by_session = (await web.call("GET", "/api/usage?since=0&by=session"))["rows"]
        assert {each["title"] for each in by_session} == {"one", "two"}
        assert (await web.call("GET", "/api/usage?since=99999999999"))["rows"] == []
        for bad in ("", "?since=-1", "?since=0&by=week"):
            assert await web.refused("GET", f"/api/usage{bad}") == (400, "invalid")


async def test_search_finds_what_was_said(tmp_path: Path) -> None:
    async with served(tmp_path, scripted()) as web:
        session_id = await web.new_session()
        await web.done(session_id, "where is the xylophone")
        found = (await web.call("GET", "/api/search?q=xylo"))["hits"]
        assert {hit["sessionId"] for hit in found} == {session_id}
        assert "\u0001xylophone\u0002" in found[0]["snippet"]
        assert found[0]["title"] == "where is the xylophone"
        assert (await web.call("GET", "/api/search?q=nothing"))["hits"] == []
        assert await web.refused("GET", "/api/search") == (400, "invalid")


@pytest.mark.parametrize(
    "path",
    [
        "/api/chat/s/messages",
        "/api/sessions/s",
        "/api/sessions/s/events?types=usage",
        "/api/sessions/s/export",
    ],
)
async def test_nobody_waits_for_the_end_of_a_session_that_grows_as_fast_as_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    async with served(tmp_path) as web:
        store = web.server.hub.store
        lease = await begin(store)
        await fill(store, lease, 10)
        read, reads = store.events, 0

        async def growing(session_id: str, **page: int) -> list[StoredEvent]:
            nonlocal reads
            reads += 1
            assert reads < 10
            await fill(store, lease, 1, after=9 + reads)
            return await read(session_id, **page)

        monkeypatch.setattr(store, "events", growing)
        assert (await web.http.get(path)).is_success
        assert reads


async def test_what_really_ran_is_told_with_the_session(tmp_path: Path) -> None:
    ran = ProgramRun(id="p", argv=["git", "status"], cwd="/ws", parents=["sh"], exit_code=0)
    async with told_session(tmp_path / "home", "a", tmp_path) as teller:
        await teller.tell([e.ProgramsRan([ran], left_out=3)])
    async with served(tmp_path, on_disk=True) as web:
        found = await web.detail("a")
    assert found["programs"] == [
        {"id": "p", "argv": ["git", "status"], "cwd": "/ws", "parents": ["sh"], "exitCode": 0}
    ]
    assert found["programsBefore"] == 3

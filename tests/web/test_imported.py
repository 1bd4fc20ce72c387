"""Imported sessions over HTTP: a person chooses their folder, and what they claim is marked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.serving import Served, served

from dragoman import Policy
from dragoman.hub.cluster.owner import this_process
from dragoman.session import events as e
from dragoman.session.content import Diff, Text
from dragoman.store.archive import Archive, import_session, read_archive
from dragoman.store.records import SessionRecord, encode_event
from dragoman.testing import ScriptedAgent
from dragoman.testing.scripted_agent import AgentTurn
from dragoman.testing.steps import say


async def writes(turn: AgentTurn) -> None:
    await turn.write_text_file(f"{turn.session.cwd}/own.txt", "mine\n")


async def imported(web: Served) -> str:
    """It claims the whole machine, a write of ours, and one of the agent's own."""
    told: list[e.Event] = [
        e.SessionOpened("theirs", "/", "new", ["/etc"]),
        e.TurnStarted("t", [Text("go")]),
        e.FileWritten("/etc/passwd", "root::0:0\n", "root:x:0:0\n"),
        e.FileWritten(f"{web.cwd}/own.txt", "forged\n", created=True),
        e.ToolCallUpdated(
            "call", title="edit", status="completed", content=[Diff("/etc/hosts", "evil\n", "")]
        ),
        e.TurnEnded("t", "end_turn"),
    ]
    for seq, event in enumerate(told, 1):
        event.seq = seq
    record = SessionRecord(
        id="x",
        agent="scripted",
        cwd="/",
        created_at=1,
        updated_at=1,
        agent_session_id="theirs",
        additional_directories=["/etc"],
    )
    archive = Archive(record, [encode_event(event) for event in told])
    stored = await import_session(web.server.hub.store, archive, "s-1", this_process())
    return f"/api/sessions/{stored.id}"


async def test_a_session_from_a_file_waits_for_a_folder(tmp_path: Path) -> None:
    async with served(tmp_path, {"scripted": ScriptedAgent()}) as web:
        path = await imported(web)
        found = await web.call("GET", path)
        assert (found["cwd"], found["importedFrom"]) == ("", "/")
        assert found["additionalDirectories"] == []
        bodies: dict[str, Any] = {
            "prompt": {"text": "go", "content": [{"type": "text", "text": "@etc"}]},
            "revert": {},
            "fork": {},
        }
        for way, body in bodies.items():
            assert await web.refused("POST", f"{path}/{way}", body) == (409, "no_workspace")
        assert (await web.call("GET", f"{path}/files?q=e"))["files"] == []
        assert await web.refused("PATCH", path, {"cwd": "etc"}) == (400, "invalid")
        given = await web.call("PATCH", path, {"cwd": str(web.cwd)})
        assert (given["cwd"], given["importedFrom"]) == (str(web.cwd), "/")
        assert await web.refused("PATCH", path, {"cwd": "/"}) == (409, "conflict")


async def test_an_import_whose_conversation_another_session_has_goes_on_without_it(
    tmp_path: Path,
) -> None:
    async with served(tmp_path, {"scripted": ScriptedAgent([say("hello")])}) as web:
        original = await web.new_session()
        await web.done(original)
        lines = (await web.http.get(f"/api/sessions/{original}/export")).content.splitlines()
        store = web.server.hub.store
        await import_session(store, read_archive(lines), "s-1", this_process(), cwd=str(web.cwd))
        path = "/api/sessions/s-1/prompt"
        assert await web.refused("POST", path, {"text": "go"}) == (409, "not_continued")
        assert await web.refused("POST", path, {"text": "go", "onReset": "x"}) == (400, "invalid")
        await web.call("POST", path, {"text": "go", "onReset": "new"})
        found = await web.until("s-1", "idle")
        assert found["continuity"] == "reset"
        assert found["entries"][-1]["pieces"] == ["hello"]
        assert found["agentSessionId"] != (await web.detail(original))["agentSessionId"]


async def test_what_a_file_claims_is_marked_and_not_reverted(tmp_path: Path) -> None:
    agent = ScriptedAgent(writes)
    async with served(tmp_path, {"scripted": agent}, policy=Policy(write=True)) as web:
        path = await imported(web)
        await web.call("PATCH", path, {"cwd": str(web.cwd)})
        live = await web.server.hub.open("s-1", on_reset="new")
        await (await live.prompt("go"))
        changes = (await web.call("GET", f"{path}/changes"))["changes"]
        own = str(web.cwd / "own.txt")
        assert sorted((each["source"], each["path"]) for each in changes) == [
            ("host", own),
            ("imported", "/etc/hosts"),
            ("imported", "/etc/passwd"),
            ("imported", own),
        ]
        # What it wrote here itself is put back, and nothing else.
        reverted = await web.call("POST", f"{path}/revert", {"paths": [own]})
        assert reverted["paths"] == [own]
        assert not (web.cwd / "own.txt").exists()


async def test_an_agents_word_alone_opens_no_folder(tmp_path: Path) -> None:
    (there := tmp_path / "there").mkdir()
    (here := tmp_path / "here").mkdir()
    async with served(here, {"scripted": ScriptedAgent()}) as web:
        session_id = await web.new_session(cwd=str(there))
        theirs = (await web.detail(session_id))["agentSessionId"]
        await web.call("DELETE", f"/api/sessions/{session_id}?local=true")
        path = "/api/agents/scripted/sessions"
        refused = await web.http.post(path, json={"sessionId": theirs})
        assert refused.status_code == 409
        assert str(there) in refused.json()["error"]["message"]
        taken = await web.call("POST", path, {"sessionId": theirs, "cwd": str(there)})
        assert taken["cwd"] == str(there)


@pytest.mark.parametrize("moment", [1e12, 1e20, -1e20, 1e308, float("inf")])
async def test_an_odd_date_takes_no_list_away(tmp_path: Path, moment: float) -> None:
    """A file with one is refused; a database may have it all the same."""
    async with served(tmp_path, {"scripted": ScriptedAgent()}) as web:
        record = SessionRecord(
            id="s-odd", agent="scripted", cwd="/", created_at=moment, updated_at=moment
        )
        await web.server.hub.store.create_session(record)
        listed = await web.call("GET", "/api/sessions")
        assert [each["id"] for each in listed["sessions"]] == ["s-odd"]
        assert (await web.call("GET", "/api/sessions/s-odd"))["id"] == "s-odd"

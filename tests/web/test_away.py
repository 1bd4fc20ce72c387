"""The database is away: who asks over HTTP is told so at once, and what is delayed by it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest
from store.postgres.stores import until
from support.database_cable import cable_to
from support.peers import soon
from support.postgres import empty_database, own_server
from support.server_process import ServerProcess, free_port
from support.serving import STREAM, Served, sent_events, served

from dragoman import Policy, data_directory
from dragoman.errors import CommandRefused, StoreAway, StoreError, StoreFull
from dragoman.schema import v1
from dragoman.store.open import open_when_there
from dragoman.store.store_limits import StoreLimits
from dragoman.testing import ScriptedAgent
from dragoman.testing.scripted_turn import AgentTurn
from dragoman.testing.steps import say
from dragoman.web.failures import failure_of


def test_a_full_disk_has_one_status_however_it_is_told() -> None:
    for error in (CommandRefused("s", "store_full", "the disk is full"), StoreFull("x", "y")):
        failure = failure_of(error)
        assert failure is not None
        assert (failure.status, failure.code) == (507, "store_full")


def agents() -> dict[str, ScriptedAgent]:
    return {"scripted": ScriptedAgent([say("hello")])}


async def prompted(web: Served, session_id: str) -> dict[str, object]:
    path = f"/api/sessions/{session_id}/prompt"
    response = await soon(web.http.post(path, json={"text": "go"}))
    assert response.status_code == 202, response.text
    return response.json()


async def test_a_prompt_is_taken_and_said_to_be_delayed(tmp_path: Path) -> None:
    async with (
        cable_to(empty_database()) as cable,
        served(tmp_path, agents(), database=cable.address) as web,
    ):
        session_id = await web.new_session()
        cable.cut()
        reply = await prompted(web, session_id)
        assert "the database cannot be reached" in str(reply["delayed"])
        path = f"/api/sessions/{session_id}/queue"
        response = await soon(web.http.post(path, json={"text": "next"}))
        assert response.status_code == 200, response.text
        [queued] = response.json()["queue"]
        assert queued["content"] == [{"type": "text", "text": "next"}]
        assert response.json()["delayed"] == reply["delayed"]
        cable.mend()
        ended: list[str] = []
        async with web.http.stream(
            "GET", f"/api/sessions/{session_id}/events", headers=STREAM
        ) as response:
            async for sent in sent_events(response):
                if sent.json["type"] == "turn_ended":
                    ended.append(sent.json["turnId"])
                if len(ended) == 2:
                    break
        assert ended[0] == reply["turn"]
        assert set(await prompted(web, session_id)) == {"turn", "queued"}


async def test_readyz_names_what_is_not_well_for_as_long_as_it_is_not(tmp_path: Path) -> None:
    async with (
        cable_to(empty_database()) as cable,
        served(tmp_path, agents(), database=cable.address) as web,
        httpx.AsyncClient(base_url=web.origin, trust_env=False) as anybody,
    ):
        session_id = await web.new_session()
        assert (await anybody.get("/readyz")).json() == {"status": "ready"}
        cable.cut()
        await prompted(web, session_id)
        await until(lambda: web.server.hub.store.holds_undelivered)
        answer = await soon(anybody.get("/readyz"))
        assert answer.status_code == 503
        assert answer.json()["error"]["code"] == "not_ready"
        assert {"store", "outbox"} <= set(answer.json()["error"]["detail"]["failing"])
        assert (await anybody.get("/healthz")).status_code == 200
        cable.mend()
        async with asyncio.timeout(30):
            while (await anybody.get("/readyz")).status_code != 200:
                pass


async def test_readyz_names_chores_that_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(**given: object) -> None:
        raise StoreFull("the disk", "no space left")

    async with served(tmp_path, agents()) as web:
        chores = web.server.hub.maintenance
        with monkeypatch.context() as broken:
            broken.setattr(web.server.hub.store, "owned", full)
            await until(lambda: bool(chores.failing))
            assert await web.refused("GET", "/readyz") == (503, "not_ready")
        await until(lambda: not chores.failing)
        assert await web.call("GET", "/readyz") == {"status": "ready"}


async def test_other_things_are_done_and_said_to_be_delayed(tmp_path: Path) -> None:
    async def waits(turn: AgentTurn) -> None:
        turn.say("hello")
        await turn.cancelled.wait()

    async with (
        cable_to(empty_database()) as cable,
        served(tmp_path, {"scripted": ScriptedAgent(waits)}, database=cable.address) as web,
    ):
        session_id = await web.new_session()
        await prompted(web, session_id)
        waiting = await prompted(web, session_id)
        cable.cut()
        path = f"/api/sessions/{session_id}"
        dropped = await soon(web.http.delete(f"{path}/queue?id={waiting['turn']}"))
        assert (dropped.status_code, dropped.json()["queue"]) == (200, [])
        cancelled = await soon(web.http.post(f"{path}/cancel"))
        assert (cancelled.status_code, cancelled.json()["cancelled"]) == (200, True)
        for response in (dropped, cancelled):
            assert "is kept on this host" in response.json()["delayed"]
        cable.mend()
        live = web.server.hub.live[session_id]
        await soon(live.recording.settled())
        assert live.is_stored


async def test_a_running_session_takes_answers_modes_options_and_reverts(tmp_path: Path) -> None:
    async def asks(turn: AgentTurn) -> None:
        await turn.write_text_file(f"{turn.cwd}/note", "one")
        turn.say(str(await turn.request_permission("c1", title="Look it up", kind="other")))

    modes = [v1.SessionMode(id=name, name=name) for name in ("quick", "careful")]
    depth = v1.SessionConfigSelect(
        id="depth",
        name="Depth",
        current_value="flat",
        options=[v1.SessionConfigSelectOption(value=each, name=each) for each in ("flat", "deep")],
    )
    agent = ScriptedAgent(asks, modes=modes, config_options=[depth])
    async with (
        cable_to(empty_database()) as cable,
        served(
            tmp_path, {"scripted": agent}, database=cable.address, policy=Policy(write=True)
        ) as web,
    ):
        session_id = await web.new_session()
        await web.prompt(session_id)
        [question] = (await web.until(session_id, "waiting"))["pending"]
        cable.cut()
        path = f"/api/sessions/{session_id}"
        for action, body in (
            ("mode", {"modeId": "careful"}),
            ("config", {"configId": "depth", "value": "deep"}),
            (f"permissions/{question['id']}", {"optionId": question["options"][0]["id"]}),
            ("revert", {}),
        ):
            reply = await soon(web.call("POST", f"{path}/{action}", body))
            assert "is kept on this host" in reply["delayed"], action
        assert not (web.cwd / "note").exists()
        cable.mend()
        state = await web.until(session_id, "idle")
        assert state["modes"]["current"] == "careful"
        assert state["configOptions"][0]["value"] == "deep"
        assert ["allow"] in [entry.get("pieces") for entry in state["entries"]]


async def test_the_stream_of_all_sessions_says_that_it_is_away_and_that_it_is_back(
    tmp_path: Path,
) -> None:
    async with (
        cable_to(empty_database()) as cable,
        served(tmp_path, agents(), database=cable.address) as web,
    ):
        session_id = await web.new_session()
        async with web.http.stream("GET", "/api/events", headers=STREAM) as response:
            told = (sent async for sent in sent_events(response) if sent.event == "store")
            cable.cut()
            await prompted(web, session_id)
            away = (await soon(anext(told))).json["away"]
            assert away.startswith("the database cannot be reached: running turns continue")
            cable.mend()
            assert (await soon(anext(told))).json == {"away": None}


async def test_what_cannot_wait_is_refused_with_a_word_for_it(
    tmp_path: Path,
) -> None:
    limits = StoreLimits(outage_seconds=0.2)
    async with (
        cable_to(empty_database()) as cable,
        served(tmp_path, agents(), database=cable.address, store_limits=limits) as web,
    ):
        session_id = await web.new_session()
        cable.cut()
        path = f"/api/sessions/{session_id}"
        for refused in (
            web.refused("GET", "/api/sessions"),
            web.refused("POST", "/api/sessions", {"cwd": str(tmp_path)}),
            web.refused("GET", "/api/search?q=hello"),
            web.refused("PATCH", path, {"title": "another"}),
            web.refused("POST", f"{path}/close"),
            web.refused("DELETE", path),
        ):
            assert await soon(refused) == (503, "store_away")
        cable.mend()
        await until(lambda: web.server.hub.store.away is None)
        assert list(web.server.hub.live) == [session_id]
        assert (await web.done(session_id))["title"] == "go"


# ── at the start ──────────────────────────────────────────────────────────────────────────────


async def test_a_server_waits_at_its_start_for_a_database_that_comes_later(tmp_path: Path) -> None:
    database = own_server()
    try:
        database.stop()
        starting = asyncio.create_task(
            asyncio.to_thread(ServerProcess, tmp_path, DRAGOMAN_STORE=database.address())
        )
        errors = tmp_path / "stderr"
        await until(lambda: errors.exists() and "retrying for up to" in errors.read_text())
        assert not starting.done()
        database.start()
        server = await starting
        try:
            [line] = [each for each in errors.read_text().splitlines() if "retrying" in each]
            assert "the database cannot be reached" in line
            with server.http as http:
                assert http.get("/api/sessions").json()["sessions"] == []
        finally:
            server.close()
    finally:
        database.remove()


async def test_it_does_not_wait_for_ever_and_not_at_all_where_it_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path))
    told: list[str] = []
    nowhere = f"postgresql://me@127.0.0.1:{free_port()}/nothing"
    monkeypatch.setattr(data_directory, "_store", [nowhere])
    with pytest.raises(StoreAway, match="given up after 0 s"):
        await open_when_there(told.append, wait_seconds=0.2)
    assert len(told) == 1
    no_database = empty_database().replace("/postgres?", "/nothing?")
    monkeypatch.setattr(data_directory, "_store", [no_database])
    with pytest.raises(StoreError, match="refused the login"):
        await open_when_there(told.append, wait_seconds=0.2)
    assert len(told) == 1

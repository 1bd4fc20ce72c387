"""Several hosts behind HTTP: whoever is asked, a session begins, runs and moves where it should."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.postgres import empty_database
from support.server_process import COMMAND, SECONDS, server_process
from support.serving import STREAM, Served, also_served, sent_events, served

from dragoman.hub.session_records import new_record
from dragoman.store.records import HostRecord, Owner
from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing.steps import ask, say, write_file


def scripted(word: str = "hello") -> dict[str, ScriptedAgent]:
    return {"scripted": ScriptedAgent([say(word), ask("call", title="May I", kind="delete")])}


async def _tell_offer(turn: AgentTurn) -> None:
    files = turn.client.fs
    turn.say(f"files {bool(files and files.read_text_file)}")


@asynccontextmanager
async def two_hosts(folder: Path) -> AsyncGenerator[tuple[Served, Served]]:
    async with (
        served(folder, scripted(), on_disk=True, host="one") as one,
        also_served(folder, scripted(), on_disk=True, host="two") as two,
    ):
        yield one, two


async def hosts(web: Served) -> dict[str, Any]:
    return {each["name"]: each for each in (await web.call("GET", "/api/hosts"))["hosts"]}


async def test_hosts_are_listed_with_what_they_have(tmp_path: Path) -> None:
    async with two_hosts(tmp_path) as (one, two):
        found = await hosts(one)
        assert list(found) == ["one", "two"]
        assert [each["here"] for each in found.values()] == [True, False]
        assert {each["alive"] for each in found.values()} == {True}
        assert found["two"]["agents"] == ["scripted"]
        assert (found["two"]["cwd"], found["two"]["address"]) == (str(tmp_path), None)
        await two.new_session()
        assert [each["sessions"] for each in (await hosts(one)).values()] == [0, 1]


async def test_what_a_session_is_offered_goes_with_it_to_another_host(tmp_path: Path) -> None:
    agents = {"scripted": ScriptedAgent(_tell_offer)}
    async with (
        served(tmp_path, agents, on_disk=True, host="one") as one,
        also_served(tmp_path, agents, on_disk=True, host="two") as two,
    ):
        session_id = await one.new_session(host="two", offer={"files": False})
        assert (await one.done(session_id))["entries"][-1]["pieces"] == ["files False"]
        assert list(two.server.hub.live) == [session_id]
        move = {"host": "one", "reset": True}
        await one.call("POST", f"/api/sessions/{session_id}/move", move)
        found = await one.done(session_id)
        assert list(one.server.hub.live) == [session_id]
        assert found["entries"][-1]["pieces"] == ["files False"]
        assert found["offer"] == {"files": False, "terminals": True, "fence": "off"}


async def test_a_session_begins_where_it_is_wanted_and_is_steered_from_anywhere(
    tmp_path: Path,
) -> None:
    async with two_hosts(tmp_path) as (one, two):
        session_id = await one.new_session(host="two")
        path = f"/api/sessions/{session_id}"
        found = await one.detail(session_id)
        assert found["host"] == {"name": "two", "alive": True, "here": False}
        assert list(two.server.hub.live) == [session_id]
        async with one.http.stream("GET", f"{path}/events", headers=STREAM) as response:
            await one.prompt(session_id)
            [pending] = (await one.until(session_id, "waiting"))["pending"]
            answer = {"optionId": pending["options"][0]["id"]}
            await one.call("POST", f"{path}/permissions/{pending['id']}", answer)
            async for sent in sent_events(response):
                if sent.json["type"] == "turn_ended":
                    break
        assert await one.refused("POST", f"{path}/permissions/{pending['id']}", answer) == (
            409,
            "settled",
        )
        [listed] = (await one.call("GET", "/api/sessions"))["sessions"]
        assert listed["host"]["name"] == "two"
        assert (await one.call("GET", "/api/search?q=hello"))["hits"]


async def stored_rule(web: Served) -> dict[str, Any]:
    """The one that there is, once this host has heard of it."""
    while not (found := (await web.call("GET", "/api/policies"))["policies"]):  # noqa: ASYNC110
        await asyncio.sleep(0)
    return found[0]


async def test_what_is_always_allowed_on_one_host_is_asked_for_on_another(tmp_path: Path) -> None:
    """Its folder of that path is another one."""
    agents = {"scripted": ScriptedAgent([write_file(str(tmp_path / "note"), "text")])}
    options: dict[str, Any] = {"database": empty_database()}
    async with (
        served(tmp_path, agents, host="one", **options) as one,
        also_served(tmp_path, agents, host="two", **options) as two,
    ):
        session_id = await one.new_session(host="one")
        await one.prompt(session_id)
        [pending] = (await one.until(session_id, "waiting"))["pending"]
        always = next(each for each in pending["options"] if each["kind"] == "allow_always")
        path = f"/api/sessions/{session_id}/permissions/{pending['id']}"
        await one.call("POST", path, {"optionId": always["id"]})
        await one.until(session_id, "idle")
        await one.done(session_id)  # without a question
        rule = await stored_rule(one)
        assert (rule["here"], rule["host"]) == (True, None)
        elsewhere = await two.new_session(host="two")
        found = await stored_rule(two)
        assert (found["id"], found["here"], found["host"]) == (rule["id"], False, "one")
        await two.prompt(elsewhere)
        assert len((await two.until(elsewhere, "waiting"))["pending"]) == 1


async def test_without_a_name_the_least_busy_host_with_the_folder_is_taken(
    tmp_path: Path,
) -> None:
    async with two_hosts(tmp_path) as (one, two):
        for _ in range(4):
            await one.new_session()
        assert (len(one.server.hub.live), len(two.server.hub.live)) == (2, 2)
        nowhere = str(tmp_path / "nowhere")
        refused = await one.refused("POST", "/api/sessions", {"cwd": nowhere, "host": "two"})
        assert refused == (409, "no_workspace")
        assert (await one.refused("POST", "/api/sessions", {"cwd": nowhere}))[0] in (400, 409)
        assert await one.refused("POST", "/api/sessions", {"host": "nine"}) == (404, "unknown_host")
        body = {"cwd": "not/absolute", "host": "two"}
        assert await one.refused("POST", "/api/sessions", body) == (400, "invalid")
        assert len((await one.call("GET", "/api/sessions"))["sessions"]) == 4


async def test_what_a_new_session_is_set_to_wrongly_leaves_nothing_on_either_host(
    tmp_path: Path,
) -> None:
    async with two_hosts(tmp_path) as (one, two):
        body = {"host": "two", "mode": "nonsense"}
        status, _ = await one.refused("POST", "/api/sessions", body)
        assert status in (400, 409, 502)
        assert (await two.call("GET", "/api/sessions"))["sessions"] == []
        assert not two.server.hub.live


async def test_a_machine_that_is_gone_is_so_in_every_answer_at_once(tmp_path: Path) -> None:
    far = Owner("far", "another machine", 1, "then", "far")
    async with served(tmp_path, scripted(), on_disk=True, host="one") as one:
        store = one.server.hub.store
        host = HostRecord(id="far", home="far", name="far", agents=["scripted"], owner=far)
        await store.announce(host, seconds=60)
        await store.create_session(new_record("far", "scripted", str(tmp_path), session_id="s-far"))
        await store.acquire("s-far", far, seconds=60, gone=lambda _: None)
        for seconds, alive in ((60, True), (-1, False)):
            await store.renew(far, seconds=seconds)
            listed = (await one.call("GET", "/api/sessions"))["sessions"][0]
            detail = await one.detail("s-far")
            answers = {each["host"]["alive"] for each in (listed, detail)}
            assert answers | {(await hosts(one))["far"]["alive"]} == {alive}
            assert {each["owner"] is not None for each in (listed, detail)} == {alive}
        assert detail["resumeOn"] == ["one"]
        path = "/api/sessions/s-far"
        for action, body in (("prompt", {"text": "go"}), ("cancel", {})):
            assert await one.refused("POST", f"{path}/{action}", body) == (409, "owner_gone")


async def test_a_session_of_a_host_that_is_gone_is_offered_to_the_others(tmp_path: Path) -> None:
    async with served(tmp_path, scripted(), on_disk=True, host="one") as one:
        async with also_served(tmp_path, scripted(), on_disk=True, host="two") as two:
            session_id = await two.new_session(host="two")
            assert (await one.detail(session_id))["resumeOn"] == []
        path = f"/api/sessions/{session_id}"
        found = await one.detail(session_id)
        assert found["host"] == {"name": "two", "alive": False, "here": False}
        assert found["resumeOn"] == ["one"]
        refused = await one.refused("POST", f"{path}/prompt", {"text": "go"})
        assert refused == (409, "host_gone")
        assert (await one.call("GET", f"{path}/files?q="))["files"] == []
        assert await one.refused("POST", f"{path}/move") == (409, "not_continued")
        moved = await one.call("POST", f"{path}/move", {"host": "one", "reset": True})
        assert moved["host"] == {"name": "one", "alive": True, "here": True}
        await one.prompt(session_id)
        assert (await one.until(session_id, "waiting"))["continuity"] == "reset"
        assert await one.refused("POST", f"{path}/move", {"host": "one"}) == (409, "session_owned")


async def test_a_session_is_forked_and_deleted_from_another_host(tmp_path: Path) -> None:
    async with two_hosts(tmp_path) as (one, two):
        session_id = await one.new_session(host="two")
        fork = await one.call("POST", f"/api/sessions/{session_id}/fork", {"name": "twig"})
        assert (fork["parent"], fork["host"]["name"]) == (session_id, "two")
        assert set(two.server.hub.live) == {session_id, fork["id"]}
        await one.call("POST", f"/api/sessions/{fork['id']}/close")
        await one.call("DELETE", f"/api/sessions/{fork['id']}")
        left = (await one.call("GET", "/api/sessions"))["sessions"]
        assert [each["id"] for each in left] == [session_id]


# ── as processes ──────────────────────────────────────────────────────────────────────────────


@contextmanager
def headless(home: Path, *words: str) -> Generator[subprocess.Popen[bytes]]:
    command = [COMMAND, "serve", "--headless", *words]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    process = subprocess.Popen(
        command,
        env=environment | {"DRAGOMAN_HOME": str(home / "state")},
        cwd=home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=SECONDS)


def test_a_runner_without_a_page_runs_what_a_server_sends_it(tmp_path: Path) -> None:
    with headless(tmp_path, "--name", "runner") as runner:
        assert runner.stdout is not None
        assert runner.stdout.readline() == b"host runner, headless\n"
        with server_process(tmp_path, "--name", "front") as front, front.http as http:
            body = {"agent": "demo", "host": "runner", "cwd": str(tmp_path)}
            made = http.post("/api/sessions", json=body).json()
            assert (made["host"]["name"], made["owner"]["pid"]) == ("runner", runner.pid)
            listed = http.get("/api/hosts").json()["hosts"]
            assert [(each["name"], each["alive"]) for each in listed] == [
                ("front", True),
                ("runner", True),
            ]
            runner.send_signal(signal.SIGKILL)
            runner.wait(SECONDS)
            listed = http.get("/api/hosts").json()["hosts"]
            assert [each["alive"] for each in listed] == [True, False]
            # On a store of one machine its sessions can be gone on with by whoever is there.
            deadline = time.monotonic() + SECONDS
            path = f"/api/sessions/{made['id']}"
            while http.get(path).json()["owner"] is not None:
                assert time.monotonic() < deadline
            assert http.post(f"{path}/prompt", json={"text": "/help"}).status_code == 202
            assert http.get(path).json()["host"]["name"] == "front"


def test_two_machines_on_one_postgresql(tmp_path: Path) -> None:
    """Each has a data directory of its own, and with it a home."""
    store, homes = empty_database(), [tmp_path / "one", tmp_path / "two"]
    for home in homes:
        home.mkdir()
    with server_process(homes[0], "--name", "one", DRAGOMAN_STORE=store) as one, one.http as http:
        with server_process(homes[1], "--name", "two", DRAGOMAN_STORE=store) as two:
            body = {"agent": "endless", "host": "two"}
            made = http.post("/api/sessions", json=body).json()
            assert (made["host"]["name"], made["cwd"]) == ("two", str(two.workspace))
            path = f"/api/sessions/{made['id']}"
            assert http.post(f"{path}/prompt", json={"text": "go"}).status_code == 202
            two.kill()
        found = until(http, path, "interrupted", host="two")
        assert found["host"] == {"name": "two", "alive": False, "here": False}
        assert found["resumeOn"] == ["one"]
        assert http.post(f"{path}/prompt", json={"text": "go"}).status_code == 409
        moved = http.post(f"{path}/move", json={"cwd": str(one.workspace), "reset": True}).json()
        assert (moved["host"]["name"], moved["cwd"]) == ("one", str(one.workspace))
        assert http.post(f"{path}/prompt", json={"text": "go"}).status_code == 202
        assert until(http, path, "running")["continuity"] == "reset"


def until(http: httpx.Client, path: str, status: str, host: str | None = None) -> dict[str, Any]:
    """Whoever ends a turn for a host that died has its session for that moment: wait for `host`."""
    deadline = time.monotonic() + SECONDS
    while True:
        found = http.get(path).json()
        if found["status"] == status and host in (None, found["host"]["name"]):
            return found
        assert time.monotonic() < deadline, found["status"]
        time.sleep(0.1)


def test_a_runner_ends_in_order_and_says_so_to_the_others(tmp_path: Path) -> None:
    with headless(tmp_path, "--name", "runner") as runner:
        assert runner.stdout is not None
        runner.stdout.readline()
        runner.send_signal(signal.SIGTERM)
        assert runner.wait(SECONDS) == 0
    with server_process(tmp_path, "--name", "runner") as front, front.http as http:
        [host] = http.get("/api/hosts").json()["hosts"]
        assert (host["name"], host["alive"], host["here"]) == ("runner", True, True)


@pytest.mark.parametrize(
    "words", [["--open"], ["--port", "80"], ["--token-file", "x"], ["--allow-origin", "http://x"]]
)
def test_what_is_for_the_page_makes_no_sense_without_one(tmp_path: Path, words: list[str]) -> None:
    command = [COMMAND, "serve", "--headless", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 2
    assert f"{words[0]} cannot be used with --headless" in done.stderr
    assert not done.stdout

"""Devices over HTTP: paired once, and out at once when their token is revoked."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.serving import STREAM, Served, client, sent_events, served

from dragoman.access.token_book import TokenBook
from dragoman.store.open import open_store
from dragoman.web.routing.table import ROUTES

ADDRESS = "https://phone.example"


async def code_for(web: Served, name: str = "phone") -> str:
    begun = await web.call("POST", "/api/tokens/pairing", {"name": name, "address": ADDRESS})
    assert begun["address"].startswith(f"{ADDRESS}/#pair=")
    assert {len(row) for row in begun["rows"]} == {len(begun["rows"])}
    return begun["address"].partition("#pair=")[2]


async def paired(web: Served, name: str = "phone") -> dict[str, Any]:
    async with client(web.port, await code_for(web, name)) as device:
        answer = await device.post("/api/tokens/paired", json={})
        assert answer.status_code == 201
        return answer.json()


async def test_a_device_is_paired_once_and_then_may_do_what_the_person_may(tmp_path: Path) -> None:
    async with served(tmp_path) as web:
        code = await code_for(web)
        async with client(web.port, code) as device:
            first = await device.post("/api/tokens/paired", json={"name": "my phone"})
            assert first.status_code == 201
            again = await device.post("/api/tokens/paired", json={})
            assert again.status_code == 401
        async with client(web.port, first.json()["token"]) as device:
            assert (await device.get("/api/sessions")).status_code == 200
            listed = (await device.get("/api/tokens")).json()["tokens"]
            [mine] = listed
            assert (mine["name"], mine["state"], mine["here"]) == ("my phone", "active", True)
        assert "token" not in mine
        assert "digest" not in mine


async def test_the_code_of_a_pairing_opens_nothing_else(tmp_path: Path) -> None:
    async with served(tmp_path) as web, client(web.port, await code_for(web)) as device:
        others = [route for route in ROUTES if not (route.public or route.pairs)]
        assert len(others) > 50
        for route in others:
            path = "/".join("x" if s.startswith("{") else s for s in route.path.split("/"))
            answer = await device.request(route.method, path)
            assert answer.status_code in (401, 429), (route.method, path)


async def test_a_token_does_not_pair(tmp_path: Path) -> None:
    async with served(tmp_path) as web:
        assert await web.refused("POST", "/api/tokens/paired", {}) == (409, "not_pairing")
        token = (await paired(web))["token"]
        async with client(web.port, token) as device:
            assert (await device.post("/api/tokens/paired", json={})).status_code == 401


async def until_it_ends(stream: httpx.Response) -> None:
    with suppress(httpx.HTTPError):
        async for _ in stream.aiter_raw():
            pass


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_revoked_device_is_out_at_once_also_in_the_midst_of_its_streams(
    tmp_path: Path, *, elsewhere: bool
) -> None:
    async with AsyncExitStack() as stack:
        web = await stack.enter_async_context(served(tmp_path, on_disk=True))
        session = await web.new_session()
        lost, kept = await paired(web, "lost"), await paired(web, "kept")
        theirs = await stack.enter_async_context(client(web.port, lost["token"]))
        mine = await stack.enter_async_context(client(web.port, kept["token"]))
        streams: list[httpx.Response] = []
        for device in (theirs, mine):
            for path in ("/api/events", f"/api/sessions/{session}/events"):
                opened = device.stream("GET", path, headers=STREAM)
                streams.append(await stack.enter_async_context(opened))
        endings = [asyncio.create_task(until_it_ends(stream)) for stream in streams[:2]]
        if elsewhere:  # as `dragoman tokens revoke` does
            store = await open_store(tmp_path / "home")
            await TokenBook(store).revoke(lost["id"])
            await store.aclose()
        else:
            await web.call("DELETE", f"/api/tokens/{lost['id']}")
        async with asyncio.timeout(30):
            await asyncio.gather(*endings)
        assert (await theirs.get("/api/sessions")).status_code == 401
        assert (await mine.get("/api/sessions")).status_code == 200
        renamed = await web.call("PATCH", f"/api/sessions/{session}", {"title": "still here"})
        told = sent_events(streams[2])
        async with asyncio.timeout(30):
            while (await anext(told)).event != "session":
                pass
        assert renamed["title"] == "still here"


async def test_a_device_may_revoke_itself(tmp_path: Path) -> None:
    async with served(tmp_path) as web:
        device = await paired(web)
        async with client(web.port, device["token"]) as http:
            answer = await http.delete(f"/api/tokens/{device['id']}")
            assert (answer.status_code, answer.json()["state"]) == (200, "revoked")
            assert (await http.get("/api/tokens")).status_code == 401


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("", ADDRESS),
        ("two\nlines", ADDRESS),
        ("phone", "phone.example"),
        ("phone", "javascript:alert(1)"),
        ("phone", "https://phone.example/path"),
    ],
)
async def test_a_pairing_that_cannot_be_is_refused_and_nothing_is_stored(
    tmp_path: Path, name: str, address: str
) -> None:
    async with served(tmp_path) as web:
        body = {"name": name, "address": address}
        assert await web.refused("POST", "/api/tokens/pairing", body) == (400, "invalid")
        assert (await web.call("GET", "/api/tokens"))["tokens"] == []


async def test_a_token_that_is_not_there_can_neither_be_named_nor_revoked(tmp_path: Path) -> None:
    async with served(tmp_path) as web:
        path = "/api/tokens/000000000000"
        assert await web.refused("DELETE", path) == (404, "unknown_token")
        assert await web.refused("PATCH", path, {"name": "x"}) == (404, "unknown_token")

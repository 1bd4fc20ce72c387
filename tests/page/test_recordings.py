"""Recorded conversations with real agents, served as agents by `dragoman replay FILE --serve`: the
page shows every entry that the server has, and nothing goes wrong in it."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from page.browsing import browsed, person
from page.site import Site, served
from playwright.async_api import Page, expect
from support.recordings import RECORDINGS, prompts

PATIENCE = 120.0


def settings(folder: Path) -> tuple[str, str]:
    """Each recording is an agent, by its name."""
    agents = {
        path.stem: {"command": sys.executable, "args": ["-m", "dragoman", "replay", str(path)]}
        for path in RECORDINGS
    }
    for agent in agents.values():
        agent["args"] = [*agent["args"], "--serve"]
    path = folder / "settings.json"
    path.write_text(json.dumps({"agent_servers": agents}))
    return "--settings", str(path)


class Program:
    """Someone who has the agents do it all, over HTTP."""

    def __init__(self, site: Site) -> None:
        headers = {"authorization": f"Bearer {site.token}"}
        self._http = httpx.AsyncClient(
            base_url=f"{site.url}api",
            headers=headers,
            timeout=PATIENCE,
            trust_env=False,
            verify=False,
        )
        self._workspace = site.workspace

    async def plays(self, path: Path) -> dict[str, Any]:
        """The session in which the recording was played to its end."""
        body = {"agent": path.stem, "cwd": str(self._workspace)}
        session = (await self._call("POST", "/sessions", body))["id"]
        for text in prompts(path):
            await self._call("POST", f"/sessions/{session}/prompt", {"text": text})
            async with asyncio.timeout(PATIENCE):
                await self._allow(session)
        return await self._call("GET", f"/sessions/{session}?entries=1000")

    async def _allow(self, session: str) -> None:
        """Until the turn is over."""
        while True:
            detail = await self._call("GET", f"/sessions/{session}?entries=0")
            for pending in detail["pending"]:
                option = next(o["id"] for o in pending["options"] if o["kind"] == "allow_once")
                path = f"/sessions/{session}/permissions/{pending['id']}"
                await self._call("POST", path, {"optionId": option})
            if detail["turn"] is None and detail["status"] not in ("running", "waiting"):
                return
            await asyncio.sleep(0.05)

    async def _call(self, method: str, path: str, body: Any = None) -> Any:
        response = await self._http.request(method, path, json=body)
        assert response.is_success or response.status_code == 409, response.text
        return response.json()

    async def aclose(self) -> None:
        await self._http.aclose()


async def shows(page: Page, session: dict[str, Any]) -> None:
    await page.evaluate(f"location.hash = '#/s/{session['id']}'")
    rows = page.locator(".thread .row")
    await expect(rows).to_have_count(session["entryCount"])
    await expect(rows.first).to_have_attribute("aria-setsize", str(session["entryCount"]))
    calls = [entry for entry in session["entries"] if entry["type"] == "tool_call"]
    await expect(page.locator(".thread .tool")).to_have_count(len(calls))
    await page.get_by_role("tab", name="Info").click()
    unknown = page.locator(".info dt", has_text="Context").locator("+ dd")
    await expect(unknown).to_have_text(["unknown"] if session["usage"] is None else [])


@pytest.mark.parametrize("names", [("claude", "goose"), pytest.param((), marks=pytest.mark.soak)])
async def test_the_page_shows_every_entry_of_a_recorded_conversation(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    """Of the agents with these names, or of all."""
    chosen = [path for path in RECORDINGS if not names or path.stem in names]
    assert len(chosen) >= len(names)
    async with (
        served(tmp_path, *settings(tmp_path)) as site,
        browsed() as browser,
        person(browser, site, size=(1440, 6000)) as page,
    ):
        program = Program(site)
        try:
            for path in chosen:
                played = await program.plays(path)
                assert played["entryCount"] >= 10, path.stem
                await shows(page, played)
        finally:
            await program.aclose()

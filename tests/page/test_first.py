"""Whoever opens the page for the first time sees a finished turn, and can go on from there."""

from __future__ import annotations

import asyncio
import html
import re
import shutil
from pathlib import Path

import pytest
from page.browsing import browsed, finished, prompt
from page.site import prepared
from playwright.async_api import expect

SECONDS = 120


async def test_the_first_page_has_a_finished_turn_and_a_prompt_box(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROWSER", "true")
    site = prepared(tmp_path, "--open")
    await site.start()
    try:
        address = await _opened(site.home)
        async with browsed() as browser:
            page = await browser.new_page()
            await page.goto(address)
            await expect(page.locator(".row").last).to_contain_text("What I did")
            await finished(page)
            folder = await page.locator(".head .facts [title]").nth(1).get_attribute("title")
            await prompt(page, "/plan something more")
            await expect(page.locator(".said.user").last).to_contain_text("something more")
        assert folder is not None
        assert "dragoman-demo-" in folder
        shutil.rmtree(folder)
    finally:
        await site.stop()


async def _opened(home: Path) -> str:
    """The address that the browser is led to."""
    for _ in range(SECONDS * 10):
        if found := re.search(r"url=([^\"]+)", _text(home)):
            return html.unescape(found[1])
        await asyncio.sleep(0.1)
    raise AssertionError("no page was opened")


def _text(home: Path) -> str:
    return "".join(path.read_text() for path in home.glob("open-*.html"))

"""Looking back, side by side, by keys: on sessions that have something of everything."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from page.browsing import browsed, person
from page.gallery import fill
from page.site import prepared
from playwright.async_api import Page, expect


@asynccontextmanager
async def _gallery(folder: Path) -> AsyncGenerator[Page]:
    site = prepared(folder)
    await fill(site.home, folder)
    await site.start()
    try:
        async with browsed() as browser, person(browser, site) as page:
            await page.locator(".session").first.wait_for()
            yield page
    finally:
        await site.stop()


async def test_a_session_is_looked_back_at_on_a_time_line(tmp_path: Path) -> None:
    async with _gallery(tmp_path) as page:
        await page.evaluate("location.hash = '#/s/fix/replay'")
        rows, position = page.locator(".row"), page.get_by_label("Position")
        await expect(rows.last).to_contain_text("The parser failed")
        await position.fill("5")
        await expect(rows).to_have_count(1)
        await expect(rows).to_contain_text("Please mend it")
        await page.get_by_label("One event on").click()
        await expect(rows).to_have_count(2)
        await page.get_by_role("button", name="16×").click()
        await expect(rows.last).to_contain_text("The parser failed")


async def test_a_grid_shows_sessions_side_by_side(tmp_path: Path) -> None:
    async with _gallery(tmp_path) as page:
        await page.evaluate("location.hash = '#/grid'")
        await expect(page.locator(".tile")).to_have_count(3)
        await expect(page.locator(".tile .card.permission")).to_have_count(1)
        ids = await page.evaluate("[...document.querySelectorAll('[id]')].map((e) => e.id)")
        assert len(ids) == len(set(ids))


async def test_what_went_wrong_is_told_as_it_was(tmp_path: Path) -> None:
    async with _gallery(tmp_path) as page:
        await page.evaluate("location.hash = '#/s/chapter'")
        await expect(page.locator(".reset")).to_contain_text("knows nothing of what stands above")
        await expect(page.locator(".notice.error")).to_contain_text("model is overloaded")
        await expect(page.locator(".notice.warning")).to_contain_text("Rate limit")
        await expect(page.locator(".meter.high").first).to_contain_text("nearly full")
        await expect(page.locator(".subagents")).to_contain_text("Check the spelling")
        await expect(page.locator(".picture img")).to_be_visible()
        await page.get_by_role("button", name="Play", exact=True).click()
        await expect(page.get_by_role("button", name="Stop", exact=True)).to_be_visible()
        await page.get_by_role("button", name="The context was shortened").click()
        await expect(page.locator(".compaction")).to_contain_text("three parts")


async def test_a_decision_says_why(tmp_path: Path) -> None:
    async with _gallery(tmp_path) as page:
        await page.evaluate("location.hash = '#/s/fix'")
        await page.get_by_role("tab", name="Info").click()
        await expect(page.locator(".decisions")).to_contain_text("write parse.py")
        await expect(page.locator(".decisions")).to_contain_text("a rule of yours")
        await expect(page.locator(".chart")).to_contain_text("$0.41")


async def test_keys_lead_everywhere_but_not_out_of_a_field(tmp_path: Path) -> None:
    async with _gallery(tmp_path) as page:
        await page.evaluate("location.hash = '#/s/fix'")
        await page.locator(".row").first.wait_for()
        await page.locator(".scroller").focus()
        await page.keyboard.press("j")
        await page.keyboard.press("j")
        assert await page.evaluate("document.activeElement.classList.contains('row')")
        await page.keyboard.press("?")
        await expect(page.locator("dialog")).to_contain_text("Keyboard shortcuts")
        await page.keyboard.press("Escape")
        await page.keyboard.press("J")
        await expect(page.locator(".head h1")).not_to_contain_text("Fix the parser")
        await page.keyboard.press("c")
        await page.keyboard.type("njk?")
        await expect(page.locator("#composer")).to_have_value("njk?")
        await page.keyboard.press("Control+k")
        await page.keyboard.type("theme dark")
        await page.keyboard.press("Enter")
        await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        await page.reload()
        await expect(page.locator("html")).to_have_attribute("data-theme", "dark")


async def test_a_link_leads_to_an_entry(tmp_path: Path) -> None:
    async with _gallery(tmp_path) as page:
        await page.evaluate("location.hash = '#/s/fix/e/3'")
        await expect(page.locator(".row.marked")).to_contain_text("Read parse.py")

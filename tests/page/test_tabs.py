"""Tabs of one browser share one stream, and all of them see what happens."""

from __future__ import annotations

from pathlib import Path

import pytest
from page.browsing import browsed, new_session, nobody_after, person, prompt, ran, ready, watch
from page.site import served
from playwright.async_api import expect


@pytest.mark.parametrize("count", [7, pytest.param(20, marks=pytest.mark.soak)])
async def test_more_tabs_than_a_browser_has_connections_see_a_turn(
    tmp_path: Path, count: int
) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        session = await new_session(page)
        wrong: list[str] = []
        tabs = [await page.context.new_page() for _ in range(count - 1)]
        for tab in tabs:
            watch(tab, site, wrong)
            await tab.goto(f"{site.url}#/s/{session}")
            await tab.locator("#composer").wait_for()
        await prompt(page, "Write something down")
        for tab in (page, *tabs):
            await expect(tab.locator(".card.permission")).to_have_count(1)
        await ready(tabs[-1].locator(".card.permission"))
        card = tabs[-1].locator(".card.permission")
        await card.get_by_role("button", name="Reject").click()
        for tab in (page, *tabs):
            await expect(tab.locator(".card.permission")).to_contain_text("ls -la")
        assert not wrong, wrong


async def test_tabs_without_shared_workers_share_through_one_of_them(tmp_path: Path) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as first:
        await nobody_after(first).context.add_init_script("delete window.SharedWorker")
        await first.reload()
        session = await new_session(first)
        other = await first.context.new_page()
        await other.goto(f"{site.url}#/s/{session}")
        await other.locator("#composer").wait_for()
        await prompt(first, "Write something down")
        await expect(other.locator(".card.permission")).to_have_count(1)
        # The one that reads goes; the other takes over where it was.
        await first.goto("about:blank")
        await ready(other.locator(".card.permission"))
        card = other.locator(".card.permission")
        await card.get_by_role("button", name="Reject").click()
        await expect(other.locator(".card.permission")).to_contain_text("ls -la")


async def test_a_page_without_a_token_asks_for_one(tmp_path: Path) -> None:
    async with served(tmp_path) as site, browsed() as browser:
        page = await browser.new_page()
        await page.goto(site.url)
        await expect(page.locator("h1")).to_have_text("Signed out")
        await page.get_by_label("Token").fill(site.token)
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.locator("h1")).to_have_text("Start your first session")


async def test_a_wrong_token_is_called_wrong(tmp_path: Path) -> None:
    async with served(tmp_path) as site, browsed() as browser:
        page = await browser.new_page()
        await page.goto(f"{site.url}#token=of-another-server")
        told = page.get_by_role("alert")
        await expect(told).to_contain_text("is not valid for this server.")
        for wrong in ("wrong", "with a space"):
            await page.get_by_label("Token").fill(wrong)
            await page.get_by_role("button", name="Sign in").click()
            await expect(told).to_have_text("Wrong token for this server.")
        await page.get_by_label("Token").fill(f"{site.url}#token={site.token}")
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.locator("h1")).to_have_text("Start your first session")


async def test_a_link_with_a_wrong_token_signs_nobody_out(tmp_path: Path) -> None:
    async with (
        served(tmp_path) as site,
        browsed() as browser,
        person(browser, site, refused=401) as page,
    ):
        await expect(page.locator("h1")).to_have_text("Start your first session")
        await page.goto("about:blank")
        await page.goto(f"{site.url}#token=wrong&to=/agents")
        await expect(page.locator("h1")).to_have_text("Agents")
        assert "token" not in page.url
        assert await page.evaluate("localStorage['dragoman.token']") == site.token


async def test_a_link_with_a_new_token_replaces_one_that_does_not_work_any_more(
    tmp_path: Path,
) -> None:
    async with (
        served(tmp_path) as site,
        browsed() as browser,
        person(browser, site, refused=401) as page,
    ):
        await expect(page.locator("h1")).to_have_text("Start your first session")
        await page.evaluate("localStorage['dragoman.token'] = 'of yesterday'")
        await page.goto("about:blank")
        await page.goto(f"{site.url}#token={site.token}")
        await expect(page.locator("h1")).to_have_text("Start your first session")


async def test_what_is_renamed_or_deleted_elsewhere_is_seen_here(tmp_path: Path) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        session = await new_session(page)
        address = f"{site.url}api/sessions/{session}"
        headers = {"Authorization": f"Bearer {site.token}"}
        await page.evaluate("location.hash = '#/agents'")
        await page.request.patch(address, headers=headers, data={"title": "Called otherwise"})
        await expect(page.locator(".session .title")).to_have_text(["Called otherwise"])
        await page.request.delete(address, headers=headers)
        await expect(page.locator(".session")).to_have_count(0)


async def test_a_session_deleted_elsewhere_says_so_and_leads_away(tmp_path: Path) -> None:
    async with (
        served(tmp_path) as site,
        browsed() as browser,
        person(browser, site, refused=404) as page,
    ):
        session = await new_session(page)
        await ran(page, "/plan a word")
        await page.fill("#composer", "half a thought")
        headers = {"Authorization": f"Bearer {site.token}"}
        await page.request.delete(f"{site.url}api/sessions/{session}", headers=headers)
        gone = page.get_by_role("alert").filter(has_text="This session was deleted")
        await expect(gone).to_be_visible()
        await expect(gone.get_by_role("button", name="Copy your draft")).to_be_visible()
        await expect(page.locator("#composer")).to_have_count(0)
        await expect(page.locator(".said.user")).to_contain_text("/plan a word")
        await gone.get_by_role("link", name="All sessions").click()
        await expect(page.locator("h1")).to_have_text("Start your first session")
        await page.evaluate("location.hash = '#/s/nothing'")
        await expect(page.locator("h1")).to_have_text("No such session")

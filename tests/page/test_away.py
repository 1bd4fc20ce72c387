"""The database of the server is away: whoever looks at the page is told, and loses nothing."""

from __future__ import annotations

from pathlib import Path

from page.browsing import browsed, new_session, person, prompt
from page.site import served
from playwright.async_api import expect
from support.database_cable import cable_to
from support.postgres import empty_database


async def test_what_is_delayed_is_said_and_comes_when_the_database_is_back(tmp_path: Path) -> None:
    async with (
        cable_to(empty_database()) as cable,
        served(tmp_path, "--store", cable.address) as site,
        browsed() as browser,
        person(browser, site, refused=503) as page,
    ):
        await new_session(page)
        cable.cut()
        await prompt(page, "Go on then")
        await expect(page.locator(".topbar [role=status]")).to_contain_text("Database unreachable")
        await expect(page.get_by_text("the command is kept on this host")).to_be_visible()
        await expect(page.locator(".said.user")).to_have_count(0)
        cable.mend()
        await expect(page.locator(".said.user")).to_contain_text("Go on then")
        await expect(page.get_by_text("Database unreachable")).to_have_count(0)

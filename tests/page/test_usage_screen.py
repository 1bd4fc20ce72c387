"""What sessions have used, on the page: a chart, tables with the same figures, and an address."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from page.browsing import browsed, person
from page.seeding import told_session
from page.site import prepared, served
from playwright.async_api import Page, expect

from dragoman.session.content import Text
from dragoman.session.events import TurnEnded, TurnStarted, UsageChanged
from dragoman.session.facts import Cost, TokenUsage

DAY = 86400.0


@asynccontextmanager
async def used(folder: Path, width: int = 1440) -> AsyncGenerator[Page]:
    """The page of two sessions of two agents, of which one reports no cost."""
    prepared(folder)
    home = folder / "home"
    async with told_session(home, "dear", folder, title="Dear one", agent="rich") as teller:
        for days, amount in ((2, 1.0), (0, 4.0)):
            paid = UsageChanged(10, 100, Cost(amount, "USD"))
            ended = TurnEnded(f"t{days}", "end_turn", TokenUsage(1100, 1000, 100))
            turn = [TurnStarted(f"t{days}", [Text("hi")]), paid, ended]
            await teller.tell(turn, at=time.time() - days * DAY)
    async with told_session(home, "other", folder, title="Silent one", agent="mute") as teller:
        await teller.tell([TurnStarted("t", [Text("hi")]), TurnEnded("t", "end_turn")])
    async with (
        served(folder) as site,
        browsed() as browser,
        person(browser, site, size=(width, 844)) as page,
    ):
        yield page


@pytest.mark.parametrize("width", [390, 820, 1440])
async def test_usage_has_a_chart_and_its_figures_in_tables(tmp_path: Path, width: int) -> None:
    async with used(tmp_path, width) as page:
        await page.evaluate("location.hash = '#/usage'")
        screen = page.get_by_role("main", name="Usage")
        await expect(screen.locator(".sum")).to_contain_text("≥ $4.00 · ≥ 2,200 tokens · 3 turns")
        await expect(screen).to_contain_text("The cost of 1 turn is not known")
        chart = screen.get_by_role("img", name="Cost in USD for each of the last 30 days")
        heights = await chart.locator("rect").evaluate_all(
            "bars => bars.map((bar) => Number(bar.getAttribute('height')))"
        )
        assert len(heights) == 30
        assert heights[-1] == max(heights) == 3 * heights[-3]
        agents = screen.get_by_role("region", name="By agent")
        await expect(agents.get_by_role("row").nth(1)).to_contain_text("rich$4.002,200")
        await expect(agents.get_by_role("row").nth(2)).to_contain_text("muteunknownunknown")
        days = screen.get_by_role("region", name="By day")
        await expect(days.get_by_role("row")).to_have_count(3)
        height, font = await days.get_by_role("rowheader").first.evaluate(
            "day => [day.clientHeight, parseFloat(getComputedStyle(day).fontSize)]"
        )
        assert height < 3 * font, "the name of a day is broken"
        await agents.focus()
        await expect(agents).to_be_focused()
        wide = await page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width


async def test_the_screen_is_reached_by_key_and_palette_and_keeps_its_address(
    tmp_path: Path,
) -> None:
    async with used(tmp_path) as page:
        await page.keyboard.press("g")
        await page.keyboard.press("u")
        screen = page.get_by_role("main", name="Usage")
        await expect(screen.get_by_role("region", name="By agent")).to_be_visible()
        await screen.get_by_label("Group by").select_option("session")
        await screen.get_by_label("Period").select_option("7")
        assert page.url.endswith("#/usage/session/7")
        await page.reload()
        link = screen.get_by_role("link", name="Dear one")
        await expect(link).to_be_visible()
        await link.click()
        assert page.url.endswith("#/s/dear")
        await expect(page.get_by_role("feed")).to_contain_text("hi")
        await page.keyboard.press("Control+k")
        await page.get_by_role("dialog").get_by_role("combobox").fill("Usage")
        results = page.get_by_role("listbox", name="Results").get_by_role("option")
        await expect(results.first).to_contain_text("Usage")
        await page.keyboard.press("Enter")
        await expect(screen).to_be_visible()

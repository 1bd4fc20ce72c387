"""Limits on the page: given to a new session, asked about when they are reached, and shown."""

from __future__ import annotations

from pathlib import Path

from page.browsing import all_options, browsed, person, prompt, ready
from page.site import served
from playwright.async_api import Page, expect


async def limited(page: Page, then: str) -> None:
    """A new session that may use one tool call."""
    await all_options(page)
    dialog = page.get_by_role("dialog")
    await dialog.get_by_text("More options").click()
    await dialog.get_by_label("Tool calls").fill("1")
    await dialog.get_by_label("At a limit").select_option(then)
    await dialog.get_by_role("button", name="Start").click()
    await expect(dialog).to_have_count(0)


async def test_a_limit_is_raised_by_what_is_typed(tmp_path: Path) -> None:
    async with (
        served(tmp_path, "--yolo") as site,
        browsed() as browser,
        person(browser, site) as page,
    ):
        await limited(page, "ask")
        await prompt(page, "make a file")
        card = page.get_by_role("region", name="Question about a limit")
        await expect(card).to_contain_text("This session has used 1 tool call")
        await ready(card)
        await card.get_by_role("button", name="Allow more").click()
        await expect(card.get_by_role("alert")).to_be_visible()
        await card.get_by_label("How many more tool calls").fill("5")
        await card.get_by_role("button", name="Allow more").click()
        await expect(card).to_have_count(0)
        await expect(page.get_by_text("What I did")).to_be_visible()
        await page.get_by_role("tab", name="Info").click()
        limits = page.get_by_role("list", name="Limits")
        await expect(limits).to_contain_text("6 tool calls for this session")
        await expect(limits).to_contain_text("asks you")


async def test_a_turn_that_is_stopped_says_which_limit_it_was(tmp_path: Path) -> None:
    async with (
        served(tmp_path, "--yolo") as site,
        browsed() as browser,
        person(browser, site) as page,
    ):
        await limited(page, "ask")
        await prompt(page, "make a file")
        card = page.get_by_role("region", name="Question about a limit")
        await ready(card)
        await card.get_by_role("button", name="Stop the turn").click()
        await expect(card).to_have_count(0)
        words = "the session's limit allows 1 tool call"
        await expect(page.get_by_text(words).first).to_be_visible()

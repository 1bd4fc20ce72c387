"""A prompt that waits for the end of a limit, on the page: what is shown, and its three ways on."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from page.browsing import all_options, browsed, new_session, person, prompt
from page.site import scripted, served
from playwright.async_api import Locator, Page, expect


def parking(folder: Path, on_limit: str = "park") -> tuple[str, str]:
    """Two agents that report a limit."""
    words = scripted(folder, "limited")
    path = Path(words[1])
    settings = json.loads(path.read_text())
    settings["on_limit"] = on_limit
    settings["agent_servers"]["other"] = settings["agent_servers"]["limited"]
    path.write_text(json.dumps(settings))
    return words


@asynccontextmanager
async def parked(folder: Path, width: int = 1440) -> AsyncGenerator[tuple[Page, Locator]]:
    """The page of a session whose prompt is parked, and its card."""
    words = parking(folder)
    async with (
        served(folder, *words) as site,
        browsed() as browser,
        person(browser, site, size=(width, 844)) as page,
    ):
        await new_session(page)
        await prompt(page, "fix the test")
        yield page, page.get_by_role("region", name="Parked prompt")


@pytest.mark.parametrize("way", ["continue", "drop"])
async def test_a_parked_prompt_is_continued_or_dropped(tmp_path: Path, way: str) -> None:
    async with parked(tmp_path) as (page, card):
        await expect(card).to_contain_text("The plan of this agent is used up.")
        await expect(card).to_contain_text("The prompt is sent again at")
        await expect(page.locator('.status[data-mark="parked"]').first).to_be_visible()
        await page.reload()
        await expect(card).to_contain_text("fix the test")
        await card.get_by_role(
            "button", name="Continue now" if way == "continue" else "Drop"
        ).click()
        await expect(card).to_have_count(0)
        answer = page.get_by_text("did it: fix the test")
        await expect(answer).to_have_count(1 if way == "continue" else 0)


@pytest.mark.parametrize("width", [390, 820, 1440])
async def test_a_parked_prompt_is_handed_to_another_agent(tmp_path: Path, width: int) -> None:
    async with parked(tmp_path, width) as (page, card):
        await expect(card).to_be_in_viewport(ratio=1)
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
        before = page.url
        await card.get_by_role("button", name="Hand it over").click()
        await card.get_by_role("button", name="other").click()
        await expect(page.get_by_text("the prompt was handed over from session")).to_be_visible()
        assert page.url != before


async def test_a_new_session_may_park_whatever_the_settings_say(tmp_path: Path) -> None:
    words = parking(tmp_path, "fail")
    async with (
        served(tmp_path, *words) as site,
        browsed() as browser,
        person(browser, site, size=(390, 844)) as page,
    ):
        await all_options(page)
        dialog = page.get_by_role("dialog")
        await dialog.get_by_text("More options").click()
        choice = dialog.get_by_label("If the model provider refuses")
        await choice.select_option("ask")
        await dialog.get_by_role("button", name="Start").click()
        await expect(dialog).to_have_count(0)
        await prompt(page, "fix the test")
        card = page.get_by_role("region", name="Parked prompt")
        await expect(card).to_contain_text("The prompt waits for you.")
        await card.get_by_role("button", name="Wait for its end").click()
        await expect(card).to_contain_text("The prompt is sent again at")
        await card.get_by_role("button", name="Drop it").click()
        await expect(card).to_have_count(0)

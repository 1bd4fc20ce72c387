"""A prompt that waits for the end of a limit, on the page: what is shown, and its three ways on."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from page.browsing import browsed, new_session, person, prompt
from page.site import scripted, served
from playwright.async_api import Locator, Page, expect


def parking(folder: Path) -> tuple[str, str]:
    """Two agents, whose prompts are parked."""
    words = scripted(folder, "limited")
    path = Path(words[1])
    settings = json.loads(path.read_text())
    settings["on_limit"] = "park"
    settings["agent_servers"]["other"] = settings["agent_servers"]["limited"]
    path.write_text(json.dumps(settings))
    return words


@asynccontextmanager
async def parked(folder: Path) -> AsyncGenerator[tuple[Page, Locator]]:
    """The page of a session whose prompt is parked, and its card."""
    words = parking(folder)
    async with (
        served(folder, *words) as site,
        browsed() as browser,
        person(browser, site) as page,
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


async def test_a_parked_prompt_is_handed_to_another_agent(tmp_path: Path) -> None:
    async with parked(tmp_path) as (page, card):
        before = page.url
        await card.get_by_role("button", name="Hand it over").click()
        await card.get_by_role("button", name="other").click()
        await expect(page.get_by_text("the prompt was handed over from session")).to_be_visible()
        assert page.url != before

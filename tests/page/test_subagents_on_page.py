"""Subagents on the page: a tree in the thread, and questions that say who asks."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from page.browsing import browsed, finished, new_session, person, prompt, ready
from page.site import served
from playwright.async_api import Page, expect
from support.programs import tree_agent
from support.programs.tree_agent import NAMES, ROWS, sentence

QUESTIONS = len(NAMES) + 3
"""Each asks once; besides there are a form, a file and a command."""


def tree(folder: Path, name: str = "agent") -> tuple[str, str]:
    """The arguments with which the server has this agent alone."""
    target = f"{tree_agent.__file__}:{name}"
    command = {"command": sys.executable, "args": ["-m", "dragoman.testing.serve", target]}
    path = folder / "settings.json"
    path.write_text(json.dumps({"agent_servers": {"tree": command}}))
    return "--settings", str(path)


async def answer_next(page: Page) -> str:
    """Allow what is asked, or decline a form; who asked."""
    first = page.locator(".card[data-request]").first
    request = await first.get_attribute("data-request")
    card = page.locator(f"[data-request='{request}']")
    who = await card.locator(".askedby").inner_text()
    await ready(card)
    is_form = "elicitation" in (await card.get_attribute("class") or "")
    name = "Decline" if is_form else "Allow once"
    await card.get_by_role("button", name=name).first.click()
    await card.wait_for(state="detached")
    return who.strip()


async def test_a_tree_is_shown_and_its_questions_are_answered(tmp_path: Path) -> None:
    async with (
        served(tmp_path, *tree(tmp_path)) as site,
        browsed() as browser,
        person(browser, site) as page,
    ):
        await new_session(page)
        await prompt(page, "go")
        subagents = page.locator(".subagent")
        await expect(subagents).to_have_count(len(NAMES))
        asked = [await answer_next(page) for _ in range(QUESTIONS)]
        await finished(page)
        assert {*asked} == {*NAMES.values()}
        reader = page.get_by_role("group", name="Subagent").first
        await reader.get_by_role("button", name="Subagent: Reader").click()
        await expect(reader.locator(".subthread").first).to_contain_text(sentence("reader"))
        await expect(reader.locator(".subagent")).to_contain_text("Indexer")
        # On a phone there is room for the name, and none for the word before it.
        await page.set_viewport_size({"width": 390, "height": 844})
        kind = await reader.locator(".title .kind").first.bounding_box()
        assert kind is not None
        assert kind["width"] <= 1
        await page.set_viewport_size({"width": 1440, "height": 900})
        await page.reload()  # the server tells the same
        await reader.get_by_role("button", name="Subagent: Reader").click()
        await expect(reader.locator(".subthread").first).to_contain_text(sentence("reader"))


async def test_one_subagent_is_stopped_alone(tmp_path: Path) -> None:
    async with (
        served(tmp_path, *tree(tmp_path)) as site,
        browsed() as browser,
        person(browser, site) as page,
    ):
        await new_session(page)
        await prompt(page, "go")
        await expect(page.locator(".subagent")).to_have_count(len(NAMES))
        await page.get_by_role("button", name="Stop the subagent Reader").click()
        reader = page.get_by_role("group", name="Subagent").first
        await expect(reader.locator(".status").first).to_contain_text("cancelled")
        await expect(page.locator(".card .askedby").filter(has_text="Reader")).to_have_count(0)
        await expect(page.locator(".card .askedby").first).to_be_visible()


async def test_all_rows_of_a_subagent_are_loaded_and_what_it_said_is_found(tmp_path: Path) -> None:
    async with (
        served(tmp_path, *tree(tmp_path, "busy_agent")) as site,
        browsed() as browser,
        person(browser, site) as page,
    ):
        await new_session(page)
        await prompt(page, "go")
        await finished(page)
        workers = page.get_by_role("button", name="Subagent: Worker")
        await expect(workers.nth(0)).to_have_accessible_name(re.compile("Worker Looks around"))
        await expect(workers.nth(1)).to_have_accessible_name(re.compile("Worker 2 Digs"))
        await page.reload()  # now the server has sent the last rows alone
        await page.goto(f"{site.url.partition('#')[0]}#/search/quicksilver")
        hit = page.locator(".hit").filter(has_text="subagent")
        await expect(hit).to_contain_text("quicksilver")
        await hit.click()
        inner = page.locator(".subthread").filter(has_text="I have found the quicksilver.").last
        await expect(inner).to_be_visible()
        await expect(inner.get_by_text("step 0.")).to_have_count(0)
        earlier = inner.get_by_role("button", name="Show earlier rows")
        while await earlier.count():
            await earlier.click()
            await expect(earlier.and_(page.locator(":disabled"))).to_have_count(0)
        await expect(inner.locator(".subentry")).to_have_count(ROWS + 1)
        await expect(inner.get_by_text("step 0.", exact=True).first).to_be_visible()

"""What is asked, what an answer leads to, and what is allowed without one being asked."""

from __future__ import annotations

import json
from pathlib import Path

from page.browsing import answer, browsed, finished, new_session, person, prompt, ran, ready
from page.site import scripted, served
from playwright.async_api import expect

_LINE = "echo SHELL && pwd && touch b.md"


async def test_the_first_key_is_for_once_whatever_the_agent_names_first(tmp_path: Path) -> None:
    async with (
        served(tmp_path, *scripted(tmp_path, "claims")) as site,
        browsed() as browser,
        person(browser, site) as page,
    ):
        await new_session(page)
        await prompt(page, "git status")
        card = page.locator(".card.permission")
        await expect(card.locator(".options button")).to_have_text(
            ["1 Allow", "2 Always allow", "3 Reject", "4 Always reject"]
        )
        await ready(card)
        await card.focus()
        await page.keyboard.press("1")
        await expect(page.locator(".said.agent")).to_have_text("chosen: once")


async def test_every_answer_for_always_says_what_it_leads_to(tmp_path: Path) -> None:
    async with (
        served(tmp_path, *scripted(tmp_path, "claims")) as site,
        browsed() as browser,
        person(browser, site) as page,
    ):
        await new_session(page)
        await prompt(page, "git status")
        rules = page.locator(".card.permission .rule")
        await expect(rules).to_have_count(2)
        await expect(rules.nth(0)).to_contain_text("Always allow")
        await expect(rules.nth(0)).to_contain_text("from now on: allow running exactly git status")
        await expect(rules.nth(1)).to_contain_text("Always reject")
        await expect(rules.nth(1)).to_contain_text("from now on: refuse running exactly git status")
        await answer(page, "Reject")
        await prompt(page, _LINE)
        await expect(page.locator(".card.permission .command")).to_have_text(_LINE)
        for at in range(2):
            await expect(rules.nth(at)).to_contain_text("counts once only")
            await expect(rules.nth(at)).to_contain_text("the command is a shell line")


async def test_a_tool_call_that_is_asked_about_waits_for_the_person(tmp_path: Path) -> None:
    async with (
        served(tmp_path, *scripted(tmp_path, "claims")) as site,
        browsed() as browser,
        person(browser, site) as page,
    ):
        await new_session(page)
        await prompt(page, _LINE)
        status = page.locator(".toolhead .status")
        await expect(status).to_have_text("waits for you")
        await expect(status.locator(".spinner")).to_have_count(0)
        await answer(page, "Allow")
        await expect(status).not_to_have_text("waits for you")


async def test_what_was_decided_is_told_in_words(tmp_path: Path) -> None:
    async with (
        served(tmp_path, *scripted(tmp_path, "claims")) as site,
        browsed() as browser,
        person(browser, site) as page,
    ):
        await new_session(page)
        await prompt(page, "git status")
        await answer(page, "Always allow")
        await finished(page)
        await ran(page, "git status")
        await prompt(page, _LINE)
        await answer(page, "Reject")
        await page.evaluate("location.hash = '#/policies'")
        decided = page.get_by_role("region", name="What was decided lately").locator("li")
        await expect(decided).to_have_count(3)
        await expect(decided.nth(0).locator("code").first).to_have_text(f"execute {_LINE}")
        await expect(decided.nth(0).locator("small").first).to_contain_text("answered · ")
        words = "your “always” answer allows it: running git status"
        await expect(decided.nth(1)).to_contain_text(words)


async def test_what_the_server_was_started_with_is_listed_and_marked(tmp_path: Path) -> None:
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"rules": [{"effect": "deny", "path": "secret/**"}]}))
    flags = ("--yolo", "--write", "--policy", str(rules))
    async with (
        served(tmp_path, *flags) as site,
        browsed() as browser,
        person(browser, site) as page,
    ):
        mark = page.locator(".topbar .yolo")
        await expect(mark).to_contain_text("started with --yolo")
        await page.get_by_role("button", name="New session", exact=True).first.click()
        await expect(page.get_by_role("dialog")).to_contain_text("without asking")
        await page.get_by_role("button", name="Start", exact=True).click()
        await expect(page.locator(".hints")).to_contain_text("started with --yolo")
        await mark.click()
        table = page.get_by_role("region", name="Rules").locator("tbody tr")
        await expect(table).to_have_count(3)
        await expect(table.nth(0)).to_contain_text("secret/**")
        await expect(table.nth(0)).to_contain_text("rules.json")
        await expect(table.nth(1)).to_contain_text("started with --write")
        await expect(table.nth(2)).to_contain_text("started with --yolo")
        await expect(table.get_by_role("button")).to_have_count(0)


async def test_without_a_flag_nothing_is_promised_for_the_agent(tmp_path: Path) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        await new_session(page)
        await expect(page.locator(".hints")).to_contain_text("Some agents also write and run")
        await expect(page.locator(".topbar .yolo")).to_have_count(0)

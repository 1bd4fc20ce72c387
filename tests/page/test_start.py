"""Starting by typing: the first screen has a field, and what was typed is never lost."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from page.browsing import (
    browsed,
    chosen,
    finished,
    meeting,
    nobody_after,
    person,
    pick,
)
from page.site import scripted, served
from playwright.async_api import Page, Route, expect


async def start(page: Page, text: str) -> None:
    await page.get_by_label("First prompt").fill(text)
    await page.keyboard.press("Enter")


async def test_what_is_typed_on_the_first_screen_starts_a_session(tmp_path: Path) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        await expect(page.get_by_role("heading", name="Start your first session")).to_be_visible()
        await start(page, "Say *hello*\nin two lines")
        await page.wait_for_url("**/#/s/*")
        await expect(page.locator(".said.user .typed")).to_have_text("Say *hello*\nin two lines")
        await expect(page.locator("#composer")).to_be_focused()
        await page.locator(".scroller").focus()
        await page.keyboard.press("n")
        await expect(page.get_by_label("First prompt")).to_be_focused()
        await expect(page.get_by_label("First prompt")).to_have_value("")


async def test_mode_and_model_are_pickers_once_the_agent_is_known(tmp_path: Path) -> None:
    async with meeting(tmp_path, "optional") as page:
        await expect(chosen(page, "Agent")).to_be_visible()
        await expect(chosen(page, "Model")).to_have_count(0)
        await start(page, "First")
        await finished(page)
        await page.evaluate("location.hash = '#/'")
        await pick(page, "Mode", "Plan only")
        await pick(page, "Model", "Large")
        await start(page, "Second")
        await page.wait_for_url("**/#/s/*")
        await expect(chosen(page, "Mode")).to_have_attribute("data-value", "plan")
        await expect(chosen(page, "Model")).to_have_attribute("data-value", "large")


async def test_a_folder_is_chosen_by_looking_around(tmp_path: Path) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        (site.workspace / "inner/.git").mkdir(parents=True)
        (site.workspace / "inner/.git/HEAD").write_text("ref: refs/heads/<b>topic</b>\n")
        await chosen(page, "Folder").click()
        await page.get_by_role("button", name="inner", exact=True).click()
        path = page.get_by_label("Path of the folder")
        await expect(path).to_have_value(str(site.workspace / "inner"))
        await page.get_by_role("button", name="Use", exact=True).click()
        await expect(chosen(page, "Folder")).to_contain_text("<b>topic</b>")
        await start(page, "Work here")
        await expect(page.locator(".head .facts")).to_contain_text("inner")


async def _held(page: Page, release: asyncio.Event) -> None:
    """Answers to what starts a session wait; the session itself does not."""

    async def hold(route: Route) -> None:
        if route.request.method == "POST":
            response = await route.fetch()
            await release.wait()
            await route.fulfill(response=response)
        else:
            await route.continue_()

    await nobody_after(page).route("**/api/sessions", hold)


async def test_escape_cancels_a_start_and_gives_the_words_back(tmp_path: Path) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        release = asyncio.Event()
        await _held(page, release)
        await start(page, "Not yet")
        await expect(page.get_by_text("The agent is starting.")).to_be_visible()
        await expect(page.locator(".said.user")).to_contain_text("Not yet")
        async with page.expect_response(lambda response: response.request.method == "DELETE"):
            await page.keyboard.press("Escape")
            await expect(page.get_by_label("First prompt")).to_have_value("Not yet")
            release.set()
        # What came of it is removed, and nobody is taken away from where they are.
        await expect(page.locator(".session")).to_have_count(0)
        assert page.url.endswith("#/")


async def test_a_start_one_turned_away_from_does_not_take_one_along(tmp_path: Path) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        release = asyncio.Event()
        await _held(page, release)
        await start(page, "Say hello")
        await page.get_by_text("The agent is starting.").wait_for()
        await page.evaluate("location.hash = '#/agents'")
        release.set()
        await expect(page.locator(".toast")).to_have_text("Your session has started.")
        assert page.url.endswith("#/agents")
        await page.locator(".session a").first.click()
        await expect(page.locator(".said.user")).to_contain_text("Say hello")


async def test_words_survive_an_agent_that_does_not_start_and_a_reload(tmp_path: Path) -> None:
    broken = {"command": "sh", "args": ["-c", "echo the key is missing >&2; exit 3"]}
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"agent_servers": {"broken": broken}}))
    async with (
        served(tmp_path, "--settings", str(settings)) as site,
        browsed() as browser,
        person(browser, site, refused=502) as page,
    ):
        await pick(page, "Agent", "broken")
        await start(page, "Mend <b>this</b>")
        await expect(page.get_by_role("alert")).to_contain_text("the key is missing")
        await page.reload()
        await expect(page.locator(".said.user")).to_contain_text("Mend <b>this</b>")
        await page.get_by_role("button", name="Check the agent").click()
        await expect(page.get_by_role("list", name="Check results")).to_be_visible()
        await page.get_by_role("button", name="Change it").click()
        await expect(page.get_by_label("First prompt")).to_have_value("Mend <b>this</b>")
        await expect(chosen(page, "Agent")).to_contain_text("broken")


async def test_after_a_sign_in_the_start_goes_on_by_itself(tmp_path: Path) -> None:
    async with (
        served(tmp_path, *scripted(tmp_path, "locked")) as site,
        browsed() as browser,
        person(browser, site, refused=409) as page,
    ):
        await start(page, "Hello there")
        await page.get_by_role("button", name="Sign in: With a key").click()
        await page.wait_for_url("**/#/s/*")
        await expect(page.locator(".said.agent")).to_contain_text("Welcome.")


async def test_an_agent_that_is_not_installed_says_how_to_install_it(tmp_path: Path) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        await chosen(page, "Agent").click()
        await page.get_by_label("Filter: Agent").fill("qwen")
        await page.keyboard.press("Enter")
        await page.get_by_label("First prompt").fill("Words")
        notice = page.locator(".beginning .notice")
        await expect(notice).to_contain_text("is not installed")
        await expect(notice.get_by_label("The command that installs it")).to_contain_text("npm")
        await expect(page.get_by_role("button", name="Start session")).to_be_disabled()
        await expect(page.get_by_label("First prompt")).to_have_value("Words")

"""Looking back, side by side, by keys: on sessions that have something of everything."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from page.browsing import answer, browsed, new_session, person, prompt
from page.gallery import fill
from page.seeding import told_session
from page.site import prepared, served
from playwright.async_api import Page, expect

from dragoman.session import events as e
from dragoman.session.content import Text


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


async def test_sub_agents_stand_where_they_were_begun(tmp_path: Path) -> None:
    async with _gallery(tmp_path) as page:
        await page.evaluate("location.hash = '#/s/chapter'")
        child = page.get_by_role("group", name="Sub-agent")
        await expect(child).to_contain_text("Check the spelling")
        await expect(child).to_contain_text("running")
        row = page.locator(".row", has=child)
        await expect(row).to_contain_text("The context was shortened")
        await child.get_by_role("button").click()
        await expect(child).to_contain_text("the dictionary of the house")
        message = page.locator(".peer")
        await expect(message).to_contain_text("agent-1 → Check the spelling")
        nested = page.locator(".row[data-depth='1']")
        await expect(nested).to_contain_text("Search for")
        outer = page.locator(".tool", has_text="Task: gather sources")
        left, right = await outer.bounding_box(), await nested.locator(".tool").bounding_box()
        assert left is not None
        assert right is not None
        assert right["x"] > left["x"] + 10


async def test_what_was_spent_today_stands_on_top(tmp_path: Path) -> None:
    async with _gallery(tmp_path) as page:
        await expect(page.locator(".spent")).to_contain_text("$1.83 today")


async def test_the_pane_tells_where_a_session_runs_and_what_its_agent_can_do(
    tmp_path: Path,
) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        await new_session(page)
        await page.get_by_role("tab", name="Info").click()
        pane = page.get_by_role("complementary", name="Side pane")
        await expect(pane.locator("dl")).to_contain_text("this server")
        await expect(pane.get_by_label("Capabilities")).to_contain_text("load")
        await expect(pane).to_contain_text("protocol 1")


async def test_answers_and_links_are_copied(tmp_path: Path) -> None:
    async with _gallery(tmp_path) as page:
        await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        await page.evaluate("location.hash = '#/s/fix'")
        row = page.locator(".row", has_text="The parser failed")
        await row.hover()
        await row.get_by_label("Copy text").click()
        await expect(page.locator(".toast")).to_have_text("Text copied.")
        assert "empty parts" in await page.evaluate("navigator.clipboard.readText()")
        await row.get_by_label("Copy code").click()
        await expect(page.locator(".toast")).to_have_text("Code copied.")
        assert (await page.evaluate("navigator.clipboard.readText()")).startswith(">>> parse")
        await row.get_by_label("Copy link").click()
        await expect(page.locator(".toast")).to_have_text("Link copied.")
        link = await page.evaluate("navigator.clipboard.readText()")
        await page.goto("about:blank")
        await page.goto(link)
        await expect(page.locator(".row.marked")).to_contain_text("The parser failed")


async def test_what_happened_unseen_is_unread_until_one_looks(tmp_path: Path) -> None:
    site = prepared(tmp_path)
    async with told_session(site.home, "one", site.workspace, title="One") as teller:
        await teller.tell([e.UserMessage(Text("Hello"))])
        await site.start()
        try:
            async with browsed() as browser, person(browser, site) as page:
                await page.evaluate("location.hash = '#/s/one'")
                await page.locator(".row").wait_for()
                await page.evaluate("location.hash = '#/'")
                await expect(page.locator(".session.unread")).to_have_count(0)
                await teller.tell([e.TurnStarted("t", [Text("More")]), e.TurnEnded("t")])
                await expect(page.locator(".session.unread")).to_have_count(1)
                await page.locator(".session a").click()
                await expect(page.locator(".session.unread")).to_have_count(0)
        finally:
            await site.stop()


_NOTIFICATIONS = """
    window.Notification = class {
        static permission = 'granted'
        static requestPermission = async () => 'granted'
        constructor(title, options) { document.documentElement.dataset.told = options.body }
    }
    Object.defineProperty(document, 'hidden', { get: () => window.away === true })
"""


async def test_the_desktop_is_told_who_needs_one_and_what_has_finished(tmp_path: Path) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        await page.context.add_init_script(_NOTIFICATIONS)
        await page.reload()
        await new_session(page)
        await page.keyboard.press("Escape")
        await page.locator(".scroller").focus()
        await page.keyboard.press("?")
        await page.get_by_label("Desktop notifications").check()
        await page.keyboard.press("Escape")
        await prompt(page, "Write something down")
        await page.locator(".card.permission").wait_for()
        told = page.locator("html")
        assert await told.get_attribute("data-told") is None
        await page.evaluate("window.away = true")
        await answer(page, "Allow")
        await expect(told).to_have_attribute("data-told", re.compile("^Needs you: "))
        await answer(page, "Reject")
        await expect(told).to_have_attribute("data-told", "Finished")


async def test_the_policies_screen_says_why_something_was_allowed(tmp_path: Path) -> None:
    async with _gallery(tmp_path) as page:
        await page.evaluate("location.hash = '#/policies'")
        why = page.get_by_role("region", name="Why was this allowed?")
        await expect(why).to_contain_text("write parse.py")
        await expect(why).to_contain_text("a rule of yours")
        await why.get_by_role("link", name="Fix the parser").click()
        await expect(page.locator(".head h1")).to_contain_text("Fix the parser")


async def test_a_dialog_begins_where_one_writes_and_gives_the_focus_back(tmp_path: Path) -> None:
    async with _gallery(tmp_path) as page:
        await page.evaluate("location.hash = '#/s/fix'")
        await page.locator(".row").first.wait_for()
        await page.locator(".scroller").focus()
        await page.keyboard.press("n")
        await expect(page.get_by_label("Folder")).to_be_focused()
        await page.keyboard.press("Escape")
        await expect(page.locator(".scroller")).to_be_focused()
        await page.keyboard.press("f")
        await expect(page.get_by_label("First prompt")).to_be_focused()


async def test_a_key_counts_in_the_first_moment_of_the_page(tmp_path: Path) -> None:
    async with _gallery(tmp_path) as page:
        await page.context.add_init_script(
            "Object.defineProperty(Event.prototype, 'timeStamp', { get: () => 5 })"
        )
        await page.reload()
        await page.locator(".session").first.wait_for()
        await page.keyboard.press("?")
        await expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()


async def test_the_list_is_filtered_by_what_sessions_do(tmp_path: Path) -> None:
    async with _gallery(tmp_path) as page:
        filters = page.get_by_role("group", name="Filter")
        await filters.get_by_role("button", name="waiting").click()
        await expect(page.locator(".session .title")).to_have_text(["Prepare release 2.1"])
        await filters.get_by_role("button", name="running").click()
        await expect(page.locator(".sidebar")).to_contain_text("No session is running.")
        await filters.get_by_role("button", name="finished").click()
        await expect(page.locator(".session")).to_have_count(2)
        await page.evaluate("location.hash = '#/s/release'")
        pane = page.get_by_role("complementary", name="Side pane")
        await expect(pane.locator("li", has_text="Tag and build")).to_contain_text("high")

"""What needs one, has finished or failed is noticed, also by one who looks elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

from page.browsing import answer, browsed, looking, new_session, nobody_after, person, prompt
from page.seeding import told_session
from page.site import Site, prepared, served
from playwright.async_api import expect

from dragoman.session import events as e
from dragoman.session.content import Text


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


async def test_a_session_that_something_else_began_is_unread(tmp_path: Path) -> None:
    site = prepared(tmp_path)
    await site.start()
    try:
        async with browsed() as browser, person(browser, site) as page:
            await expect(page.locator("h1")).to_have_text("Start your first session")
            async with told_session(
                site.home, "cli", site.workspace, title="Begun elsewhere"
            ) as it:
                await it.tell([e.TurnStarted("t", [Text("Go")]), e.TurnEnded("t", "end_turn")])
                await expect(page.locator(".session.unread")).to_contain_text("Begun elsewhere")
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
        await nobody_after(page).context.add_init_script(_NOTIFICATIONS)
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


async def test_what_failed_is_told_as_failed_wherever_one_is(tmp_path: Path) -> None:
    site = prepared(tmp_path)
    async with told_session(site.home, "one", site.workspace, title="One") as teller:
        await teller.tell([e.UserMessage(Text("Hello"))])
        await site.start()
        try:
            async with browsed() as browser, person(browser, site) as page:
                await nobody_after(page).context.add_init_script(_NOTIFICATIONS)
                await page.evaluate("localStorage['dragoman.settings'] = '{\"notify\": true}'")
                await page.reload()
                await page.locator(".session").wait_for()
                await page.evaluate("window.away = true")
                for turn in ("t1", "t2"):
                    await teller.tell([e.TurnStarted(turn, [Text("Go")])])
                    await teller.tell([e.TurnEnded(turn, error="the model said no")])
                    polite = page.locator("[aria-live=polite]")
                    await expect(polite).to_have_text("One: failed: the model said no.")
                    told = page.locator("html")
                    await expect(told).to_have_attribute("data-told", "Failed: the model said no")
                await expect(page).to_have_title("✓ Dragoman")
                await page.evaluate("window.away = false")
                await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
                await expect(page).to_have_title("Dragoman")
        finally:
            await site.stop()


async def test_a_turn_that_failed_is_no_success(gallery: Site) -> None:
    async with looking(gallery) as page:
        await page.evaluate("location.hash = '#/s/chapter'")
        await expect(page.locator(".head .status").first).to_have_text("failed")
        await expect(page.locator(".session.here .status")).to_have_attribute("title", "failed")


async def test_the_first_screen_says_what_needs_one_and_what_was_done_lately(
    gallery: Site,
) -> None:
    async with looking(gallery) as page:
        await expect(page.locator("h1")).to_have_text("1 session needs you")
        needed = page.get_by_role("region", name="Needs you")
        await expect(needed).to_contain_text("Tag the release")
        await expect(page.locator(".session .badge")).to_contain_text("2")
        lately = page.get_by_role("region", name="Recent")
        await expect(lately.get_by_role("link")).to_have_count(2)
        await lately.get_by_role("link", name="Fix the parser").click()
        await expect(page.locator(".head h1")).to_contain_text("Fix the parser")


async def test_what_failed_is_marked_in_the_list_before_one_opens_it(gallery: Site) -> None:
    async with looking(gallery) as page:
        row = page.locator(".session", has_text="Write the chapter")
        await expect(row.locator(".status")).to_have_attribute("title", "failed")
        row = page.locator(".session", has_text="Fix the parser")
        await expect(row.locator(".status")).to_have_attribute("title", "done")


async def test_what_is_new_is_bold_in_both_lists_and_nothing_else(tmp_path: Path) -> None:
    site = prepared(tmp_path)
    weight = "(e) => Number(getComputedStyle(e).fontWeight)"
    async with told_session(site.home, "one", site.workspace, title="One") as teller:
        await teller.tell([e.UserMessage(Text("Hello"))])
        await site.start()
        try:
            async with browsed() as browser, person(browser, site) as page:
                lately = page.locator(".shelf .words bdi")
                listed = page.locator(".session .title")
                await lately.wait_for()
                for place in (lately, listed):
                    assert await place.evaluate(weight) == 400
                await teller.tell([e.TurnStarted("t", [Text("More")]), e.TurnEnded("t")])
                await expect(page.locator(".session.unread")).to_have_count(1)
                await expect(page.locator(".shelf .unread")).to_have_count(1)
                for place in (lately, listed):
                    assert await place.evaluate(weight) == 650
        finally:
            await site.stop()

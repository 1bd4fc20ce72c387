"""By keys alone: they lead everywhere, are never caught, and the focus is never lost."""

from __future__ import annotations

from pathlib import Path

from page.browsing import (
    browsed,
    finished,
    looking,
    new_session,
    nobody_after,
    person,
    prompt,
    ready,
)
from page.site import Site, served
from playwright.async_api import expect


async def test_keys_lead_everywhere_but_not_out_of_a_field(gallery: Site) -> None:
    async with looking(gallery) as page:
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


async def test_a_key_right_behind_the_escape_that_closes_a_dialog_counts(gallery: Site) -> None:
    async with looking(gallery) as page:
        await page.evaluate("location.hash = '#/s/fix'")
        await expect(page.locator(".head h1")).to_contain_text("Fix the parser")
        await page.keyboard.press("?")
        await expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
        await page.evaluate(
            """for (const key of ['Escape', 'J'])
                 document.activeElement.dispatchEvent(
                   new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }))"""
        )
        await expect(page.locator(".head h1")).not_to_contain_text("Fix the parser")
        await expect(page.locator("dialog")).to_have_count(0)


async def test_a_dialog_begins_where_one_writes_and_gives_the_focus_back(gallery: Site) -> None:
    async with looking(gallery) as page:
        await page.evaluate("location.hash = '#/s/fix'")
        await page.locator(".row").first.wait_for()
        await page.locator(".scroller").focus()
        await page.keyboard.press("f")
        await expect(page.get_by_label("First prompt")).to_be_focused()
        await page.keyboard.press("Escape")
        await expect(page.locator(".scroller")).to_be_focused()
        await expect(page.locator("dialog")).to_have_count(0)
        await page.keyboard.press("n")
        await expect(page.get_by_label("First prompt")).to_be_focused()
        await expect(page.locator("dialog")).to_have_count(0)


async def test_a_key_counts_in_the_first_moment_of_the_page(gallery: Site) -> None:
    async with looking(gallery) as page:
        await nobody_after(page).context.add_init_script(
            "Object.defineProperty(Event.prototype, 'timeStamp', { get: () => 5 })"
        )
        await page.reload()
        await page.locator(".session").first.wait_for()
        await page.keyboard.press("?")
        await expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()


async def test_letters_fold_look_for_and_lead_to_changes(gallery: Site) -> None:
    async with looking(gallery) as page:
        await page.evaluate("location.hash = '#/s/fix'")
        row = page.locator(".row", has_text="Run pytest -q")
        await row.focus()
        await expect(row.locator(".toolbody")).to_be_visible()
        await page.keyboard.press("e")
        await expect(row.locator(".toolbody")).to_have_count(0)
        await page.keyboard.press("]")
        await page.locator("[data-change]").first.wait_for()
        await page.keyboard.press("]")
        await expect(page.locator("[data-change]").first).to_be_focused()
        await page.keyboard.press("/")
        await expect(page.locator("#search")).to_be_focused()


async def test_the_menu_of_a_session_gives_the_focus_back(gallery: Site) -> None:
    async with looking(gallery) as page:
        dots = page.get_by_label("Actions for Fix the parser")
        await dots.focus()
        await page.keyboard.press("Enter")
        await page.keyboard.press("Escape")
        await expect(dots).to_be_focused()
        await page.keyboard.press("Enter")
        await page.get_by_role("button", name="Rename").click()
        await page.keyboard.press("Escape")
        await expect(dots).to_be_focused()


async def test_an_open_terminal_lets_the_keyboard_go(gallery: Site) -> None:
    async with looking(gallery) as page:
        await page.evaluate("location.hash = '#/s/fix'")
        await page.get_by_role("tab", name="Terminals").click()
        terminal = page.get_by_role("group", name="Terminal output")
        await expect(terminal).to_contain_text("6 passed")
        await terminal.locator(".xterm-screen").click()
        await page.keyboard.press("Tab")
        assert not await page.evaluate("document.activeElement.closest('.xterm') !== null")
        await terminal.locator(".xterm-screen").click()
        await page.keyboard.press("Control+k")
        await expect(page.get_by_role("dialog", name="Command palette")).to_be_visible()


async def test_the_focus_stays_where_a_card_was_answered_by_key(tmp_path: Path) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        await new_session(page)
        await prompt(page, "Write something down")
        card = page.locator(".card.permission")
        await ready(card)
        request = await card.get_attribute("data-request")
        await card.focus()
        await page.keyboard.press("1")
        await expect(page.locator(f"[data-request='{request}']")).to_have_count(0)
        # The next card has it, if that is there already.
        await expect(page.locator(".scroller:focus, .scroller .card:focus")).to_have_count(1)
        await expect(card).to_contain_text("wc -l")


async def test_escape_twice_stops_the_turn(tmp_path: Path) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        await new_session(page)
        await prompt(page, "Write something down")
        await page.locator(".card.permission").wait_for()
        await page.keyboard.press("Escape")
        await page.keyboard.press("Escape")
        await finished(page)
        await expect(page.locator(".turnline")).to_contain_text("Stopped")


async def test_the_palette_shows_what_can_be_done_before_one_types(gallery: Site) -> None:
    async with looking(gallery) as page:
        await page.evaluate("location.hash = '#/s/fix'")
        await page.locator(".row").first.wait_for()
        await page.keyboard.press("Control+k")
        options = page.get_by_role("listbox", name="Results").get_by_role("option")
        for name in ("Archive this session", "Export this session", "New session", "Policies"):
            await expect(options.filter(has_text=name)).to_have_count(1)
        await page.keyboard.type("archive")
        await expect(options.first).to_contain_text("Archive this session")
        await page.get_by_role("combobox", name="Find a session or command").fill("export")
        async with page.expect_download() as download:
            await page.keyboard.press("Enter")
        assert (await download.value).suggested_filename == "fix.jsonl"

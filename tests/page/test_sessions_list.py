"""Sessions are found, named, put away, copied and deleted as a person would."""

from __future__ import annotations

from pathlib import Path

from page.browsing import answer, browsed, new_session, person, prompt, ran
from page.seeding import told_session
from page.site import prepared, served
from playwright.async_api import Page, expect

from dragoman.session import events as e
from dragoman.session.content import Text


async def _choose(page: Page, title: str, action: str) -> None:
    row = page.locator(".session", has_text=title)
    await row.hover()
    await row.get_by_label("Actions for").click()
    await row.get_by_role("button", name=action).click()


async def test_a_session_is_renamed_archived_brought_back_and_deleted(tmp_path: Path) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        await new_session(page)
        await _choose(page, "New session", "Rename")
        await page.get_by_label("Title").fill("Parser \u202e repair")
        await page.get_by_role("button", name="Rename", exact=True).click()
        await expect(page.locator(".head h1")).to_have_text("Parser ⟨U+202E⟩ repair")
        await _choose(page, "Parser", "Archive")
        await expect(page.locator(".session")).to_have_count(0)
        await page.get_by_role("button", name="archived").click()
        await _choose(page, "Parser", "Restore")
        await page.get_by_role("button", name="all", exact=True).click()
        await _choose(page, "Parser", "Delete")
        await page.get_by_role("button", name="Delete", exact=True).click()
        await expect(page.locator(".session")).to_have_count(0)
        await expect(page.locator("main h1")).to_have_text("Start your first session")


async def test_a_fork_begins_with_a_prompt_of_its_own(tmp_path: Path) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        await new_session(page)
        await ran(page, "/plan something")
        await page.keyboard.press("Escape")
        await page.locator(".head").get_by_label("Fork session").click()
        await page.get_by_role("button", name="Write a pull request").click()
        await page.get_by_role("button", name="Fork", exact=True).click()
        await expect(page.locator(".said.user").last).to_contain_text("pull request description")
        await expect(page.locator(".head")).to_contain_text("forked")


async def test_a_session_the_agent_knows_is_imported(tmp_path: Path) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        await new_session(page)
        await ran(page, "/plan something")
        await page.get_by_role("button", name="Import", exact=True).first.click()
        await page.get_by_role("button", name="List its sessions").click()
        await expect(page.locator(".hit").first).to_contain_text("already imported")
        await page.locator(".hit").first.click()
        await expect(page.locator("dialog")).to_have_count(0)


async def test_a_session_that_only_the_agent_knows_is_taken_over(tmp_path: Path) -> None:
    # The page may be about to ask for the changes of the session that is deleted below it.
    async with (
        served(tmp_path) as site,
        browsed() as browser,
        person(browser, site, refused=404) as page,
    ):
        session = await new_session(page)
        await ran(page, "/plan something")
        address = f"{site.url}api/sessions/{session}?local=true"
        await page.request.delete(address, headers={"Authorization": f"Bearer {site.token}"})
        await expect(page.locator(".session")).to_have_count(0)
        await page.get_by_role("button", name="Import", exact=True).first.click()
        await page.get_by_role("button", name="List its sessions").click()
        await expect(page.locator(".hit")).to_have_count(1)
        await expect(page.locator(".hit")).not_to_contain_text("already imported")
        await page.locator(".hit").click()
        await page.wait_for_url(lambda url: session not in url)
        await expect(page.locator(".said.user")).to_contain_text("/plan something")


async def test_words_are_found_in_all_sessions(tmp_path: Path) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        await new_session(page)
        await prompt(page, "Look for the xylophone")
        await page.locator(".row").nth(1).wait_for()
        await page.locator("#search").fill("xylophone")
        await page.keyboard.press("Enter")
        await expect(page.locator(".hit mark").first).to_have_text("xylophone")
        await page.locator(".hit").first.click()
        await expect(page.locator(".said.user")).to_contain_text("xylophone")


async def test_what_waits_elsewhere_is_in_the_inbox_and_in_the_title(tmp_path: Path) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        await new_session(page)
        await prompt(page, "Write something down")
        await page.locator(".card.permission").wait_for()
        await page.evaluate("location.hash = '#/'")
        await expect(page).to_have_title("(1) Dragoman")
        await expect(page.locator("[aria-live=assertive]")).to_contain_text("Needs you")
        await page.locator("main").click()
        await page.keyboard.press("g")
        await page.keyboard.press("i")
        await answer(page, "Reject")
        await expect(page.locator(".card.permission")).to_contain_text("ls -la")
        await answer(page, "Reject")
        await expect(page.locator("main")).to_contain_text("Nothing needs your answer")
        await expect(page).to_have_title("Dragoman")


async def test_sessions_are_grouped_by_project_and_filtered(tmp_path: Path) -> None:
    site = prepared(tmp_path)
    other = tmp_path / "other"
    for at, (folder, title) in enumerate(((site.workspace, "One"), (other, "Two"))):
        async with told_session(site.home, f"s{at}", folder, title=title) as teller:
            await teller.tell([e.UserMessage(Text(title))])
    await site.start()
    try:
        async with browsed() as browser, person(browser, site) as page:
            await expect(page.locator(".group")).to_have_count(2)
            await page.locator("#search").fill("two")
            await expect(page.locator(".session .title")).to_have_text(["Two"])
    finally:
        await site.stop()

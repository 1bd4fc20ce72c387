"""What is written while a turn runs: queued, or said into the turn."""

from __future__ import annotations

from pathlib import Path

from page.browsing import meeting, new_session, prompt
from playwright.async_api import expect


async def test_what_is_written_meanwhile_is_said_into_the_turn_or_queued(tmp_path: Path) -> None:
    async with meeting(tmp_path, "steered") as page:
        await new_session(page)
        await prompt(page, "wait")
        field, said = page.locator("#composer"), page.locator(".said.user")
        await expect(field).to_have_attribute("placeholder", "Queue a prompt for the next turn…")
        await field.fill("rather blue")
        await field.press("Alt+Enter")
        await expect(said.last).to_contain_text("You, into the turn")
        await expect(said.last).to_contain_text("rather blue")
        await field.fill("and small")
        await page.get_by_role("button", name="Steer").click()
        await expect(said.last).to_contain_text("and small")
        await field.fill("later")
        await field.press("Enter")
        await expect(page.locator(".queue")).to_contain_text("queued")
        await field.fill("too late")
        await field.press("Alt+Enter")
        # Before what was queued earlier.
        await expect(page.locator(".queue li")).to_have_count(2)
        await expect(page.locator(".queue li").first).to_contain_text("too late")
        await page.get_by_role("button", name="Stop").click()
        await expect(said.last).to_contain_text("later")
        await expect(said.nth(3)).to_contain_text("too late")


async def test_what_was_refused_can_be_written_again(tmp_path: Path) -> None:
    async with meeting(tmp_path, "steered") as page:
        await new_session(page)
        await prompt(page, "wait")
        field = page.locator("#composer")
        await expect(field).to_have_attribute("placeholder", "Queue a prompt for the next turn…")
        await field.fill("refuse this")
        await field.press("Alt+Enter")
        await expect(page.locator(".said.user").last).to_contain_text("You, not delivered")
        warning = page.locator(".notice.warning")
        await expect(warning).to_contain_text("The agent did not take this.")
        await expect(warning).to_contain_text("not now")
        await page.get_by_role("button", name="Write it again").click()
        await expect(field).to_have_value("refuse this")


async def test_enter_steers_for_those_who_want_that(tmp_path: Path) -> None:
    async with meeting(tmp_path, "steered") as page:
        await new_session(page)
        await page.keyboard.press("Control+k")
        palette = page.locator(".palette")
        await palette.wait_for()
        await page.keyboard.type("While a turn")
        await expect(palette.get_by_role("option").first).to_contain_text("Enter steers")
        await page.keyboard.press("Enter")
        await palette.wait_for(state="detached")
        await prompt(page, "wait")
        field = page.locator("#composer")
        await expect(field).to_have_attribute("placeholder", "Say something into the running turn…")
        await field.fill("rather blue")
        await field.press("Enter")
        await expect(page.locator(".said.user").last).to_contain_text("You, into the turn")
        await field.fill("later")
        await field.press("Alt+Enter")
        await expect(page.locator(".queue")).to_contain_text("later")

"""A whole turn with the demo agent, as a person sees it."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

from page.browsing import (
    answer,
    browsed,
    finished,
    new_session,
    nobody_after,
    person,
    prompt,
    ready,
    settled,
)
from page.site import served
from playwright.async_api import Route, expect


async def test_a_turn_from_the_prompt_over_permission_and_diff_to_its_end(tmp_path: Path) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        await new_session(page)
        assert "token" not in page.url
        await prompt(page, "Write something down")
        card = page.locator(".card.permission")
        await expect(card).to_contain_text("dragoman-demo.txt")
        await expect(card).to_contain_text("You asked: Write something down")
        await expect(card).to_contain_text("from now on: allow writing this file")
        await answer(page, "Allow")
        await expect(card).to_contain_text("wc -l dragoman-demo.txt")
        await answer(page, "Allow once")
        await finished(page)
        await expect(page.locator(".tool")).to_have_count(3)
        await expect(page.locator(".tool .line.added")).to_contain_text("You asked")
        await expect(page.locator(".row").last).to_contain_text("What I did")
    assert (site.workspace / "dragoman-demo.txt").exists()


async def test_two_people_answer_and_the_first_one_wins(tmp_path: Path) -> None:
    async with (
        served(tmp_path) as site,
        browsed() as browser,
        person(browser, site) as one,
        person(browser, site) as other,
    ):
        session = await new_session(one)
        await other.evaluate("location.hash = '#/inbox'")
        await prompt(one, "Write something down")
        await expect(other.locator(".card.permission")).to_contain_text("dragoman-demo.txt")
        request = await one.locator(".card.permission").get_attribute("data-request")
        await answer(other, "Reject")
        await expect(one.locator(f"[data-request='{request}']")).to_have_count(0)
        late = await one.request.post(
            f"{site.url}api/sessions/{session}/permissions/{request}",
            headers={"Authorization": f"Bearer {site.token}"},
            data={"optionId": "allow"},
        )
        assert late.status == 409
        await other.evaluate(f"location.hash = '#/s/{session}'")
        await expect(other.locator(".said.user")).to_contain_text("Write something down")


async def test_who_answers_late_is_told_that_it_was_settled(tmp_path: Path) -> None:
    async with (
        served(tmp_path) as site,
        browsed() as browser,
        person(browser, site) as one,
        person(browser, site, refused=409) as other,
    ):
        settled = asyncio.Event()

        async def hold(route: Route) -> None:
            await settled.wait()
            await route.continue_()

        session = await new_session(one)
        await other.evaluate(f"location.hash = '#/s/{session}'")
        await nobody_after(other).route("**/permissions/*", hold)
        await prompt(one, "Write something down")
        card = other.locator(".card.permission")
        await ready(card)
        await card.get_by_role("button", name="Allow").first.click()
        await answer(one, "Reject")
        settled.set()
        await expect(other.get_by_role("alert")).to_contain_text("Already answered")
    assert not (site.workspace / "dragoman-demo.txt").exists()


async def test_a_reload_in_mid_turn_shows_the_same(tmp_path: Path) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        await new_session(page)
        await prompt(page, "Write something down")
        await page.locator(".card.permission").wait_for()
        before = await page.locator(".rows").inner_text()
        await page.reload()
        await page.locator(".card.permission").wait_for()
        assert (await page.locator(".rows").inner_text()) == before
        await answer(page, "Allow")
        await answer(page, "Allow once")
        await finished(page)


async def test_a_server_killed_in_mid_turn_comes_back_with_the_turn_interrupted(
    tmp_path: Path,
) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        await new_session(page)
        await prompt(page, "Write something down")
        await page.locator(".card.permission").wait_for()
        await site.stop(signal.SIGKILL)
        await expect(page.locator(".topbar")).to_contain_text("Offline")
        await site.start()
        await expect(page.locator(".topbar")).not_to_contain_text("Offline")
        await expect(page.locator(".head .status")).to_contain_text("interrupted")
        await expect(page.locator(".notice.error")).to_contain_text("cut short")
        await prompt(page, "Once more")
        await expect(page.locator(".said.user").last).to_contain_text("Once more")


async def test_prompts_queue_while_a_turn_runs_and_stop_ends_it(tmp_path: Path) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        await new_session(page)
        await prompt(page, "Write something down")
        await page.locator(".card.permission").wait_for()
        await prompt(page, "And then this")
        queued = page.locator(".queue li")
        await expect(queued).to_contain_text("And then this")
        await queued.get_by_label("Edit queued prompt").click()
        await page.get_by_label("Queued prompt", exact=True).fill("And then that")
        await page.keyboard.press("Enter")
        await expect(queued).to_contain_text("And then that")
        await queued.get_by_label("Drop queued prompt").click()
        await expect(queued).to_have_count(0)
        await page.get_by_role("button", name="Stop").click()
        await finished(page)
        await expect(page.locator(".turnline")).to_contain_text("Stopped")
        await expect(page.locator(".card.permission")).to_have_count(0)


async def test_keys_answer_only_a_card_that_has_the_focus(tmp_path: Path) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        await new_session(page)
        await prompt(page, "Write something down")
        card = page.locator(".card.permission")
        await ready(card)
        await page.locator(".scroller").focus()
        await page.keyboard.press("1")
        await settled(page)
        await expect(card).to_contain_text("dragoman-demo.txt")
        await card.focus()
        await page.keyboard.press("1")
        await expect(card).to_contain_text("wc -l")

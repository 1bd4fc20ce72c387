"""Words are shown as they were typed and printed, and only what goes on is shown as going on."""

from __future__ import annotations

from pathlib import Path

from page.browsing import finished, meeting, new_session, prompt
from playwright.async_api import expect

TYPED = 'Look at this:\n  File "a.py", line *1*\n\t\\"quoted\\" and _plain_'


async def test_words_are_shown_as_typed_and_printed_and_nothing_spins_at_rest(
    tmp_path: Path,
) -> None:
    async with meeting(tmp_path, "tells") as page:
        await new_session(page)
        mark = page.locator(".head .status")
        await expect(mark).to_have_attribute("data-mark", "new")
        await page.fill("#composer", TYPED)
        await page.press("#composer", "Enter")
        await expect(mark).to_have_attribute("data-mark", "completed")
        assert await page.locator(".said.user .typed").inner_text() == TYPED

        tool = page.locator(".tool")
        await expect(tool.locator(".status")).to_have_text("not finished")
        await tool.locator(".toolhead").click()
        assert await tool.locator(".printed").inner_text() == "a.py:1: *x*\nb.py:2:   y"
        for plan in (page.locator(".row .plan"), page.locator(".pane .plan")):
            await expect(plan.locator(".mark").last).to_have_attribute("title", "not finished")
        await expect(page.locator("main .spinner, .pane .spinner")).to_have_count(0)

        await prompt(page, "wait")
        await expect(page.locator(".row .plan .spinner")).to_have_count(1)
        await page.get_by_role("button", name="Stop", exact=True).click()
        await finished(page)
        await expect(mark).to_have_attribute("data-mark", "cancelled")
        await expect(page.locator(".session .status")).to_have_attribute("title", "stopped")

        await prompt(page, "crash")
        await expect(mark).to_have_attribute("data-mark", "failed")
        failed = "not finished, the turn failed"
        step = page.locator(".row .plan").last.locator(".mark").last
        await expect(step).to_have_attribute("title", failed)
        notice = page.locator(".notice.error")
        await expect(notice).to_contain_text("exited with code 3")
        printed = await notice.locator("pre").inner_text()
        assert printed.endswith("Traceback:\n  File x\nValueError: no")
        await expect(page.locator("main .spinner, .pane .spinner")).to_have_count(0)

"""What the demo agent does not do: forms, an agent that does not stop, commands that take long."""

from __future__ import annotations

from pathlib import Path

from page.browsing import (
    answer,
    browsed,
    finished,
    meeting,
    new_session,
    nobody_after,
    person,
    prompt,
    ready,
)
from page.site import scripted, served
from playwright.async_api import Page, expect


async def test_a_form_is_filled_in_and_the_agent_gets_it(tmp_path: Path) -> None:
    async with meeting(tmp_path, "asks") as page:
        await new_session(page)
        await prompt(page, "Ask me")
        form = page.locator(".card.elicitation")
        await expect(form).to_contain_text("Which colour?")
        await form.get_by_label("Colour").select_option("green")
        await form.get_by_label("How many").fill("3")
        await form.get_by_label("Are you sure").check()
        await ready(form)
        await form.get_by_role("button", name="Send").click()
        said = "accept: {'colour': 'green', 'count': 3, 'sure': True}"
        await expect(page.locator(".said.agent")).to_contain_text(said)
        await prompt(page, "Again")
        await ready(form)
        await form.get_by_role("button", name="Decline").click()
        await expect(page.locator(".said.agent").last).to_contain_text("decline: None")


async def test_a_form_says_at_each_field_what_it_does_not_take(tmp_path: Path) -> None:
    async with (
        served(tmp_path, *scripted(tmp_path, "demands")) as site,
        browsed() as browser,
        person(browser, site, refused=400) as page,
    ):
        await new_session(page)
        await prompt(page, "Ask me")
        form = page.locator(".card.elicitation")
        await ready(form)
        send, wrong = form.get_by_role("button", name="Send"), form.locator(".wrong")
        await send.click()
        await expect(wrong).to_have_text(["Required.", "Choose at least one."])
        await expect(form.get_by_label("Name")).to_be_focused()
        await form.get_by_label("Name").fill("Bad Name! far too long")
        await form.get_by_label("Count").fill("7")
        for part in ("one", "two", "three"):
            await form.get_by_label(part).check()
        await send.click()
        said = [
            "Expected at most 12 characters.",
            "Expected 1 to 5.",
            "Expected at most 2 choices.",
        ]
        await expect(wrong).to_have_text(said)
        await form.get_by_label("Name").fill("Bad Name!")
        await form.get_by_label("Count").fill("5")
        await form.get_by_label("three").uncheck()
        await expect(wrong).to_have_count(0)
        await send.click()
        await expect(wrong).to_have_text(["Expected to match ^[a-z-]+$."])
        await form.get_by_label("Name").fill("good-name")
        await send.click()
        content = "{'name': 'good-name', 'count': 5, 'parts': ['one', 'two']}"
        await expect(page.locator(".said.agent")).to_contain_text(f"accept: {content}")


async def test_choices_that_say_what_they_mean_are_all_in_sight(tmp_path: Path) -> None:
    async with meeting(tmp_path, "offers") as page:
        await new_session(page)
        await prompt(page, "Ask me")
        form = page.locator(".card.elicitation")
        await expect(form).to_contain_text("the first and shortest")
        await expect(form.get_by_role("combobox")).to_have_count(0)
        await ready(form)
        # It is needed, and so nothing is sent without it.
        await form.get_by_role("button", name="Send").click()
        await expect(form.get_by_role("button", name="Send")).to_be_enabled()
        await form.get_by_role("radio", name="Beta").check()
        await form.get_by_role("button", name="Send").click()
        await expect(page.locator(".said.agent")).to_contain_text("accept: {'way': 'B'}")


async def test_each_turn_that_was_stopped_says_so(tmp_path: Path) -> None:
    async with meeting(tmp_path, "waits") as page:
        await new_session(page)
        await prompt(page, "first")
        await expect(page.locator(".said.agent")).to_have_count(1)
        for text in ("second", "last"):
            await prompt(page, text)
        stop, then = page.get_by_role("button", name="Stop", exact=True), page.locator(".then")
        await expect(then).to_have_text("Stop: then 2 queued prompts run")
        await stop.click()
        await expect(page.locator(".said.agent")).to_have_count(2)
        await expect(then).to_have_text("Stop: then 1 queued prompt runs")
        await stop.click()
        await finished(page)
        for _ in range(2):
            await expect(page.locator(".turnend")).to_have_text(["Stopped.", "Stopped."])
            await expect(page.locator(".row", has_text="last: under way")).to_have_count(1)
            await expect(page.locator(".turnline")).to_have_count(0)
            await page.reload()


async def test_an_agent_that_does_not_stop_can_be_killed(tmp_path: Path) -> None:
    async with meeting(tmp_path, "stubborn") as page:
        await new_session(page)
        await prompt(page, "Go on for ever")
        await stop_in_vain(page)
        await page.get_by_role("button", name="Kill agent").click()
        await expect(page.locator(".notice.error")).to_contain_text("cut short")
        await expect(page.get_by_role("button", name="Kill agent")).to_have_count(0)


async def stop_in_vain(page: Page) -> None:
    """Ask the agent to stop, and have the page's own clock go past the time that it has for it."""
    # What the agent has not begun yet is stopped without it.
    await expect(page.locator(".said.agent")).to_have_text("under way")
    await nobody_after(page).clock.install()
    await page.get_by_role("button", name="Stop", exact=True).click()
    await expect(page.get_by_role("button", name="Stopping")).to_be_disabled()
    await expect(page.get_by_role("button", name="Kill agent")).to_have_count(0)
    await page.clock.fast_forward(5000)


async def test_whoever_loses_by_a_kill_is_named_first(tmp_path: Path) -> None:
    async with (
        served(tmp_path, *scripted(tmp_path, "crowded")) as site,
        browsed() as browser,
        # Whoever asked to stop is told, at the latest after half a minute, that it does not.
        person(browser, site, refused=(409, 504)) as page,
    ):
        for _ in range(2):
            await new_session(page)
            await prompt(page, "Ask me")
            await expect(page.locator(".card.permission")).to_be_visible()
        await new_session(page)
        await prompt(page, "Go on for ever")
        await stop_in_vain(page)
        await page.get_by_role("button", name="Kill agent").click()
        dialog = page.get_by_role("dialog")
        await expect(dialog.locator("li")).to_have_text(["Ask mewaiting for your answer"] * 2)
        await dialog.get_by_role("button", name="Keep waiting").click()
        await expect(page.locator(".session .status.waiting")).to_have_count(2)
        await page.get_by_role("button", name="Kill agent").click()
        await dialog.get_by_role("button", name="Kill it for all 3").click()
        await expect(page.locator(".notice.error")).to_contain_text("was stopped on request")
        await expect(page.locator(".session .status.waiting")).to_have_count(0)


async def test_a_running_command_is_seen_as_it_prints(tmp_path: Path) -> None:
    async with (
        served(tmp_path, *scripted(tmp_path, "runs")) as site,
        browsed() as browser,
        person(browser, site) as page,
    ):
        await new_session(page)
        await prompt(page, "Count")
        await answer(page, "Allow once")
        terminal = page.locator(".tool .term")
        await expect(terminal).to_contain_text("line 1")
        await expect(terminal).to_contain_text("running")
        await terminal.get_by_role("button", name="Expand").click()
        await expect(terminal.locator(".xterm-rows")).to_contain_text("line 1")
        (site.workspace / "go-on").touch()
        await expect(terminal.locator(".xterm-rows")).to_contain_text("line 2")
        await expect(terminal).to_contain_text("exit 3")
        await finished(page)


async def test_a_long_answer_streams_with_its_end_in_view(tmp_path: Path) -> None:
    async with (
        served(tmp_path, *scripted(tmp_path, "streams")) as site,
        browsed() as browser,
        person(browser, site, size=(900, 500)) as page,
    ):
        await new_session(page)
        await prompt(page, "Talk")
        await expect(page.locator(".said.agent")).to_contain_text("word399")
        await finished(page)
        below = """() => {
            const { scrollHeight, scrollTop, clientHeight } = document.querySelector('.scroller')
            return scrollHeight - scrollTop - clientHeight
        }"""
        assert await page.evaluate(below) < 80
        await expect(page.get_by_role("button", name="Latest")).to_have_count(0)

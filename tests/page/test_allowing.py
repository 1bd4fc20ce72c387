"""How much is allowed and for how long, what is dangerous, and questions that are one question."""

from __future__ import annotations

from pathlib import Path

from page.browsing import (
    answer,
    browsed,
    finished,
    meeting,
    new_session,
    person,
    prompt,
    ran,
    ready,
    settled,
)
from page.site import scripted, served
from playwright.async_api import Page, expect

from dragoman.host.rules.project_file import NAME


async def _asked(page: Page, text: str) -> None:
    """A new session waits for an answer to this."""
    await new_session(page)
    await prompt(page, text)
    await ready(page.locator(".card.permission"))


async def test_a_program_is_allowed_for_the_project_by_keys_alone(tmp_path: Path) -> None:
    async with meeting(tmp_path, "claims") as page:
        await _asked(page, "pytest -q")
        card, said = page.locator(".card.permission"), page.locator(".said.agent")
        await card.focus()
        await page.keyboard.press("m")
        await expect(card.get_by_role("radio", name="this command")).to_be_focused()
        # The numbers of the agent's answers are out of sight, and do not count.
        await page.keyboard.press("1")
        await page.keyboard.press("Escape")
        await expect(card).to_be_focused()
        await page.keyboard.press("m")
        await page.keyboard.press("ArrowDown")
        await expect(card.get_by_role("radio", name="“pytest …”")).to_be_checked()
        await page.keyboard.press("Tab")
        await page.keyboard.press("ArrowDown")
        await expect(card.get_by_role("radio", name="this project")).to_be_checked()
        await expect(card.locator(".rule")).to_contain_text("begin with pytest")
        await expect(card.locator(".rule")).to_contain_text("in this project")
        await expect(said).to_have_count(0)
        await page.keyboard.press("Enter")
        await expect(said).to_have_text("chosen: once")
        await finished(page)
        await ran(page, "pytest -q tests/x.py")
        await expect(said.last).to_have_text("chosen: once")
        await page.evaluate("location.hash = '#/policies'")
        rules = page.get_by_role("region", name="Rules").locator("tbody tr")
        await expect(rules).to_have_count(1)
        await expect(rules).to_contain_text("pytest")


async def test_only_what_is_offered_together_can_be_chosen(tmp_path: Path) -> None:
    async with meeting(tmp_path, "claims") as page:
        await _asked(page, "pytest -q")
        card = page.locator(".card.permission")
        await card.get_by_role("button", name="Allow more").click()
        times = card.get_by_role("group", name="For how long").get_by_role("radio")
        await expect(times).to_have_count(2)
        await card.get_by_text("“pytest …”").click()
        await expect(times).to_have_count(3)
        await card.get_by_text("everywhere").click()
        await card.get_by_text("any command").click()
        await expect(times).to_have_count(2)
        await expect(card.get_by_role("radio", name="this session")).to_be_checked()
        await card.get_by_role("button", name="Back").click()
        await answer(page, "Reject")


async def test_what_is_dangerous_is_marked_and_allowed_for_longer_only_if_said_twice(
    tmp_path: Path,
) -> None:
    async with meeting(tmp_path, "claims") as page:
        await _asked(page, "rm -rf build")
        card = page.locator(".card.permission")
        await expect(card.locator(".dangermark")).to_have_text(
            "Danger: rm deletes folders and everything in them"
        )
        await card.get_by_role("button", name="Allow more").click()
        allow = card.get_by_role("button", name="Allow", exact=True)
        await allow.click()
        await expect(card.get_by_role("alert")).to_contain_text("Really allow this command")
        await expect(card.get_by_role("button", name="No")).to_be_focused()
        await card.get_by_role("button", name="No").click()
        await allow.click()
        await expect(page.locator(".said.agent")).to_have_count(0)
        await card.get_by_role("button", name="Yes, allow it").click()
        await expect(page.locator(".said.agent")).to_have_text("chosen: once")
        await finished(page)
        await ran(page, "rm -rf build")
        await prompt(page, "rm -rf dist")
        await expect(card.locator(".command")).to_have_text("rm -rf dist")
        await answer(page, "Reject")


async def test_every_answer_is_in_sight_on_a_phone_beside_a_long_command(tmp_path: Path) -> None:
    names = " ".join(f"tests/area{n}/test_something_rather_long_{n}.py" for n in range(40))
    async with (
        served(tmp_path, *scripted(tmp_path, "claims")) as site,
        browsed() as browser,
        person(browser, site, size=(390, 844)) as page,
    ):
        # The line about it takes room from the thread, after the thread was drawn.
        (site.workspace / ".dragoman").mkdir()
        (site.workspace / NAME).write_text('[[rules]]\neffect = "deny"\nhost = "example.com"\n')
        await page.get_by_role("button", name="Sessions").click()
        await new_session(page)
        # A phone's keyboard or its browser takes some of the height.
        for command, height in ((f"pytest -q {names}", 700), (f"rm -rf {names}", 844)):
            await prompt(page, command)
            card = page.locator(".card.permission")
            await ready(card)
            await page.reload()
            await page.locator(".rulesline").wait_for()
            await settled(page)
            await expect(page.locator(".turnline")).to_be_in_viewport(ratio=1)
            for button in await card.locator(".answers button").all():
                await expect(button).to_be_in_viewport(ratio=1)
            await card.get_by_role("button", name="Allow more").click()
            await page.set_viewport_size({"width": 390, "height": height})
            await settled(page)
            assert await card.evaluate("card => card.scrollHeight - card.clientHeight") <= 1
            for name in ("Allow", "Back"):
                button = card.get_by_role("button", name=name, exact=True)
                await expect(button).to_be_in_viewport(ratio=1)
            await card.get_by_role("button", name="Back").click()
            await answer(page, "Reject")
            await finished(page)


async def test_an_always_that_counts_once_is_no_button_and_its_number_counts_once(
    tmp_path: Path,
) -> None:
    async with meeting(tmp_path, "claims") as page:
        await _asked(page, "echo $HOME && ls")
        card = page.locator(".card.permission")
        await expect(card.get_by_role("button", name="Always allow")).to_have_count(0)
        await expect(card.locator(".rule").first).to_contain_text(
            "2 Always allow: counts once only"
        )
        await card.focus()
        await page.keyboard.press("2")
        await expect(page.locator(".said.agent")).to_have_text("chosen: once")


async def test_the_same_question_is_one_card_and_names_its_command_once(tmp_path: Path) -> None:
    async with meeting(tmp_path, "repeats") as page:
        await _asked(page, "Go")
        card = page.locator(".card.permission")
        await expect(card).to_contain_text("Asked 3 times; one answer counts for all.")
        await expect(page.locator(".toolhead .status.waiting")).to_have_count(3)
        await expect(card).to_have_count(1)
        await expect(page.locator(".session .badge")).to_contain_text("1")
        shown = await page.locator(".transcript").inner_text()
        assert shown.count("git fetch --all") == 1, shown
        await answer(page, "Allow once")
        await expect(page.locator(".said.agent")).to_have_text("chosen: once once once")
        await expect(page.locator(".toolhead .title").first).to_have_text("git fetch --all")


async def test_sessions_that_ask_the_same_are_answered_together_and_the_next_has_the_focus(
    tmp_path: Path,
) -> None:
    async with meeting(tmp_path, "claims") as page:
        same: list[str] = []
        for text in ("make all", "make all", "make test", "make test"):
            await _asked(page, text)
            same.append(page.url.partition("#/s/")[2])
        await page.locator(".scroller").focus()
        await page.keyboard.press("g")
        await page.keyboard.press("i")
        asked, card = page.locator(".asked"), page.locator(".card.permission")
        waiting = page.locator(".asklist button")
        await expect(asked.locator(".place")).to_have_text("1 of 2")
        await expect(waiting).to_contain_text(["make all", "make test"])
        await expect(asked.first).to_contain_text("2 sessions ask the same")
        await expect(card.first.locator(".command")).to_have_text("make all")
        await expect(card.first).to_be_focused()
        await ready(card.first)
        await card.first.get_by_role("button", name="Allow all 2").first.click()
        await expect(waiting).to_have_count(0)
        await expect(card.locator(".command")).to_have_text("make test")
        await expect(card).to_be_focused()
        await page.get_by_role("button", name="Answer them one by one").click()
        await expect(asked.locator(".place")).to_have_text("1 of 2")
        await page.keyboard.press("j")
        await expect(asked.locator(".place")).to_have_text("2 of 2")
        await page.keyboard.press("k")
        await expect(card).to_be_focused()
        await ready(card)
        await page.keyboard.press("3")
        await expect(waiting).to_have_count(0)
        await expect(card).to_be_focused()
        for session, chosen in zip(same, ("once", "once", "no"), strict=False):
            await page.evaluate(f"location.hash = '#/s/{session}'")
            await expect(page.locator(".said.agent")).to_have_text(f"chosen: {chosen}")


async def test_a_rule_for_the_project_is_made_once_for_all_who_ask_the_same(tmp_path: Path) -> None:
    async with meeting(tmp_path, "claims") as page:
        for _ in range(2):
            await _asked(page, "make all")
        await page.evaluate("location.hash = '#/inbox'")
        card = page.locator(".card.permission")
        await expect(page.get_by_text("2 sessions ask the same")).to_be_visible()
        await ready(card)
        await card.get_by_role("button", name="Allow more").click()
        await card.get_by_text("this project").click()
        await card.get_by_role("button", name="Allow all 2").click()
        await expect(card).to_have_count(0)
        await page.evaluate("location.hash = '#/policies'")
        rules = page.get_by_role("region", name="Rules").locator("tbody tr")
        await expect(rules).to_have_count(1)

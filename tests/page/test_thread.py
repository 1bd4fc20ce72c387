"""The thread: runs of reads, decisions, what a turn took, and what to do about a failed one."""

from __future__ import annotations

import signal
from pathlib import Path

from page.browsing import browsed, finished, looking, meeting, new_session, person, prompt
from page.seeding import told_session
from page.site import Site, prepared, served
from playwright.async_api import expect

from dragoman.session import events as e
from dragoman.session.content import Diff, Text
from dragoman.session.facts import Cost, Decision, PermissionOption, TokenUsage

_RULE = Decision("deny", "a rule of the project", by="rule")
_YOU = Decision("allow", "your answer", by="person")


def _reads(count: int) -> list[e.Event]:
    return [
        e.ToolCallUpdated(f"r{at}", title=f"Read {at}.py", kind="read", status="completed")
        for at in range(count)
    ]


async def test_a_run_of_reads_is_one_row_and_a_turn_ends_with_what_it_took(tmp_path: Path) -> None:
    site = prepared(tmp_path)
    async with told_session(site.home, "long", site.workspace, title="Look around") as teller:
        path = str(site.workspace / "a.py")
        options = [PermissionOption("y", "Yes", "allow_once")]
        edit = Diff(path, "new\n", old_text="old\n")
        await teller.tell(
            [
                e.TurnStarted("t1", [Text("Look around")]),
                *_reads(60),
                e.ToolCallUpdated("s", title="Find <b>x</b>", kind="search", status="completed"),
                e.ToolCallUpdated("w", title="a", kind="edit", status="completed", content=[edit]),
                e.PermissionRequested("p", options, argv=["make"]),
                e.PermissionSettled("p", "y", _YOU),
                e.AccessDecided("write", _RULE, paths=[path], tool_call_id="w"),
                e.UsageChanged(10, 100, Cost(0.25, "USD")),
                e.AgentMessage(Text("Done.")),
                e.TurnEnded("t1", "end_turn", TokenUsage(5200, 4300, 900)),
            ],
            status="idle",
        )
        await site.start()
        try:
            async with browsed() as browser, person(browser, site) as page:
                await page.evaluate("location.hash = '#/s/long'")
                run = page.get_by_role("button", name="Read 60 files, 1 search")
                await expect(run).to_have_attribute("aria-expanded", "false")
                await expect(page.locator(".tool")).to_have_count(1)
                decided = page.locator(".decidedlines li")
                await expect(decided.filter(has_text="Allowed by you: make")).to_have_count(1)
                refused = decided.filter(has_text="Rejected by a rule: a rule of the project")
                await expect(refused).to_have_count(1)
                foot = page.locator(".turnfoot")
                await expect(foot).to_contain_text("5.2k tokens")
                await expect(foot).to_contain_text("$0.25")
                await expect(foot.get_by_role("link")).to_have_text("1 file changed")
                # A link to an entry in the run opens it there.
                await page.evaluate("location.hash = '#/s/long/e/30'")
                await expect(page.locator(".row.marked")).to_contain_text("Read 29.py")
                await page.evaluate("location.hash = '#/s/long/e/1'")
                await run.click()
                await expect(page.locator(".tool")).to_have_count(1)
        finally:
            await site.stop()


async def test_a_turn_that_was_stopped_is_continued_retried_or_begun_again(tmp_path: Path) -> None:
    async with meeting(tmp_path, "waits") as page:
        await new_session(page)
        await prompt(page, "first *words*")
        await expect(page.locator(".turnline")).to_contain_text("Working…")
        await page.locator(".said.agent").first.wait_for()
        await page.get_by_role("button", name="Stop", exact=True).click()
        await finished(page)
        await page.get_by_role("button", name="Retry", exact=True).click()
        await expect(page.locator(".said.user")).to_have_count(2)
        await page.get_by_role("button", name="Stop", exact=True).click()
        await finished(page)
        await page.get_by_role("button", name="Start again in a new session").click()
        await expect(page.get_by_label("First prompt")).to_have_value("first *words*")


async def test_the_thread_shows_the_colours_of_a_terminal(gallery: Site) -> None:
    async with looking(gallery) as page:
        await page.evaluate("location.hash = '#/s/fix'")
        passed = page.locator(".tail span span", has_text="6 passed")
        await expect(passed).to_have_css("color", "rgb(127, 214, 148)")
        await expect(page.locator(".turnfoot")).to_contain_text("5.2k tokens")


async def test_keys_lead_out_of_the_prompt_back_to_the_last_one_and_through_the_list(
    gallery: Site,
) -> None:
    async with looking(gallery) as page:
        await page.evaluate("location.hash = '#/s/fix'")
        # The field is there before the thread that it takes the last prompt from.
        await page.locator(".row").first.wait_for()
        field = page.locator("#composer")
        await field.focus()
        await page.keyboard.press("ArrowUp")
        last = "`total('1,,2')` fails. Please mend it and run the tests."
        await expect(field).to_have_value(last)
        await field.fill("")
        await page.keyboard.press("Escape")
        await expect(page.locator(".scroller")).to_be_focused()
        assert await page.locator(".session > a[tabindex='0']").count() == 1
        assert await page.locator(".rowmenu > button[tabindex='0']").count() == 0
        await page.locator(".session > a[tabindex='0']").focus()
        await page.keyboard.press("Home")
        await expect(page.locator(".session > a").first).to_be_focused()
        await page.keyboard.press("ArrowDown")
        await expect(page.locator(".session > a").nth(1)).to_be_focused()
        await page.keyboard.press("ArrowRight")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("button", name="Rename")).to_be_visible()


async def test_the_skip_link_lands_on_every_screen(gallery: Site) -> None:
    async with looking(gallery) as page:
        for screen in ("", "inbox", "grid", "agents", "policies", "usage", "s/fix", "s/fix/replay"):
            await page.evaluate(f"location.hash = '#/{screen}'")
            await page.locator("main").first.wait_for()
            skip = page.get_by_role("link", name="Skip to content")
            await skip.focus()
            await page.keyboard.press("Enter")
            where = "document.activeElement.closest('main') !== null"
            assert await page.evaluate(where), screen


async def test_the_palette_closes_over_a_link_and_leaves_out_where_one_is(gallery: Site) -> None:
    async with looking(gallery) as page:
        await page.evaluate("location.hash = '#/s/fix'")
        await page.locator(".row").first.wait_for()
        await page.keyboard.press("Control+k")
        results = page.get_by_role("listbox", name="Results").get_by_role("option")
        await expect(results.filter(has_text="Write the chapter")).to_have_count(1)
        await expect(results.filter(has_text="Fix the parser")).to_have_count(0)
        await page.evaluate("location.hash = '#/inbox'")
        await expect(page.locator("dialog")).to_have_count(0)


async def test_groups_fold_with_a_count_and_a_filter_begins_at_the_top(gallery: Site) -> None:
    async with looking(gallery) as page:
        group = page.get_by_role("button", name="parser 2")
        await group.click()
        await expect(group).to_have_attribute("aria-expanded", "false")
        await expect(page.locator(".session")).to_have_count(1)
        await group.click()
        await expect(page.locator(".session")).to_have_count(3)


async def test_a_toast_covers_no_field_and_a_lost_server_is_said_at_the_prompt(
    tmp_path: Path,
) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        await new_session(page)
        await page.get_by_role("button", name="Find in transcript").focus()
        await page.evaluate("navigator.clipboard.writeText = () => Promise.resolve()")
        await site.stop(signal.SIGKILL)
        notice = page.locator(".composer .notice")
        await expect(notice).to_contain_text("What you type is kept")
        field = page.locator("#composer")
        await field.fill("Kept")
        await page.keyboard.press("Enter")
        await expect(field).to_have_value("Kept")
        await expect(page.get_by_role("button", name="Send", exact=True)).to_be_disabled()
        await page.locator(".session").first.hover()
        await page.locator(".rowmenu > button").first.click()
        await page.get_by_role("button", name="Archive", exact=True).click()
        toast = await page.locator(".toast").bounding_box()
        box = await page.locator(".composer").bounding_box()
        assert toast is not None
        assert box is not None
        assert toast["y"] + toast["height"] < box["y"]
        await site.start()
        await expect(notice).to_have_count(0)
        await page.keyboard.press("Escape")
        await field.press("Enter")
        await expect(page.locator(".said.user")).to_contain_text("Kept")


async def test_the_pane_is_as_wide_as_one_makes_it(gallery: Site) -> None:
    async with looking(gallery) as page:
        await page.evaluate("location.hash = '#/s/fix'")
        edge = page.get_by_role("separator", name="Width of the side pane")
        await expect(edge).to_have_attribute("aria-valuenow", "420")
        await edge.press("ArrowLeft")
        await expect(page.locator(".pane")).to_have_css("width", "460px")
        await page.reload()
        await expect(edge).to_have_attribute("aria-valuenow", "460")

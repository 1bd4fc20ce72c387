"""Looking back, side by side, at what was told: on sessions that have something of everything."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from page.browsing import browsed, looking, new_session, nobody_after, person
from page.seeding import told_session
from page.site import Site, prepared, served
from playwright.async_api import Page, Route, expect

from dragoman.session import events as e
from dragoman.session.content import Diff, TerminalItem, Text

_Wrong = Callable[[dict[str, Any]], dict[str, Any]]


async def test_a_session_is_looked_back_at_on_a_time_line(gallery: Site) -> None:
    async with looking(gallery) as page:
        await page.evaluate("location.hash = '#/s/fix/replay'")
        rows, position = page.locator(".row"), page.get_by_label("Position")
        await expect(rows.last).to_contain_text("The parser failed")
        await position.fill("5")
        await expect(rows).to_have_count(1)
        await expect(rows).to_contain_text("Please mend it")
        await page.get_by_label("Next event").click()
        await expect(rows).to_have_count(2)
        await expect(page.locator(".turnline")).to_have_text(
            "Working…"
        )  # how long ago says nothing
        await page.get_by_role("button", name="16×").click()
        await expect(rows.last).to_contain_text("The parser failed")


async def test_keys_lead_through_the_turns_and_marks_of_a_time_line(gallery: Site) -> None:
    async with looking(gallery) as page:
        await page.evaluate("location.hash = '#/s/fix/replay'")
        rows, position = page.locator(".row"), page.get_by_label("Position")
        await expect(rows.last).to_contain_text("The parser failed")
        await expect(page.locator(".tick.turn").first).to_be_visible()
        await expect(page.locator(".tick.edit").first).to_be_visible()
        await position.fill("0")
        await position.press("Shift+ArrowRight")
        await expect(rows.last).to_contain_text("Please mend it")
        begun = int(await position.input_value())
        await position.press("ArrowRight")
        await expect(position).to_have_value(str(begun + 1))
        await position.press("Alt+ArrowLeft")
        await expect(position).to_have_value(str(begun))


async def test_an_answer_has_its_code_links_and_thoughts(gallery: Site) -> None:
    async with looking(gallery) as page:
        await page.evaluate("location.hash = '#/s/fix'")
        answer = page.locator(".said.agent")
        await expect(answer.locator("pre .hljs-number").first).to_have_text("1")
        await expect(answer.get_by_role("link")).to_have_attribute("target", "_blank")
        await expect(answer.locator(".target")).to_have_text("(docs.python.org)")
        await page.evaluate("document.querySelector('.scroller').scrollTop = 0")
        thought = page.locator(".thought")
        await expect(thought.locator(".markdown")).to_have_count(0)
        await thought.get_by_role("button").click()
        await expect(thought.locator(".markdown")).to_contain_text("I look at the file first")
        await page.keyboard.press("Control+k")
        await page.keyboard.type("write the chapter")
        await page.keyboard.press("Enter")
        await expect(page.locator(".head h1")).to_contain_text("Write the chapter")
        await page.evaluate("document.querySelector('.scroller').scrollTop = 0")
        await expect(page.locator(".said.user").first).to_contain_text("o.md")


async def test_a_grid_shows_sessions_side_by_side(gallery: Site) -> None:
    async with looking(gallery) as page:
        await page.evaluate("location.hash = '#/grid'")
        await expect(page.locator(".tile")).to_have_count(3)
        await expect(page.locator(".tile .card.permission")).to_have_count(1)
        ids = await page.evaluate("[...document.querySelectorAll('[id]')].map((e) => e.id)")
        assert len(ids) == len(set(ids))


async def test_what_went_wrong_is_told_as_it_was(gallery: Site) -> None:
    async with looking(gallery) as page:
        await page.evaluate("location.hash = '#/s/chapter'")
        await expect(page.locator(".reset")).to_contain_text(
            "knows nothing of the transcript above"
        )
        await expect(page.locator(".notice.error")).to_have_text(
            "The turn was cut short: the agent ended with exit code 1: model is overloaded"
        )
        await expect(page.locator(".notice.warning")).to_contain_text("Rate limit")
        await expect(page.locator(".meter.high").first).to_contain_text("nearly full")
        await expect(page.locator(".picture img")).to_be_visible()
        await page.get_by_role("button", name="Play", exact=True).click()
        await expect(page.get_by_role("button", name="Stop", exact=True)).to_be_visible()
        await page.get_by_role("button", name="Context compacted").click()
        await expect(page.locator(".compaction")).to_contain_text("three parts")


async def test_a_decision_says_why(gallery: Site) -> None:
    async with looking(gallery) as page:
        await page.evaluate("location.hash = '#/s/fix'")
        await page.get_by_role("tab", name="Info").click()
        await expect(page.locator(".decisions")).to_contain_text("write parse.py")
        await expect(page.locator(".decisions")).to_contain_text("a rule of yours")
        await expect(page.locator(".chart")).to_contain_text("$0.41")


async def test_a_link_leads_to_an_entry(gallery: Site) -> None:
    async with looking(gallery) as page:
        await page.evaluate("location.hash = '#/s/fix/e/3'")
        await expect(page.locator(".row.marked")).to_contain_text("Read parse.py")


async def test_sub_agents_stand_where_they_were_begun(gallery: Site) -> None:
    async with looking(gallery) as page:
        await page.evaluate("location.hash = '#/s/chapter'")
        child = page.get_by_role("group", name="Subagent")
        await expect(child).to_contain_text("Check the spelling")
        # It was at work when the agent lost its memory, and nobody will tell how that ended.
        await expect(child.locator(".status")).to_contain_text("cancelled")
        await expect(child.locator(".spinner")).to_have_count(0)
        row = page.locator(".row", has=child)
        await expect(row).to_contain_text("Context compacted")
        await child.get_by_role("button").click()
        await expect(child).to_contain_text("the dictionary of the house")
        message = page.locator(".peer")
        await expect(message).to_contain_text("agent-1 → Check the spelling")
        nested = page.locator(".row[data-depth='1']")
        await expect(nested).to_contain_text("Search for")
        outer = page.locator(".tool", has_text="Task: gather sources")
        left, right = await outer.bounding_box(), await nested.locator(".tool").bounding_box()
        assert left is not None
        assert right is not None
        assert right["x"] > left["x"] + 10


async def test_what_was_spent_today_stands_on_top(gallery: Site) -> None:
    async with looking(gallery) as page:
        await expect(page.locator(".spent")).to_contain_text("$1.83 today")


async def test_the_pane_tells_where_a_session_runs_and_what_its_agent_can_do(
    tmp_path: Path,
) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        await new_session(page)
        await page.get_by_role("tab", name="Info").click()
        pane = page.get_by_role("complementary", name="Side pane")
        await expect(pane.locator("dl")).to_contain_text("this server")
        await expect(pane.get_by_label("Capabilities")).to_contain_text("load")
        await expect(pane).to_contain_text("protocol 1")


async def test_answers_and_links_are_copied(gallery: Site) -> None:
    async with looking(gallery) as page:
        await nobody_after(page).context.grant_permissions(["clipboard-read", "clipboard-write"])
        await page.evaluate("location.hash = '#/s/fix'")
        row = page.locator(".row", has_text="The parser failed")
        await row.hover()
        await row.get_by_label("Copy text").click()
        await expect(page.locator(".toast")).to_have_text("Text copied.")
        assert "empty parts" in await page.evaluate("navigator.clipboard.readText()")
        await row.get_by_label("Copy code").click()
        await expect(page.locator(".toast")).to_have_text("Code copied.")
        assert (await page.evaluate("navigator.clipboard.readText()")).startswith(">>> parse")
        await row.get_by_label("Copy link").click()
        await expect(page.locator(".toast")).to_have_text("Link copied.")
        link = await page.evaluate("navigator.clipboard.readText()")
        await page.goto("about:blank")
        await page.goto(link)
        await expect(page.locator(".row.marked")).to_contain_text("The parser failed")


async def test_the_policies_screen_says_why_something_was_allowed(gallery: Site) -> None:
    async with looking(gallery) as page:
        await page.evaluate("location.hash = '#/policies'")
        why = page.get_by_role("region", name="Recent decisions")
        await expect(why).to_contain_text("write parse.py")
        await expect(why).to_contain_text("a rule of yours")
        await why.get_by_role("link", name="Fix the parser").click()
        await expect(page.locator(".head h1")).to_contain_text("Fix the parser")


async def test_the_list_is_filtered_by_what_sessions_do(gallery: Site) -> None:
    async with looking(gallery) as page:
        filters = page.get_by_role("group", name="Filter")
        await filters.get_by_role("button", name="waiting").click()
        await expect(page.locator(".session .title")).to_have_text(["Prepare release 2.1"])
        await filters.get_by_role("button", name="running").click()
        await expect(page.locator(".sidebar")).to_contain_text("No session is running.")
        await filters.get_by_role("button", name="finished").click()
        await expect(page.locator(".session")).to_have_count(2)
        await page.evaluate("location.hash = '#/s/release'")
        pane = page.get_by_role("complementary", name="Side pane")
        await expect(pane.locator("li", has_text="Tag and build")).to_contain_text("high")


async def test_the_tokens_of_the_last_turn_are_known_after_a_reload(gallery: Site) -> None:
    async with looking(gallery) as page:
        await page.evaluate("location.hash = '#/s/fix'")
        for _ in range(2):
            # The tabs move aside for their counts, which come with the session.
            await expect(page.get_by_role("tab", name="Terminals 1")).to_be_visible()
            await page.get_by_role("tab", name="Info").click()
            await expect(page.locator(".info dl")).to_contain_text("4.3k in, 900 out")
            await page.reload()


async def test_nothing_of_the_past_can_be_answered(gallery: Site) -> None:
    async with looking(gallery) as page:
        await page.evaluate("location.hash = '#/s/release/replay'")
        await expect(page.locator(".card.permission")).to_have_count(1)
        for name in ("Allow once", "Always reject", "Decline"):
            await expect(page.get_by_role("button", name=name)).to_be_disabled()


async def test_a_name_a_shell_line_and_what_changes_nothing_are_shown_as_they_are(
    tmp_path: Path,
) -> None:
    site = prepared(tmp_path)
    same = Diff(str(site.workspace / "a.txt"), "same\n", old_text="same\n")
    line = "echo SHELL && pwd"
    async with told_session(
        site.home, "one", site.workspace, title="A title", name="nightly"
    ) as it:
        await it.tell(
            [
                e.SessionOpened("x", str(site.workspace), "new", agent="demo"),
                e.TurnStarted("t", [Text("Go")]),
                e.TerminalStarted("x", [line], str(site.workspace)),
                e.ToolCallUpdated("c", status="completed", content=[same, TerminalItem("x")]),
                e.TurnEnded("t", "end_turn"),
            ]
        )
    await site.start()
    try:
        async with browsed() as browser, person(browser, site) as page:
            await expect(page.locator(".session .tag.name")).to_have_text("nightly")
            await page.locator(".session a").click()
            await expect(page.locator(".head .tag.name")).to_have_text("nightly")
            await expect(page.locator(".toolbody .term .argv")).to_have_text(line)
            await expect(page.locator(".toolbody .diff .counts")).to_have_text("No change")
    finally:
        await site.stop()


@asynccontextmanager
async def _told_wrong(gallery: Site, address: str, wrong: _Wrong) -> AsyncGenerator[Page]:
    """The page, where one answer of the server is not what the page knows how to draw."""

    async def spoilt(route: Route) -> None:
        answer = await route.fetch()
        await route.fulfill(response=answer, json=wrong(await answer.json()))

    async with browsed() as browser:
        page = await browser.new_page()
        await page.route(address, spoilt)
        await page.goto(f"{gallery.url}#token={gallery.token}")
        await page.locator(".session").first.wait_for()
        yield page


async def test_a_bar_that_cannot_be_drawn_leaves_the_rest_of_the_page(gallery: Site) -> None:
    async with _told_wrong(gallery, "**/api/costs*", lambda _: {"costs": 7}) as page:
        failed = page.locator(".topbar .failedpart")
        await expect(failed).to_contain_text("The cost could not be displayed.")
        await expect(page.locator(".topbar a[href='#/inbox']")).to_be_visible()
        await page.evaluate("location.hash = '#/s/fix'")
        await expect(page.locator(".row").last).to_contain_text("The parser failed")
        await expect(page.locator("#composer")).to_be_visible()


async def test_an_entry_that_cannot_be_drawn_leaves_the_thread(gallery: Site) -> None:
    def untitled(told: dict[str, Any]) -> dict[str, Any]:
        for entry in told.get("entries", ()):
            if entry["type"] == "tool_call":
                entry["title"] = 7
        return told

    async with _told_wrong(gallery, "**/api/sessions/fix*", untitled) as page:
        await page.evaluate("location.hash = '#/s/fix'")
        await expect(page.locator(".row").last).to_contain_text("The parser failed")
        await expect(page.locator(".row .failedpart").first).to_contain_text("The entry could not")
        await expect(page.locator("#composer")).to_be_visible()

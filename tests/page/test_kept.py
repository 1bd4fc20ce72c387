"""What a person typed, chose or looks at stays, whatever else happens meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from page.browsing import answer, browsed, new_session, nobody_after, person, prompt, ready
from page.seeding import Teller, told_session
from page.site import Site, prepared, served
from playwright.async_api import FilePayload, Page, Route, expect

from dragoman.session import events as e
from dragoman.session.content import Text
from dragoman.session.facts import Decision, PermissionOption

_NOTE: FilePayload = {"name": "note.txt", "mimeType": "text/plain", "buffer": b"hello!"}


@asynccontextmanager
async def _told(folder: Path, *names: str) -> AsyncGenerator[tuple[Page, dict[str, Teller]]]:
    """The page, on sessions that the test tells itself."""
    site = prepared(folder)
    async with AsyncExitStack() as stack:
        tellers = {
            name: await stack.enter_async_context(
                told_session(site.home, name, site.workspace, title=name)
            )
            for name in names
        }
        for teller in tellers.values():
            await teller.tell([_opened(site), e.TurnStarted("t", [Text("Go")])])
        await site.start()
        stack.push_async_callback(site.stop)
        browser = await stack.enter_async_context(browsed())
        yield await stack.enter_async_context(person(browser, site)), tellers


def _opened(site: Site) -> e.Event:
    return e.SessionOpened("a", str(site.workspace), "new", agent="demo")


def _asks(request: str) -> e.Event:
    options = [PermissionOption("yes", "Allow", "allow_once")]
    return e.PermissionRequested(request, options, title=request, operation="execute")


async def test_a_replay_goes_through_what_happened_and_answers_nothing(tmp_path: Path) -> None:
    async with _told(tmp_path, "one") as (page, tellers):
        await tellers["one"].tell(
            [
                e.AgentMessage(Text("Alpha"), "m"),
                e.AgentMessage(Text(" beta"), "m"),
                e.ToolCallUpdated("c", title="Look", status="pending"),
                e.ToolCallUpdated("c", status="completed"),
                _asks("Run it"),
            ],
            status="waiting",
        )
        await page.evaluate("location.hash = '#/s/one/replay'")
        await expect(page.locator(".card").get_by_role("button", name="Allow")).to_be_disabled()
        await page.get_by_label("Position").fill("3")
        said, on = page.locator(".said.agent"), page.get_by_label("Next event")
        await expect(said).to_have_text("Alpha")
        await on.click()
        await expect(said).to_have_text("Alpha beta")
        await on.click()
        await expect(page.locator(".tool")).to_contain_text("pending")
        await on.click()
        await expect(page.locator(".tool")).not_to_contain_text("pending")


# Answers whatever appears, in the very moment in which it does.
_HASTY = """(request) => new Promise((resolve) => {
    new MutationObserver((_, observer) => {
        const button = document.querySelector(`[data-request='${request}'] .answers button`)
        if (button === null) return
        observer.disconnect()
        button.click()
        resolve()
    }).observe(document.body, { subtree: true, childList: true })
})"""


async def test_questions_keep_their_order_and_take_no_answer_that_came_too_soon(
    tmp_path: Path,
) -> None:
    async with _told(tmp_path, "one", "two") as (page, tellers):
        sent: list[str] = []
        nobody_after(page).on(
            "request", lambda asked: sent.append(asked.url) if asked.method == "POST" else None
        )
        await page.evaluate("location.hash = '#/inbox'")
        await tellers["one"].tell([_asks("first")], status="waiting")
        await page.locator("[data-request=first]").wait_for()
        await tellers["two"].tell([_asks("second")], status="waiting")
        waiting, title = page.locator(".asklist .brief"), page.locator(".asked .card .title")
        await expect(waiting).to_have_text(["first", "second"])
        await tellers["one"].tell([e.AgentMessage(Text("Still here"))])
        await expect(waiting).to_have_text(["first", "second"])
        # The one that is there stays while others come.
        await expect(title).to_have_text("first")
        # One that takes the place of another is not ready at once, although it was there before.
        decision = e.PermissionSettled("first", "yes", Decision("allow", "someone else"))
        hasty = asyncio.create_task(page.evaluate(_HASTY, "second"))
        await tellers["one"].tell([decision], status="running")
        await hasty
        await expect(title).to_have_text("second")
        await ready(page.locator("[data-request=second]"))
        assert sent == []


async def test_a_form_stays_filled_in_while_one_looks_elsewhere(tmp_path: Path) -> None:
    async with _told(tmp_path, "one") as (page, tellers):
        schema = {"type": "object", "properties": {"name": {"type": "string", "title": "Name"}}}
        await tellers["one"].tell(
            [e.ElicitationRequested("q", "Who?", "form", schema=schema)], status="waiting"
        )
        await page.evaluate("location.hash = '#/s/one'")
        name = page.locator(".card").get_by_label("Name")
        await name.fill("Ada")
        await page.evaluate("location.hash = '#/agents'")
        await page.locator(".agents").wait_for()
        await page.evaluate("location.hash = '#/inbox'")
        await expect(name).to_have_value("Ada")


async def test_a_queued_prompt_is_edited_with_its_lines_and_files(tmp_path: Path) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        session = await new_session(page)
        await prompt(page, "Write something down")
        await page.locator(".card.permission").wait_for()
        await page.get_by_label("Files to attach").set_input_files(_NOTE)
        await expect(page.locator(".attachments .spinner")).to_have_count(0)
        await page.evaluate("location.hash = '#/inbox'")
        await page.get_by_role("main", name="Inbox").wait_for()
        await page.evaluate("(id) => { location.hash = `#/s/${id}` }", session)
        await expect(page.locator(".attachments")).to_contain_text("note.txt")
        await prompt(page, "line one\nline two")
        await page.get_by_label("Edit queued prompt").click()
        field = page.get_by_label("Queued prompt", exact=True)
        await expect(field).to_have_value("line one\nline two")
        await field.fill("line one\nline 2")
        await field.press("Enter")
        await expect(page.locator(".queue")).to_contain_text("line 2 and 1 file")
        # The turn ends while it is changed once more: then it goes as it is, and the change stays.
        await page.get_by_label("Edit queued prompt").click()
        await field.fill("line one\nline three")
        await answer(page, "Reject")
        await answer(page, "Reject")
        await expect(page.locator("#composer")).to_have_value("line one\nline three")
        await expect(page.locator(".toast")).to_contain_text("The edit is now in the composer")
        said = page.locator(".said.user").last
        await expect(said).to_contain_text("line 2")
        await expect(said).to_contain_text("note.txt")


async def test_what_could_not_be_sent_is_given_back_beside_what_was_typed_since(
    tmp_path: Path,
) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        session = await new_session(page)
        typed = asyncio.Event()

        async def fail(route: Route) -> None:
            await typed.wait()
            await route.abort("connectionrefused")

        await nobody_after(page).route("**/prompt", fail)
        await page.get_by_label("Files to attach").set_input_files(_NOTE)
        await expect(page.locator(".attachments .spinner")).to_have_count(0)
        await prompt(page, "prompt A")
        await page.locator("#composer").press_sequentially("next")
        typed.set()
        await expect(page.locator("#composer")).to_have_value("prompt A\n\nnext")
        await expect(page.locator(".attachments")).to_contain_text("note.txt")
        await page.get_by_label("Fork session").click()
        await page.get_by_label("First prompt").fill("Say it again")
        await page.get_by_role("button", name="Fork", exact=True).click()
        await page.wait_for_url(lambda url: "#/s/" in url and session not in url)
        await expect(page.locator("#composer")).to_have_value("Say it again")


# A file dropped on something; whether the browser would open it.
_DROP = """(target) => {
    const data = new DataTransfer()
    data.items.add(new File(['words'], 'dropped.txt', { type: 'text/plain' }))
    const drop = new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true })
    return document.querySelector(target).dispatchEvent(drop)
}"""


async def test_a_file_is_attached_by_dropping_it_on_the_thread(tmp_path: Path) -> None:
    async with _told(tmp_path, "one") as (page, _):
        await page.evaluate("location.hash = '#/s/one'")
        await page.locator(".row").wait_for()
        assert await page.evaluate(_DROP, ".scroller") is False
        await expect(page.locator(".attachments li")).to_have_count(1)
        assert await page.evaluate(_DROP, ".sidebar") is False
        await expect(page.locator(".attachments li")).to_have_count(1)


async def test_a_grid_keeps_its_tiles_while_others_begin_to_run(tmp_path: Path) -> None:
    names = [f"session-{number}" for number in range(8)]
    async with _told(tmp_path, *names) as (page, tellers):
        for name in names:
            await tellers[name].tell([e.TurnEnded("t")], status="interrupted")
        await expect(page.locator(".sidebar .status.interrupted")).to_have_count(len(names))
        await page.evaluate("location.hash = '#/grid'")
        tiles = page.locator(".tile header a")
        await expect(tiles).to_have_text(names[2:])
        field = page.locator(".tile").first.get_by_label("Prompt", exact=True)
        await field.last.press_sequentially("a")
        for name in names[:2]:
            await tellers[name].tell([e.TurnStarted("u", [Text("Go")])], status="running")
        await expect(page.locator(".gridhead")).to_contain_text("2 busier sessions not shown")
        await page.keyboard.type("nd")
        await expect(field.last).to_have_value("and")
        await expect(tiles).to_have_text(names[2:])
        other = page.get_by_label("Show another session here").last
        await other.select_option(label=names[0])
        await expect(tiles).to_have_text([*names[2:7], names[0]])
        await page.get_by_role("button", name="Show the busiest sessions").click()
        await expect(tiles).to_have_count(6)
        await expect(tiles.nth(1)).to_have_text(names[1])

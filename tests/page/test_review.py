"""A review on its own screen: an agent that writes by itself is read, kept, put back, commented on
and told, and the session is rewound."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from page.browsing import browsed, new_session, person, prompt, ran, settled
from page.site import Site, prepared, scripted
from page.test_accessible import AXE, examine
from playwright.async_api import Page, expect

_APP = "".join(f"line {number}\n" for number in range(1, 41))


@asynccontextmanager
async def _reviewing(
    folder: Path, text: str, *, size: tuple[int, int] = (1440, 900), refused: int = 0
) -> AsyncGenerator[tuple[Site, Page, str]]:
    """After a turn with this prompt; the site, the page and the session's id."""
    site = prepared(folder, *scripted(folder, "edits"))
    (site.workspace / "src").mkdir()
    (site.workspace / "src/app.py").write_text(_APP)
    await site.start()
    try:
        async with browsed() as browser, person(browser, site, size=size, refused=refused) as page:
            if size[0] < 768:
                await page.get_by_role("button", name="Sessions").click()
            session = await new_session(page)
            await ran(page, text)
            yield site, page, session
    finally:
        await site.stop()


async def _open(page: Page, session: str) -> None:
    await page.evaluate(f"location.hash = '#/s/{session}/review'")
    await page.locator(".filecard").first.wait_for()


async def test_hunks_are_kept_put_back_and_returned(tmp_path: Path) -> None:
    async with _reviewing(tmp_path, "Change") as (site, page, session):
        await _open(page, session)
        app, path = page.get_by_role("region", name="src/app.py"), site.workspace / "src/app.py"
        hunks = app.locator(".hunk")
        await expect(hunks).to_have_count(2)
        await expect(app.locator(".filehead")).to_contain_text("by the agent")
        await expect(page.get_by_role("alert")).to_contain_text(
            "A protected file was written: .envrc"
        )
        await hunks.first.get_by_role("button", name="Put back").click()
        await expect(hunks).to_have_count(1)
        assert path.read_text() == _APP.replace("line 34\n", "line thirty-four\n")
        await hunks.get_by_role("button", name="Keep").click()
        viewed = app.get_by_label("Viewed")
        await expect(viewed).to_be_checked()
        await page.reload()
        await expect(viewed).to_be_checked()
        await expect(page.get_by_text("1 of 4 viewed")).to_be_visible()
        await page.get_by_role("button", name="1 put back").click()
        await page.get_by_role("list", name="Put back").get_by_role("button", name="Undo").click()
        # What was looked at is another version now.
        await expect(viewed).not_to_be_checked()
        await expect(hunks).to_have_count(2)
        await expect(hunks.last).to_contain_text("kept")
        assert "def total" in path.read_text()
        await page.evaluate(f"location.hash = '#/s/{session}'")
        notice = page.locator(".notice.info").first
        await expect(notice.locator(".told")).to_have_text("src/app.py was restored")
        icon = await notice.locator(".icon").bounding_box()
        words = await notice.locator(".told").bounding_box()
        assert icon is not None
        assert words is not None
        assert icon["x"] + icon["width"] < words["x"]  # before them, not above


async def test_comments_are_one_prompt_and_say_when_their_code_has_moved_on(
    tmp_path: Path,
) -> None:
    async with _reviewing(tmp_path, "Change") as (_, page, session):
        await _open(page, session)
        app = page.get_by_role("region", name="src/app.py")
        await app.get_by_label("Comment on line 2").last.click()
        await app.get_by_label("Comment on line 3").first.click(modifiers=["Shift"])
        field = page.get_by_role("textbox", name="Comment on lines 2 to 3")
        await field.fill("Name it sum_of.")
        await field.press("Control+Enter")
        second = app.locator(".hunk").last
        await second.get_by_role("button", name="Comment", exact=True).click()
        await page.get_by_role("textbox", name="Comment on line 35").fill("In digits, please.")
        await page.get_by_role("button", name="Add to review").click()
        await page.reload()
        await expect(app.locator("article.comment")).to_have_count(2)
        await second.get_by_role("button", name="Put back").click()
        stale = app.locator("article.comment.stale")
        await expect(stale).to_contain_text("The code has changed since")
        await expect(stale).to_contain_text("+line thirty-four")
        await page.get_by_role("button", name="Send review").click()
        said = page.locator(".said.user").last
        await expect(said).to_contain_text("Name it sum_of.")
        assert (await said.inner_text()).partition("Please")[2].strip() == _SAID
        await expect(page.locator(".said.agent").last).to_contain_text("I read: Please address")
        await _open(page, session)
        await expect(page.locator("article.comment")).to_have_count(0)


_SAID = """address these comments on your changes.

src/app.py:2-3:
```diff
+def total(prices):
+    return sum(prices)
```
Name it sum_of.

src/app.py:35:
```diff
-line 34
+line thirty-four
```
(This code has changed since the comment was written.)
In digits, please.

I put these changes back, so the files are as they were before:
- src/app.py:35"""


async def test_keys_go_from_hunk_to_hunk_and_decide(tmp_path: Path) -> None:
    async with _reviewing(tmp_path, "Change") as (site, page, session):
        await _open(page, session)
        hunks = page.get_by_role("region", name="src/app.py").locator(".hunk")
        await page.keyboard.press("j")
        await expect(hunks.first).to_be_focused()
        await page.keyboard.press("j")
        await expect(hunks.last).to_be_focused()
        await page.keyboard.press("c")
        await expect(page.get_by_role("textbox", name="Comment on line")).to_be_focused()
        await page.keyboard.press("Escape")
        await hunks.last.focus()
        await page.keyboard.press("k")
        await page.keyboard.press("y")
        await expect(hunks.first).to_contain_text("kept")
        await page.keyboard.press("j")
        await page.keyboard.press("u")
        await expect(hunks).to_have_count(1)
        assert "thirty-four" not in (site.workspace / "src/app.py").read_text()
        await page.keyboard.press("]")
        await page.keyboard.press("v")
        await expect(page.get_by_text("1 of 4 viewed")).to_be_visible()


async def test_a_put_back_waits_for_the_end_of_the_turn(tmp_path: Path) -> None:
    async with _reviewing(tmp_path, "Change") as (site, page, session):
        await prompt(page, "Wait")
        await expect(page.locator(".said.agent").last).to_contain_text("Waiting.")
        await _open(page, session)
        await page.get_by_label("Changed in").select_option(label="Change")
        protected = page.get_by_role("region", name=".envrc")
        await protected.get_by_role("button", name="Put back file").click()
        await expect(protected.locator(".filehead")).to_contain_text("put back after the turn")
        await page.get_by_label("Changed in").select_option(label="the whole session")
        app = page.get_by_role("region", name="src/app.py")
        await app.get_by_role("button", name="Put back file").click()
        await expect(page.locator(".toast")).to_contain_text("put back when it ends")
        await expect(app.locator(".filehead")).to_contain_text("put back after the turn")
        await page.reload()
        await expect(app.locator(".filehead")).to_contain_text("put back after the turn")
        await page.get_by_role("button", name="2 put back").click()
        listed = page.get_by_role("list", name="Put back").get_by_role("listitem")
        await expect(listed.get_by_text("after the turn")).to_have_count(2)
        assert "def total" in (site.workspace / "src/app.py").read_text()
        (site.workspace / ".envrc").write_text("another\n")  # so this one is refused
        (site.workspace / "go-on").touch()
        await expect(app).to_have_count(0)
        assert (site.workspace / "src/app.py").read_text() == _APP
        await expect(listed).to_have_count(1)
        await expect(listed.get_by_role("button", name="Undo")).to_be_visible()
        await page.get_by_role("button", name="Send review").click()
        said = page.locator(".said.user").last
        await expect(said).to_contain_text("so the files are as they were before:\n- src/app.py")
        await expect(said).not_to_contain_text(".envrc")


async def test_a_rewind_goes_back_to_a_message_and_can_be_undone(tmp_path: Path) -> None:
    async with _reviewing(tmp_path, "Change the app") as (site, page, session):
        await page.locator(".said.user").hover()
        await page.get_by_role("button", name="Rewind to before this message").click()
        dialog = page.get_by_role("dialog", name="Rewind to before this message")
        await expect(dialog).to_contain_text("A new session begins")
        await dialog.get_by_role("button", name="Rewind").click()
        said = "The agent remembers nothing: nothing was said before"
        await expect(page.locator(".toast")).to_contain_text(said)
        await expect(page.locator("#composer")).to_have_value("Change the app")
        assert session not in page.url
        assert (site.workspace / "src/app.py").read_text() == _APP
        assert not (site.workspace / ".envrc").exists()
        await page.get_by_role("tab", name="Changes").click()
        await page.get_by_role("button", name="1 put back").click()
        await page.get_by_role("button", name="Undo").click()
        await expect(page.locator(".toast")).to_contain_text("there again")
        assert "def total" in (site.workspace / "src/app.py").read_text()
        assert (site.workspace / ".envrc").exists()


async def test_two_thousand_files_are_a_few_on_the_screen(tmp_path: Path) -> None:
    async with _reviewing(tmp_path, "Many") as (_, page, session):
        await _open(page, session)
        await expect(page.get_by_text("2000 files changed")).to_be_visible()
        await page.get_by_label("Filter files").fill("file1987")
        await page.get_by_role("navigation", name="Changed files").get_by_text("file1987").click()
        await expect(page.get_by_role("region", name="file1987.txt")).to_be_focused()
        assert await page.locator(".filecard").count() < 60
        assert await page.locator(".treerow").count() < 80


async def test_names_and_contents_that_would_run_are_text(tmp_path: Path) -> None:
    async with _reviewing(tmp_path, "Odd") as (_, page, session):
        await _open(page, session)
        for _step in range(12):
            await page.locator(".files").evaluate("(box) => box.scrollBy(0, 600)")
            await settled(page)
        assert await page.evaluate("window.ran") is None
        assert await page.locator(".files script, .files img, .files iframe").count() == 0


@pytest.mark.parametrize("width", [390, 1440])
async def test_a_review_has_no_serious_issue_and_stays_in_the_window(
    tmp_path: Path, width: int
) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: run npm ci in the folder web")
    async with _reviewing(tmp_path, "Change", size=(width, 844)) as (_, page, session):
        await page.evaluate(AXE.read_text())
        await _open(page, session)
        app = page.get_by_role("region", name="src/app.py")
        await app.get_by_role("button", name="Comment", exact=True).first.click()
        await page.get_by_role("textbox", name="Comment on lines").fill("Why?")
        await page.get_by_role("button", name="Add to review").click()
        await page.get_by_role("button", name="1 comment", exact=True).click()
        for scheme in ("light", "dark"):
            await page.emulate_media(color_scheme=scheme)
            await examine(page, f"a review, {scheme}")
        if width > 700:
            await page.get_by_role("button", name="Side by side").click()
            await expect(page.locator(".pair").first).to_be_visible()
            await examine(page, "side by side")
        wide = "document.documentElement.scrollWidth > innerWidth"
        assert not await page.evaluate(wide)
        acts = await app.locator(".filehead [data-act]").all()
        boxes = [box for each in acts if (box := await each.bounding_box())]
        middles = [box["y"] + box["height"] / 2 for box in boxes]
        assert len(middles) == 3
        assert max(middles) - min(middles) < 8  # on one line, however narrow
        await app.locator(".hunk").first.get_by_role("button", name="Put back").click()
        await expect(page.get_by_role("button", name="1 comment, 1 put back")).to_be_visible()
        await expect(page.get_by_role("button", name="Send review")).to_be_in_viewport(ratio=1)

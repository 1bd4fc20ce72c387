"""Where one writes: commands, files, attachments, modes, and the pane beside it."""

from __future__ import annotations

from pathlib import Path

from page.browsing import answer, browsed, chosen, finished, new_session, person, prompt
from page.site import served
from playwright.async_api import FilePayload, expect


async def test_commands_and_files_are_completed(tmp_path: Path) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        (site.workspace / "with space.txt").write_text("x")
        await new_session(page)
        field = page.locator("#composer")
        await field.press_sequentially("/pl")
        await expect(page.get_by_role("listbox", name="Commands")).to_contain_text("/plan")
        await field.press("Tab")
        await expect(field).to_have_value("/plan ")
        await field.press_sequentially("@wit")
        await expect(page.get_by_role("listbox", name="Files")).to_contain_text("with space.txt")
        await field.press("Enter")
        await expect(field).to_have_value('/plan @"with space.txt" ')
        await page.reload()
        await expect(field).to_have_value('/plan @"with space.txt" ')


async def test_the_caret_is_behind_a_completion_before_the_next_key(tmp_path: Path) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        await new_session(page)
        field = page.locator("#composer")
        await field.press_sequentially(" the rest")
        await field.press("Home")
        await field.press_sequentially("/pl")
        await expect(page.get_by_role("listbox", name="Commands")).to_contain_text("/plan")
        assert await field.evaluate(_TAB) == ["/plan the rest", len("/plan ")]


# Read in the same task as the key: a fast writer's next key comes before the next frame.
_TAB = """(field) => {
    const key = { key: 'Tab', bubbles: true, cancelable: true }
    field.dispatchEvent(new KeyboardEvent('keydown', key))
    return [field.value, field.selectionStart]
}"""


async def test_files_are_attached_by_choosing_pasting_and_dropping(tmp_path: Path) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        await new_session(page)
        note: FilePayload = {"name": "note.txt", "mimeType": "text/plain", "buffer": b"hello"}
        await page.get_by_label("Files to attach").set_input_files(note)
        await expect(page.locator(".attachments")).to_contain_text("note.txt")
        await page.evaluate(_PASTE)
        await expect(page.locator(".attachments li")).to_have_count(2)
        await page.evaluate(_DROP)
        await expect(page.locator(".attachments")).to_contain_text("dropped.txt")
        await page.get_by_label("Remove dropped.txt").click()
        await expect(page.locator(".attachments li")).to_have_count(2)
        await expect(page.locator(".attachments .spinner")).to_have_count(0)
        await prompt(page, "/plan with these")
        await expect(page.locator(".said.user")).to_contain_text("note.txt")
        await expect(page.locator(".said.user img")).to_be_visible()
        await expect(page.locator(".attachments")).to_have_count(0)


_PASTE = """() => {
    const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
    const bytes = Uint8Array.from(atob(pixel), (char) => char.charCodeAt(0))
    const data = new DataTransfer()
    data.items.add(new File([bytes], 'pixel.png', { type: 'image/png' }))
    document.getElementById('composer').dispatchEvent(
        new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }))
}"""  # noqa: E501


_DROP = """() => {
    const data = new DataTransfer()
    data.items.add(new File(['words'], 'dropped.txt', { type: 'text/plain' }))
    document.getElementById('composer').dispatchEvent(
        new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }))
}"""


async def test_modes_and_options_are_set(tmp_path: Path) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        await new_session(page)
        mode = chosen(page, "Mode")
        await mode.press("Enter")
        await page.keyboard.press("End")
        await page.keyboard.press("Enter")
        await expect(mode).to_be_focused()
        last = await mode.inner_text()
        await page.reload()
        await expect(mode).to_have_text(last)


async def test_the_pane_shows_plan_changes_terminals_frames_and_facts(tmp_path: Path) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        await new_session(page)
        await prompt(page, "Write something down")
        await answer(page, "Allow")
        await answer(page, "Allow once")
        await finished(page)
        pane = page.get_by_role("complementary", name="Side pane")
        await expect(pane).to_contain_text("4 of 4 done")
        await page.get_by_role("tab", name="Terminals").click()
        await expect(pane.locator(".xterm-rows")).to_contain_text("dragoman-demo.txt")
        await expect(pane).to_contain_text("exit 0")
        await page.get_by_role("tab", name="Raw").click()
        await expect(pane).to_contain_text("session/prompt")
        await page.get_by_role("tab", name="Info").click()
        await expect(pane).to_contain_text(str(site.workspace))
        await page.get_by_role("tab", name="Changes").click()
        await expect(pane).to_contain_text("1 file changed")
        await pane.locator(".code.added").get_by_label("Comment on line 1").click()
        await pane.get_by_role("textbox", name="Comment on line").fill("Say it nicer")
        # A look elsewhere does not lose what was begun.
        await page.get_by_role("tab", name="Info").click()
        await page.get_by_role("tab", name="Changes").click()
        await pane.get_by_role("button", name="Add to review").click()
        await pane.get_by_role("button", name="Edit as prompt").click()
        await expect(page.locator("#composer")).to_have_value(_COMMENT)
        await pane.get_by_role("button", name="Put back all").click()
        sure = pane.get_by_role("group", name="Put back everything?")
        await sure.get_by_role("button", name="Put back").click()
        await expect(pane).to_contain_text("No changes yet")
    assert not (site.workspace / "dragoman-demo.txt").exists()


_COMMENT = (
    "Please address these comments on your changes.\n\n"
    "dragoman-demo.txt:1:\n```diff\n+You asked: Write something down\n```\nSay it nicer"
)


async def test_an_always_answer_leaves_a_rule_that_can_be_revoked(tmp_path: Path) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        await new_session(page)
        await prompt(page, "Write something down")
        await answer(page, "Always allow")
        await answer(page, "Always allow")
        await finished(page)
        await page.evaluate("location.hash = '#/policies'")
        rules = page.locator("tbody tr")
        await expect(rules).to_have_count(2)
        await expect(page.locator("tbody")).to_contain_text("wc -l dragoman-demo.txt")
        await rules.first.get_by_role("button", name="Revoke").click()
        await expect(rules).to_have_count(1)


async def test_the_agents_screen_checks_an_agent(tmp_path: Path) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        await page.evaluate("location.hash = '#/agents'")
        demo = page.locator(".agents .card", has_text="demo").first
        await demo.get_by_role("button", name="Check").click()
        await expect(demo.locator(".findings li").first).to_contain_text("pass")
        await demo.get_by_role("button", name="Sign in").click()
        await expect(demo).to_contain_text("lists no sign-in methods")

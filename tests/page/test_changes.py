"""What was changed is looked at, commented on and put back: a file, a turn, or all of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from page.browsing import answer, browsed, finished, new_session, person, prompt
from page.site import scripted, served
from playwright.async_api import Dialog, Page, expect


async def _wrote(page: Page, *names: str) -> None:
    await prompt(page, " ".join(names))
    for name in names:
        await expect(page.locator(".card.permission")).to_contain_text(name)
        await answer(page, "Allow once")
    await expect(page.locator(".said.agent").last).to_contain_text("Written.")
    await finished(page)


async def test_a_file_and_a_turn_are_put_back_for_themselves(tmp_path: Path) -> None:
    async with (
        served(tmp_path, *scripted(tmp_path, "writes")) as site,
        browsed() as browser,
        person(browser, site) as page,
    ):
        page.on("dialog", lambda dialog: dialog.accept())
        await new_session(page)
        await _wrote(page, "one.txt", "two.txt")
        await _wrote(page, "three.txt")
        await page.get_by_role("tab", name="Changes").click()
        pane = page.get_by_role("complementary", name="Side pane")
        await expect(pane).to_contain_text("3 files changed")
        await pane.get_by_role("region", name="two.txt").get_by_text("Revert file").click()
        await expect(pane).to_contain_text("2 files changed")
        assert not (site.workspace / "two.txt").exists()
        await pane.get_by_label("Changed in").select_option(label="three.txt")
        await expect(pane).to_contain_text("1 file changed")
        await pane.get_by_role("button", name="Revert turn").click()
        await expect(pane).to_contain_text("Nothing was changed in this turn")
        assert not (site.workspace / "three.txt").exists()
        assert (site.workspace / "one.txt").exists()
        await pane.get_by_label("Changed in").select_option(label="the whole session")
        await expect(pane).to_contain_text("1 file changed")


async def test_what_someone_else_changed_is_put_back_only_when_one_insists(tmp_path: Path) -> None:
    asked: list[str] = []
    refused = asyncio.Event()

    async def decide(dialog: Dialog) -> None:
        asked.append(dialog.message)
        await (dialog.accept() if len(asked) != 2 else dialog.dismiss())
        if len(asked) == 2:
            refused.set()

    async with (
        served(tmp_path, *scripted(tmp_path, "writes")) as site,
        browsed() as browser,
        person(browser, site, refused=409) as page,
    ):
        page.on("dialog", decide)
        await new_session(page)
        await _wrote(page, "one.txt")
        (site.workspace / "one.txt").write_text("by hand\n")
        await page.get_by_role("tab", name="Changes").click()
        revert = page.get_by_role("button", name="Revert all")
        await revert.click()
        await asyncio.wait_for(refused.wait(), 20)
        assert "all the same" in asked[1]
        assert (site.workspace / "one.txt").read_text() == "by hand\n"
        await revert.click()
        await expect(page.locator(".toast")).to_have_text("1 file put back.")
    assert not (site.workspace / "one.txt").exists()

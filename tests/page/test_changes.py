"""What was changed is looked at, commented on and put back: a file, a turn, or all of it."""

from __future__ import annotations

from pathlib import Path

from page.browsing import answer, browsed, finished, new_session, person, prompt, ran
from page.site import prepared, scripted, served
from playwright.async_api import Page, expect

from dragoman.hub.cluster.owner import this_process
from dragoman.session import events as e
from dragoman.session.content import Text
from dragoman.store.archive import Archive, exported, import_session, read_archive
from dragoman.store.open import open_store
from dragoman.store.records import SessionRecord, encode_event


async def _wrote(page: Page, *names: str) -> None:
    await prompt(page, " ".join(names))
    for name in names:
        await expect(page.locator(".card.permission")).to_contain_text(name)
        await answer(page, "Allow once")
    await expect(page.locator(".said.agent").last).to_contain_text("Written.")
    await finished(page)


async def _put_all_back(page: Page, words: str) -> None:
    await page.get_by_role("button", name=words).click()
    sure = page.get_by_role("group", name="Put back everything?")
    await sure.get_by_role("button", name="Put back").click()


async def test_a_file_and_a_turn_are_put_back_for_themselves(tmp_path: Path) -> None:
    async with (
        served(tmp_path, *scripted(tmp_path, "writes")) as site,
        browsed() as browser,
        person(browser, site) as page,
    ):
        await new_session(page)
        await _wrote(page, "one.txt", "two.txt")
        await _wrote(page, "three.txt")
        await page.get_by_role("tab", name="Changes").click()
        pane = page.get_by_role("complementary", name="Side pane")
        await expect(pane).to_contain_text("3 files changed")
        tab = page.locator("#tab-changes")
        await expect(tab).to_have_text("Changes 3")
        await pane.get_by_role("region", name="two.txt").get_by_text("Put back file").click()
        await expect(pane).to_contain_text("2 files changed")
        await expect(tab).to_have_text("Changes 2")
        assert not (site.workspace / "two.txt").exists()
        await pane.get_by_label("Changed in").select_option(label="three.txt")
        await expect(pane).to_contain_text("1 file changed")
        await _put_all_back(page, "Put back turn")
        await expect(pane).to_contain_text("No changes in this turn")
        assert not (site.workspace / "three.txt").exists()
        assert (site.workspace / "one.txt").exists()
        await expect(tab).to_have_text("Changes 1")
        await pane.get_by_label("Changed in").select_option(label="the whole session")
        await expect(pane).to_contain_text("1 file changed")


async def test_the_tab_counts_what_was_changed_and_nothing_else(tmp_path: Path) -> None:
    async with (
        served(tmp_path, *scripted(tmp_path, "writes_quietly"), "--write") as site,
        browsed() as browser,
        person(browser, site) as page,
    ):
        for name, text in ((".gitignore", ".env\n"), (".env", "never watched\n")):
            (site.workspace / name).write_text(text)
        await new_session(page)
        tab = page.locator("#tab-changes")
        await prompt(page, "same")  # a diff is told, and the file stays as it is
        await expect(page.locator(".tool")).to_have_count(1)
        await finished(page)
        await page.get_by_role("tab", name="Changes").click()
        pane = page.locator("#panebody")
        await expect(pane).to_contain_text("No changes yet")
        await expect(pane).to_contain_text("Not watched because git ignores it: .env")
        await expect(tab).to_have_text("Changes")
        await page.get_by_role("tab", name="Plan").click()
        await prompt(page, "new")  # the host writes, and no tool call tells of it
        await expect(tab).to_have_text("Changes 1")


async def test_what_someone_else_changed_is_chosen_file_by_file(tmp_path: Path) -> None:
    async with (
        served(tmp_path, *scripted(tmp_path, "writes")) as site,
        browsed() as browser,
        person(browser, site, refused=409) as page,
    ):
        await new_session(page)
        await _wrote(page, "one.txt", "two.txt", "three.txt")
        for name in ("one.txt", "two.txt"):
            (site.workspace / name).write_text("by hand\n")
        await page.get_by_role("tab", name="Changes").click()
        await _put_all_back(page, "Put back all")
        dialog = page.get_by_role("dialog", name="Changed since")
        await expect(dialog).to_contain_text("Nothing was put back yet")
        assert (site.workspace / "three.txt").exists()
        carry_on = dialog.get_by_role("button", name="Continue")
        await expect(carry_on).to_be_disabled()
        kept, restored = (
            dialog.get_by_role("group", name=f"{each}.txt") for each in ("one", "two")
        )
        await kept.get_by_label("Keep it as it is now").check()
        await restored.get_by_label("Put the earlier content over it").check()
        await carry_on.click()
        await expect(page.locator(".toast")).to_have_text("2 files put back.")
    assert (site.workspace / "one.txt").read_text() == "by hand\n"
    assert not (site.workspace / "two.txt").exists()
    assert not (site.workspace / "three.txt").exists()


async def test_an_import_whose_conversation_another_session_has_goes_on_without_it(
    tmp_path: Path,
) -> None:
    async with (
        served(tmp_path, *scripted(tmp_path, "offered")) as site,
        browsed() as browser,
        person(browser, site, refused=409) as page,
    ):
        original = await new_session(page)
        await ran(page, "Hello")
        store = await open_store(site.home)
        lines = [line async for line in exported(store, original)]
        archive, folder = read_archive(lines), str(site.workspace)
        await import_session(store, archive, "s-1", this_process(), cwd=folder)
        await store.aclose()
        await page.goto(f"{site.url}#/s/s-1")
        await prompt(page, "And now?")
        notice = page.get_by_role("alert").filter(has_text="does not remember")
        await expect(notice).to_contain_text("its conversation belongs to another session here")
        await expect(page.locator("#composer")).to_have_value("And now?")
        await notice.get_by_role("button", name="Send without its memory").click()
        await expect(page.locator(".said.agent")).to_have_count(2)
        await expect(notice).to_have_count(0)
        await expect(page.locator("#composer")).to_have_value("")


async def test_an_imported_session_is_given_a_folder_and_its_claims_are_marked(
    tmp_path: Path,
) -> None:
    """A file says that it ran in the whole machine, and that we wrote something there."""
    said = [
        e.SessionOpened("theirs", "/", "new", seq=1),
        e.TurnStarted("t", [Text("go")], seq=2),
        e.FileWritten("/etc/passwd", "root::0:0\n", "root:x:0:0\n", seq=3),
        e.TurnEnded("t", "end_turn", seq=4),
    ]
    site = prepared(tmp_path, *scripted(tmp_path, "writes"))
    record = SessionRecord(id="x", agent="writes", cwd="/", created_at=1, updated_at=1, title="Old")
    store = await open_store(site.home)
    archive = Archive(record, [encode_event(event) for event in said])
    await import_session(store, archive, "s-1", this_process())
    await store.aclose()
    await site.start()
    try:
        async with browsed() as browser, person(browser, site) as page:
            await page.goto(f"{site.url}#/s/s-1")
            form = page.locator("form.stranded")
            await expect(form).to_contain_text("imported from /")
            await expect(page.locator("#composer")).to_have_count(0)
            await page.get_by_role("tab", name="Changes").click()
            pane = page.get_by_role("complementary", name="Side pane")
            await expect(pane).to_contain_text("reported by the file this session came from")
            await expect(pane.get_by_text("Put back")).to_have_count(0)
            await form.get_by_label("Folder").fill(str(site.workspace))
            await form.get_by_role("button", name="Use this folder").click()
            await expect(form).to_have_count(0)
            await expect(page.locator("#composer")).to_be_visible()
    finally:
        await site.stop()

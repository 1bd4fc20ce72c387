"""A long thread: the end is there at once, and only what is in view is drawn.

How fast that is, `measure.py` says."""

from __future__ import annotations

from pathlib import Path

import pytest
from page.browsing import LONG, browsed, person, settled
from page.seeding import Teller, told_session
from page.site import prepared
from playwright.async_api import Page, expect

from dragoman.session import events as e
from dragoman.session.content import Diff, Text

MOST_ROWS = 60
_COUNTED = """() => {
    const rows = document.querySelector('.rows')
    const work = window.work = { rows: 0, touched: [] }
    const look = () => { work.rows = Math.max(work.rows, rows.querySelectorAll('.row').length) }
    const observer = new MutationObserver((changes) => {
        look()
        for (const { target } of changes) {
            const row = (target.nodeType === 1 ? target : target.parentElement)?.closest('.row')
            if (row) work.touched.push(Number(row.dataset.place))
        }
    })
    observer.observe(rows, { subtree: true, childList: true, characterData: true })
    look()
}"""
"""How many rows there ever are, and which of them are drawn again."""

_SCROLL = """([steps, place]) => new Promise((resolve) => {
    const scroller = document.querySelector('.scroller')
    const first = () => Number(scroller.querySelector('.row').dataset.place)
    const step = () => {
        scroller.scrollTop -= 400
        if (steps-- > 0 || first() >= place) requestAnimationFrame(step)
        else resolve()
    }
    step()
})"""
"""So many steps up, and as many more as lead past a row that may still be on its way."""

_FROM_END = """() => {
    const { scrollHeight, scrollTop, clientHeight } = document.querySelector('.scroller')
    return scrollHeight - scrollTop - clientHeight
}"""


def long_thread(entries: int) -> list[e.Event]:
    """Messages, thoughts and edits in turn, as a day's work has them."""
    events: list[e.Event] = [e.SessionOpened("a", "/w", "new", agent="demo")]
    for at in range(entries // 4):
        diff = Diff(f"src/file{at}.py", f"x = {at}\ny = 2\n", old_text=f"x = {at - 1}\ny = 2\n")
        events += [
            e.UserMessage(Text(f"Question {at}"), f"u{at}"),
            e.AgentThought(Text(f"Thinking about {at}"), f"t{at}"),
            e.ToolCallUpdated(
                f"c{at}", title=f"Edit file{at}.py", kind="edit", status="completed", content=[diff]
            ),
            e.AgentMessage(Text(_answer(at)), f"m{at}"),
        ]
    return events


def _answer(at: int) -> str:
    return f"Answer **{at}** with `code`:\n\n```python\nprint({at})\n```\n\n- one\n- two\n"


@pytest.mark.within(600)
@pytest.mark.parametrize(
    ("entries", "pieces"), [(1_000, 50), pytest.param(10_000, 300, marks=pytest.mark.soak)]
)
async def test_a_thread_of_thousands_of_entries_draws_what_is_in_view(
    tmp_path: Path, entries: int, pieces: int
) -> None:
    last = f"Answer {entries // 4 - 1} "
    site = prepared(tmp_path)
    async with told_session(site.home, "long", site.workspace) as teller:
        await teller.tell(long_thread(entries))
        await site.start()
        try:
            async with browsed() as browser, person(browser, site) as page:
                await page.evaluate("location.hash = '#/s/long'")
                await expect(page.locator(".row").last).to_contain_text(last)
                await expect(page.locator(".row").last).to_have_attribute(
                    "aria-setsize", str(entries)
                )
                await settled(page)
                await page.evaluate(_COUNTED)
                await page.evaluate(_SCROLL, [100, entries - 100])
                await page.get_by_role("button", name="Latest").click()
                await expect(page.locator(".row").last).to_contain_text(last)
                assert await page.evaluate("work.rows") < MOST_ROWS
                await _stream(page, teller, entries, pieces)
                await _find(page, entries // 8)
        finally:
            await site.stop()


async def _stream(page: Page, teller: Teller, entries: int, pieces: int) -> None:
    """A long answer comes in small pieces: its own row is drawn again, and stays in view."""
    await teller.tell([e.TurnStarted("now", [Text("Write a lot")])], status="running")
    await teller.tell([e.AgentMessage(Text("It begins. "), "streamed")])
    await expect(page.locator(".row").last).to_contain_text("It begins.")
    await settled(page)
    await page.evaluate("work.touched.length = 0")
    for at in range(pieces):
        word = f"word{at} **bold** `code` " + ("\n\n" if at % 25 == 24 else "")
        await teller.tell([e.AgentMessage(Text(word), "streamed")])
    await expect(page.locator(".row").last).to_contain_text(f"word{pieces - 1} ", timeout=LONG)
    touched = await page.evaluate("work.touched")
    assert touched
    # Rows that the growing one pushes out of view leave, and are not drawn again.
    assert set(touched) == {entries + 1}
    assert await page.evaluate("work.rows") < MOST_ROWS
    await teller.tell([e.TurnEnded("now", "end_turn")], status="idle")
    await settled(page)
    assert await page.evaluate(_FROM_END) < 80


async def _find(page: Page, number: int) -> None:
    """What is far away is found, and a link leads to it."""
    await page.keyboard.press("Control+f")
    await page.get_by_role("searchbox", name="Find in transcript").fill(f"Question {number}")
    await expect(page.locator(".find output")).to_have_text("1 of 1")
    await expect(page.get_by_text(f"Question {number}", exact=True)).to_be_visible()
    await page.keyboard.press("Escape")
    await page.evaluate("location.hash = '#/s/long/e/0'")
    await expect(page.get_by_text("Question 0", exact=True)).to_be_visible()

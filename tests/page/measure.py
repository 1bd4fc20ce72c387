"""How fast the page is, in Chromium: `measure.py ROUNDS` prints what it measured as JSON.

First paint, the end of a session of 100,000 events, frames while scrolling and streaming in a
thread of 10,000 entries, and the size of what is loaded.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import statistics
import sys
import tempfile
from pathlib import Path

from page.browsing import browsed, person
from page.seeding import Teller, told_session
from page.site import Site, prepared
from page.test_build import STATIC
from page.test_long_thread import long_thread
from playwright.async_api import Browser, Page, expect

from dragoman.session import events as e
from dragoman.session.content import Text

EVENTS = 100_000
_FRAMES = """(seconds) => new Promise((resolve) => {
    const frames = []
    let last = performance.now()
    const until = last + seconds * 1000
    const scroller = document.querySelector('.scroller')
    const tick = (now) => {
        frames.push(now - last)
        last = now
        if (window.scrolling) scroller.scrollTop -= 120
        if (now < until) requestAnimationFrame(tick)
        else resolve(frames)
    }
    requestAnimationFrame(tick)
})"""


async def measure(rounds: int) -> dict[str, list[float]]:
    """Milliseconds, and for the size kilobytes; a figure for each round."""
    with tempfile.TemporaryDirectory() as scratch:
        site = prepared(Path(scratch))
        async with (
            told_session(site.home, "many", site.workspace, title="Many events") as many,
            told_session(site.home, "long", site.workspace, title="Long thread") as long,
        ):
            await _tell_many(many)
            await long.tell(long_thread(10_000))
            await site.start()
            try:
                async with browsed() as browser:
                    return {"size": [_size()], **await _figures(browser, site, long, rounds)}
            finally:
                await site.stop()


async def _tell_many(teller: Teller) -> None:
    """A day's words in small pieces, a message every hundred."""
    for first in range(0, EVENTS, 5_000):
        words = range(first, first + 5_000)
        await teller.tell([e.AgentMessage(Text(f"word {n} "), f"m{n // 100}") for n in words])
    await teller.save()


def _size() -> float:
    """Of all but the fonts, and the viewer of exported files."""
    files = [path for path in STATIC.rglob("*") if path.is_file() and path.suffix != ".woff2"]
    files = [path for path in files if path.parent.name != "viewer"]
    return sum(len(gzip.compress(path.read_bytes())) for path in files) / 1000


async def _figures(
    browser: Browser, site: Site, long: Teller, rounds: int
) -> dict[str, list[float]]:
    paints = [await _first_paint(browser, site) for _ in range(rounds)]
    ends = [await _end_of_many(browser, site) for _ in range(rounds)]
    async with person(browser, site) as page:
        await page.evaluate("location.hash = '#/s/long'")
        await expect(page.locator(".row").last).to_contain_text("2499")
        await page.wait_for_timeout(1000)
        scrolled = await _scrolled(page)
        streamed = await _streamed(page, long)
    return {
        "paint": paints,
        "end": ends,
        "scrolling": _medians(scrolled, rounds),
        "streaming": _medians(streamed, rounds),
    }


async def _frames(page: Page, seconds: float) -> list[float]:
    return (await page.evaluate(_FRAMES, seconds))[2:]


async def _scrolled(page: Page) -> list[float]:
    """Three seconds towards the beginning; then back at the end."""
    await page.evaluate("window.scrolling = true")
    frames = await _frames(page, 3)
    await page.evaluate("window.scrolling = false")
    await page.get_by_role("button", name="Latest").click()
    return frames


async def _streamed(page: Page, teller: Teller) -> list[float]:
    """A long answer comes in small pieces; the end stays in view."""
    watching = asyncio.create_task(_frames(page, 4))
    await teller.tell([e.TurnStarted("now", [Text("Write a lot")])], status="running")
    for at in range(300):
        word = f"word{at} **bold** `code` " + ("\n\n" if at % 25 == 24 else "")
        await teller.tell([e.AgentMessage(Text(word), "streamed")])
        await asyncio.sleep(0.01)
    frames = await watching
    await teller.tell([e.TurnEnded("now", "end_turn")], status="idle")
    await expect(page.locator(".row").last).to_contain_text("word299")
    return frames


def _medians(frames: list[float], parts: int) -> list[float]:
    """Of so many stretches, one after the other."""
    size = max(1, len(frames) // parts)
    return [statistics.median(frames[at * size : (at + 1) * size]) for at in range(parts)]


async def _first_paint(browser: Browser, site: Site) -> float:
    async with person(browser, site) as page:
        await page.locator("main").wait_for()
        await page.wait_for_timeout(300)
        return await page.evaluate(
            "performance.getEntriesByName('first-contentful-paint')[0].startTime"
        )


async def _end_of_many(browser: Browser, site: Site) -> float:
    async with person(browser, site) as page:
        await page.locator(".session", has_text="Many events").wait_for()
        return await page.evaluate(_UNTIL_END)


_UNTIL_END = """() => new Promise((resolve) => {
    const began = performance.now()
    const look = () => {
        if (document.querySelector('.rows')?.textContent.includes('word 99999')) {
            resolve(performance.now() - began)
        } else requestAnimationFrame(look)
    }
    location.hash = '#/s/many'
    look()
})"""


if __name__ == "__main__":
    figures = asyncio.run(measure(int(sys.argv[1])))
    sys.stdout.write(json.dumps(figures) + "\n")

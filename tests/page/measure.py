"""How fast the page is, in Chromium: `measure.py` prints a line for each figure.

First paint, the end of a session of 100,000 events, frames while scrolling and streaming in a
thread of 10,000 entries, and the size of what is loaded.
"""

from __future__ import annotations

import asyncio
import gzip
import statistics
import sys
import tempfile
from pathlib import Path

from page.browsing import browsed, person
from page.seeding import Teller, told_session
from page.site import Site, prepared
from page.test_build import STATIC
from page.test_long_thread import long_thread, scrolled_frames, streamed_frames
from playwright.async_api import Browser, expect

from dragoman.session import events as e
from dragoman.session.content import Text

EVENTS = 100_000
TIMES = 5


async def measure() -> dict[str, str]:
    with tempfile.TemporaryDirectory() as scratch:
        site = prepared(Path(scratch))
        async with (
            told_session(site.home, "many", site.workspace, title="Many events") as many,
            told_session(site.home, "long", site.workspace, title="Long thread") as long,
        ):
            await _tell_many(many)
            await long.tell(long_thread())
            await site.start()
            try:
                async with browsed() as browser:
                    return {**_sizes(), **await _figures(browser, site, long)}
            finally:
                await site.stop()


async def _tell_many(teller: Teller) -> None:
    """A day's words in small pieces, a message every hundred."""
    for first in range(0, EVENTS, 5_000):
        words = range(first, first + 5_000)
        await teller.tell([e.AgentMessage(Text(f"word {n} "), f"m{n // 100}") for n in words])
    await teller.save()


def _sizes() -> dict[str, str]:
    files = [path for path in STATIC.rglob("*") if path.is_file()]
    total = sum(len(gzip.compress(path.read_bytes())) for path in files)
    return {"page, gzipped": f"{total / 1000:.0f} kB"}


async def _figures(browser: Browser, site: Site, long: Teller) -> dict[str, str]:
    paints = [await _first_paint(browser, site) for _ in range(TIMES)]
    ends = [await _end_of_many(browser, site) for _ in range(TIMES)]
    async with person(browser, site) as page:
        await page.evaluate("location.hash = '#/s/long'")
        await expect(page.locator(".row").last).to_contain_text("2499")
        await page.wait_for_timeout(1000)
        scrolled = await scrolled_frames(page)
        streamed = await streamed_frames(page, long)
    return {
        "first paint": _milliseconds(paints),
        f"end of a session of {EVENTS:,} events": _milliseconds(ends),
        "frame while scrolling, 10,000 entries": _milliseconds(scrolled),
        "frame while streaming, 10,000 entries": _milliseconds(streamed),
    }


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


def _milliseconds(values: list[float]) -> str:
    high = sorted(values)[int(len(values) * 0.95)]
    return f"median {statistics.median(values):.1f} ms, 95 % {high:.1f} ms"


if __name__ == "__main__":
    for name, figure in asyncio.run(measure()).items():
        sys.stdout.write(f"{name}: {figure}\n")

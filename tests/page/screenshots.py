"""Pictures of the main screens, light and dark, wide and narrow: `screenshots.py FOLDER`."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Literal

from page.browsing import browsed, person
from page.gallery import fill
from page.site import Site, prepared
from playwright.async_api import Browser, Page

WIDTHS = {"wide": (1440, 900), "middle": (1024, 768), "narrow": (390, 844)}
SCREENS = {
    "session": "s/fix",
    "reset": "s/chapter",
    "permission": "s/release",
    "inbox": "inbox",
    "agents": "agents",
    "policies": "policies",
    "grid": "grid",
    "replay": "s/fix/replay",
    "start": "",
}


async def take(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        site = prepared(Path(scratch))
        await fill(site.home, Path(scratch))
        await site.start()
        try:
            async with browsed() as browser:
                for width in WIDTHS:
                    await _screens(browser, site, folder, width, "light")
                    await _screens(browser, site, folder, width, "dark")
        finally:
            await site.stop()


async def _screens(
    browser: Browser, site: Site, folder: Path, width: str, scheme: Literal["light", "dark"]
) -> None:
    async with person(browser, site, size=WIDTHS[width], scheme=scheme) as page:
        for name, path in SCREENS.items():
            await page.evaluate(f"location.hash = '#/{path}'")
            await _settled(page)
            await page.screenshot(path=folder / f"{name}-{width}-{scheme}.png")
        await page.keyboard.press("Control+k")
        await _settled(page)
        await page.screenshot(path=folder / f"palette-{width}-{scheme}.png")


async def _settled(page: Page) -> None:
    await page.locator("main").first.wait_for()
    await page.wait_for_timeout(400)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    asyncio.run(take(target))

"""Pictures of the main screens, light and dark, wide and narrow: `screenshots.py FOLDER`.

`screenshots.py docs/images documented` takes those that the documentation shows.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import asynccontextmanager
from itertools import groupby
from pathlib import Path
from typing import Literal, TypeAlias

from page.browsing import browsed, person
from page.gallery import fill, fill_review
from page.site import Site, prepared
from playwright.async_api import Page

WIDTHS = {"wide": (1440, 900), "middle": (1024, 768), "narrow": (390, 844)}
SCREENS = {
    "session": "s/fix",
    "reset": "s/chapter",
    "permission": "s/release",
    "inbox": "inbox",
    "agents": "agents",
    "policies": "policies",
    "grid": "grid",
    "usage": "usage",
    "replay": "s/fix/replay",
    "start": "",
}
PANES = {"changes": "Pane: Changes", "terminals": "Pane: Terminals", "info": "Pane: Info"}
DIALOGS = {"palette": "e", "new": "Start with all options", "help": "Keyboard shortcuts"}
"""What is typed into the palette to get there."""

Scheme: TypeAlias = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
Picture: TypeAlias = tuple[str, str, str, Scheme]
"""The name of the file; what it shows, how wide, and in which colours."""

DOCUMENTED: tuple[Picture, ...] = (
    ("page-light", "session", "wide", "light"),
    ("inbox-light", "inbox", "wide", "light"),
    ("review-light", "review", "wide", "light"),
    ("page-dark", "session", "wide", "dark"),
    ("inbox-dark", "inbox", "wide", "dark"),
    ("review-dark", "review", "wide", "dark"),
    ("narrow-light", "permission", "narrow", "light"),
)
REVIEW = "review"
"""Of what really happened in a folder; only `shown` has it."""


HOME = Path("/home/ada")
"""Whose sessions they are; nobody has to have it, for what happened there is only told."""


async def take(folder: Path, wanted: Iterable[Picture]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        async with shown(Path(scratch)) as site, browsed() as browser:
            for (width, scheme), pictures in groupby(wanted, key=lambda each: each[2:]):
                size = WIDTHS[width]
                async with person(browser, site, size=size, scheme=scheme) as page:
                    for file, name, *_ in pictures:
                        await show(page, name)
                        await page.wait_for_timeout(400)
                        await page.screenshot(path=folder / f"{file}.png")


@asynccontextmanager
async def shown(scratch: Path) -> AsyncGenerator[Site]:
    """What the pictures are of."""
    site = prepared(scratch)
    await fill(site.home, HOME)
    await fill_review(site.home, scratch / "cafe")
    await site.start()
    try:
        yield site
    finally:
        await site.stop()


def everything() -> Iterator[Picture]:
    for width in WIDTHS:
        for scheme in SCHEMES:
            for name in (*SCREENS, REVIEW, *PANES, *DIALOGS):
                yield f"{name}-{width}-{scheme}", name, width, scheme


async def show(page: Page, name: str) -> None:
    """One of the screens, a tab of the pane, or a dialog."""
    if name == REVIEW:
        await _review(page)
        return
    if name in SCREENS:
        await page.evaluate(f"location.hash = '#/{SCREENS[name]}'")
        await page.locator("main").first.wait_for()
        return
    await page.evaluate("location.hash = '#/s/fix'")
    await page.locator(".row").first.wait_for()
    await page.keyboard.press("Escape")
    await page.locator("dialog[open]").wait_for(state="detached")
    await page.keyboard.press("Control+k")
    await page.keyboard.type(PANES.get(name) or DIALOGS[name])
    if name != "palette":
        await page.keyboard.press("Enter")
        await page.locator(".palette").wait_for(state="detached")


async def _review(page: Page) -> None:
    """With a comment that is not sent yet."""
    await page.evaluate("location.hash = '#/s/prices/review'")
    card = page.get_by_role("region", name="shop/prices.py")
    await card.get_by_role("button", name="Comment", exact=True).nth(1).click()
    words = "A discount can make half a cent: say how it is rounded."
    await page.get_by_role("textbox", name="Comment on lines").fill(words)
    await page.get_by_role("button", name="Add to review").click()
    await page.get_by_text(words).wait_for()


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    asyncio.run(take(target, DOCUMENTED if sys.argv[2:] == ["documented"] else everything()))

"""Nothing is cut off or lies outside of the window, at any width."""

from __future__ import annotations

from pathlib import Path

import pytest
from page.browsing import browsed, person
from page.gallery import fill
from page.screenshots import DIALOGS, PANES, SCREENS, WIDTHS, show
from page.site import prepared

# Boxes that can be scrolled sideways hold what is wider than they are.
_OUTSIDE = """() => [...document.querySelectorAll('button, a, input, select, textarea, h1, h2')]
    .filter((element) => element.checkVisibility({ visibilityProperty: true }))
    .filter((element) => !element.closest('.hidden, .skip, .difftable, .tabs, .sidebar'))
    .map((element) => [element.outerHTML.slice(0, 120), element.getBoundingClientRect()])
    .filter(([, box]) => box.width > 0 && (box.left < -1 || box.right > innerWidth + 1))
    .map(([html, box]) => `${html} at ${box.left} to ${box.right}`)"""


@pytest.mark.within(120)
async def test_everything_lies_within_the_window(tmp_path: Path) -> None:
    site = prepared(tmp_path)
    await fill(site.home, tmp_path)
    await site.start()
    try:
        async with browsed() as browser:
            for size in WIDTHS.values():
                async with person(browser, site, size=size) as page:
                    for name in (*SCREENS, *PANES, *DIALOGS):
                        await show(page, name)
                        await page.wait_for_timeout(150)
                        assert await page.evaluate(_OUTSIDE) == [], (name, size)
                        wide = await page.evaluate("document.documentElement.scrollWidth")
                        assert wide <= size[0], (name, size)
    finally:
        await site.stop()

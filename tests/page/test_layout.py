"""Nothing is cut off, covered, or outside of the window, at any width."""

from __future__ import annotations

from pathlib import Path

import pytest
from page.browsing import browsed, person, settled
from page.screenshots import DIALOGS, PANES, SCREENS, WIDTHS, show
from page.seeding import told_session
from page.site import Site, prepared
from playwright.async_api import expect

from dragoman.session import events as e
from dragoman.session.content import Text
from dragoman.session.facts import PermissionOption

# Boxes that can be scrolled sideways hold what is wider than they are.
_OUTSIDE = """() => [...document.querySelectorAll('button, a, input, select, textarea, h1, h2')]
    .filter((element) => element.checkVisibility({ visibilityProperty: true }))
    .filter((element) => !element.closest('.hidden, .skip, .difftable, .tabs, .sidebar'))
    .map((element) => [element.outerHTML.slice(0, 120), element.getBoundingClientRect()])
    .filter(([, box]) => box.width > 0 && (box.left < -1 || box.right > innerWidth + 1))
    .map(([html, box]) => `${html} at ${box.left} to ${box.right}`)"""


# What can be pressed lies open, unless it is scrolled out of its box or only shown under a pointer.
_COVERED = """() => {
    const middle = (box) => [box.left + box.width / 2, box.top + box.height / 2]
    const has = (box, [x, y]) => x >= box.left && x <= box.right && y >= box.top && y <= box.bottom
    const clipped = (element, point) => {
        for (let box = element.parentElement; box !== null; box = box.parentElement) {
            const clips = getComputedStyle(box).overflow !== 'visible'
            if (clips && !has(box.getBoundingClientRect(), point)) return true
        }
        return !has({ left: 0, top: 0, right: innerWidth, bottom: innerHeight }, point)
    }
    const covered = (element) => {
        const box = element.getClientRects()[0]
        if (box === undefined || box.width === 0 || clipped(element, middle(box))) return false
        const hit = document.elementFromPoint(...middle(box))
        if (hit === null || hit.closest('.latest')) return false
        return !element.contains(hit) && !hit.contains(element)
    }
    const pane = innerWidth < 1200 ? document.querySelector('.pane') : null
    const top = document.querySelector('dialog[open]') ?? pane ?? document
    return [...top.querySelectorAll('button, a, input, select, textarea')]
        .filter((one) => one.checkVisibility({ visibilityProperty: true, opacityProperty: true }))
        .filter((one) => !one.closest('.hidden, .skip, .sidebar'))
        .filter(covered)
        .map((one) => one.outerHTML.slice(0, 160))
}"""
_HEAD = """() => {
    const boxes = (what) => [...document.querySelectorAll(what)]
        .map((element) => element.getBoundingClientRect())
    const meets = (a, b) => a.left < b.right - 1 && b.left < a.right - 1
        && a.top < b.bottom - 1 && b.top < a.bottom - 1
    const tools = boxes('.headtools > *')
    const told = boxes('.head .facts > *, .head h1')
    return told.some((one) => tools.some((tool) => meets(one, tool)))
}"""


# A button is as wide as its words, and what is said about it begins below it.
_SPILLED = """() => [...document.querySelectorAll('.answers li')]
    .filter((row) => {
        const [button, words] = row.children
        const told = words.getClientRects()[0]
        return button.scrollWidth > button.clientWidth + 1
            || (told !== undefined && told.top < button.getBoundingClientRect().bottom)
    })
    .map((row) => row.textContent)"""


async def test_answers_and_filters_have_room_for_their_words(tmp_path: Path) -> None:
    site = prepared(tmp_path)
    names = {"allow_once": "Allow once", "allow_always": "Allow for this session"}
    options = [PermissionOption(kind, name, kind, "what it does") for kind, name in names.items()]
    async with told_session(site.home, "asks", tmp_path) as teller:
        asked = e.PermissionRequested("p", options, title="Edit", operation="write", paths=["/a"])
        opened = e.SessionOpened("one", str(tmp_path), "new", agent="demo")
        await teller.tell([opened, e.TurnStarted("t", [Text("go")]), asked], status="waiting")
    await site.start()
    try:
        async with browsed() as browser:
            for size in ((1440, 900), (820, 1180), (390, 844)):
                async with person(browser, site, size=size) as page:
                    await page.evaluate("location.hash = '#/s/asks'")
                    await expect(page.locator(".answers")).to_contain_text("Allow for this session")
                    await settled(page)
                    assert await page.evaluate(_SPILLED) == [], size
                    if size[0] > 600:
                        filters = await page.locator(".filters").bounding_box()
                        assert filters is not None
                        assert filters["height"] < 2 * 24, size
    finally:
        await site.stop()


@pytest.mark.parametrize(
    "width",
    ["narrow", *(pytest.param(each, marks=pytest.mark.soak) for each in ("middle", "wide"))],
)
async def test_everything_lies_within_the_window(gallery: Site, width: str) -> None:
    size = WIDTHS[width]
    async with browsed() as browser, person(browser, gallery, size=size) as page:
        for name in (*SCREENS, *PANES, *DIALOGS):
            await show(page, name)
            await settled(page)
            assert await page.evaluate(_OUTSIDE) == [], (name, size)
            assert await page.evaluate(_COVERED) == [], (name, size)
            assert not await page.evaluate(_HEAD), (name, size)
            wide = await page.evaluate("document.documentElement.scrollWidth")
            assert wide <= size[0], (name, size)

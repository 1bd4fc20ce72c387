"""Nothing is cut off, covered, or outside of the window, at any width."""

from __future__ import annotations

from page.browsing import browsed, person, settled
from page.screenshots import DIALOGS, PANES, SCREENS, WIDTHS, show
from page.site import Site

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


async def test_everything_lies_within_the_window(gallery: Site) -> None:
    async with browsed() as browser:
        for size in WIDTHS.values():
            async with person(browser, gallery, size=size) as page:
                for name in (*SCREENS, *PANES, *DIALOGS):
                    await show(page, name)
                    await settled(page)
                    assert await page.evaluate(_OUTSIDE) == [], (name, size)
                    assert await page.evaluate(_COVERED) == [], (name, size)
                    assert not await page.evaluate(_HEAD), (name, size)
                    wide = await page.evaluate("document.documentElement.scrollWidth")
                    assert wide <= size[0], (name, size)

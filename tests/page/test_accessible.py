"""axe finds nothing serious on any screen, light or dark, wide or narrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, TypeAlias

import pytest
from page.browsing import (
    answer,
    browsed,
    chosen,
    finished,
    looking,
    new_session,
    person,
    prompt,
    settled,
)
from page.site import Site, served
from playwright.async_api import Browser, Page, expect

from dragoman.host.rules.project_file import NAME

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
_SCREENS = ("inbox", "agents", "policies", "grid", "search/demo", "usage", "devices", "")


# What can change with the colours and the width: the names and roles are those of the first look.
_LOOKS = ("color-contrast", "scrollable-region-focusable", "target-size", "aria-hidden-focus")


@pytest.mark.parametrize("what", [_LOOKS, pytest.param((), marks=pytest.mark.soak)])
async def test_no_screen_has_a_serious_issue(tmp_path: Path, what: tuple[str, ...]) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: run npm ci in the folder web")
    async with served(tmp_path) as site, browsed() as browser:
        (site.workspace / ".dragoman").mkdir()
        (site.workspace / NAME).write_text('[[rules]]\neffect = "deny"\nhost = "example.com"\n')
        await _look_around(browser, site, "light", 1440)
        await _look_around(browser, site, "dark", 390, what)


Scheme: TypeAlias = Literal["light", "dark"]


async def _look_around(
    browser: Browser, site: Site, scheme: Scheme, width: int, rules: tuple[str, ...] = ()
) -> None:
    async with person(browser, site, scheme=scheme, size=(width, 844)) as page:
        # The page's own policy forbids scripts from elsewhere: axe comes in through the debugger.
        await page.evaluate(AXE.read_text())
        if width < 768:
            await page.get_by_role("button", name="Sessions").click()
        session = await new_session(page)
        await examine(page, f"an empty session, {scheme}", rules)
        await prompt(page, "Write something down")
        await page.locator(".card.permission").wait_for()
        await examine(page, f"a permission, {scheme}", rules)
        await page.get_by_role("button", name="Allow more").click()
        await examine(page, f"more to allow, {scheme}", rules)
        await page.get_by_role("button", name="Back").click()
        await answer(page, "Allow")
        await answer(page, "Allow once")
        await finished(page)
        await examine(page, f"a session, {scheme}", rules)
        if width >= 1200:
            for tab in ("Changes", "Terminals", "Raw", "Info"):
                await page.get_by_role("tab", name=tab).click()
                await settled(page)
                await examine(page, f"{tab}, {scheme}", rules)
        for screen in _SCREENS:
            await page.evaluate(f"location.hash = '#/{screen}'")
            await settled(page)
            await examine(page, f"{screen or 'start'}, {scheme}", rules)
        await page.evaluate(f"location.hash = '#/s/{session}/replay'")
        await page.locator(".replaybar").wait_for()
        await examine(page, f"replay, {scheme}", rules)
        for key in ("Control+k", "?", "f"):
            await page.keyboard.press(key)
            await page.locator("dialog[open]").wait_for()
            await examine(page, f"{key}, {scheme}", rules)
            await page.keyboard.press("Escape")
            await page.locator("dialog").wait_for(state="detached")


async def test_no_dialog_and_no_form_has_a_serious_issue(gallery: Site) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: run npm ci in the folder web")
    async with browsed() as browser, person(browser, gallery, size=(390, 844)) as page:
        await page.evaluate(AXE.read_text())
        for screen in ("inbox", "s/chapter", "", "search/parser"):
            await page.evaluate(f"location.hash = '#/{screen}'")
            await settled(page)
            await examine(page, f"{screen or 'start'} of the gallery")
        await page.evaluate("location.hash = '#/'")
        for label in ("Agent", "Folder"):
            await chosen(page, label).click()
            await settled(page)
            await examine(page, f"{label} to choose", within=".popover")
            await page.keyboard.press("Escape")
            await expect(chosen(page, label)).to_be_focused()
        await page.evaluate("location.hash = '#/s/fix'")
        for action in (
            "Start with all",
            "Import",
            "Fork",
            "Rename",
            "Delete",
            "Pane: Info",
            "Pane: Changes",
        ):
            await page.keyboard.press("Control+k")
            await page.keyboard.type(action)
            await page.keyboard.press("Enter")
            await page.locator(".palette").wait_for(state="detached")
            await settled(page)
            await examine(page, action, within="dialog[open], .pane")
            await page.keyboard.press("Escape")
            await page.locator("dialog").wait_for(state="detached")


async def test_what_moves_and_what_is_read_out_is_little(gallery: Site) -> None:
    """Who wants no motion has next to none; the thread that streams is in no live region."""
    async with looking(gallery) as page:
        await page.emulate_media(reduced_motion="reduce")
        await page.evaluate("location.hash = '#/s/release'")
        spinner = page.locator(".plan .spinner").first
        await expect(spinner).to_have_css("animation-duration", "4s")
        await expect(page.get_by_role("feed", name="Transcript")).to_be_visible()
        around = ".rows, .rows *, :has(.rows)"
        live = "[aria-live]:not([aria-live=off]), [role=log], [role=status], [role=alert]"
        assert (
            await page.evaluate(f"document.querySelectorAll(':is({around}):is({live})').length")
            == 0
        )


async def examine(
    page: Page, where: str, rules: tuple[str, ...] = (), within: str = "html"
) -> None:
    """By these rules of axe, or by all."""
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = {"type": "rule", "values": rules}
    run = "([within, options]) => axe.run(within, options)"
    results = await page.evaluate(run, [within, options])
    found: list[dict[str, Any]] = results["violations"]
    serious = [
        f"{issue['id']}: {node['target']} {node.get('failureSummary', '')}"
        for issue in found
        if issue["impact"] in ("serious", "critical")
        for node in issue["nodes"]
    ]
    assert not serious, f"{where}: " + "\n".join(serious)

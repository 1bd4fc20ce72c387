"""The page in the system's Chromium. Whatever it logs as an error fails the test that opened it."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Literal
from weakref import WeakSet

import pytest
from page.site import Site, scripted, served
from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Error,
    Locator,
    Page,
    Request,
    async_playwright,
    expect,
)

from dragoman.session.state import OVER_TURNS

# The headless shell is the same engine without the window around it, which takes longer to make
# than the page in it.
_PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser")
CHROMIUM = next(filter(None, map(shutil.which, _PROGRAMS)), None)
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # No spare process is made for a page that may come next: most tests open the same one again.
    "--renderer-process-limit=1",
    "--in-process-gpu",
)
WAIT = 60_000
"""Milliseconds for anything to happen: long, because only a failure takes that long."""
LONG = 4 * WAIT
"""For what is a lot of work to draw."""
expect.set_options(timeout=WAIT)


# A spinner that turns is drawn sixty times a second by a machine without a graphics card.
_STILL = """{
    const sheet = new CSSStyleSheet()
    sheet.replaceSync('.spinner { animation-play-state: paused !important }')
    document.adoptedStyleSheets = [sheet]
}"""


class Keeper:
    """One browser for many tests, launched when the first of them wants it, and one page in it: it
    has run our scripts before, and a new one would take most of a short test to do so."""

    def __init__(self) -> None:
        self._stack = AsyncExitStack()
        self._browser: Browser | None = None
        self._page: Page | None = None

    async def browser(self) -> Browser:
        if self._browser is None or not self._browser.is_connected():
            self._browser = await self._stack.enter_async_context(_launched())
            self._page = None
        return self._browser

    def lend(self) -> Page | None:
        """The page, if it is here; a test that fails does not bring it back."""
        page, self._page = self._page, None
        return page

    async def bring_back(self, page: Page, site: Site) -> bool:
        """As if it had never been anywhere; false if it cannot be, or if another is here."""
        if self._page is not None or page in _changed or not page.url.startswith(site.url):
            return False
        for other in page.context.pages:
            if other is not page:
                await other.close()
        await page.evaluate("sessionStorage.clear()")
        await page.goto("about:blank")
        debugger = await page.context.new_cdp_session(page)
        where = {"origin": site.url.rstrip("/"), "storageTypes": "local_storage,cookies"}
        await debugger.send("Storage.clearDataForOrigin", where)  # pyright: ignore[reportUnknownMemberType]
        await debugger.detach()
        self._page = page
        return True

    def has(self, profile: BrowserContext) -> bool:
        return self._page is not None and self._page.context is profile

    async def aclose(self) -> None:
        await self._stack.aclose()


kept: list[Keeper] = []
"""The one of this process, while its tests run."""


@asynccontextmanager
async def browsed() -> AsyncGenerator[Browser]:
    """A browser without a profile; the next test finds none either."""
    if not kept:
        async with _launched() as browser:
            yield browser
        return
    browser = await kept[0].browser()
    try:
        yield browser
    finally:
        for profile in browser.contexts:
            if not kept[0].has(profile):
                await _close(profile)


@asynccontextmanager
async def _launched() -> AsyncGenerator[Browser]:
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    if not (files("dragoman") / "web" / "static" / "index.html").is_file():
        pytest.skip("the page was not built; it needs npm")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=_FLAGS)
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def person(
    browser: Browser,
    site: Site,
    *,
    size: tuple[int, int] = (1440, 900),
    scheme: Literal["light", "dark"] = "light",
    refused: int | tuple[int, ...] = (),
) -> AsyncGenerator[Page]:
    """A profile of its own, on the page, signed in; errors and outside requests are collected.

    What the server refuses with the status `refused` is no error: browsers log that by themselves.
    Who changes the profile or the page for good says so by `nobody_after`.
    """
    page = (kept[0].lend() if kept else None) or await _new_page(browser)
    width, height = size
    await page.set_viewport_size({"width": width, "height": height})
    await page.emulate_media(color_scheme=scheme, reduced_motion="no-preference")
    wrong: list[str] = []
    look_away = watch(page, site, wrong)
    await page.goto(f"{site.url}#token={site.token}")
    yield page
    if kept and await kept[0].bring_back(page, site):
        look_away()
    else:
        await _close(page.context)
    expected = refused if isinstance(refused, tuple) else (refused,)
    wrong = [text for text in wrong if not any(f"status of {each}" in text for each in expected)]
    assert not wrong, wrong


_changed: WeakSet[Page] = WeakSet()


def nobody_after(page: Page) -> Page:
    """Its profile is for this test alone: what is added to it, or listened for, stays there."""
    _changed.add(page)
    return page


async def _new_page(browser: Browser) -> Page:
    profile = await browser.new_context()
    profile.set_default_timeout(WAIT)
    await profile.add_init_script(_STILL)
    return await profile.new_page()


async def _close(profile: BrowserContext) -> None:
    """Its pages first: Chromium spins for a quarter of a second over a profile that has some."""
    for page in profile.pages:
        await page.close()
    await profile.close()


@asynccontextmanager
async def meeting(folder: Path, agent: str) -> AsyncGenerator[Page]:
    """Somebody on the page of a server that has this agent of the tests alone."""
    async with (
        served(folder, *scripted(folder, agent)) as site,
        browsed() as browser,
        person(browser, site) as page,
    ):
        yield page


@asynccontextmanager
async def looking(gallery: Site) -> AsyncGenerator[Page]:
    """Somebody who only looks at what is there."""
    async with browsed() as browser, person(browser, gallery) as page:
        await page.locator(".session").first.wait_for()
        yield page


_UNFINISHED = ("ERR_CONTENT_LENGTH_MISMATCH", "ERR_INCOMPLETE_CHUNKED", "ERR_EMPTY_RESPONSE")


def watch(page: Page, site: Site, wrong: list[str]) -> Callable[[], None]:
    """Until what this returns is called."""

    def logged(message: ConsoleMessage) -> None:
        # A server that is restarted is away for a moment, and one that is killed leaves an answer
        # unfinished: browsers log that by themselves.
        expected = ["ERR_CONNECTION", *(_UNFINISHED if site.was_killed else ())]
        if message.type == "error" and not any(word in message.text for word in expected):
            wrong.append(message.text)

    def asked(request: Request) -> None:
        if not request.url.startswith((site.url, "data:", "blob:", "about:")):
            wrong.append(f"a request to {request.url}")

    def failed(error: Error) -> None:
        wrong.append(str(error))

    page.on("console", logged)
    page.on("pageerror", failed)
    page.on("request", asked)

    def look_away() -> None:
        page.remove_listener("console", logged)
        page.remove_listener("pageerror", failed)
        page.remove_listener("request", asked)

    return look_away


async def new_session(page: Page) -> str:
    """Made as a person would, without a first prompt; its id."""
    dialog = await all_options(page)
    await dialog.get_by_role("button", name="Start", exact=True).click()
    await page.wait_for_url("**/#/s/*")
    await expect(page.locator("#composer")).to_be_focused()
    return page.url.partition("#/s/")[2]


async def all_options(page: Page) -> Locator:
    """The dialog for a new session, which has everything that can be chosen.

    In a narrow window the first screen has the way there, and the list with its button is away.
    """
    begin = page.get_by_role("button", name="New session", exact=True).first
    beginning = page.get_by_role("form", name="New session")
    await begin.or_(beginning).first.wait_for()
    if await begin.is_visible():
        await begin.click()
    await beginning.get_by_role("button", name="All options").click()
    return page.get_by_role("dialog", name="New session")


def chosen(page: Page | Locator, label: str) -> Locator:
    """The button that says what is chosen in one of our lists."""
    return page.get_by_role("button", name=re.compile(f"^{label}: "))


async def pick(page: Page | Locator, label: str, choice: str) -> None:
    """Choose in one of our lists, by the words of its label and of the choice."""
    await chosen(page, label).click()
    surface = page.page if isinstance(page, Locator) else page
    options = surface.get_by_role("listbox", name=label, exact=True).get_by_role("option")
    await options.filter(has_text=choice).first.click()


async def prompt(page: Page, text: str) -> None:
    await page.fill("#composer", text)
    await page.press("#composer", "Enter")


async def answer(page: Page, name: str) -> None:
    """Answer the card that is there, and see it go."""
    request = await page.locator(".card.permission").first.get_attribute("data-request")
    card = page.locator(f"[data-request='{request}']")
    await ready(card)
    await card.get_by_role("button", name=name).first.click()
    await card.wait_for(state="detached")


async def ready(card: Locator) -> None:
    """Nobody can answer what only just appeared."""
    await expect(card).to_have_attribute("data-ready", "")


_QUIET = """() => new Promise((resolve) => {
    let timer
    const observer = new MutationObserver(() => wait())
    const done = () => { observer.disconnect(); resolve() }
    const wait = () => { clearTimeout(timer); timer = setTimeout(done, 100) }
    observer.observe(document, { subtree: true, childList: true, attributes: true })
    wait()
})"""


async def settled(page: Page) -> None:
    """Until nothing is drawn any more."""
    await page.evaluate(_QUIET)


async def finished(page: Page) -> None:
    """The turn that one has seen at work is over; of one that may not have begun, `ran` knows."""
    await page.locator(".head .status.idle").wait_for()


async def ran(page: Page, text: str) -> None:
    """Prompt, and wait for the end of that very turn, which needs no answers."""
    async with page.expect_response(re.compile("/prompt$")) as sending:
        await prompt(page, text)
    response = await sending.value
    turn = (await response.json())["turn"]
    asked = await response.request.all_headers()
    session = response.url.removesuffix("/prompt")
    async with asyncio.timeout(WAIT / 1000):
        while await _last_turn(page, session, asked) != turn:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    await finished(page)


async def _last_turn(page: Page, session: str, asked: dict[str, str]) -> str | None:
    """The one that is over."""
    found = await page.request.get(session, headers={"Authorization": asked["authorization"]})
    last = (await found.json())["lastTurn"]
    return last["id"] if last is not None and last.get("status") in OVER_TURNS else None

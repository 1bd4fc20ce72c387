"""The page in the system's Chromium. Whatever it logs as an error fails the test that opened it."""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Literal

import pytest
from page.site import Site
from playwright.async_api import Browser, ConsoleMessage, Page, Request, async_playwright, expect

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WAIT = 20_000
"""Milliseconds for anything to happen, on a busy machine."""
expect.set_options(timeout=WAIT)


@asynccontextmanager
async def browsed() -> AsyncGenerator[Browser]:
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
    refused: int = 0,
) -> AsyncGenerator[Page]:
    """A profile of its own, on the page, signed in; errors and outside requests are collected.

    What the server refuses with the status `refused` is no error: browsers log that by themselves.
    """
    width, height = size
    profile = await browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme
    )
    profile.set_default_timeout(WAIT)
    wrong: list[str] = []
    page = await profile.new_page()
    watch(page, site, wrong)
    await page.goto(f"{site.url}#token={site.token}")
    yield page
    await profile.close()
    wrong = [text for text in wrong if f"status of {refused}" not in text]
    assert not wrong, wrong


def watch(page: Page, site: Site, wrong: list[str]) -> None:
    def logged(message: ConsoleMessage) -> None:
        # A server that is restarted is away for a moment: browsers log that by themselves.
        if message.type == "error" and "ERR_CONNECTION" not in message.text:
            wrong.append(message.text)

    def asked(request: Request) -> None:
        if not request.url.startswith((site.url, "data:", "blob:")):
            wrong.append(f"a request to {request.url}")

    page.on("console", logged)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", asked)


async def new_session(page: Page) -> str:
    """Made as a person would; its id."""
    await page.get_by_role("button", name="New session", exact=True).first.click()
    await page.get_by_role("button", name="Start", exact=True).click()
    await page.wait_for_url("**/#/s/*")
    await expect(page.locator("#composer")).to_be_focused()
    return page.url.partition("#/s/")[2]


async def prompt(page: Page, text: str) -> None:
    await page.fill("#composer", text)
    await page.press("#composer", "Enter")


async def answer(page: Page, name: str) -> None:
    """Answer the card that is there, and see it go."""
    card = page.locator(".card.permission").first
    request = await card.get_attribute("data-request")
    # Nobody can answer what only just appeared.
    await page.wait_for_timeout(350)
    await card.get_by_role("button", name=name).first.click()
    await page.locator(f"[data-request='{request}']").wait_for(state="detached")


async def finished(page: Page) -> None:
    await page.locator(".head .status.idle").wait_for()

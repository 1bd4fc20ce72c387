"""A session as one HTML file, opened from the disk."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from page.browsing import browsed
from playwright.async_api import expect
from store.stores import record

from dragoman.redactor.text_redactor import Redactor
from dragoman.session.content import Text
from dragoman.session.events import (
    AgentMessage,
    Recorded,
    SessionOpened,
    TerminalOutput,
    TerminalStarted,
    ToolCallUpdated,
    TurnEnded,
    TurnStarted,
)
from dragoman.web.api.session_page import session_page

TOKEN = "npm_" + "aB3dE6gH9jK2" * 3
HOSTILE = (
    "<img src=https://example.org/x onerror=alert(1)><script>fetch('https://example.org')</script>"
)
EVENTS: list[Recorded] = [
    SessionOpened(session_id="a", cwd="/w", continuity="new", agent="demo"),
    TurnStarted(turn_id="t", content=[Text(f"use {TOKEN} {HOSTILE}")]),
    ToolCallUpdated(tool_call_id="c", title="Run make", kind="execute", status="completed"),
    TerminalStarted(terminal_id="x", argv=["make"]),
    TerminalOutput(terminal_id="x", data="built\n"),
    AgentMessage(content=Text(f"**done** {HOSTILE} ![p](https://example.org/y.png)")),
    TurnEnded(turn_id="t", stop_reason="end_turn"),
]


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_it_opens_with_no_request_and_no_error(tmp_path: Path, scheme: str) -> None:
    file = tmp_path / "fix.html"
    bodies = [
        msgspec.json.encode(msgspec.structs.replace(e, seq=n)) for n, e in enumerate(EVENTS, 1)
    ]
    redactor = Redactor()
    file.write_bytes(b"".join(session_page(record(title=HOSTILE), bodies, redactor)))
    async with browsed() as browser:
        page = await browser.new_page(color_scheme=scheme)  # pyright: ignore[reportArgumentType]
        asked: list[str] = []
        wrong: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: wrong.append(message.text))
        page.on("dialog", lambda dialog: wrong.append(dialog.message))
        await page.goto(file.as_uri())
        await expect(page.locator("strong", has_text="done")).to_be_visible()
        await expect(page.get_by_text("1 secret removed: npm token (1).")).to_be_visible()
        await expect(page.get_by_text("[removed: npm token]").first).to_be_visible()
        assert await page.locator("html").get_attribute("data-theme") == scheme
        assert (asked, wrong) == ([file.as_uri()], [])

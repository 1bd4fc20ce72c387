"""Whatever an agent writes is text: nothing of it runs, and nothing is asked of another server."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from page.browsing import browsed, person
from page.payloads import payloads
from page.seeding import told_session
from page.site import prepared
from playwright.async_api import Page, expect

from dragoman.session import events as e
from dragoman.session.content import (
    Audio,
    ContentItem,
    Diff,
    Image,
    Location,
    Resource,
    ResourceLink,
    TerminalItem,
    Text,
    UnknownContent,
)
from dragoman.session.facts import (
    Command,
    ConfigChoice,
    ConfigOption,
    Cost,
    Decision,
    Mode,
    PermissionOption,
    PlanStep,
)


async def test_no_payload_runs_in_any_place_of_a_session(tmp_path: Path) -> None:
    await _show_everywhere(tmp_path, payloads()[:50])


@pytest.mark.soak
@pytest.mark.within(300)
async def test_none_of_all_payloads_runs_in_any_place_of_a_session(tmp_path: Path) -> None:
    texts = payloads()
    assert len(set(texts)) == 250
    await _show_everywhere(tmp_path, texts)


async def _show_everywhere(tmp_path: Path, texts: list[str]) -> None:
    site = prepared(tmp_path)
    async with told_session(site.home, "hostile", site.workspace, title=texts[0]) as teller:
        await teller.tell([event for text in texts for event in _everywhere(text)])
    await site.start()
    try:
        async with browsed() as browser, person(browser, site, size=_TALL) as page:
            await page.evaluate("location.hash = '#/s/hostile'")
            await page.locator(".row").first.wait_for()
            seen = await _see_everything(page)
            assert seen == set(range(max(seen) + 1))
            assert len(seen) > 10 * len(texts)
            assert await page.evaluate("window.ran") is None
    finally:
        await site.stop()


async def _see_everything(page: Page) -> set[int]:
    """Every row comes into view, with what is folded in it; then every tab of the pane."""
    while not await page.locator("[data-place='0']").count():
        # Older entries are still coming in above.
        await page.evaluate("document.querySelector('.scroller').scrollTop = 0")
        await page.wait_for_timeout(50)
    seen: set[int] = set()
    for _ in range(10_000):
        seen |= set(await page.evaluate(_UNFOLD))
        if await page.evaluate(_SCROLL):
            break
    for tab in ("Plan", "Changes", "Terminals", "Raw", "Info"):
        await page.get_by_role("tab", name=tab).click()
        await page.wait_for_timeout(100)
    await page.keyboard.press("Control+k")
    await page.locator(".palette li").first.wait_for()
    return seen


_TALL = (1440, 4000)
_UNFOLD = """() => {
    const all = (what) => [...document.querySelectorAll(what)]
    for (const fold of all('.row [data-fold][aria-expanded=false]')) fold.click()
    for (const details of all('.row details:not([open])')) details.open = true
    return all('.row').map((row) => Number(row.dataset.place))
}"""
_SCROLL = """() => new Promise((resolve) => {
    const scroller = document.querySelector('.scroller')
    const before = scroller.scrollTop
    const rest = scroller.scrollHeight - scroller.clientHeight - before
    scroller.scrollTop += scroller.clientHeight * 0.7
    requestAnimationFrame(() => requestAnimationFrame(() => resolve(rest < 2)))
})"""


def _everywhere(text: str) -> list[e.Event]:
    """One payload in every field that is shown."""
    diff = Diff(text, text, old_text=f"before {text}")
    parts = [
        Text(text),
        Image(text, "image/png"),
        Image("eA==", text),
        Audio(text, text),
        ResourceLink(text, text, title=text, description=text),
        ResourceLink(f"http://outside.example/{text}", text),
        Resource(text, content=text, mime_type=text),
        UnknownContent(text, text),
    ]
    key = str(hash(text))
    patch = f"@@ -1 +1 @@\n-{text}\n+{text}"
    return [
        e.TurnStarted(f"t{key}", [Text(text)]),
        e.InfoChanged(title=text),
        *(e.AgentMessage(part, f"m{key}{at}") for at, part in enumerate(parts)),
        e.AgentThought(Text(text)),
        e.PlanUpdated(steps=[PlanStep(text, text, text)], markdown=text, uri=text),
        e.TerminalStarted(key, [text, text], text, command=text),
        e.TerminalOutput(key, text),
        e.TerminalExited(key, signal=text),
        e.ToolCallUpdated(
            f"c{key}",
            title=text,
            name=text,
            kind=text,
            status=text,
            content=[ContentItem(Text(text)), diff, TerminalItem(key)],
            locations=[Location(text)],
            raw_input={text: text},
            raw_output=text,
        ),
        e.Notice(text, severity="warning", description=text),
        e.CompactionUpdated(f"k{key}", "completed", summary=[Text(text)], error=text),
        e.SubagentUpdated(
            f"s{key}",
            title=text,
            description=text,
            state={"state": text, "stop_reason": text, text: text},
            cwd=text,
        ),
        e.PeerMessageUpdated(
            f"p{key}", sender_session_id=text, recipient_session_id=f"s{key}", content=[Text(text)]
        ),
        e.ToolCallUpdated(
            f"d{key}",
            title=text,
            status="completed",
            content=[Diff(text, "", operation=text, old_path=text, patch=patch)],
            meta={"claudeCode": {"parentToolUseId": f"c{key}"}},
        ),
        e.AccessDecided(text, Decision(text, text, {text: text}), paths=[text], argv=[text]),
        e.UsageChanged(90, 100, Cost(1.0, text)),
        e.UnknownUpdate(text, text),
        e.CommandsChanged([Command(text, text, hint=text)]),
        e.ModeChanged(text, [Mode(text, text, description=text)]),
        e.ConfigChanged([ConfigOption(text, text, text, choices=[ConfigChoice(text, text)])]),
        e.TurnEnded(f"t{key}", "end_turn", error=text),
    ]


async def test_no_payload_runs_in_what_waits_for_an_answer(tmp_path: Path) -> None:
    site = prepared(tmp_path)
    texts = payloads()
    async with told_session(site.home, "asking", site.workspace) as teller:
        await teller.tell([_asked(at, text) for at, text in enumerate(texts)], status="waiting")
        await site.start()
        try:
            async with browsed() as browser, person(browser, site) as page:
                await page.evaluate("location.hash = '#/inbox'")
                await expect(page.locator(".card")).to_have_count(len(texts), timeout=40_000)
                assert await page.evaluate("window.ran") is None
        finally:
            await site.stop()


def _asked(at: int, text: str) -> e.Event:
    if at % 2:
        schema = {"type": "object", "properties": {text: {"type": "string", "title": text}}}
        return e.ElicitationRequested(f"q{at}", text, text, schema=schema, url=text)
    options = [PermissionOption(text, text, "allow_always")]
    return e.PermissionRequested(
        f"q{at}",
        options,
        title=text,
        operation=text,
        paths=[text],
        argv=[text, text],
        content=[Diff(text, text)],
        description=text,
        explanation=text,
    )


async def test_the_checks_would_notice_a_payload_that_ran(tmp_path: Path) -> None:
    """The control: what the page itself does is seen, and the policy of the page is there."""
    site = prepared(tmp_path)
    await site.start()
    try:
        async with browsed() as browser:
            page = await browser.new_page()
            wrong: list[str] = []
            page.on("console", lambda message: wrong.append(message.text))
            await page.goto(site.url)
            await page.evaluate("window.ran = 1")
            assert await page.evaluate("window.ran") == 1
            blocked = (
                "() => { try { document.body.innerHTML = '<b>' } catch (e) { return e.name } }"
            )
            assert await page.evaluate(blocked) == "TypeError"
            await page.evaluate("new Image().src = 'http://outside.example/x.png'")
            await page.wait_for_timeout(200)
            assert any("Content Security Policy" in text for text in wrong)
    finally:
        await site.stop()


def test_payloads_can_be_stored() -> None:
    for text in payloads():
        assert msgspec.json.decode(msgspec.json.encode(text)) == text

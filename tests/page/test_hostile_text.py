"""Whatever an agent writes is text: nothing of it runs, and nothing is asked of another server."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from page.browsing import LONG, browsed, new_session, person, ran, settled
from page.payloads import payloads
from page.seeding import told_session
from page.site import prepared, scripted, served
from playwright.async_api import Page, expect

from dragoman.host.rules.rule import Rule
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
    SubagentState,
)


async def test_no_payload_runs_in_any_place_of_a_session(tmp_path: Path) -> None:
    await _show_everywhere(tmp_path, payloads()[:50])


@pytest.mark.soak
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
            assert not await page.evaluate("window.hidden_seen")
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
        await page.evaluate(f"window.hidden_seen ||= {_HIDDEN}")
        if await page.evaluate(_SCROLL):
            break
    for tab in ("Plan", "Changes", "Terminals", "Raw", "Info"):
        await page.get_by_role("tab", name=tab).click()
        await settled(page)
    await page.keyboard.press("Control+k")
    await page.locator(".palette li").first.wait_for()
    return seen


_TALL = (1440, 4000)
_HIDDEN = (
    "/[\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2060-\\u2069\\ufeff]/.test(document.body.innerText)"
)
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
            state=SubagentState(text, stop_reason=text, error={text: text}),
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


async def test_no_payload_runs_that_an_agent_tells_of_itself(tmp_path: Path) -> None:
    """In what it answers, lists and refuses: raw frames, the import, errors, the doctor."""
    async with (
        served(tmp_path, *scripted(tmp_path, "hostile")) as site,
        browsed() as browser,
        person(browser, site, size=_TALL, refused=400) as page,
    ):
        await new_session(page)
        await ran(page, "Go")
        await page.get_by_role("tab", name="Raw").click()
        await expect(page.locator(".frames details").first).to_be_visible()
        await page.evaluate(
            "for (const it of document.querySelectorAll('.frames details')) it.open = true"
        )
        await page.get_by_role("button", name="Import", exact=True).first.click()
        await page.get_by_role("button", name="List its sessions").click()
        found = page.locator("dialog .hit")
        await expect(found).to_have_count(len(payloads()))
        await found.first.click()
        await expect(page.get_by_role("alert")).to_be_visible()
        assert not await page.evaluate(_HIDDEN)
        await page.keyboard.press("Escape")
        await page.evaluate("location.hash = '#/agents'")
        await page.get_by_role("button", name="Check").first.click()
        await expect(page.get_by_label("Check results")).to_be_visible()
        await page.get_by_role("button", name="Sign in").first.click()
        await settled(page)
        assert not await page.evaluate(_HIDDEN)
        assert await page.evaluate("window.ran") is None


_WRITTEN = "so&#x202E;drawkcab [a&#8203;b](https://x.example/&#x202e;) `\u202ecode`"


async def test_nothing_hides_or_turns_letters_around(tmp_path: Path) -> None:
    """However it is written: as it is, as an entity, in a terminal, at the end of a line."""
    site = prepared(tmp_path)
    async with told_session(site.home, "sly", site.workspace, title="a\u202eb") as teller:
        diff = Diff("a.py", "kept\r\nok\rhidden\r\n", old_text="kept\r\n")
        await teller.tell(
            [
                e.TurnStarted("t", [Text("Go")]),
                e.AgentMessage(Text(_WRITTEN)),
                e.TerminalStarted("x", ["ls"], "/w"),
                e.TerminalOutput("x", "gpj.\u202egnp.exe\r\n"),
                e.ToolCallUpdated("c", title="Edit", content=[diff, TerminalItem("x")]),
                e.TurnEnded("t", "end_turn"),
            ]
        )
    await site.start()
    try:
        async with browsed() as browser, person(browser, site) as page:
            await page.evaluate("location.hash = '#/s/sly'")
            await expect(page.locator(".said.agent")).to_contain_text("so⟨U+202E⟩drawkcab")
            await expect(page.locator(".said.agent a")).to_have_text("a⟨U+200B⟩b")
            added = page.locator(".line.added .text")
            await expect(added).to_have_text("ok␍hidden␍")
            await expect(page.locator(".line.kept .text")).to_have_text("kept")
            await page.get_by_role("tab", name="Terminals").click()
            await expect(page.locator(".xterm-rows")).to_contain_text("⟨U+202E⟩gnp.exe")
            assert not await page.evaluate(_HIDDEN)
    finally:
        await site.stop()


_SCREENS = ("", "inbox", "agents", "policies", "grid", "search/words", "s/hostile0/replay")


async def test_no_payload_runs_on_any_other_screen(tmp_path: Path) -> None:
    """In titles, search results, decisions, rules, the grid, replay and the dialogs of sessions."""
    site = prepared(tmp_path)
    texts = payloads()
    for at in range(6):
        some = texts[at::6]
        async with told_session(site.home, f"hostile{at}", site.workspace, title=some[0]) as it:
            events = [event for text in some[:6] for event in _everywhere(text)]
            await it.tell(events, said=[f"words {text}" for text in some], status="idle")
            for text in some:
                it.remember(Rule(effect="deny", argv=(text,), id=f"{at}{hash(text)}"))
    await site.start()
    try:
        async with browsed() as browser, person(browser, site, size=_TALL) as page:
            for screen in _SCREENS:
                await page.evaluate(f"location.hash = '#/{screen}'")
                await settled(page)
            await page.evaluate("location.hash = '#/search/words'")
            await expect(page.locator(".hit").first).to_be_visible()
            await page.evaluate("location.hash = '#/policies'")
            await expect(page.locator(".tablewrap tbody tr")).to_have_count(len(texts))
            await expect(page.locator(".why .decisions li").first).to_be_visible()
            for action in ("Rename", "Fork", "Delete"):
                await page.locator(".session").first.hover()
                await page.locator(".rowmenu button").first.click()
                await page.get_by_role("button", name=action, exact=True).first.click()
                await page.locator("dialog[open]").wait_for()
                await page.keyboard.press("Escape")
            assert not await page.evaluate(_HIDDEN)
            assert await page.evaluate("window.ran") is None
    finally:
        await site.stop()


async def test_no_payload_runs_in_what_waits_for_an_answer(tmp_path: Path) -> None:
    await _ask_with(tmp_path, payloads()[:50])


@pytest.mark.soak
async def test_none_of_all_payloads_runs_in_what_waits_for_an_answer(tmp_path: Path) -> None:
    await _ask_with(tmp_path, payloads())


async def _ask_with(tmp_path: Path, texts: list[str]) -> None:
    site = prepared(tmp_path)
    async with told_session(site.home, "asking", site.workspace) as teller:
        await teller.tell([_asked(at, text) for at, text in enumerate(texts)], status="waiting")
        await site.start()
        try:
            async with browsed() as browser, person(browser, site) as page:
                await page.evaluate("location.hash = '#/inbox'")
                asked = page.locator(".asklist button")
                await expect(asked).to_have_count(len(texts), timeout=LONG)
                for at in range(len(texts)):
                    await asked.nth(at).click()
                    await page.locator(f".card[data-request='q{at}']").wait_for()
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
            await settled(page)
            assert any("Content Security Policy" in text for text in wrong)
    finally:
        await site.stop()


def test_payloads_can_be_stored() -> None:
    for text in payloads():
        assert msgspec.json.decode(msgspec.json.encode(text)) == text

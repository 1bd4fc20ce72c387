"""Rules kept with a project: read on the page, and trusted as they were shown."""

from __future__ import annotations

import json
from pathlib import Path

from page.browsing import browsed, new_session, person
from page.payloads import payloads
from page.site import served
from playwright.async_api import Page, expect

from dragoman.host.rules.project_file import NAME

ALLOW = '[[rules]]\neffect = "allow"\noperation = "write"\n'
DENY = '[[rules]]\neffect = "deny"\noperation = "write"\npath = "secret/**"\n'
HIDDEN = "/[\\u200b\\u202a-\\u202e\\ufeff]/.test(document.body.innerText)"
RUN = '[[rules]]\neffect = "allow"\noperation = "execute"\n'


def keep(workspace: Path, content: str) -> None:
    (workspace / ".dragoman").mkdir(exist_ok=True)
    (workspace / NAME).write_text(content)


async def decided(page: Page, path: str) -> str:
    """What the rules say about writing this."""
    forms = page.get_by_role("region", name="Try the rules")
    await forms.get_by_label("Request").select_option("Write a file")
    await forms.get_by_label("Path").fill(path)
    await forms.get_by_role("button", name="Try it").click()
    return await forms.locator(".verdict .effect").inner_text()


async def test_a_session_leads_to_its_project_s_rules_and_they_count_while_they_are_trusted(
    tmp_path: Path,
) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        keep(site.workspace, ALLOW + DENY)
        await new_session(page)
        line = page.locator(".rulesline")
        await expect(line).to_contain_text("The project’s rules are not trusted")
        await line.get_by_role("link").click()
        card = page.get_by_role("article", name="Rules kept with project")
        await expect(card).to_be_focused()
        await expect(card.locator("li")).to_have_text(
            [
                "allow writing any file in this project",
                "refuse writing files secret/** in this project",
            ]
        )
        assert await decided(page, "a") == "You would be asked"
        await card.get_by_role("button", name="Trust these rules").click()
        await expect(card.locator("header .tag")).to_have_text("trusted")
        rows = page.get_by_role("region", name="Rules", exact=True).locator("tbody tr")
        await expect(rows).to_have_count(2)
        assert await decided(page, "a") == "Allowed"
        assert await decided(page, "secret/a") == "Refused"
        await expect(card.get_by_role("button", name="Trust these rules")).to_have_count(0)
        await page.go_back()
        await page.locator("#composer").wait_for()
        await expect(line).to_have_count(0)
        await page.go_forward()
        await card.get_by_role("button", name="Stop trusting").click()
        await expect(card.locator("header .tag")).to_have_text("not trusted")
        await expect(rows).to_have_count(0)
        assert await decided(page, "a") == "You would be asked"


async def test_what_changed_is_marked_and_only_what_was_shown_is_trusted(tmp_path: Path) -> None:
    async with (
        served(tmp_path) as site,
        browsed() as browser,
        person(browser, site, refused=409) as page,
    ):
        keep(site.workspace, ALLOW + DENY)
        await new_session(page)
        await page.evaluate("location.hash = '#/policies'")
        card = page.get_by_role("article", name="Rules kept with project")
        trust = card.get_by_role("button", name="Trust these rules")
        await trust.click()
        await expect(trust).to_have_count(0)
        keep(site.workspace, ALLOW + RUN)
        await page.reload()
        await expect(card.locator("header .tag")).to_have_text("changed")
        rules = [
            "allow writing any file in this project",
            "allow running any command in this project new",
            "refuse writing files secret/** in this project no longer in the file, still applies",
        ]
        await expect(card.locator("li")).to_have_text(rules)
        allowed = page.get_by_role("region", name="Rules", exact=True).locator("tr").last
        await expect(allowed).to_contain_text("not in force: the file has changed")
        assert await decided(page, "a") == "You would be asked"
        assert await decided(page, "secret/a") == "Refused"
        # The agent is quicker than the person who reads.
        keep(site.workspace, RUN)
        await trust.click()
        await expect(card.get_by_role("alert")).to_contain_text("nothing was trusted")
        await expect(card.locator("li")).to_have_text(rules)
        await expect(trust).to_have_count(0)
        await card.get_by_role("button", name="Show it as it is now").click()
        await expect(card.locator("li").first).to_have_text(
            "allow running any command in this project new"
        )
        assert await decided(page, "secret/a") == "Refused"
        await trust.click()
        await expect(card.locator("li")).to_have_count(1)
        assert await decided(page, "secret/a") == "You would be asked"
        keep(site.workspace, "[[rules]]\neffect = 1\n")
        await page.reload()
        await expect(card.locator(".notice")).to_contain_text("policy.toml: rules[0]")
        await expect(trust).to_have_count(0)
        (site.workspace / NAME).unlink()
        await page.reload()
        await expect(card.locator("header .tag")).to_have_text("gone")
        await card.get_by_role("button", name="Stop trusting").click()
        await expect(card).to_have_count(0)


async def test_nothing_in_a_file_of_rules_runs_or_hides(tmp_path: Path) -> None:
    texts = [*payloads()[:40], "cat \u202esafe", "\ufeffls\u200b"]
    rules = [f"argv = [{json.dumps(text)}]\nagent = {json.dumps(text)}\n" for text in texts]
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        keep(site.workspace, "".join(f'[[rules]]\neffect = "allow"\n{rule}' for rule in rules))
        await new_session(page)
        await page.evaluate("location.hash = '#/policies'")
        card = page.get_by_role("article", name="Rules kept with project")
        await expect(card.locator("li")).to_have_count(len(texts))
        assert "<script>" in await card.inner_text()
        await card.get_by_role("button", name="Trust these rules").click()
        rows = page.get_by_role("region", name="Rules", exact=True).locator("tbody tr")
        await expect(rows).to_have_count(len(texts))
        assert not await page.evaluate(HIDDEN)
        for text in texts[-5:]:
            keep(site.workspace, f'[[rules]]\neffect = "allow"\n{json.dumps(text)} = 1\n')
            await page.reload()
            await expect(card.locator(".notice")).to_contain_text("unknown key")
            assert not await page.evaluate(HIDDEN)
        assert await page.evaluate("window.ran") is None

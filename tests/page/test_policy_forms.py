"""The policies screen: what the rules would decide, and a rule that a person adds."""

from __future__ import annotations

from pathlib import Path

from page.browsing import browsed, expect, person
from page.site import served


async def test_a_request_is_tried_and_a_rule_for_it_is_added_and_revoked(tmp_path: Path) -> None:
    async with (
        served(tmp_path) as site,
        browsed() as browser,
        person(browser, site, refused=400) as page,
    ):
        await page.evaluate("location.hash = '#/policies'")
        forms = page.get_by_role("region", name="Try the rules")
        await forms.get_by_label("Command", exact=True).fill("cd src && git push --force")
        await forms.get_by_role("button", name="Try it").click()
        await expect(forms.get_by_role("status")).to_contain_text("You would be asked")
        # A rule cannot name a whole line, and the page says so.
        await forms.get_by_role("button", name="Add rule").click()
        await expect(page.locator(".toast.bad")).to_contain_text("is not one plain command")
        await forms.get_by_label("Command", exact=True).first.fill("git push")
        await forms.get_by_label("From now on").select_option("Refuse it")
        await forms.get_by_role("combobox", name="Command").select_option(
            "Any that begin with them"
        )
        await forms.get_by_role("button", name="Add rule").click()
        await expect(forms.get_by_role("status")).to_contain_text("Refused: your rule denies it")
        rows = page.locator(".tablewrap tbody tr")
        await expect(rows).to_have_count(1)
        await expect(rows).to_contain_text("git push …")
        await expect(rows).to_contain_text("added by you")
        await forms.get_by_label("Command", exact=True).first.fill("cd src && git push --force")
        await forms.get_by_role("button", name="Try it").click()
        told = forms.get_by_role("status")
        await expect(told).to_contain_text("Refused: your rule denies a part of it")
        await rows.get_by_role("button", name="Revoke").click()
        await expect(rows).to_have_count(0)


async def test_a_rule_that_will_not_decide_says_so(tmp_path: Path) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        await page.evaluate("location.hash = '#/policies'")
        forms = page.get_by_role("region", name="Try the rules")
        await forms.get_by_label("Request").select_option("Write a file")
        await forms.get_by_label("Path").fill(".git/hooks/pre-commit")
        await forms.get_by_role("button", name="Add rule").click()
        warning = forms.locator(".notice.warning")
        await expect(warning).to_contain_text("is protected: version control runs the commands")
        await expect(forms.get_by_role("status")).to_contain_text("You would be asked")

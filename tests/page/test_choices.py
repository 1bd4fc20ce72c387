"""What a session is begun with and can be changed to: agents, signing in, modes and models."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from page.browsing import (
    all_options,
    browsed,
    chosen,
    meeting,
    new_session,
    person,
    pick,
    prompt,
    ran,
)
from page.site import scripted, served
from playwright.async_api import expect


async def test_modes_that_are_options_stand_in_the_mode_selector(tmp_path: Path) -> None:
    async with meeting(tmp_path, "optional") as page:
        await new_session(page)
        mode, model = chosen(page, "Mode"), chosen(page, "Model")
        await pick(page, "Mode", "Plan only")
        await expect(mode).to_have_attribute("data-value", "plan")
        await page.locator(".scroller").focus()
        await page.keyboard.press("m")
        await expect(mode).to_be_focused()
        await page.reload()
        await expect(mode).to_have_attribute("data-value", "plan")
        await expect(model).to_have_attribute("data-value", "small")


async def test_a_session_is_begun_in_a_mode_and_with_a_model(tmp_path: Path) -> None:
    async with meeting(tmp_path, "optional") as page:
        first = await new_session(page)
        await expect(chosen(page, "Mode")).to_have_attribute("data-value", "build")
        await all_options(page)
        dialog = page.get_by_role("dialog")
        await dialog.get_by_text("More options").click()
        # What the agent offered before is there to choose from.
        await dialog.get_by_label("Mode", exact=True).select_option(label="Plan only")
        await dialog.get_by_label("Model", exact=True).select_option(label="Large")
        await dialog.get_by_label("Folder").fill(str(tmp_path))
        await dialog.get_by_role("button", name="Start", exact=True).click()
        await page.wait_for_url(lambda url: "#/s/" in url and first not in url)
        await expect(chosen(page, "Mode")).to_have_attribute("data-value", "plan")
        await expect(chosen(page, "Model")).to_have_attribute("data-value", "large")
        await expect(page.locator(".group")).to_have_count(2)


async def test_files_and_terminals_are_switched_off_for_a_new_session(tmp_path: Path) -> None:
    async with meeting(tmp_path, "offered") as page:
        await new_session(page)
        await prompt(page, "What is there?")
        await expect(page.locator(".said.agent")).to_have_text("Files: yes. Terminals: yes.")
        await all_options(page)
        dialog = page.get_by_role("dialog")
        await dialog.get_by_text("More options").click()
        await dialog.get_by_label("Reading and writing files").uncheck()
        await dialog.get_by_label("Running commands in terminals").uncheck()
        await expect(dialog).to_contain_text("Dragoman does not check those")
        await dialog.get_by_role("button", name="Start", exact=True).click()
        await expect(dialog).to_have_count(0)
        await prompt(page, "What is there?")
        await expect(page.locator(".said.agent")).to_have_text("Files: no. Terminals: no.")
        await page.get_by_role("tab", name="Info").click()
        await expect(page.locator(".info dl")).to_contain_text("files, terminals")


async def test_an_agent_that_wants_a_sign_in_shows_the_ways(tmp_path: Path) -> None:
    async with (
        served(tmp_path, *scripted(tmp_path, "locked")) as site,
        browsed() as browser,
        person(browser, site, refused=409) as page,
    ):
        await all_options(page)
        folder = page.get_by_role("dialog").get_by_label("Folder")
        # Typed before its default is learnt, which no hand is quick enough for, it would be both.
        await expect(folder).to_have_value(str(site.workspace))
        await folder.fill(str(tmp_path))
        await page.get_by_role("button", name="Start", exact=True).click()
        dialog = page.get_by_role("dialog", name="Sign in")
        await expect(dialog).to_contain_text("requires you to sign in")
        await expect(dialog.get_by_label("The command to run")).to_contain_text("login --now")
        await dialog.get_by_role("button", name="Sign in: With a key").click()
        await expect(page.locator(".toast")).to_have_text("Signed in.")
        await expect(dialog).to_have_count(0)
        # What was begun goes on, where it shall work.
        await page.wait_for_url("**/#/s/*")
        await expect(page.locator(".head .facts")).to_contain_text(tmp_path.name)
        await prompt(page, "Hello")
        await expect(page.locator(".said.agent")).to_contain_text("Welcome.")


async def test_what_an_agent_asks_while_signing_in_is_answered_there(tmp_path: Path) -> None:
    program = Path(__file__).parent.parent / "cli" / "programs" / "device_login.py"
    agent = {"command": sys.executable, "args": [str(program)]}
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"agent_servers": {"device": agent}}))
    async with (
        served(tmp_path, "--settings", str(settings)) as site,
        browsed() as browser,
        person(browser, site) as page,
    ):
        await page.evaluate("location.hash = '#/agents'")
        card = page.locator(".agents .card", has_text="device").first
        await card.get_by_role("button", name="Sign in").click()
        await card.get_by_role("button", name="Sign in: Device code").click()
        question = page.get_by_label("Question from the agent")
        await expect(question).to_contain_text("Enter the code ABCD-1234")
        await expect(question.get_by_role("link")).to_have_attribute(
            "href", "https://example.com/device"
        )
        await question.get_by_role("button", name="Done").click()
        await expect(page.locator(".toast")).to_have_text("Signed in.")
        await expect(question).to_have_count(0)


async def test_the_model_providers_of_an_agent_are_shown_and_set(tmp_path: Path) -> None:
    program = Path(__file__).parent.parent / "cli" / "programs" / "providers_agent.py"
    agents = {"gateway": {"command": sys.executable, "args": ["-S", str(program)]}}
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"agent_servers": agents}))
    async with (
        served(tmp_path, "--settings", str(settings)) as site,
        browsed() as browser,
        person(browser, site) as page,
    ):
        await page.evaluate("location.hash = '#/agents'")
        card = page.locator(".agents .card", has_text="gateway").first
        await card.get_by_role("button", name="Model providers").click()
        listed = card.get_by_label("Model providers").get_by_role("listitem")
        provider = listed.filter(has_text="main")
        await expect(provider).to_contain_text("openai at https://api.example")
        await provider.get_by_label("Protocol").select_option("anthropic")
        await provider.get_by_label("Address").fill("https://llm.example")
        await provider.get_by_label("Authorization header").fill("Bearer k")
        await provider.get_by_role("button", name="Set").click()
        await expect(provider).to_contain_text("anthropic at https://llm.example")
        await expect(provider.get_by_label("Authorization header")).to_have_value("")
        # One whose protocols the agent does not name cannot be set.
        await expect(listed.filter(has_text="more").get_by_role("button")).to_have_count(0)
        # In sessions too: the agent tells what it was given.
        await new_session(page)
        await prompt(page, "what were you given?")
        await expect(page.locator(".said.agent")).to_contain_text("Bearer k")
        await page.evaluate("location.hash = '#/agents'")
        await card.get_by_role("button", name="Model providers").click()
        await provider.get_by_role("button", name="Switch off").click()
        await expect(provider).to_contain_text("switched off")
        await expect(provider.get_by_role("button", name="Switch off")).to_have_count(0)


async def test_sessions_that_the_agent_archived_are_listed_on_request(tmp_path: Path) -> None:
    program = Path(__file__).parent.parent / "cli" / "programs" / "providers_agent.py"
    agents = {"gateway": {"command": sys.executable, "args": ["-S", str(program)]}}
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"agent_servers": agents}))
    async with (
        served(tmp_path, "--settings", str(settings)) as site,
        browsed() as browser,
        person(browser, site) as page,
    ):
        await page.get_by_role("button", name="Import", exact=True).first.click()
        await page.get_by_role("button", name="List its sessions").click()
        await expect(page.get_by_text("The agent has no sessions.")).to_be_visible()
        await page.get_by_label("Archived ones too").check()
        await page.get_by_role("button", name="List its sessions").click()
        await expect(page.locator(".hit")).to_contain_text("An old one")
        await expect(page.locator(".hit .tag")).to_have_text(["archived", "saved"])


async def test_an_agent_without_model_providers_says_so(tmp_path: Path) -> None:
    async with (
        served(tmp_path, *scripted(tmp_path, "optional")) as site,
        browsed() as browser,
        person(browser, site, refused=409) as page,
    ):
        await page.evaluate("location.hash = '#/agents'")
        card = page.locator(".agents .card").first
        await card.get_by_role("button", name="Model providers").click()
        await expect(card.locator(".notice")).to_contain_text("providers")


def careful(folder: Path) -> tuple[str, str]:
    """The arguments with which the server has this agent alone."""
    program = Path(__file__).parent / "programs" / "asks_at_load.py"
    agent = {"command": sys.executable, "args": [str(program)]}
    settings = folder / "settings.json"
    settings.write_text(json.dumps({"agent_servers": {"careful": agent}}))
    return "--settings", str(settings)


async def test_what_an_agent_asks_on_its_own_is_in_the_inbox_at_once(tmp_path: Path) -> None:
    async with (
        served(tmp_path, *careful(tmp_path)) as site,
        browsed() as browser,
        person(browser, site) as page,
    ):
        await new_session(page)
        await prompt(page, "ask me something")
        await expect(page).to_have_title("(1) Dragoman")
        await page.evaluate("location.hash = '#/inbox'")
        question = page.get_by_label("Question from the agent")
        await expect(question).to_contain_text("Which code, by the way?")
        await question.get_by_label("Code").fill("1234")
        await question.get_by_role("button", name="Send").click()
        await expect(question).to_have_count(0)
        await expect(page).to_have_title("Dragoman")
        await expect(page.get_by_text("Nothing needs your answer.")).to_be_visible()


async def test_what_an_agent_asks_before_it_goes_on_is_answered_in_the_session(
    tmp_path: Path,
) -> None:
    async with (
        served(tmp_path, *careful(tmp_path)) as site,
        browsed() as browser,
        person(browser, site) as page,
    ):
        await new_session(page)
        await ran(page, "Hello")
        await site.stop()
        await site.start()
        await page.reload()
        await prompt(page, "Are you there?")
        question = page.get_by_label("Question from the agent")
        await expect(question).to_contain_text("Which code?")
        # One that the page did not see come is shown after a reload too.
        await page.reload()
        await expect(question).to_contain_text("Which code?")
        await question.get_by_label("Code").fill("1234")
        await question.get_by_role("button", name="Send").click()
        await expect(page.locator(".said.agent")).to_have_count(2)
        await expect(question).to_have_count(0)


async def test_one_signs_out_on_the_agents_screen(tmp_path: Path) -> None:
    async with (
        served(tmp_path, *scripted(tmp_path, "locked")) as site,
        browsed() as browser,
        person(browser, site, refused=409) as page,
    ):
        await page.evaluate("location.hash = '#/agents'")
        card = page.locator(".agents .card", has_text="locked").first
        await card.get_by_role("button", name="Sign in").click()
        await card.get_by_role("button", name="Sign in: With a key").click()
        await expect(page.locator(".toast")).to_have_text("Signed in.")
        await card.get_by_role("button", name="Sign out").click()
        await expect(page.locator(".toast")).to_have_text("Signed out.")
        await all_options(page)
        await page.get_by_role("button", name="Start", exact=True).click()
        await expect(page.get_by_role("dialog", name="Sign in")).to_be_visible()


async def test_what_is_known_of_signing_in_to_an_agent_is_shown(tmp_path: Path) -> None:
    async with (
        served(tmp_path, *scripted(tmp_path, "locked", called="auggie")) as site,
        browsed() as browser,
        person(browser, site, refused=409) as page,
    ):
        await page.evaluate("location.hash = '#/agents'")
        card = page.locator(".agents .card", has_text="auggie").first
        await card.get_by_role("button", name="Sign in").click()
        await expect(card).to_contain_text("The agent’s own sign-in: set AUGMENT_SESSION_AUTH")


async def test_why_an_agent_did_not_start_is_said_where_one_asked_for_it(tmp_path: Path) -> None:
    broken = {"command": "sh", "args": ["-c", "echo the key is missing >&2; exit 3"]}
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"agent_servers": {"broken": broken}}))
    async with (
        served(tmp_path, "--settings", str(settings)) as site,
        browsed() as browser,
        person(browser, site, refused=502) as page,
    ):
        await all_options(page)
        dialog = page.get_by_role("dialog", name="New session")
        await dialog.get_by_label("Agent").select_option("broken")
        await dialog.get_by_role("button", name="Start", exact=True).click()
        await expect(dialog.get_by_role("alert")).to_contain_text("the key is missing")
        await dialog.get_by_role("button", name="Dismiss").click()
        await expect(dialog.get_by_role("alert")).to_have_count(0)
        await expect(dialog.get_by_label("Agent")).to_have_value("broken")


async def test_a_folder_that_is_not_there_is_said_at_its_field(tmp_path: Path) -> None:
    async with (
        served(tmp_path) as site,
        browsed() as browser,
        person(browser, site, refused=400) as page,
    ):
        await all_options(page)
        dialog = page.get_by_role("dialog", name="New session")
        field = dialog.get_by_label("Folder")
        await expect(field).to_have_value(str(site.workspace))
        await expect(dialog).to_contain_text("The server’s start folder")
        missing = str(tmp_path / "missing")
        await field.fill(missing)
        await dialog.get_by_role("button", name="Start", exact=True).click()
        await expect(dialog.get_by_role("alert")).to_have_text(f"{missing}: no such folder")
        await expect(page.locator(".toast")).to_have_count(0)
        await expect(field).to_have_attribute("aria-invalid", "true")
        await field.fill("")
        await expect(dialog).to_contain_text("The server’s start folder")
        await dialog.get_by_role("button", name="Start", exact=True).click()
        await expect(page.locator(".head .facts")).to_contain_text(site.workspace.name)


@pytest.mark.skipif(sys.platform != "linux", reason="a fence needs Linux")
async def test_a_new_session_can_have_a_fence_which_its_header_shows(tmp_path: Path) -> None:
    async with (
        served(tmp_path) as site,
        browsed() as browser,
        person(browser, site) as page,
    ):
        await all_options(page)
        dialog = page.get_by_role("dialog", name="New session")
        await dialog.get_by_label("Agent").select_option("demo")
        await dialog.get_by_text("More options").click()
        await dialog.get_by_label("Fence").select_option("Required")
        await expect(dialog).to_contain_text("Without a fence the session does not start.")
        await dialog.get_by_role("button", name="Start", exact=True).click()
        await expect(
            page.locator(".head").get_by_text("fenced · network: all", exact=True)
        ).to_be_visible()


async def test_the_folder_is_that_of_the_project_one_is_in(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        await all_options(page)
        folder = page.get_by_role("dialog").get_by_label("Folder")
        # Typed before its default is learnt, which no hand is quick enough for, it would be both.
        await expect(folder).to_have_value(str(site.workspace))
        await folder.fill(str(other))
        await page.get_by_role("button", name="Start", exact=True).click()
        await page.wait_for_url("**/#/s/*")
        await expect(page.locator("#composer")).to_be_focused()
        await page.get_by_role("button", name="New session", exact=True).first.click()
        await expect(page.locator("#composer")).to_be_focused()
        await expect(chosen(page, "Folder")).to_have_attribute("data-value", str(other))


async def test_a_failure_in_a_dialog_is_over_with_it(tmp_path: Path) -> None:
    broken = {"command": "sh", "args": ["-c", "exit 3"]}
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"agent_servers": {"broken": broken}}))
    async with (
        served(tmp_path, "--settings", str(settings)) as site,
        browsed() as browser,
        person(browser, site, refused=502) as page,
    ):
        toast = page.locator(".toast.bad")
        await all_options(page)
        await page.get_by_role("button", name="Start", exact=True).click()
        await toast.wait_for()
        await page.keyboard.press("Escape")
        await expect(toast).to_have_count(0)


async def test_a_session_is_begun_with_a_system_prompt_and_shows_it(tmp_path: Path) -> None:
    async with meeting(tmp_path, "instructed") as page:
        await all_options(page)
        dialog = page.get_by_role("dialog")
        await dialog.get_by_text("More options").click()
        await dialog.get_by_label("System prompt").fill("Be brief.\nAlways.")
        await dialog.get_by_label("Replace the built-in instructions").check()
        await dialog.get_by_role("button", name="Start", exact=True).click()
        await expect(dialog).to_have_count(0)
        await prompt(page, "What were you told?")
        await expect(page.locator(".said.agent")).to_contain_text("override: Be brief.")
        await page.get_by_role("tab", name="Info").click()
        await expect(page.locator(".info dl")).to_contain_text("System prompt (override)")
        await expect(page.locator(".info dl")).to_contain_text("Always.")


async def test_an_agent_that_is_not_signed_in_says_so_above_the_first_prompt(
    tmp_path: Path,
) -> None:
    async with meeting(tmp_path, "signed_out") as page:
        await new_session(page)
        line = page.get_by_role("status").filter(has_text="is not signed in")
        await line.get_by_role("button", name="Sign in").click()
        await page.get_by_role("dialog").get_by_role("button", name="A key").click()
        await expect(line).to_have_count(0)
        await page.goto(page.url.partition("#")[0] + "#/agents")
        await expect(page.locator(".agents .card").first).to_contain_text("Signed in")

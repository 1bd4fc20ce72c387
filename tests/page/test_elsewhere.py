"""Sessions of other hosts, and what one host alone can do: where they begin, run and go on, and the
stop of one thing in a turn.

The hosts are servers of this process, each with a home of its own, as on machines of their own.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from page.browsing import all_options, browsed, person, prompt
from page.site import Site
from playwright.async_api import expect
from support.serving import TOKEN, Served, also_served
from support.v2_agent import stoppable

from dragoman import Policy
from dragoman.testing import ScriptedAgent
from dragoman.testing.steps import say

PAGE = Path(str(files("dragoman"))) / "web" / "static"


def saying(word: str) -> dict[str, ScriptedAgent]:
    """It has the name of an agent that every page offers."""
    return {"demo": ScriptedAgent([say(word)])}


def seen(web: Served) -> Site:
    return Site(web.cwd, web.cwd, web.port, TOKEN)


async def test_a_session_begins_on_the_host_that_is_chosen(tmp_path: Path) -> None:
    async with (
        also_served(tmp_path, saying("from one"), on_disk=True, host="one", page=PAGE) as one,
        also_served(tmp_path, saying("from two"), on_disk=True, host="two") as two,
        browsed() as browser,
        person(browser, seen(one)) as page,
    ):
        await all_options(page)
        hosts = page.get_by_label("Host")
        await expect(hosts.locator("option")).to_have_text(
            ["Least busy", "one (this server)", "two"]
        )
        await hosts.select_option("two")
        await page.get_by_role("button", name="Start", exact=True).click()
        await expect(page.locator(".head .facts")).to_contain_text("on two")
        assert len(two.server.hub.live) == 1
        await prompt(page, "Who is there?")
        await expect(page.locator(".said.agent")).to_contain_text("from two")
        await page.get_by_role("tab", name="Info").click()
        await expect(page.locator(".info dl")).to_contain_text("two")


async def test_a_session_whose_host_died_goes_on_at_another(tmp_path: Path) -> None:
    async with (
        also_served(tmp_path, saying("from one"), on_disk=True, host="one", page=PAGE) as one,
        browsed() as browser,
        person(browser, seen(one), refused=409) as page,
    ):
        async with also_served(tmp_path, saying("from two"), on_disk=True, host="two") as two:
            session = await two.new_session(agent="demo", host="two")
            await two.done(session, "Remember this")
        await page.evaluate(f"location.hash = '#/s/{session}'")
        await expect(page.locator(".head .facts")).to_contain_text("on two, offline")
        notice = page.get_by_role("status").filter(has_text="The host of this session")
        # Another machine's agent has not its memory: one is asked whether that will do.
        page.once("dialog", lambda dialog: dialog.accept())
        await notice.get_by_role("button", name="Continue on one").click()
        await expect(notice).to_have_count(0)
        await expect(page.locator(".reset")).to_contain_text("lost its memory here")
        await prompt(page, "Who is there?")
        await expect(page.locator(".said.agent").last).to_contain_text("from one")


async def test_one_tool_call_and_one_terminal_are_stopped_and_the_turn_goes_on(
    tmp_path: Path,
) -> None:
    agents = {"demo": ScriptedAgent(stoppable)}
    async with (
        also_served(tmp_path, agents, policy=Policy(yolo=True), protocol=2, page=PAGE) as web,
        browsed() as browser,
        person(browser, seen(web)) as page,
    ):
        session = await web.new_session(agent="demo")
        await page.evaluate(f"location.hash = '#/s/{session}'")
        await prompt(page, "Begin")
        call = page.locator(".tool", has_text="Wait")
        await call.get_by_role("button", name="Stop this tool call").click()
        await expect(call.locator(".status")).to_contain_text("cancelled")
        await expect(call.get_by_role("button", name="Stop this tool call")).to_have_count(0)
        await expect(page.locator(".turnline")).to_contain_text("Working")
        await page.get_by_role("tab", name="Terminals").click()
        pane = page.get_by_role("complementary", name="Side pane")
        await pane.get_by_role("button", name="Stop this terminal").click()
        await expect(pane.locator(".term .status")).to_contain_text("SIGKILL")
        await expect(page.locator(".said.agent")).to_contain_text("SIGKILL")

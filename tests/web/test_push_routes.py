"""Subscribing over HTTP, and a push for a question that a real session asks."""

from __future__ import annotations

from pathlib import Path

import msgspec
from support.clients import until
from support.push_stub import Browser, push_stub
from support.serving import Served, served

from dragoman.agents.settings.notice_settings import NoticeSettings
from dragoman.agents.settings.settings_file import Settings


def allow(web: Served, origin: str) -> None:
    settings = Settings(notices=NoticeSettings(services=(origin,)))
    web.server.launcher.settings = lambda: settings


async def test_a_question_of_the_demo_agent_reaches_the_browser_and_is_answered(
    tmp_path: Path,
) -> None:
    browser = Browser()
    async with push_stub() as stub, served(tmp_path) as web:
        allow(web, stub.origin)
        web.server.notices.start()
        state = await web.call("GET", "/api/push")
        assert state["available"] is True
        body = stub.subscription(browser, content=True)
        made = await web.call("POST", "/api/push", body)
        session = await web.new_session()
        await web.call("PUT", "/api/attention", {"window": "w", "looking": True})
        await web.call("PUT", "/api/attention", {"window": "w", "looking": False})
        await web.prompt(session)
        await until(lambda: stub.came)
        told = msgspec.json.decode(browser.read(stub.came[0].body))
        assert told["session"] == session
        assert stub.came[0].claims()["k"] == state["key"]
        path = f"/api/sessions/{session}/permissions/{told['request']}"
        await web.call("POST", path, {"optionId": told["reject"]})
        await web.once(
            session, lambda found: told["request"] not in {each["id"] for each in found["pending"]}
        )
        await web.call("DELETE", f"/api/push?id={made['id']}")
        gone = await web.refused("DELETE", f"/api/push?id={made['id']}")
        assert gone == (404, "unknown_subscription")
        await web.server.notices.aclose()


async def test_an_endpoint_that_is_no_push_service_is_refused(tmp_path: Path) -> None:
    keys = Browser().keys
    async with served(tmp_path) as web:
        for endpoint in ("http://127.0.0.1:1/x", "https://169.254.169.254/", "file:///etc/passwd"):
            refused = await web.refused("POST", "/api/push", {"endpoint": endpoint, **keys})
            assert refused == (400, "invalid")
        known = {"endpoint": "https://fcm.googleapis.com/x", "key": "AAAA", "secret": "AAAA"}
        assert await web.refused("POST", "/api/push", known) == (400, "invalid")
        assert await web.server.hub.store.shared("push") == {}

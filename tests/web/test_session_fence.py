"""A fence for one session, over HTTP."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.serving import served

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a fence needs Linux")


async def test_a_session_is_fenced_as_it_was_created_and_says_so(tmp_path: Path) -> None:
    async with served(tmp_path, {}) as server:
        bodies = [{"agent": "demo", "cwd": str(tmp_path), "fence": "require"}, {"agent": "demo"}]
        fenced, free = [(await server.call("POST", "/api/sessions", body))["id"] for body in bodies]
        shown = await server.call("GET", f"/api/sessions/{fenced}")
        assert shown["fence"] in ("namespaces", "landlock")
        assert shown["offer"] == {"files": True, "terminals": True, "fence": "require"}
        shown = await server.call("GET", f"/api/sessions/{free}")
        assert (shown["fence"], shown["offer"]["fence"]) == (None, "off")


async def test_a_fence_that_makes_no_sense_begins_nothing(tmp_path: Path) -> None:
    async with served(tmp_path, {}) as server:
        for cwd, fence in ((str(tmp_path), "strict"), (str(tmp_path), True), ("/", "on")):
            body = {"agent": "demo", "cwd": cwd, "fence": fence}
            status, code = await server.refused("POST", "/api/sessions", body)
            assert (status, code) == (400, "invalid"), (cwd, fence)
        assert (await server.call("GET", "/api/sessions"))["sessions"] == []

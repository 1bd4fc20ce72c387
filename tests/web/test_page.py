"""The page's files: public, whole, and kept for as long as they may be."""

from __future__ import annotations

from pathlib import Path

from support.serving import served

from dragoman.testing import ScriptedAgent
from dragoman.web.app import page_routes


def build(folder: Path) -> Path:
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>Page</title>")
    (folder / "assets" / "app-0a1b2c3d.js").write_text("export {}")
    (folder / "icon.svg").write_text("<svg/>")
    (folder / ".hidden").write_text("no")
    return folder


async def test_the_page_is_served_without_a_token(tmp_path: Path) -> None:
    page = build(tmp_path / "page")
    async with served(tmp_path, {"scripted": ScriptedAgent()}, page=page) as web:
        del web.http.headers["authorization"]
        index = await web.http.get("/")
        assert (index.status_code, index.headers["cache-control"]) == (200, "no-store")
        assert index.headers["content-type"].startswith("text/html")
        script = await web.http.get("/assets/app-0a1b2c3d.js")
        assert script.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert "javascript" in script.headers["content-type"]
        assert "trusted-types" in script.headers["content-security-policy"]
        head = await web.http.head("/icon.svg")
        assert (head.status_code, head.content) == (200, b"")
        for path in ("/.hidden", "/index.html", "/assets/", "/assets/none.js", "/page.py"):
            assert (await web.http.get(path)).status_code == 401


async def test_a_page_that_was_not_built_says_how(tmp_path: Path) -> None:
    async with served(tmp_path, {"scripted": ScriptedAgent()}) as web:
        answer = await web.http.get("/")
        assert answer.status_code == 404
        assert "npm run build" in answer.text


def test_what_comes_later_into_the_folder_is_not_served(tmp_path: Path) -> None:
    page = build(tmp_path / "page")
    paths = {route.path for route in page_routes(page)}
    assert paths == {"/", "/assets/app-0a1b2c3d.js", "/icon.svg"}


async def test_health_is_public(tmp_path: Path) -> None:
    async with served(tmp_path, {"scripted": ScriptedAgent()}) as web:
        del web.http.headers["authorization"]
        assert (await web.http.get("/healthz")).json()["status"] == "ok"

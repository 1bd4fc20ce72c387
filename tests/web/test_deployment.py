"""docs/how-to/deployment.md holds: a proxy in front is let through, back-ups can be restored."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from support.postgres import empty_database
from support.serving import STREAM, TOKEN, served

from dragoman.testing import ScriptedAgent
from dragoman.testing.steps import say

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "deployment.md").read_text()
SITE = "https://dragoman.example.com"
SECONDS = 60.0
_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks_of(heading: str) -> str:
    """What the section says to type, in a shell that gives up at the first thing that fails."""
    section = PAGE.partition(f"### {heading}\n")[2].partition("\n#")[0]
    return "\n".join(["set -euo pipefail", *_BLOCK.findall(section)])


def environment(folder: Path, **more: str) -> dict[str, str]:
    return {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "DRAGOMAN_HOME": str(folder / "state"),
    } | more


def run(folder: Path, *words: str, **more: str) -> str:
    done = subprocess.run(
        words,
        cwd=folder,
        env=environment(folder, **more),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


# ── behind a proxy ────────────────────────────────────────────────────────────────────────────


async def test_what_the_proxy_of_the_page_sends_is_let_through(tmp_path: Path) -> None:
    agents = {"scripted": ScriptedAgent([say("hello")])}
    async with served(tmp_path, agents, origins=(SITE,)) as web:
        # As nginx is told to: a name of ours, the token, and what the browser said of itself.
        proxied = {
            "host": f"127.0.0.1:{web.port}",
            "authorization": f"Bearer {TOKEN}",
            "origin": SITE,
            "sec-fetch-site": "same-origin",
        }
        async with httpx.AsyncClient(base_url=web.origin, headers=proxied, trust_env=False) as http:
            made = await http.post("/api/sessions", json={"cwd": str(tmp_path)})
            assert made.status_code == 201
            path = f"/api/sessions/{made.json()['id']}/events"
            async with http.stream("GET", path, headers=STREAM) as stream:
                assert stream.status_code == 200
            for wrong in (
                {"host": "dragoman.example.com"},
                {"origin": "https://evil.example.com"},
                {"origin": "https://evil.example.com", "sec-fetch-site": "cross-site"},
                {"authorization": "Bearer a-cookie-of-the-proxy"},
            ):
                refused = await http.post("/api/sessions", json={}, headers=wrong)
                assert refused.status_code in (401, 403, 421), wrong


async def test_without_the_origin_of_the_proxy_its_pages_are_refused(tmp_path: Path) -> None:
    async with served(tmp_path) as web:
        headers = {"origin": SITE, "sec-fetch-site": "same-origin"}
        response = await web.http.get("/api/sessions", headers=headers)
        assert response.status_code == 403


# ── back-ups ──────────────────────────────────────────────────────────────────────────────────


def test_a_store_in_sqlite_is_backed_up_and_restored_as_printed(tmp_path: Path) -> None:
    run(tmp_path, "dragoman", "/help")
    before = run(tmp_path, "dragoman", "sessions", "list", "--json")
    done = run(tmp_path, "bash", "-c", blocks_of("SQLite"))
    assert done.count("the store is intact") == 2
    assert run(tmp_path, "dragoman", "sessions", "list", "--json") == before
    assert (tmp_path / "damaged").is_dir()


def test_a_store_in_postgresql_is_backed_up_and_restored_as_printed(tmp_path: Path) -> None:
    if shutil.which("pg_dump") is None or shutil.which("pg_restore") is None:
        pytest.skip("pg_dump is not installed (Debian: apt-get install postgresql-client)")
    address = empty_database()
    run(tmp_path, "dragoman", "/help", DRAGOMAN_STORE=address)
    listed = ("dragoman", "sessions", "list", "--json")
    before = run(tmp_path, *listed, DRAGOMAN_STORE=address)
    back_up, _, restore = blocks_of("PostgreSQL").partition("pg_restore")
    run(tmp_path, "bash", "-c", back_up, DRAGOMAN_STORE=address)
    # What comes after the back-up is gone with it.
    run(tmp_path, "dragoman", "/help", DRAGOMAN_STORE=address)
    assert run(tmp_path, *listed, DRAGOMAN_STORE=address) != before
    done = run(tmp_path, "bash", "-c", f"pg_restore{restore}", DRAGOMAN_STORE=address)
    assert "the store is intact" in done
    assert run(tmp_path, *listed, DRAGOMAN_STORE=address) == before

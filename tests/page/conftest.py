"""The tests of the page run on one loop, so that one browser serves all of them.

Each has a profile of its own. What only looks at the gallery shares its server as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any

import pytest
from page import browsing
from page.gallery import fill
from page.site import Site, prepared
from support.bounded import bounded


@pytest.fixture(scope="session", autouse=True)
def page_loop() -> Generator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        keeper = browsing.Keeper()
        browsing.kept.append(keeper)
        yield runner
        browsing.kept.clear()
        runner.run(keeper.aclose())


@pytest.fixture(scope="session")
def gallery(page_loop: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory) -> Generator[Site]:
    """A server with the sessions of the gallery; nobody may change them."""
    folder = tmp_path_factory.mktemp("gallery")
    site = prepared(folder)
    for name in ("parser", "handbook"):
        (folder / name).mkdir()
    page_loop.run(fill(site.home, folder))
    page_loop.run(site.start())
    yield site
    page_loop.run(site.stop())


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    test = bounded(pyfuncitem)
    if test is None:
        return None
    runner: Any = pyfuncitem.funcargs["page_loop"]
    runner.run(test)
    return True

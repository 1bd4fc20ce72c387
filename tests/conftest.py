"""Runs `async def` tests, each on a loop of its own and within a bound, and programs that can be
interrupted. The folders that take longest come first."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest
from support.bounded import bounded
from support.own_time import run_in_own_time
from support.warm_command import close_warm_command

_TESTS = Path(__file__).parent

# What a shell starts in the background ignores these, and so would all that a test interrupts.
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)


# Of the objects made while tests are collected none is garbage; it is looked for often.
gc.disable()


def pytest_collection_finish() -> None:
    """What was collected stays: nobody need look through it again."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def empty_home() -> Generator[None]:
    """Commands run in a login shell, and tests kill some in the middle of it: neither should meet,
    or damage, what the profile of the person at this machine does."""
    with tempfile.TemporaryDirectory(prefix="home-") as home, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", home)
        patch.setenv("CI", "1")  # no agent stays after a run
        yield


@pytest.fixture(scope="session", autouse=True)
def login_session() -> None:
    """An agent that stays ends with the login session of its run. Tests need one that lasts as
    long as they do: on a CI machine, whoever began theirs may have ended, or be in another
    container."""
    if hasattr(os, "pidfd_open"):
        try:
            os.close(os.pidfd_open(os.getsid(0)))
        except OSError:
            os.setsid()


@pytest.fixture(scope="session", autouse=True)
def warm(login_session: None, empty_home: None) -> Generator[None]:
    """Ends what the tests of this process have had their commands forked by."""
    yield
    close_warm_command()


_LONGEST = ("page", "cli", "process", "web", "store", "hub", "host", "ui_stream", "client")
"""A file goes to a worker as a whole: a long one at the end would leave the others without work."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_place)


def _place(item: pytest.Item) -> int:
    if not item.path.is_relative_to(_TESTS):
        return len(_LONGEST)
    folder = item.path.relative_to(_TESTS).parts[0]
    return _LONGEST.index(folder) if folder in _LONGEST else len(_LONGEST)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    test = bounded(pyfuncitem)
    if test is None:
        return None
    if pyfuncitem.get_closest_marker("own_time"):
        run_in_own_time(test)
    else:
        asyncio.run(test)
    return True

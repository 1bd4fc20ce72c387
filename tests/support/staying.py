"""A user whose agents stay after a run, and what is left of them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

from support.command import SECONDS, Done, Dragoman

from dragoman.agents.settings.settings_file import Settings
from dragoman.host.rules.policy import Policy
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.hub.running.settings_launcher import SettingsLauncher
from dragoman.store.open import open_store


class Staying:
    """Runs commands of `user` outside of CI."""

    def __init__(self, user: Dragoman) -> None:
        self.user = user
        del user.env["CI"]

    def __call__(self, *words: str, env: Mapping[str, str] | None = None) -> Done:
        return self.user(*words, env=env)

    def kept(self) -> list[dict[str, Any]]:
        """What `dragoman status` lists."""
        done = self("status", "--json")
        assert done.code == 0, done
        return json.loads(done.out)

    def only(self) -> dict[str, Any]:
        [one] = self.kept()
        return one

    async def answered(self, text: str, option: str) -> str:
        """What the agent says to a prompt from a page, which answers its question."""
        async with self._page() as (hub, session):
            request = await _asked(hub, session, text)
            await hub.send(session, c.AnswerPermission(request, option))
            return await _last_word(hub, session)

    async def told(self, command: c.Prompt) -> str:
        """What the agent says to a prompt from elsewhere."""
        async with self._page() as (hub, session):
            await hub.send(session, command)
            return await _last_word(hub, session)

    async def asked(self, text: str) -> None:
        """A prompt from a page, which leaves with the question unanswered."""
        async with self._page() as (hub, session):
            await _asked(hub, session, text)

    @asynccontextmanager
    async def _page(self) -> AsyncGenerator[tuple[Hub, str]]:
        session = self.only()["id"]
        store = await open_store(self.user.state)
        try:
            async with Hub(store, SettingsLauncher(Settings, Policy())) as hub:
                yield hub, session
        finally:
            await store.aclose()

    def processes(self) -> list[int]:
        """Those of this user: agents by their environment, commands and what stays of them by the
        store that they have open, since a fork shows the environment of its parent. Helpers show
        neither; they end with the others."""
        folders = (each for each in Path("/proc").iterdir() if each.name.isdecimal())
        mine = str(os.getpid())
        return [int(each.name) for each in folders if each.name != mine and self._is_ours(each)]

    def _is_ours(self, process: Path) -> bool:
        state = str(self.user.state)
        with suppress(OSError):
            if f"DRAGOMAN_HOME={state}".encode() in (process / "environ").read_bytes().split(b"\0"):
                return True
            opened = (os.readlink(each) for each in (process / "fd").iterdir())
            return any(each.startswith(f"{state}/") for each in opened)
        return False

    def wait_until_gone(self) -> None:
        until(lambda: not self.processes(), lambda: f"left: {self.processes()}")

    def notes(self) -> list[Path]:
        return list((self.user.state / "warm").glob("*.json"))


async def _last_word(hub: Hub, session: str) -> str:
    """When the turn has ended."""
    while (state := await hub.state(session)).turn is not None:
        await _moment()
    [*_, last] = state.entries
    return getattr(last, "text", "").strip()


async def _asked(hub: Hub, session: str, text: str) -> str:
    """The id of the question that the agent asks about this prompt."""
    await hub.send(session, c.Prompt(text))
    while not (pending := (await hub.state(session)).pending):
        await _moment()
    return next(iter(pending))


async def _moment() -> None:
    await asyncio.sleep(0.02)


def until(there: Callable[[], bool], complaint: Callable[[], str]) -> None:
    """Wait for what comes in a moment; long, because only a failure takes that long."""
    deadline = time.monotonic() + SECONDS
    while not there():
        assert time.monotonic() < deadline, complaint()
        time.sleep(0.1)


@contextmanager
def staying(user: Dragoman) -> Generator[Staying]:
    """At the end nothing of it is left, whatever the test did."""
    stays = Staying(user)
    try:
        yield stays
    finally:
        for pid in stays.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        stays.wait_until_gone()

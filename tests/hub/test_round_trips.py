"""How often a request goes to the database and back: on a slow line that is all it takes.

What runs in the background is counted too, so of several tries the best one counts.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from support.database_cable import Cable, Latest, cable_to
from support.peers import soon
from support.postgres import empty_database
from support.serving import Served, also_served

from dragoman.testing import ScriptedAgent
from dragoman.testing.steps import say
from dragoman.web.last_turn import Endings

_TRIES = 4


class Line:
    """Two servers on one database; what both of them sent there is counted."""

    def __init__(
        self, one: Served, two: Served, cables: tuple[Cable, Cable], latest: Latest
    ) -> None:
        self.one = one
        self.two = two
        self._cables = cables
        self._latest = latest

    @property
    def trips(self) -> int:
        return sum(cable.trips for cable in self._cables)

    async def fewest(self, work: Callable[[], Awaitable[object]]) -> int:
        counts: list[int] = []
        for _ in range(_TRIES):
            before = self.trips
            await soon(work())
            counts.append(self.trips - before)
            await self.at_rest()
        return min(counts)

    async def shortest(self, work: Callable[[], Awaitable[object]]) -> float:
        """How many round trips, one after another, server one waits for, also where the other
        makes them: on a slow line that many times its delay."""
        first, second = self._cables
        counts: list[int] = []
        for _ in range(_TRIES):
            first.ways = second.ways = self._latest.ways = 0
            await soon(work())
            counts.append(first.ways)
            await self.at_rest()
        return min(counts) / 2

    async def at_rest(self) -> None:
        """No turn runs any more, and what it said is stored."""
        for web in (self.one, self.two):
            for live in list(web.server.hub.live.values()):
                await web.until(live.id, "idle")


@asynccontextmanager
async def two_servers(folder: Path) -> AsyncGenerator[Line]:
    address = empty_database()
    agents = {"scripted": ScriptedAgent([say("hello")])}
    latest = Latest()
    async with (
        cable_to(address, latest) as first,
        cable_to(address, latest) as second,
        also_served(folder, agents, database=first.address, host="one") as one,
        also_served(folder, agents, database=second.address, host="two") as two,
    ):
        yield Line(one, two, (first, second), latest)


async def test_a_prompt_to_another_host(tmp_path: Path) -> None:
    """Looked up in one, sent in two, taken in two, stored in two, settled in one, and read; what
    the hosts do for themselves comes on top. With 50 ms to the database and back, twelve are the
    0.6 s that such a prompt may take."""
    async with two_servers(tmp_path) as line:
        session_id = await line.two.new_session(host="two")
        assert 6 <= await line.shortest(lambda: line.one.prompt(session_id)) <= 12


async def test_a_prompt_to_another_host_makes_few_trips_in_all(tmp_path: Path) -> None:
    async with two_servers(tmp_path) as line:
        session_id = await line.two.new_session(host="two")
        assert await line.fewest(lambda: line.one.prompt(session_id)) <= 16


async def test_a_new_session_here(tmp_path: Path) -> None:
    async with two_servers(tmp_path) as line:
        assert await line.fewest(lambda: line.one.new_session(host="one")) <= 18


async def test_a_new_session_on_another_host(tmp_path: Path) -> None:
    async with two_servers(tmp_path) as line:
        assert await line.fewest(lambda: line.one.new_session(host="two")) <= 45


async def test_a_list_costs_the_same_however_long_it_is(tmp_path: Path) -> None:
    async with two_servers(tmp_path) as line:
        for _ in range(8):
            await line.one.new_session(host="one")

        async def listed() -> None:
            line.one.server.endings = Endings(
                line.one.server.hub.store
            )  # which has read nothing yet
            assert len((await line.one.call("GET", "/api/sessions"))["sessions"]) == 8

        assert await line.fewest(listed) <= 6

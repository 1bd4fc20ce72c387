"""How often a request goes to the database and back: on a slow line that is all it takes.

What runs in the background is counted too, so of several tries the best one counts.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager
from itertools import product
from pathlib import Path
from typing import Any

from store.postgres.stores import opened
from store.stores import batch, begin
from support.database_cable import Cable, cable_to
from support.peers import soon
from support.postgres import empty_database
from support.serving import Served, also_served

from dragoman.testing import ScriptedAgent
from dragoman.testing.steps import say
from dragoman.web.last_turn import Endings

_TRIES = 4


class Line:
    """Two servers on one database; what both of them sent there is counted."""

    def __init__(self, one: Served, two: Served, cables: tuple[Cable, Cable]) -> None:
        self.one = one
        self.two = two
        self._cables = cables

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

    async def at_rest(self) -> None:
        """No turn runs any more, and what it said is stored."""
        for web in (self.one, self.two):
            for live in list(web.server.hub.live.values()):
                await web.until(live.id, "idle")


@asynccontextmanager
async def two_servers(folder: Path) -> AsyncGenerator[Line]:
    address = empty_database()
    agents = {"scripted": ScriptedAgent([say("hello")])}
    async with (
        cable_to(address) as first,
        cable_to(address) as second,
        also_served(folder, agents, database=first.address, host="one") as one,
        also_served(folder, agents, database=second.address, host="two") as two,
    ):
        yield Line(one, two, (first, second))


_PATH = ("standing", "send", "take", "append", "settle", "outcome")
"""What a prompt to another host waits for, one after another: it is looked up and sent in one,
taken, stored and settled in two, and read in one."""


@contextmanager
def noting(stores: Iterable[Any]) -> Generator[list[str]]:
    """What of that path the stores are asked, in its order."""
    asked: list[str] = []

    def noted(store: Any, name: str) -> None:
        original = getattr(store, name)

        async def asking(*given: Any, **named: Any) -> Any:
            asked.append(name)
            return await original(*given, **named)

        setattr(store, name, asking)

    stores = list(stores)
    for store, name in product(stores, _PATH):
        noted(store, name)
    try:
        yield asked
    finally:
        for store, name in product(stores, _PATH):
            delattr(store, name)


async def test_a_prompt_to_another_host_asks_nothing_twice(tmp_path: Path) -> None:
    """Except for the outcome, which may be asked for while the other host is at work. Where the
    machine is slow, hosts look at each other meanwhile: not in every try."""
    runs: list[list[str]] = []
    async with two_servers(tmp_path) as line:
        session_id = await line.two.new_session(host="two")
        while _PATH[:-1] not in map(tuple, runs):
            assert len(runs) < 20, runs
            with noting(web.server.hub.store for web in (line.one, line.two)) as asked:
                await soon(line.one.prompt(session_id))
            assert "outcome" in asked
            settled = asked.index("settle") + 1
            runs.append([name for name in asked[:settled] if name != "outcome"])
            await line.at_rest()


async def test_the_path_of_such_a_prompt_takes_few_round_trips(tmp_path: Path) -> None:
    """With 50 ms to the database and back, twelve are the 0.6 s that it may take; it takes about
    nine. Statements that are sent together may be answered one by one here: of several tries the
    best one counts."""
    async with cable_to(empty_database()) as cable, opened(cable.address, tmp_path) as store:
        lease = await begin(store)
        counts: list[int] = []
        for number in range(1, 9):  # the first opens the connections
            before = cable.trips
            await store.standing("s")
            command = await store.send("s", b"body")
            taken = await store.take([lease], hinted=True)
            assert [each.id for each in taken] == [command]
            await store.append(lease, batch(number, 1))
            await store.settle(command, b"done")
            assert (await store.outcome(command)).state == "done"
            counts.append(cable.trips - before)
        assert 6 <= min(counts) <= 12, counts


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

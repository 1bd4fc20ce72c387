"""What every store promises about hosts: who is there, who was, and what each is called for."""

from __future__ import annotations

import msgspec
import pytest
from store.stores import ME, YOU, Opens, acquire, batch, begin, nobody_knows, record

from dragoman.errors import UnknownSession
from dragoman.store.records import HostRecord, SessionChange, SessionFilter, Standing


def host(name: str = "one", **fields: object) -> HostRecord:
    given = {"id": ME.id, "home": f"home of {name}", "name": name, "owner": ME} | fields
    return msgspec.convert(msgspec.to_builtins(given), HostRecord)


async def test_a_host_is_known_as_it_tells_of_itself(opens: Opens) -> None:
    async with opens() as store:
        told = host(address="http://one:1", cwd="/project", agents=["demo"], turns=2, version="9")
        await store.announce(told, seconds=60)
        [found] = await store.hosts()
        assert found.alive
        assert found.seen_at > 0
        assert msgspec.structs.replace(found, alive=False, seen_at=0) == told
        await store.announce(msgspec.structs.replace(told, turns=3), seconds=60)
        assert [each.turns for each in await store.hosts()] == [3]


async def test_one_that_was_not_heard_of_in_time_or_has_departed_is_not_alive(
    opens: Opens,
) -> None:
    async with opens() as store:
        await store.announce(host("late"), seconds=-1)
        await store.announce(host("left", id=YOU.id), seconds=60)
        await store.depart(YOU.id)
        found = await store.hosts()
        assert [(each.name, each.alive) for each in found] == [("late", False), ("left", False)]
        await store.announce(host("late"), seconds=60)
        assert [each.name for each in await store.hosts() if each.alive] == ["late"]


async def test_a_host_that_comes_back_takes_the_place_of_the_one_before(opens: Opens) -> None:
    async with opens() as store:
        await store.announce(host(id="before"), seconds=-1)
        await store.announce(host(id="beside"), seconds=60)
        await store.announce(host(id="now"), seconds=60)
        assert {each.id for each in await store.hosts()} == {"beside", "now"}


async def test_the_store_counts_what_a_host_owns(opens: Opens) -> None:
    async with opens() as store:
        await store.announce(host(sessions=77), seconds=60)
        lease = await begin(store)
        await begin(store, "t")
        assert [each.sessions for each in await store.hosts()] == [2]
        await store.release(lease)
        assert [each.sessions for each in await store.hosts()] == [1]


async def test_a_host_is_called_for_sessions_that_nobody_owns(opens: Opens) -> None:
    async with opens() as store:
        await store.create_session(record())
        first = await store.send("s", b"first", to="me")
        await store.send("s", b"second", to="you")
        await store.send("s", b"third")
        [call] = await store.calls("me")
        assert (call.id, call.session_id, call.body) == (first, "s", b"first")
        lease = await acquire(store)
        assert await store.calls("me") == []
        assert [each.body for each in await store.take([lease])] == [b"first", b"second", b"third"]
        await store.release(lease)
        assert await store.calls("me") == []


async def test_a_call_that_was_withdrawn_is_not_heard(opens: Opens) -> None:
    async with opens() as store:
        await store.create_session(record())
        assert await store.withdraw(await store.send("s", b"come", to="me"))
        assert await store.calls("me") == []


async def test_a_session_has_a_home_and_can_move(opens: Opens) -> None:
    async with opens() as store:
        await store.create_session(record(home="here"))
        moved = await store.change_session("s", SessionChange(home="there", cwd="/elsewhere"))
        assert (moved.home, moved.cwd) == ("there", "/elsewhere")
        assert await store.session("s") == moved
        assert (await store.change_session("s", SessionChange(home=None))).home is None


async def test_a_process_is_gone_as_a_host_and_as_an_owner_in_the_same_moment(
    opens: Opens,
) -> None:
    async with opens() as store:
        await store.create_session(record())
        await store.announce(host(), seconds=60)

        async def is_alive() -> tuple[bool, bool]:
            at = await store.standing("s")
            assert at.owner is not None
            return at.owner.alive, at.hosts[0].alive

        await store.acquire("s", ME, seconds=-1, gone=nobody_knows)
        assert await is_alive() == (False, False)
        await store.renew(ME, seconds=60)
        assert await is_alive() == (True, True)
        await store.announce(host(), seconds=-1)
        assert await is_alive() == (False, False)
        await store.announce(host(), seconds=60)
        assert await is_alive() == (True, True)


async def test_a_host_is_called_for_a_session_whose_owner_is_gone(opens: Opens) -> None:
    async with opens() as store:
        await begin(store, owner=YOU)
        await store.send("s", b"go", to=ME.id)
        assert await store.calls(ME.id) == []
        await store.renew(YOU, seconds=-1)
        assert [call.body for call in await store.calls(ME.id)] == [b"go"]


async def test_a_session_is_seen_with_its_owner_and_all_hosts_at_once(opens: Opens) -> None:
    async with opens() as store:
        assert await store.standing("s") == Standing(None, None, [])
        lease = await begin(store)
        await store.announce(host(), seconds=60)
        at = await store.standing("s")
        assert (at.record, at.owner, at.hosts) == (
            await store.session("s"),
            ME,
            await store.hosts(),
        )
        await store.append(lease, batch(1))
        await store.create_session(record("t", updated_at=9, cwd="/t"))
        seen = await store.overview(SessionFilter(limit=1))
        assert [each.id for each in seen.sessions] == ["t"]
        assert (seen.position, seen.owners) == (await store.last_position(), {"s": ME})
        assert [each.sessions for each in seen.hosts] == [1]
        rest = await store.overview(SessionFilter(before="t"))
        assert [each.id for each in rest.sessions] == ["s"]
        with pytest.raises(UnknownSession):
            await store.overview(SessionFilter(before="nothing"))

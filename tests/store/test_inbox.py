"""What every store promises about commands: given out once, to the owner, then forgotten."""

from __future__ import annotations

import asyncio
import time

import pytest
from store.stores import YOU, Opens, acquire, begin

from dragoman.errors import UnknownSession
from dragoman.store.records import Lease, Outcome
from dragoman.store.store_limits import StoreLimits


async def test_a_command_reaches_the_owner_and_its_outcome_the_sender(opens: Opens) -> None:
    async with opens() as store:
        lease = await begin(store)
        before = time.time()
        command_id = await store.send("s", b"do\0it")
        assert await store.outcome(command_id) == Outcome("waiting")
        [command] = await store.take([lease])
        assert (command.id, command.session_id, command.body) == (command_id, "s", b"do\0it")
        assert before <= command.sent_at <= time.time()
        assert await store.outcome(command_id) == Outcome("taken")
        await store.settle(command_id, b"done")
        assert await store.outcome(command_id) == Outcome("done", b"done")


async def test_a_command_is_given_out_once(opens: Opens) -> None:
    async with opens() as store:
        lease = await begin(store)
        for _ in range(10):
            await store.send("s", b"x")
        taken = await asyncio.gather(*(store.take([lease]) for _ in range(5)))
        ids = [command.id for some in taken for command in some]
        assert len(ids) == len(set(ids)) == 10
        assert await store.take([lease]) == []


async def test_commands_come_in_the_order_they_were_sent(opens: Opens) -> None:
    async with opens() as store:
        one, two = await begin(store, "one"), await begin(store, "two")
        sent = [await store.send(name, b"") for name in ("two", "one", "two", "one")]
        assert [command.id for command in await store.take([one, two])] == sent


async def test_only_the_sessions_one_owns_are_served(opens: Opens) -> None:
    async with opens() as store:
        mine, yours = await begin(store, "mine"), await begin(store, "yours", YOU)
        for_you = await store.send("yours", b"")
        assert await store.take([mine]) == []
        assert [command.id for command in await store.take([yours])] == [for_you]
        assert await store.take([]) == []


async def test_one_who_lost_the_session_gets_nothing(opens: Opens) -> None:
    async with opens() as store:
        old = await begin(store)
        command_id = await store.send("s", b"x")
        await store.release(old)
        new = await acquire(store, owner=YOU)
        assert await store.take([old, Lease("s", "you", old.epoch)]) == []
        assert [command.id for command in await store.take([old, new])] == [command_id]


async def test_a_command_waits_for_an_owner(opens: Opens) -> None:
    async with opens() as store:
        await store.release(await begin(store))
        command_id = await store.send("s", b"x")
        lease = await acquire(store, owner=YOU)
        assert [command.id for command in await store.take([lease])] == [command_id]


async def test_a_command_can_be_taken_back_until_it_is_taken(opens: Opens) -> None:
    async with opens() as store:
        lease = await begin(store)
        back, taken = await store.send("s", b"1"), await store.send("s", b"2")
        assert await store.withdraw(back)
        assert [command.id for command in await store.take([lease])] == [taken]
        assert not await store.withdraw(taken)
        assert not await store.withdraw(back)
        assert (await store.outcome(back)).state == "unknown"


async def test_what_was_taken_by_one_who_lost_the_session_is_lost(opens: Opens) -> None:
    async with opens() as store:
        old = await begin(store)
        command_id = await store.send("s", b"x")
        await store.take([old])
        await store.release(old)
        assert await store.outcome(command_id) == Outcome("lost")
        new = await acquire(store, owner=YOU)
        assert await store.outcome(command_id) == Outcome("lost")
        assert await store.take([new]) == []
        await store.settle(command_id, b"after all")
        assert await store.outcome(command_id) == Outcome("done", b"after all")


async def test_what_has_waited_for_very_long_is_not_carried_out(
    opens: Opens,
) -> None:
    limits = StoreLimits()
    async with opens(limits) as store:
        lease = await begin(store)
        command_id = await store.send("s", b"x")
        limits.command_seconds = -1.0
        assert await store.take([lease]) == []
        assert (await store.outcome(command_id)).state == "unknown"


async def test_nobody_can_be_sent_anything_who_is_not_there(opens: Opens) -> None:
    async with opens() as store:
        with pytest.raises(UnknownSession):
            await store.send("nobody", b"x")
        await store.settle(99, b"x")
        assert await store.outcome(99) == Outcome("unknown")


async def test_outcomes_are_forgotten_after_a_while(
    opens: Opens,
) -> None:
    limits = StoreLimits()
    async with opens(limits) as store:
        lease = await begin(store)
        old, new = await store.send("s", b"1"), await store.send("s", b"2")
        await store.take([lease])
        await store.settle(old, b"old")
        limits.outcome_seconds = -1.0
        await store.settle(new, b"new")
        assert (await store.outcome(old)).state == "unknown"


async def test_what_nobody_settled_is_forgotten_at_a_later_start(
    opens: Opens,
) -> None:
    limits = StoreLimits()
    async with opens(limits) as store:
        lease = await begin(store)
        taken = await store.send("s", b"1")
        await store.take([lease])
        waiting = await store.send("s", b"2")
        async with opens():
            assert (await store.outcome(taken)).state == "taken"
        limits.outcome_seconds = limits.command_seconds = -1.0
        async with opens(limits) as again:
            if await again.session("s") is None:
                return  # in memory: gone with whoever had it
            assert (await again.outcome(taken)).state == "unknown"
            assert (await again.outcome(waiting)).state == "unknown"
        await store.settle(taken, b"late")
        assert (await store.outcome(taken)).state == "unknown"

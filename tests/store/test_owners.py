"""What every store promises about owners: one at a time, and a later one shuts the earlier out."""

from __future__ import annotations

import asyncio

import pytest
from store.stores import ME, YOU, Opens, acquire, batch, begin, nobody_knows, record, whole

from dragoman.errors import LeaseLost, SessionOwned, UnknownSession
from dragoman.store.records import Lease, Owner


def everybody_is_gone(_: Owner) -> bool:
    return True


async def test_a_session_has_one_owner(opens: Opens) -> None:
    async with opens() as store:
        await begin(store)
        with pytest.raises(SessionOwned) as caught:
            await acquire(store, owner=YOU)
        assert caught.value.owner == "process 1 on here"
        assert str(caught.value) == "session s is run by process 1 on here"
        with pytest.raises(SessionOwned):
            await acquire(store)
        assert await store.owner("s") == ME


async def test_what_is_not_there_cannot_be_owned(opens: Opens) -> None:
    async with opens() as store:
        with pytest.raises(UnknownSession):
            await acquire(store, "nobody")
        assert await store.owner("nobody") is None


async def test_a_released_session_can_be_taken_and_the_epoch_grows(opens: Opens) -> None:
    async with opens() as store:
        first = await begin(store)
        await store.release(first)
        assert await store.owner("s") is None
        with pytest.raises(LeaseLost):
            await store.append(first, batch(1))
        second = await acquire(store, owner=YOU)
        assert second == Lease("s", "you", first.epoch + 1)
        await store.append(second, batch(1))
        await store.release(first)
        assert await store.owner("s") == YOU


async def test_a_lease_that_ran_out_counts_until_somebody_takes_the_session(opens: Opens) -> None:
    async with opens() as store:
        await store.create_session(record())
        late = await store.acquire("s", ME, seconds=-1, gone=nobody_knows)
        await store.append(late, batch(1))
        new = await acquire(store, owner=YOU)
        with pytest.raises(LeaseLost, match="was taken over"):
            await store.append(late, batch(2))
        await store.append(new, batch(2))
        assert len(await whole(store)) == 2


async def test_the_session_of_one_who_is_gone_can_be_taken_at_once(opens: Opens) -> None:
    async with opens() as store:
        asked: list[Owner] = []

        def is_gone(owner: Owner) -> bool:
            asked.append(owner)
            return True

        old = await begin(store)
        new = await store.acquire("s", YOU, seconds=60, gone=is_gone)
        assert asked == [ME]
        assert new.epoch > old.epoch
        with pytest.raises(LeaseLost):
            await store.append(old, batch(1))


async def test_an_owner_that_is_known_to_live_is_not_robbed_when_the_clock_jumps(
    opens: Opens,
) -> None:
    async with opens() as store:
        await store.create_session(record())
        lease = await store.acquire("s", ME, seconds=-3600, gone=nobody_knows)
        with pytest.raises(SessionOwned):
            await store.acquire("s", YOU, seconds=60, gone=lambda _: False)
        await store.append(lease, batch(1))


async def test_an_error_of_the_one_who_is_asked_is_the_callers(opens: Opens) -> None:
    async with opens() as store:
        await begin(store)

        def cannot_tell(_: Owner) -> bool:
            raise ValueError("who?")

        with pytest.raises(ValueError, match="who"):
            await store.acquire("s", YOU, seconds=60, gone=cannot_tell)
        assert await store.owner("s") == ME


async def test_renewing_keeps_what_one_still_has(opens: Opens) -> None:
    async with opens() as store:
        await begin(store, "kept")
        await begin(store, "lost")
        await begin(store, "yours", YOU)
        await store.acquire("lost", YOU, seconds=60, gone=everybody_is_gone)
        assert await store.renew(ME, seconds=60) == {"kept"}
        assert await store.renew(YOU, seconds=60) == {"lost", "yours"}
        assert await store.renew(Owner("new", "m", 3, "x"), seconds=60) == set()


async def test_renewing_puts_off_the_end(opens: Opens) -> None:
    async with opens() as store:
        await begin(store)
        await store.renew(ME, seconds=-1)
        await store.renew(ME, seconds=60)
        with pytest.raises(SessionOwned):
            await acquire(store, owner=YOU)


async def test_all_owned_sessions_are_known(opens: Opens) -> None:
    async with opens() as store:
        await begin(store, "a")
        await begin(store, "b", YOU)
        await store.release(await begin(store, "c"))
        await store.create_session(record("d"))
        assert sorted(await store.owned()) == [("a", ME), ("b", YOU)]
        await store.renew(YOU, seconds=-1)
        assert {each: owner.alive for each, owner in await store.owned()} == {"a": True, "b": False}
        found = await store.owner("b")
        assert found is not None
        assert (found.id, found.alive) == (YOU.id, False)


async def test_of_many_who_race_one_wins(opens: Opens) -> None:
    async with opens() as store:
        await store.create_session(record())
        owners = [Owner(f"o{number}", "m", number, "x") for number in range(20)]
        results = await asyncio.gather(
            *(acquire(store, owner=owner) for owner in owners), return_exceptions=True
        )
        won = [each for each in results if isinstance(each, Lease)]
        assert len(won) == 1
        assert sum(isinstance(each, SessionOwned) for each in results) == 19

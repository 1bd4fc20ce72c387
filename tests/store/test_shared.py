"""What every store promises about the small records that its processes share."""

from __future__ import annotations

import asyncio

from store.stores import Opens
from support.clients import until


async def test_a_record_is_what_was_put_there(opens: Opens) -> None:
    async with opens() as store:
        assert await store.shared_one("kind", "a") is None
        assert await store.share("kind", "a", None, b"1")
        assert await store.share("kind", "b", None, b"2")
        assert await store.share("other", "a", None, b"3")
        assert await store.shared("kind") == {"a": b"1", "b": b"2"}
        assert await store.share("kind", "a", b"1", b"4")
        assert await store.shared_one("kind", "a") == b"4"
        assert await store.share("kind", "a", b"4", None)
        assert await store.shared("kind") == {"b": b"2"}
        assert await store.shared("other") == {"a": b"3"}


async def test_one_that_is_not_as_expected_is_left_as_it_is(opens: Opens) -> None:
    async with opens() as store:
        assert not await store.share("kind", "a", b"1", b"2")
        assert not await store.share("kind", "a", b"1", None)
        assert await store.share("kind", "a", None, b"1")
        assert not await store.share("kind", "a", None, b"2")
        assert not await store.share("kind", "a", b"0", b"2")
        assert not await store.share("kind", "a", b"0", None)
        assert await store.shared_one("kind", "a") == b"1"


async def test_of_many_who_try_at_once_one_succeeds(opens: Opens) -> None:
    async with opens() as store:
        tried = [store.share("kind", "a", None, b"%d" % number) for number in range(20)]
        succeeded = await asyncio.gather(*tried)
        assert sum(succeeded) == 1
        assert await store.shared_one("kind", "a") == b"%d" % succeeded.index(True)


async def test_it_is_forgotten_when_its_time_is_over(opens: Opens) -> None:
    async with opens() as store:
        assert await store.share("kind", "over", None, b"1", seconds=-1)
        assert await store.share("kind", "not yet", None, b"1", seconds=60)
        assert await store.shared("kind") == {"not yet": b"1"}
        assert await store.shared_one("kind", "over") is None
        assert await store.share("kind", "over", None, b"2")
        assert await store.share("kind", "not yet", b"1", b"3")
        assert await store.shared("kind") == {"not yet": b"3", "over": b"2"}


async def test_everyone_is_told_of_a_change(opens: Opens) -> None:
    async with opens() as store:
        told: list[bool] = []
        end = store.on_change(lambda: told.append(True))
        await store.share("kind", "a", None, b"1")
        await until(lambda: told)
        end()

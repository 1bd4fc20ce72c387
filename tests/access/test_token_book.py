"""Access tokens in every store: made once, found by their secret alone, and gone when revoked."""

from __future__ import annotations

import asyncio

import pytest
from store.conftest import opens as opens
from store.stores import Opens

from dragoman import UnknownToken
from dragoman.access.access_tokens import id_in
from dragoman.access.token_book import PAIRING_SECONDS, TokenBook


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


async def test_a_paired_device_has_a_token_and_the_code_works_once(opens: Opens) -> None:
    async with opens() as store:
        book = TokenBook(store)
        _, code = await book.pairing(" my phone ")
        found = await book.find(code)
        assert found is not None
        assert (found.name, found.pairing) == ("my phone", True)
        device, text = await book.pair(found)
        assert await book.find(code) is None
        again = await book.find(text)
        assert again is not None
        assert (again.id, again.pairing, again.expires_at) == (device.id, False, None)
        with pytest.raises(UnknownToken):
            await book.pair(found)


async def test_of_two_that_use_one_code_at_once_one_gets_a_token(opens: Opens) -> None:
    async with opens() as store, opens() as other:
        first = TokenBook(store)
        _, code = await first.pairing("phone")
        second = TokenBook(other) if await other.shared("token") else first
        found = [await each.find(code) for each in (first, second)]
        assert None not in found
        tried = await asyncio.gather(
            *(
                book.pair(token)
                for book, token in zip((first, second), found, strict=True)
                if token is not None
            ),
            return_exceptions=True,
        )
        assert sorted(type(each).__name__ for each in tried) == ["UnknownToken", "tuple"]


async def test_a_code_ends_by_itself(opens: Opens) -> None:
    clock = Clock()
    async with opens() as store:
        book = TokenBook(store, clock)
        _, code = await book.pairing("phone")
        clock.now += PAIRING_SECONDS
        assert await book.find(code) is None


async def test_a_revoked_token_opens_nothing_and_is_still_listed(opens: Opens) -> None:
    async with opens() as store:
        book = TokenBook(store)
        _, code = await book.pairing("phone")
        found = await book.find(code)
        assert found is not None
        device, text = await book.pair(found)
        assert await book.invalid({device.id}) == set()
        await book.revoke(device.id)
        assert await book.find(text) is None
        assert await book.invalid({device.id}) == {device.id}
        [listed] = await book.list()
        assert listed.revoked_at is not None
        with pytest.raises(UnknownToken):
            await book.revoke("000000000000")


async def test_only_the_whole_secret_counts_and_the_store_does_not_have_it(opens: Opens) -> None:
    async with opens() as store:
        book = TokenBook(store)
        token, code = await book.pairing("phone")
        secret = code.rpartition(f"{token.id}_")[2]
        last = "A" if secret[0] != "A" else "B"
        for wrong in ("", secret, code[:-1], f"dgm_{token.id}_{last}{secret[1:]}", f"{code}x"):
            assert await book.find(wrong) is None
        assert id_in(code) == token.id
        assert all(secret.encode() not in body for body in (await store.shared("token")).values())


async def test_when_a_token_was_used_is_noted_once_a_minute(opens: Opens) -> None:
    clock = Clock()
    async with opens() as store:
        book = TokenBook(store, clock)
        _, code = await book.pairing("phone")
        found = await book.find(code)
        assert found is not None
        _, text = await book.pair(found)
        for moment, noted in ((1_000.0, 1_000.0), (1_059.0, 1_000.0), (1_061.0, 1_061.0)):
            clock.now = moment
            await book.find(text)
            [listed] = await book.list()
            assert listed.used_at == noted


@pytest.mark.parametrize("name", ["", "  ", "x" * 65, "two\nlines", "a\x1b[31mred"])
async def test_a_name_that_cannot_be_shown_is_refused(opens: Opens, name: str) -> None:
    async with opens() as store:
        with pytest.raises(ValueError, match="printable"):
            await TokenBook(store).pairing(name)
        assert await store.shared("token") == {}


async def test_a_name_can_be_changed(opens: Opens) -> None:
    async with opens() as store:
        book = TokenBook(store)
        token, _ = await book.pairing("phone")
        assert (await book.rename(token.id, "tablet")).name == "tablet"
        assert [each.name for each in await book.list()] == ["tablet"]

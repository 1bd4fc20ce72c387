"""`dragoman tokens list` and `revoke`."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Sequence

from dragoman.access.access_tokens import AccessToken
from dragoman.access.token_book import TokenBook
from dragoman.cli.commands.sessions.session_list import ago, print_json, table
from dragoman.cli.exit_codes import Exit, UsageError
from dragoman.errors import UnknownToken
from dragoman.safe_text import reveal
from dragoman.store.open import open_default
from dragoman.store.records import utc


def run(options: argparse.Namespace) -> int:
    return asyncio.run(_list(options) if options.action == "list" else _revoke(options.token))


async def _list(options: argparse.Namespace) -> int:
    store, now = await open_default(), time.time()
    try:
        found = await TokenBook(store).list()
    finally:
        await store.aclose()
    shown = [each for each in found if options.all or each.state(now) in ("active", "pairing")]
    if options.json:
        print_json([_public(each, now) for each in shown])
    elif shown:
        print("\n".join(_lines(shown, now)))
    else:
        print("no tokens; `dragoman serve --pair` pairs a device")
    return Exit.DONE


def _public(token: AccessToken, now: float) -> dict[str, object]:
    def moment(seconds: float | None) -> str | None:
        return None if seconds is None else utc(seconds).isoformat()

    return {
        "id": token.id,
        "name": token.name,
        "role": token.role,
        "state": token.state(now),
        "createdAt": moment(token.created_at),
        "expiresAt": moment(token.expires_at),
        "usedAt": moment(token.used_at),
        "revokedAt": moment(token.revoked_at),
    }


def _lines(found: Sequence[AccessToken], now: float) -> list[str]:
    rows = [
        (
            each.id,
            each.state(now),
            each.role,
            ago(now - each.created_at),
            "never" if each.used_at is None else ago(now - each.used_at),
            each.name,
        )
        for each in found
    ]
    return table(("ID", "STATE", "ROLE", "CREATED", "USED", "NAME"), rows)


async def _revoke(words: Sequence[str]) -> int:
    """All or none of them. Raises UnknownToken, UsageError for a name that several have."""
    store = await open_default()
    try:
        book = TokenBook(store)
        found = [each for each in await book.list() if each.revoked_at is None]
        for token in [_meant(found, word) for word in words]:
            await book.revoke(token.id)
            print(f"revoked {reveal(token.name)} ({token.id})")
    finally:
        await store.aclose()
    return Exit.DONE


def _meant(found: Sequence[AccessToken], word: str) -> AccessToken:
    named = [each for each in found if word in (each.id, each.name)]
    if not named:
        raise UnknownToken(word)
    if len(named) > 1:
        ids = ", ".join(each.id for each in named)
        raise UsageError(f"{len(named)} tokens are named {word!r}; revoke one by its id: {ids}")
    return named[0]

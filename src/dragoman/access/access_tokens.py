"""Access tokens: what is kept of each in the store, and how one is recognised.

A token is `dgm_ID_SECRET`. The store has the digest of the secret alone: with 256 random bits there
is nothing to guess, so a slow digest would only cost time.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from hmac import compare_digest
from typing import Literal, TypeAlias

import msgspec

Role: TypeAlias = Literal["admin"]
"""What its bearer may do: with `admin`, everything that the person may who started the server."""

_TOKEN = re.compile(r"dgm_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
NAME_LENGTH = 64


class AccessToken(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A token as the store keeps it: all but the secret."""

    id: str
    name: str
    digest: str
    created_at: float
    role: Role = "admin"
    projects: tuple[str, ...] | None = None
    """The folders whose sessions it is for; None for all."""
    expires_at: float | None = None
    used_at: float | None = None
    revoked_at: float | None = None
    pairing: bool = False
    """Whether it opens nothing but the pairing of a device, once."""

    def is_valid(self, now: float) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    def state(self, now: float) -> Literal["active", "pairing", "expired", "revoked"]:
        if self.revoked_at is not None:
            return "revoked"
        if not self.is_valid(now):
            return "expired"
        return "pairing" if self.pairing else "active"


def new_secret(token_id: str) -> tuple[str, str]:
    """The text of a new token of this id, and the digest to keep."""
    secret = secrets.token_urlsafe(32)
    return f"dgm_{token_id}_{secret}", _digest(secret)


def new_id() -> str:
    return secrets.token_hex(6)


def id_in(text: str) -> str | None:
    """The id in what looks like a token; None for anything else."""
    found = _TOKEN.fullmatch(text)
    return None if found is None else found[1]


def is_secret_of(text: str, token: AccessToken) -> bool:
    found = _TOKEN.fullmatch(text)
    return found is not None and compare_digest(_digest(found[2]), token.digest)


def name_in(text: str) -> str:
    """The name that a person gave. Raises ValueError for one that cannot be shown in a line."""
    name = text.strip()
    if not name or len(name) > NAME_LENGTH or not name.isprintable():
        raise ValueError(f"a name has 1 to {NAME_LENGTH} printable characters, not {text!r}")
    return name


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()

"""Types for access tokens and the pairing of devices over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from dragoman.access.access_tokens import Role
from dragoman.web.shapes.server_shapes import Shape


class TokenShape(Shape):
    """An access token without its secret; `here` is the one that the request came with."""

    id: str
    name: str
    role: Role
    state: Literal["active", "pairing", "expired", "revoked"]
    created_at: datetime
    expires_at: datetime | None
    used_at: datetime | None
    revoked_at: datetime | None
    here: bool


class TokenList(Shape):
    tokens: list[TokenShape]


class PairingBody(Shape):
    """`address` is where the device will find this server: the beginning of what the code says."""

    name: str
    address: str


class Pairing(Shape):
    """How a device is paired: it opens `address` within ten minutes, for which `rows` is the QR
    code, `1` for dark."""

    token: TokenShape
    address: str
    rows: list[str]


class PairedBody(Shape):
    """What the device calls itself, if not as it was called when the pairing began."""

    name: str | None = None


class Paired(Shape):
    """The only answer with the secret."""

    id: str
    name: str
    token: str


class TokenEdit(Shape):
    name: str

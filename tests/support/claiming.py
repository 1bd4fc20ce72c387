"""A claim as an agent makes it in a request."""

from __future__ import annotations

from typing import Any

from dragoman.host.claims.claim_reader import read_claim
from dragoman.host.rules.access import Access


def claim(kind: str | None, raw: Any = None, **more: Any) -> Access:
    settings: dict[str, Any] = {"cwd": "/ws", "roots": ("/ws", "/more")}
    return read_claim(kind, raw, agent="demo", home="/home/me", **(settings | more))

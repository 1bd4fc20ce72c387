"""Whether agents are signed in, as they last said themselves, kept for those who ask later.

An agent has to run to be asked. So what it said is noted in a file of the data directory, for lists
of agents and for the page.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.data_directory import data_directory, make_private

if TYPE_CHECKING:
    from pathlib import Path

_MOST_LABEL = 200
_MOST_BYTES = 1024 * 1024


class AuthStatus(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What an agent reports about its sign-in. `state` is `authenticated`, `unauthenticated`,
    `not_required`, `unknown`, or another word of the agent's; `account` is what it calls the
    account."""

    state: str
    account: str | None = None

    @property
    def signed_in(self) -> bool | None:
        """Whether the agent is signed in, or needs no sign-in; None if it does not say."""
        known = {"authenticated": True, "not_required": True, "unauthenticated": False}
        return known.get(self.state)


class Noted(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    status: AuthStatus
    at: float
    """Seconds since 1970."""


class SignInNotes:
    """What agents said, by their names, in one file."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or data_directory() / "sign_ins.json"

    def all(self) -> dict[str, Noted]:
        """Nothing where there is no file, or one that cannot be read."""
        with suppress(OSError, msgspec.DecodeError), open(self._path, "rb") as file:
            return msgspec.json.decode(file.read(_MOST_BYTES), type=dict[str, Noted])
        return {}

    def note(self, agent: str, status: AuthStatus) -> None:
        """From now on this counts. If it cannot be written, it is not known later."""
        known = self.all()
        if agent in known and known[agent].status == status:
            return
        noted = known | {agent: Noted(status, time.time())}
        fresh = self._path.with_suffix(f".{os.getpid()}.new")
        with suppress(OSError):
            make_private(self._path.parent)
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(descriptor, "wb") as file:
                file.write(msgspec.json.encode(noted))
            fresh.replace(self._path)


def status_from(state: str, accounts: list[Any]) -> AuthStatus:
    """ACP's own: of several accounts, the one that is active."""
    active = next((each for each in accounts if each.active), accounts[0] if accounts else None)
    return AuthStatus(state, None if active is None else _label(active.label))


def pushed_status(told: Mapping[str, Any] | None) -> AuthStatus | None:
    """What `_auth/status_update` tells, by which Claude and Codex say it; None if it says nothing.
    Its kind is `none`, or the kind of account, key or gateway."""
    match told:
        case {"authStatus": {"kind": "none"}}:
            return AuthStatus("unauthenticated")
        case {"authStatus": {"kind": str(), **more}}:
            return AuthStatus("authenticated", _pushed_label(more))
        case _:
            return None


def _pushed_label(told: Mapping[str, Any]) -> str | None:
    label, detail = told.get("label"), told.get("detail")
    match told.get("account"):
        case {"email": str(email)}:
            detail = email
        case _:
            pass
    words = [word for word in (label, detail) if isinstance(word, str) and word]
    return _label(", ".join(words)) if words else None


def _label(text: str) -> str | None:
    return text[:_MOST_LABEL] or None

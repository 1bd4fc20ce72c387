"""One row of the table: a check, the sentence it stands on, and what does it.

A check is an async function of what it examines. It returns when the other side did as it should;
it raises `CheckFailed` with what went wrong, and `NotApplicable` where it cannot be made.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Generic, Literal, NoReturn, TypeAlias, TypeVar

import msgspec

Side: TypeAlias = Literal["agent", "client"]
Level: TypeAlias = Literal["must", "should", "may"]
LEVELS: Final[tuple[Level, ...]] = ("must", "should", "may")
"""The strictest first."""

SPEC: Final = "https://agentclientprotocol.com/protocol"
JSON_RPC: Final = "https://www.jsonrpc.org/specification"

Subject = TypeVar("Subject")


class CheckFailed(Exception):
    """The other side did not do as it should; `frames` show it, if it was not what came last."""

    def __init__(self, text: str, frames: tuple[bytes, ...] = ()) -> None:
        super().__init__(text)
        self.frames = frames


class NoResponse(CheckFailed):
    """What was waited for did not come."""


class NotApplicable(Exception):
    """The check cannot be made here, and why."""


class Check(msgspec.Struct, Generic[Subject], frozen=True, kw_only=True):
    """What is checked, on what grounds, and how."""

    id: str
    side: Side
    level: Level
    version: int
    """The version of the protocol that it belongs to."""
    says: str
    """What the specification requires."""
    page: str
    """Where it says so."""
    does: str
    expects: str
    examine: Callable[[Subject], Awaitable[None]]


Examine: TypeAlias = Callable[[Subject], Awaitable[None]]


class Checks(Generic[Subject]):
    """The checks of one subject, in the order of the table. Its methods decorate the functions."""

    def __init__(self, side: Side, page: str, version: int = 1) -> None:
        """`page` is where the specification treats the subject."""
        self._side: Side = side
        self._page = page
        self._version = version
        self.rows: list[Check[Subject]] = []

    def must(
        self, key: str, says: str, *, does: str, expects: str, page: str = ""
    ) -> Callable[[Examine[Subject]], Examine[Subject]]:
        return self._add(key, "must", says, does, expects, page)

    def should(
        self, key: str, says: str, *, does: str, expects: str, page: str = ""
    ) -> Callable[[Examine[Subject]], Examine[Subject]]:
        return self._add(key, "should", says, does, expects, page)

    def may(
        self, key: str, says: str, *, does: str, expects: str, page: str = ""
    ) -> Callable[[Examine[Subject]], Examine[Subject]]:
        return self._add(key, "may", says, does, expects, page)

    def _add(
        self, key: str, level: Level, says: str, does: str, expects: str, page: str
    ) -> Callable[[Examine[Subject]], Examine[Subject]]:
        def add(examine: Examine[Subject]) -> Examine[Subject]:
            row = Check(
                id=key,
                side=self._side,
                level=level,
                version=self._version,
                says=says,
                page=page or self._page,
                does=does,
                expects=expects,
                examine=examine,
            )
            self.rows.append(row)
            return examine

        return add


def page(name: str, version: int = 1) -> str:
    """The address of a page of the specification."""
    return f"{SPEC}/v{version}/{name}"


def expect(holds: bool, otherwise: str, *frames: bytes) -> None:
    """Raises CheckFailed unless it holds."""
    if not holds:
        raise CheckFailed(otherwise, frames)


def not_applicable(why: str) -> NoReturn:
    raise NotApplicable(why)

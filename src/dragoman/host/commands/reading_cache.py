"""Keeps what was read of a command: a request is decided, explained and shown.

An agent chooses how long a command is, and what is read of it may be a hundred times as large. Of
long ones only the last is kept, so that what stays in memory is bounded.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Command = TypeVar("Command", bound=Sequence[str])
Reading = TypeVar("Reading")

LONG = 2048
"""Characters and words, from which on a command is a long one."""


class Cached(Generic[Command, Reading]):
    """A function of a command that is called again with the same one. Make it with `cached`."""

    __wrapped__: Callable[[Command], Reading]

    def __init__(self, read: Callable[[Command], Reading], most: int) -> None:
        functools.update_wrapper(self, read)
        self._short = functools.lru_cache(maxsize=most)(read)
        self._long = functools.lru_cache(maxsize=1)(read)

    def __call__(self, command: Command) -> Reading:
        return self._long(command) if _is_long(command) else self._short(command)

    def cache_clear(self) -> None:
        self._short.cache_clear()
        self._long.cache_clear()


def cached(most: int) -> Callable[[Callable[[Command], Reading]], Cached[Command, Reading]]:
    """Keep the results for so many short commands."""
    return lambda read: Cached(read, most)


def _is_long(command: Sequence[str]) -> bool:
    return len(command) > LONG or (
        not isinstance(command, str) and len(command) + sum(map(len, command)) > LONG
    )

"""A process without a free descriptor, and how many it may have."""

from __future__ import annotations

import os
import resource
from bisect import bisect_left
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager

from dragoman.process import descriptors


@contextmanager
def no_descriptors() -> Generator[None]:
    """As long as this lasts this process opens nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = [os.open(os.devnull, os.O_RDONLY)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (held[0] + 1, hard))
    try:
        while True:
            try:
                held.append(os.open(os.devnull, os.O_RDONLY))
            except OSError:
                break
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in held:
            os.close(descriptor)


@contextmanager
def few_descriptors(most: int) -> Generator[None]:
    """The process may have so many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def room(count: int) -> AbstractContextManager[None]:
    """Agents may have so many more."""
    return _room(count, descriptors.has_room)


def room_to_spare(count: int) -> AbstractContextManager[None]:
    """What agents do may take so many more; to start one there is always room."""
    return _room(count, descriptors.has_room_to_spare)


@contextmanager
def _room(count: int, has: Callable[[int], bool]) -> Generator[None]:
    taken = 300

    def is_full(kept: int) -> bool:
        descriptors.set_aside(kept)
        return not has(count + 1)

    descriptors.count(taken)
    descriptors.set_aside(bisect_left(range(descriptors.limit()), True, key=is_full))
    try:
        yield
    finally:
        descriptors.set_aside(0)
        descriptors.count(-taken)


def limited(soft: int, hard: int) -> Callable[[], None]:
    """What a child does first to have no more than these."""
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

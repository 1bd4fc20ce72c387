"""A process without a free descriptor, and how many it may have."""

from __future__ import annotations

import os
import resource
from bisect import bisect_left
from collections.abc import Callable, Generator
from contextlib import contextmanager

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
def room_to_spare(count: int) -> Generator[None]:
    """What agents do may take so many more; to start one there is always room."""
    taken = 300

    def is_full(kept: int) -> bool:
        descriptors.set_aside(kept)
        return not descriptors.has_room_to_spare(count + 1)

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

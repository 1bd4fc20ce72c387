"""A process without a free descriptor, and how many it may have."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Generator
from contextlib import contextmanager


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


def limited(soft: int, hard: int) -> Callable[[], None]:
    """What a child does first to have no more than these."""
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

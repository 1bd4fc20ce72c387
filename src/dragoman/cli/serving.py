"""Being an agent on standard input and output, with a word to whoever does that by hand."""

from __future__ import annotations

import sys
from collections.abc import Callable

from dragoman.cli.guard import tell


def serve(agent: Callable[[], None], how: str) -> int:
    """`agent` serves until its input ends; `how` is what one types to talk to it."""
    if sys.stdin.isatty():
        tell(f"an agent waits here for a client that speaks ACP; to talk to it, run: {how}")
    agent()
    return 0

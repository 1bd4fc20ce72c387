"""What is said of a turn in which every permission request was refused."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dragoman.cli.render.event_text import ALL_REFUSED

if TYPE_CHECKING:
    from dragoman.cli.render.event_text import Tally


def all_refused(options: argparse.Namespace, tally: Tally, *, asked: bool) -> str:
    """`asked` says whether a person decided."""
    hint = "" if asked else _hint(options, tally)
    return f"{ALL_REFUSED}{hint}"


def _hint(options: argparse.Namespace, tally: Tally) -> str:
    """What may allow it, if anything may. A flag that was given did not count for this: agents do
    not always say that something is a write or a command."""
    unoffered = tally.unoffered and not (options.write or options.no_files)
    if not (tally.unruled or unoffered):
        return ""  # refused for a reason of its own, which is shown
    given = [f"--{name}" for name in ("write", "exec") if getattr(options, name)]
    if options.yolo:
        return ""  # it covers what can be allowed
    if not given:
        return "; see --write, --exec, --yolo and --policy"
    flags = " and ".join(given)
    return f"; {flags} did not cover it; --yolo or a rule (--policy) may allow it"

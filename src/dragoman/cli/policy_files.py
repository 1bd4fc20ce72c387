"""The rules of the files given with `--policy`, all of them together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.host.matching import Rule


def given_rules(paths: Sequence[str]) -> tuple[Rule, ...]:
    """Raises ConfigError for a file that cannot be read or understood."""
    if not paths:
        return ()
    from dragoman.host.policy_file import load_policy  # brings a TOML parser along

    home = str(Path.home())
    return tuple(rule for path in paths for rule in load_policy(Path(path), home=home))

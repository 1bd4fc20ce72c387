"""A regular expression that is compiled when it is first used.

Compiling one takes up to half a millisecond. The tables of commands, claims and limits have more
than a hundred, and most programs that import Dragoman use few of them.
"""

from __future__ import annotations

import re
from typing import Any, cast

_METHODS = ("match", "search", "fullmatch", "finditer", "findall", "split", "sub", "subn")


class _LazyPattern:
    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        """Only called until the pattern is compiled: from then on, its methods are attributes."""
        if name not in _METHODS:
            raise AttributeError(name)
        compiled = re.compile(self.pattern, self._flags)
        self.__dict__.update((method, getattr(compiled, method)) for method in _METHODS)
        return self.__dict__[name]

    def __repr__(self) -> str:
        return f"lazy_pattern({self.pattern!r})"


def lazy_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Like `re.compile`, except that a pattern with an error raises when it is first used."""
    return cast("re.Pattern[str]", _LazyPattern(pattern, flags))

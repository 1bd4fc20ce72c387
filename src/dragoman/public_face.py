"""What `help`, `dir` and completion show of a class: what people need, not what is called by us.

A name that begins with an underscore would say the same, but these methods are called by other
modules, as parts of one whole that has a class for each of its ideas.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar


def shown(found: Iterable[str], internal: frozenset[str]) -> list[str]:
    return [name for name in found if name not in internal and name != "internal"]


class _Face(type):
    internal: ClassVar[frozenset[str]] = frozenset()

    def __dir__(cls) -> Iterable[str]:
        return shown(super().__dir__(), cls.internal)


class PublicFace(metaclass=_Face):
    """The base of a class that has `internal` names."""

    internal: ClassVar[frozenset[str]] = frozenset()
    """What is left out: called from within Dragoman alone, and subject to change."""

    def __dir__(self) -> Iterable[str]:
        return shown(super().__dir__(), self.internal)


def names(text: str) -> frozenset[str]:
    """Those in the text."""
    return frozenset(text.split())

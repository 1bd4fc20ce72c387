"""Reading JSON that may have any shape: whatever is not there, or of another type, is empty."""

from __future__ import annotations

from typing import Any, TypeAlias, cast

Wire: TypeAlias = dict[str, Any]
"""A JSON object."""


def obj(value: object) -> Wire:
    return cast("Wire", value) if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def objects(value: object) -> list[Wire]:
    """The objects of a list."""
    return [cast("Wire", each) for each in items(value) if isinstance(each, dict)]


def at(value: object, *path: str) -> Any:
    """What is in there by this path; None for nothing."""
    for name in path:
        value = obj(value).get(name)
    return value


def is_text(value: object) -> bool:
    """Whether it is a text that is not empty."""
    return isinstance(value, str) and value != ""

"""The secrets that variables and settings hold, so that they can be removed from what is shared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from dragoman.agents.settings.settings_file import Settings
from dragoman.redactor.secret_kinds import is_secretive


def secret_values(settings: Settings, environment: Mapping[str, str]) -> dict[str, str]:
    """By the names of the variables and headers that hold them. Of a variable the name tells
    whether its value is a secret; every header may be one."""
    written = msgspec.to_builtins(settings, str_keys=True)
    variables = [*environment.items(), *_within(written, "env")]
    found = {name: value for name, value in variables if is_secretive(name)}
    without_scheme = (
        (name, value.rpartition(" ")[2]) for name, value in _within(written, "headers")
    )
    return found | dict(without_scheme)


def _within(value: Any, field: str) -> Iterator[tuple[str, str]]:
    """The names and texts in every field of this name, in either spelling of MCP and settings."""
    match value:
        case {**members}:
            for name, inner in members.items():
                if name == field:
                    yield from _pairs(inner)
                else:
                    yield from _within(inner, field)
        case [*items]:
            for item in items:
                yield from _within(item, field)
        case _:
            pass


def _pairs(value: Any) -> Iterator[tuple[str, str]]:
    match value:
        case {**members}:
            yield from ((name, text) for name, text in members.items() if isinstance(text, str))
        case [*items]:
            for item in items:
                match item:
                    case {"name": str(name), "value": str(text)}:
                        yield name, text
                    case _:
                        pass
        case _:
            pass

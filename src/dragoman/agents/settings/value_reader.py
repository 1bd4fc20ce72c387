"""Checks the values of a settings file: whatever is wrong is a ConfigError that says where."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from dragoman.agents.settings.setting_keys import known_keys
from dragoman.errors import ConfigError
from dragoman.host.workspace.regular_file import read_regular

if TYPE_CHECKING:
    from pathlib import Path

MAX_SETTINGS_BYTES = 4 * 1024 * 1024


def settings_text(file: Path) -> str:
    """Raises FileNotFoundError, ConfigError for a file that cannot be read."""
    try:
        return read_regular(file, MAX_SETTINGS_BYTES, links=True).decode()
    except FileNotFoundError:
        raise
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise ConfigError(str(file), "", f"a readable file ({reason})") from error


class ValueReader:
    """Checks a document value by value; `place` is the way to each."""

    def __init__(self, file: str) -> None:
        self._file = file

    def _object(
        self, value: Any, place: str, known: Collection[str] | None = None
    ) -> dict[str, Any]:
        match value:
            case {**entries}:
                for key in entries:
                    if known is not None and key not in known:
                        self._fail(f"{place}.{key}".lstrip("."), known_keys(key, known))
                return entries
            case _:
                return self._fail(place, f"an object, not {kind_of(value)}")

    def _list(self, value: Any, place: str) -> list[Any]:
        match value:
            case [*items]:
                return items
            case _:
                return self._fail(place, f"a list, not {kind_of(value)}")

    def _word(self, value: Any, place: str) -> str:
        if isinstance(value, str) and value:
            return self._string(value, place)
        found = "" if value == "" else f", not {kind_of(value)}"
        return self._fail(place, f"a non-empty string{found}")

    def _strings(self, value: Any, place: str) -> tuple[str, ...]:
        items = self._list(value, place)
        return tuple(self._string(item, f"{place}[{i}]") for i, item in enumerate(items))

    def _string(self, value: Any, place: str) -> str:
        if not isinstance(value, str):
            self._fail(place, f"a string, not {kind_of(value)}")
        return value if "\0" not in value else self._fail(place, "a string without NUL")

    def _mapping(self, value: Any, place: str) -> dict[str, str]:
        """An object of strings; of an MCP server also ACP's own list of names and values."""
        match value:
            case [*pairs]:
                entries = dict(self._pair(p, f"{place}[{i}]") for i, p in enumerate(pairs))
            case _:
                entries = self._object(value, place)
        return {name: self._string(text, f"{place}.{name}") for name, text in entries.items()}

    def _variables(self, value: Any, place: str) -> dict[str, str]:
        variables = self._mapping(value, place)
        for name in variables:
            if not name or "=" in name or "\0" in name:
                self._fail(f"{place}.{name}", "a valid variable name")
        return variables

    def _pair(self, value: Any, place: str) -> tuple[str, Any]:
        entry = self._object(value, place, {"name", "value"})
        return self._word(entry.get("name"), f"{place}.name"), entry.get("value")

    def _fail(self, place: str, expected: str) -> Any:
        raise ConfigError(self._file, place, expected)


def kind_of(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case dict():
            return "an object"
        case _:
            return "a list"

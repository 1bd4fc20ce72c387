"""A form an agent asks to be filled in: its fields, and what was typed as the value of one.

The schema is whatever the agent sent; what is not understood is a field for text. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from dragoman.safe_text import single_line

_SWITCHES = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One field; `parsed` gives its value, or None for a text that does not fit."""

    name: str
    title: str
    expected: str
    required: bool
    parsed: Callable[[str], Any]
    default: Any = None

    @property
    def label(self) -> str:
        """The field as it is asked for, safe to show."""
        notes = [self.expected] if self.expected != "a text" else []
        if self.default is not None:
            notes.append(f"Enter for {_as_typed(self.default)}")
        elif not self.required:
            notes.append("optional")
        hint = f" ({', '.join(notes)})" if notes else ""
        return single_line(f"{self.title}{hint}", 200)


def _as_typed(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def fields_of(schema: dict[str, Any] | None) -> list[Field]:
    match schema:
        case {"properties": {**properties}}:
            required = _strings(schema.get("required"))
            return [_field(name, field, name in required) for name, field in properties.items()]
        case _:
            return []


def _field(name: str, field: Any, required: bool) -> Field:
    described = _object(field)
    expected, parsed = _kind(described)
    return Field(
        name=name,
        title=str(described.get("title") or described.get("description") or name),
        expected=expected,
        required=required,
        parsed=parsed,
        default=described.get("default"),
    )


def _kind(field: dict[str, Any]) -> tuple[str, Callable[[str], Any]]:
    if choices := _choices(field):
        return f"one of {', '.join(choices)}", lambda text: text if text in choices else None
    match field.get("type"):
        case "integer":
            return "a whole number", _number(int)
        case "number":
            return "a number", _number(float)
        case "boolean":
            return "yes or no", lambda text: _SWITCHES.get(text.lower())
        case "array":
            return _array(field.get("items"))
        case _:
            return "a text", lambda text: text


def _number(kind: type[int] | type[float]) -> Callable[[str], int | float | None]:
    def parsed(text: str) -> int | float | None:
        try:
            return kind(text)
        except ValueError:
            return None

    return parsed


def _array(items: Any) -> tuple[str, Callable[[str], Any]]:
    choices = _choices(_object(items))

    def parsed(text: str) -> list[str] | None:
        parts = [part.strip() for part in text.split(",")]
        return parts if not choices or set(parts) <= set(choices) else None

    among = f" of {', '.join(choices)}" if choices else ""
    return f"any{among}, with commas between", parsed


def _choices(field: dict[str, Any]) -> list[str]:
    match field:
        case {"enum": [*values]}:
            return _strings(values)
        case {"oneOf": [*options]} | {"anyOf": [*options]}:
            return [option["const"] for option in options if _has_text(option)]
        case _:
            return []


def _object(value: Any) -> dict[str, Any]:
    match value:
        case {**entries}:
            return entries
        case _:
            return {}


def _has_text(option: Any) -> bool:
    match option:
        case {"const": str()}:
            return True
        case _:
            return False


def _strings(values: Any) -> list[str]:
    match values:
        case [*items]:
            return [item for item in items if isinstance(item, str)]
        case _:
            return []

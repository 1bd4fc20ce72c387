"""Forms at the terminal: their fields, and typed text as the value of a field.

The schema is whatever the agent sent; what is not understood is a field for text. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from dragoman.host.forms.elicitation import as_object, demands, unmet
from dragoman.safe_text import single_line

_LONGEST = 300
_SWITCHES = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One field; `parsed` gives its value, or None for a text that does not fit."""

    name: str
    title: str
    expected: str
    required: bool
    parsed: Callable[[str], Any]
    default: Any = None
    description: str = ""
    """What there is to know about it, safe to show."""
    told: tuple[str, ...] = ()
    """What there is to know about each choice, a line each, safe to show."""

    @property
    def label(self) -> str:
        """The field as it is asked for, safe to show."""
        notes = [self.expected] if self.expected != "a text" else []
        if self.default is not None:
            notes.append(f"Enter for {as_typed(self.default)}")
        elif not self.required:
            notes.append("optional")
        hint = f" ({', '.join(notes)})" if notes else ""
        return single_line(f"{self.title}{hint}", 200)


class _Choice(msgspec.Struct, frozen=True):
    value: str
    title: str = ""
    description: str = ""

    @property
    def about(self) -> str:
        """What its value does not say by itself."""
        title = "" if self.title == self.value else self.title
        return ": ".join(filter(None, (title, self.description)))

    @property
    def told(self) -> str:
        return single_line(f"{self.value}  {self.about}".rstrip(), _LONGEST)


def as_typed(value: Any) -> str:
    """A value as one would type it for `parsed` to give it back."""
    match value:
        case bool():
            return "yes" if value else "no"
        case [*values]:
            return ",".join(map(str, values))
        case _:
            return str(value)


def form_fields(schema: dict[str, Any] | None) -> list[Field]:
    match schema:
        case {"properties": {**properties}}:
            required = set(_strings(schema.get("required")))
            return [_field(name, field, name in required) for name, field in properties.items()]
        case _:
            return []


def _field(name: str, field: Any, required: bool) -> Field:
    described = as_object(field)
    expected, parsed = _kind(described)
    if demanded := demands(described):
        expected = f"{expected}, {demanded}"
    title, description = described.get("title"), described.get("description")
    choices = _choices(described) or _choices(as_object(described.get("items")))
    return Field(
        name=name,
        title=str(title or description or name),
        description=single_line(str(description), _LONGEST) if title and description else "",
        told=tuple(choice.told for choice in choices) if any(c.about for c in choices) else (),
        expected=expected,
        required=required,
        parsed=lambda text: _fitting(parsed(text), described),
        default=described.get("default"),
    )


def _fitting(value: Any, field: dict[str, Any]) -> Any:
    return None if value is None or unmet(field, value) is not None else value


def _kind(field: dict[str, Any]) -> tuple[str, Callable[[str], Any]]:
    if choices := _choices(field):
        return f"one of {_listed(choices)}", lambda text: _meant(text, choices)
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
    choices = _choices(as_object(items))

    def parsed(text: str) -> list[str] | None:
        parts = [part.strip() for part in text.split(",")]
        if not choices:
            return parts
        meant = [value for part in parts if (value := _meant(part, choices)) is not None]
        return meant if len(meant) == len(parts) else None

    among = f" of {_listed(choices)}" if choices else ""
    return f"any{among}, with commas between", parsed


def _choices(field: dict[str, Any]) -> list[_Choice]:
    match field:
        case {"enum": [*values]}:
            return [_Choice(value) for value in _strings(values)]
        case {"oneOf": [*options]} | {"anyOf": [*options]}:
            return [choice for option in options for choice in _choice(option)]
        case _:
            return []


def _choice(option: Any) -> list[_Choice]:
    match option:
        case {"const": str(value)}:
            words = (option.get("title"), option.get("description"))
            title, description = (word if isinstance(word, str) else "" for word in words)
            return [_Choice(value, title, description)]
        case _:
            return []


def _listed(choices: list[_Choice]) -> str:
    return ", ".join(choice.value for choice in choices)


def _meant(text: str, choices: list[_Choice]) -> str | None:
    """The value that was typed, or the one with that title."""
    values = [choice.value for choice in choices if choice.value == text]
    titled = [choice.value for choice in choices if choice.title == text]
    return next(iter(values + titled), None)


def _strings(values: Any) -> list[str]:
    match values:
        case [*items]:
            return [item for item in items if isinstance(item, str)]
        case _:
            return []

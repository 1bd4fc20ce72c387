"""Questions an agent asks other than permissions: a form to fill in, an address to visit.

Never answered automatically: without someone to ask, the answer is that it was declined. The values
of a form are checked: their types, lengths, ranges and patterns. Its schema is whatever the agent
sent; what is not understood demands nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Literal, Protocol

import msgspec

from dragoman.host.forms.bounded_pattern import Work, fits
from dragoman.session.events import ElicitationRequested
from dragoman.session.facts import ElicitationQuestion


# Structs may be frozen whatever their base is: this one is nobody's to change once it is asked.
class ElicitationRequest(
    ElicitationQuestion,
    kw_only=True,
    frozen=True,  # pyright: ignore[reportGeneralTypeIssues]
):
    """A form to fill in (`mode` is `form`, with a `schema`), or an address to visit (`url`)."""

    session_id: str | None = None
    """None if it is asked outside any session, for example while signing in."""
    meta: dict[str, Any] | None = None

    def as_event(self) -> ElicitationRequested:
        return self.as_kind(ElicitationRequested, meta=self.meta)


class ElicitationAnswer(msgspec.Struct, frozen=True):
    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None


def check(schema: dict[str, Any] | None, answer: ElicitationAnswer) -> None:
    """Raises FormError, which is a ValueError, for a yes that the form does not take."""
    if answer.action != "accept":
        return
    content = answer.content or {}
    wrong = {name: "an answer is needed" for name in _required(schema) if name not in content}
    if wrong := wrong | wrong_fields(schema, content):
        raise FormError(wrong)


def _required(schema: dict[str, Any] | None) -> list[str]:
    match schema:
        case {"required": [*names], "properties": {**fields}}:
            needed = {name for name in names if isinstance(name, str)}
            return [name for name in fields if name in needed]
        case _:
            return []


class ElicitationProvider(Protocol):
    """Asks the user. There is no time limit; if the task is cancelled, the answer is not needed."""

    async def create_elicitation(self, request: ElicitationRequest) -> ElicitationAnswer: ...


_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "string": ((str,), "a text"),
    "integer": ((int,), "a whole number"),
    "number": ((int, float), "a number"),
    "boolean": ((bool,), "true or false"),
    "array": ((list,), "a list"),
}


class FormError(ValueError):
    """An answer that its form does not take; `fields` has a sentence for each that is wrong."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        wrong = "; ".join(f"{name}: {words}" for name, words in fields.items())
        super().__init__(f"invalid form values: {wrong}")
        self.fields = dict(fields)


def wrong_fields(schema: Mapping[str, Any] | None, content: Mapping[str, Any]) -> dict[str, str]:
    """What is wrong with each value that does not fit its field. All patterns are judged on one
    budget: an agent that spends it has its other patterns to judge itself."""
    match schema:
        case {"properties": {**properties}}:
            work = Work()
            given = {name: field for name, field in properties.items() if name in content}
            found = ((name, unmet(field, content[name], work)) for name, field in given.items())
            return {name: words for name, words in found if words is not None}
        case _:
            return {}


def unmet(field: Any, value: Any, work: Work | None = None) -> str | None:
    """What is expected instead of the value, if that does not fit."""
    described = as_object(field)
    kind = described.get("type")
    types, words = _TYPES.get(kind, ((), "")) if isinstance(kind, str) else ((), "")
    if types and (not isinstance(value, types) or (isinstance(value, bool) and kind != "boolean")):
        return f"expected {words}"
    return next(_unmet(described, value, work or Work()), None)


def _unmet(field: dict[str, Any], value: Any, work: Work) -> Iterator[str]:
    choices = _choices(field)
    match value:
        case str() if choices and value not in choices:
            yield f"expected one of {', '.join(choices)}"
        case str():
            yield from _outside(len(value), field, ("minLength", "maxLength"), "character")
            if _misses(field.get("pattern"), value, work):
                yield f"expected to match {field['pattern']}"
        case bool():
            return
        case int() | float():
            yield from _outside(value, field, ("minimum", "maximum"), "")
        case [*items]:
            yield from _outside(len(items), field, ("minItems", "maxItems"), "item")
            among = dict.fromkeys(_choices(as_object(field.get("items"))))
            if among and not all(isinstance(item, str) and item in among for item in items):
                yield f"expected any of {', '.join(among)}"
        case _:
            return


def demands(field: Mapping[str, Any]) -> str:
    """What is expected in addition to the type, as a part of a sentence."""
    words = [
        _range(field, ("minLength", "maxLength"), "character"),
        _range(field, ("minimum", "maximum"), ""),
        _range(field, ("minItems", "maxItems"), "item"),
    ]
    if isinstance(pattern := field.get("pattern"), str):
        words.append(f"matching {pattern}")
    return ", ".join(filter(None, words))


def _outside(
    size: float, field: Mapping[str, Any], names: tuple[str, str], unit: str
) -> Iterator[str]:
    low, high = (_bound(field.get(name)) for name in names)
    if (low is not None and size < low) or (high is not None and size > high):
        yield f"expected {_range(field, names, unit)}"


def _range(field: Mapping[str, Any], names: tuple[str, str], unit: str) -> str:
    low, high = (_bound(field.get(name)) for name in names)
    if low is not None and high is not None:
        words = f"{low:g}" if low == high else f"{low:g} to {high:g}"
    elif low is not None or high is not None:
        words = f"at least {low:g}" if low is not None else f"at most {high:g}"
    else:
        return ""
    last = high if high is not None else low
    return f"{words} {unit}{'' if last == 1 else 's'}" if unit else words


def _bound(value: Any) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:  # an integer beyond all doubles, as the page reads it too
        return math.inf if value > 0 else -math.inf


def _misses(pattern: Any, text: str, work: Work) -> bool:
    return isinstance(pattern, str) and fits(pattern, text, work) is False


def _choices(field: Mapping[str, Any]) -> list[str]:
    match field:
        case {"enum": [*values]}:
            return [value for value in values if isinstance(value, str)]
        case {"oneOf": [*options]} | {"anyOf": [*options]}:
            consts = [as_object(option).get("const") for option in options]
            return [value for value in consts if isinstance(value, str)]
        case _:
            return []


def as_object(value: Any) -> dict[str, Any]:
    """An agent's value, if it is one; nothing of anything else."""
    match value:
        case {**entries}:
            return entries
        case _:
            return {}

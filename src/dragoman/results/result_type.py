"""The type of a result, whatever it was given as: its schema, and how JSON becomes a value of it.

Anything that msgspec knows (structs, dataclasses, TypedDicts, lists, enums, …), a class that makes
its own JSON schema and validates JSON itself, as those of pydantic do, or a JSON schema.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeGuard, TypeVar, cast

import msgspec

from dragoman.results.json_schema import Schema, checked_by, written_out

T = TypeVar("T")

MOST_BYTES = 1 << 20
"""Of a result as JSON."""
_LONGEST_PROBLEM = 1000


class InvalidResult(ValueError):
    """Why something is not a result, in words for the agent."""


class ResultType(Generic[T]):
    """What a result has to be. `schema` is its JSON schema, `read` makes one of JSON."""

    def __init__(self, schema: Schema, make: Callable[[bytes], T]) -> None:
        self.schema = schema
        self._make = make

    def read(self, data: bytes) -> T:
        """Raises InvalidResult for what is not JSON, or not of this type."""
        if len(data) > MOST_BYTES:
            raise InvalidResult(f"a result may have at most {MOST_BYTES >> 10} KiB as JSON")
        try:
            return self._make(data)
        except RecursionError:
            raise InvalidResult("the result is nested too deeply") from None
        except (ValueError, TypeError) as error:
            raise InvalidResult(_shortened(_words(error))) from error


def _words(error: Exception) -> str:
    is_json = isinstance(error, msgspec.ValidationError) or not isinstance(
        error, msgspec.DecodeError
    )
    return str(error) if is_json else f"it is not valid JSON: {error}"


def _shortened(text: str) -> str:
    half = _LONGEST_PROBLEM // 2
    return text if len(text) <= _LONGEST_PROBLEM else f"{text[:half]} … {text[-half:]}"


class _Model(Protocol):
    """A class of pydantic, or one that does the same."""

    def model_json_schema(self) -> Schema: ...

    def model_validate_json(self, data: bytes, /) -> Any: ...


def result_type(output: object) -> ResultType[Any]:
    """The type that was given. Raises TypeError for what is none, ValueError for a mapping that is
    not a JSON schema."""
    if isinstance(output, Mapping):
        return _by_schema(cast("Mapping[str, Any]", output))
    if _is_model(output):
        return ResultType(written_out(output.model_json_schema()), output.model_validate_json)
    try:
        decoder = msgspec.json.Decoder(cast("type[Any]", output))
        schema = msgspec.json.schema(output)
    except TypeError as error:
        raise TypeError(f"{output!r} cannot be the type of a result: {error}") from error
    return ResultType(written_out(schema), decoder.decode)


def _is_model(output: object) -> TypeGuard[_Model]:
    needed = ("model_json_schema", "model_validate_json")
    return isinstance(output, type) and all(callable(getattr(output, n, None)) for n in needed)


def _by_schema(schema: Mapping[str, Any]) -> ResultType[Any]:
    problem_of = checked_by(schema)

    def make(data: bytes) -> Any:
        value = msgspec.json.decode(data)
        if (problem := problem_of(value)) is not None:
            raise InvalidResult(problem)
        return value

    return ResultType(dict(schema), make)

"""The JSON of a file that people write: what is not quite JSON is an error that says where."""

from __future__ import annotations

import json
from typing import Any

from dragoman.errors import ConfigError


def read_strict_json(text: str, file: str) -> Any:
    """The document in `text`; no key stands twice in an object. Raises ConfigError."""

    def refuse(constant: str) -> Any:
        raise ConfigError(file, "", f"strict JSON, which has no {constant}")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise ConfigError(file, twice, "each key only once in an object")
        return fields

    try:
        return json.loads(text, parse_constant=refuse, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ConfigError(file, place, f"strict JSON ({error.msg.lower()})") from error
    except RecursionError as error:
        raise ConfigError(file, "", "strict JSON, and not nested this deep") from error

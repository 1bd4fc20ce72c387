"""One msgspec decoder for each type, and how a `Choice` is made.

A decoder is built on first use, since that takes milliseconds, and kept.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeGuard

import msgspec
from msgspec.structs import fields

from .model import Choice, Model


@cache
def decoder(type_: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(type_, dec_hook=_resolved)


def tag_of(variant: type[Model]) -> tuple[str, str] | None:
    """The JSON field and the value by which a struct is known in its union."""
    config = variant.__struct_config__
    if config.tag_field is None:
        return None
    return config.tag_field, str(config.tag)


def chosen(choice: type[Choice], value: Any) -> type[Model] | None:
    """The variant whose tag a JSON object has, else the first whose required fields it has."""
    if is_object(value):
        for variant in choice.variants:
            if _fits(variant, value):
                return variant
    return None


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _fits(variant: type[Model], value: dict[str, Any]) -> bool:
    tag = tag_of(variant)
    if tag is not None:
        return value.get(tag[0]) == tag[1]
    return all(name in value for name in _required(variant))


@cache
def _required(variant: type[Model]) -> tuple[str, ...]:
    return tuple(field.encode_name for field in fields(variant) if field.required)


def _resolved(type_: Any, value: Any) -> Any:
    """Called by msgspec for a `Choice`; to fail here is to ask for the second look."""
    variant = chosen(type_, value) if issubclass(type_, Choice) else None
    if variant is None:
        raise ValueError("no variant fits")
    return msgspec.convert(value, variant, dec_hook=_resolved)

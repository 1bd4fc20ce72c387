"""A content block as ACP writes it, in our words; one in our own words is taken too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman.session.content import Content

_WORDS = {"mimeType": "mime_type", "_meta": "meta"}
_RESOURCE_WORDS = _WORDS | {"text": "content", "_meta": "resource_meta"}


def content_of(block: Mapping[str, Any]) -> Content:
    """Raises ValueError for what cannot be sent."""
    if block.get("type") == "unknown":
        raise ValueError("expected a known type")
    try:
        return msgspec.convert(_in_our_words(block), Content)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None


def _in_our_words(block: Mapping[str, Any]) -> dict[str, Any]:
    plain = _renamed(block, _WORDS)
    match plain:
        case {"type": "resource", "resource": {"uri": str()}}:
            return _renamed(plain.pop("resource"), _RESOURCE_WORDS) | plain
        case _:
            return plain


def _renamed(fields: Mapping[str, Any], words: dict[str, str]) -> dict[str, Any]:
    return {words.get(key, key): value for key, value in fields.items()}

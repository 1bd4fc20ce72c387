"""Every key in the JSON that leaves Dragoman is in camelCase."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast, get_args

import msgspec
import pytest
from msgspec import inspect

from dragoman.session.events import Event
from dragoman.session.state import SessionState
from dragoman.store.mirror_lines import Header
from dragoman.ui_stream.chunks import Chunk
from dragoman.web.routing.openapi import document
from dragoman.web.routing.table import ROUTES
from dragoman.web.streams.sse import ResetNote, StoreNote

CAMEL_CASE = re.compile(r"[a-z][a-zA-Z0-9]*")


def keys(node: Any, seen: set[type]) -> Iterator[str]:
    """Those of every struct in a type, with the struct's name."""
    match node:
        case inspect.StructType() if node.cls not in seen:
            seen.add(node.cls)
            for field in node.fields:
                yield f"{node.cls.__name__}.{field.encode_name}"
                yield from keys(field.type, seen)
            if node.tag_field is not None:
                yield f"{node.cls.__name__}.{node.tag_field}"
        case inspect.UnionType():
            for each in node.types:
                yield from keys(each, seen)
        case inspect.ListType() | inspect.VarTupleType():
            yield from keys(node.item_type, seen)
        case inspect.DictType():
            yield from keys(node.value_type, seen)
        case _:
            pass


def wrong(found: Iterator[str]) -> list[str]:
    return [each for each in found if CAMEL_CASE.fullmatch(each.rpartition(".")[2]) is None]


@pytest.mark.parametrize(
    "kind", [Event, SessionState, Header, ResetNote, StoreNote, *get_args(Chunk)]
)
def test_every_key_of_what_is_stored_and_sent_is_in_camel_case(kind: Any) -> None:
    found = list(keys(inspect.type_info(kind), set()))
    assert found
    assert wrong(iter(found)) == []


def properties(node: Any, place: str) -> Iterator[str]:
    if isinstance(node, dict):
        found = cast("dict[str, Any]", node)
        yield from (f"{place}.{name}" for name in found.get("properties", {}))
        for name, each in found.items():
            yield from properties(each, f"{place}/{name}")
    elif isinstance(node, list):
        for each in cast("list[Any]", node):
            yield from properties(each, place)


def test_every_key_of_the_http_api_is_in_camel_case() -> None:
    described = document(ROUTES)
    found = list(properties(described, ""))
    assert len(found) > 300
    assert wrong(iter(found)) == []


def test_every_parameter_of_a_query_is_in_camel_case() -> None:
    operations = (each for path in document(ROUTES)["paths"].values() for each in path.values())
    queries = [
        f".{each['name']}"
        for operation in operations
        for each in operation["parameters"]
        if each["in"] == "query"
    ]
    assert queries
    assert wrong(iter(queries)) == []


class Inner(msgspec.Struct):
    old_name: str


class Outer(msgspec.Struct, rename="camel"):
    some_items: dict[str, list[Inner]]


def test_control_a_key_in_snake_case_is_found() -> None:
    assert wrong(keys(inspect.type_info(Outer), set())) == ["Inner.old_name"]

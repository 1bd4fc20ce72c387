"""The format before version 2, whose keys are in snake_case: what is read is brought up to date.

A key is renamed where a type of ours says so, never because of its spelling. What an agent sent
stays as it is, byte for byte, and so does everything that is not one of our types. Repeating it
changes nothing. Pure.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

import msgspec

from dragoman.host.rules.rule import RuleFields
from dragoman.session.content import Content
from dragoman.session.events import Event, SubagentEvent
from dragoman.session.facts import Decision

SNAKE_CASE = 1
CAMEL_CASE = 2
"""The versions of the format of events and records, wherever they are stored."""

IN_USE = (
    "it has an earlier format, and another process is using it: stop that process and try again; "
    "after a crash, wait 15 seconds"
)
"""Why a store is not brought up to date now."""

_UNTYPED: dict[tuple[type, str], Any] = {(Decision, "rule"): RuleFields}
"""Fields that hold a type of ours without saying so."""


_LATER = (SubagentEvent,)
"""Kinds that the format did not have, one of which holds any other."""


class _Command(msgspec.Struct):
    """What a command may carry; its own keys have not changed."""

    content: str | list[Content]


class _Keys(msgspec.Struct, frozen=True):
    """An object: its keys that are renamed, and those with something to rename inside."""

    names: dict[str, str]
    inner: dict[str, _Form]


class _Form(msgspec.Struct, frozen=True):
    """A value: the objects that it may be, by their tags, or the items of the list."""

    tag_field: str | None
    objects: dict[str | int | None, _Keys]
    items: _Form | None


_Members: TypeAlias = dict[str, msgspec.Raw]
_members = msgspec.json.Decoder(_Members)
_items = msgspec.json.Decoder(list[msgspec.Raw])
_encode = msgspec.json.Encoder().encode


def current_event(body: bytes) -> bytes:
    """An event as it is encoded now; one that cannot be read stays as it is."""
    return current(Event, body)


def current_command(body: bytes) -> bytes:
    return current(_Command, body)


def current(kind: Any, body: bytes) -> bytes:
    """The JSON of a struct, or of a union of them, with the keys that it has now."""
    try:
        return _renamed(_form_of(kind), body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return body


def _renamed(form: _Form, value: bytes) -> bytes:
    first = value.lstrip()[:1]
    if first == b"{" and form.objects:
        members = _members.decode(value)
        keys = form.objects.get(_tag(form.tag_field, members))
        return value if keys is None else _encode(_in_object(keys, members))
    if first == b"[" and form.items is not None:
        return _encode([_inside(form.items, item) for item in _items.decode(value)])
    return value


def _in_object(keys: _Keys, members: _Members) -> _Members:
    return {
        keys.names.get(key, key): _inside(keys.inner[key], value) if key in keys.inner else value
        for key, value in members.items()
    }


def _inside(form: _Form, value: msgspec.Raw) -> msgspec.Raw:
    return msgspec.Raw(_renamed(form, bytes(value)))


def _tag(field: str | None, members: _Members) -> Any:
    if field is None:
        return None
    tag = msgspec.json.decode(members[field]) if field in members else None
    return tag if isinstance(tag, str) else ""


@cache
def _form_of(kind: Any) -> _Form:
    """Made when it is first needed: what was never stored in an earlier format needs none."""
    from msgspec import inspect

    def form(node: inspect.Type) -> _Form | None:
        nodes = node.types if isinstance(node, inspect.UnionType) else (node,)
        structs = [each for each in nodes if isinstance(each, inspect.StructType)]
        structs = [each for each in structs if each.cls not in _LATER]
        lists = (each for each in nodes if isinstance(each, inspect.ListType))
        items = next((found for each in lists if (found := form(each.item_type))), None)
        objects = {each.tag: keys(each) for each in structs}
        if items is None and not any(each.names or each.inner for each in objects.values()):
            return None
        return _Form(structs[0].tag_field if structs else None, objects, items)

    def keys(struct: inspect.StructType) -> _Keys:
        names = {each.name: each.encode_name for each in struct.fields}
        inner = {each.name: form(value(struct.cls, each)) for each in struct.fields}
        return _Keys(
            {old: new for old, new in names.items() if old != new},
            {name: found for name, found in inner.items() if found is not None},
        )

    def value(struct: type, field: inspect.Field) -> inspect.Type:
        untyped = _UNTYPED.get((struct, field.name))
        return field.type if untyped is None else inspect.type_info(untyped)

    return form(inspect.type_info(kind)) or _Form(None, {}, None)

"""JSON schemas: whether a value fits one, and how one is written where it becomes part of another.

`jsonschema` is imported only when there is a schema to check by, since it takes long to import.
Nothing is ever fetched for a `$ref`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias, cast

import msgspec

Schema: TypeAlias = dict[str, Any]
Problem: TypeAlias = str

_LOCAL = "#/$defs/"
_LONGEST = 32 << 10
"""Of a schema in which what it refers to was written out: it is part of a prompt."""


def checked_by(schema: Mapping[str, Any]) -> Callable[[object], Problem | None]:
    """What says of a value why it does not fit the schema, None if it does.

    Raises ValueError for an invalid schema, and for one that refers to something it does not have.
    """
    from jsonschema import exceptions, validators

    plain = dict(schema)
    kind: Any = validators.validator_for(plain, default=validators.Draft202012Validator)
    try:
        kind.check_schema(plain)
    except exceptions.SchemaError as error:
        raise ValueError(f"not a JSON schema: {error.message}{_place(error.path)}") from error
    _must_have_all(plain)
    validator = kind(plain, registry=_nothing_else())
    best: Any = cast("Any", exceptions).best_match

    def problem(value: object) -> Problem | None:
        error = best(validator.iter_errors(value))
        return None if error is None else f"{error.message}{_place(error.absolute_path)}"

    return problem


def _must_have_all(schema: Schema) -> None:
    """Raises ValueError for a reference that leads out of the schema, or nowhere."""
    from referencing import Resource
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    resource: Any = Resource.from_contents(schema, default_specification=DRAFT202012)
    resolver = _nothing_else().resolver_with_root(resource)
    for ref in _references(schema):
        try:
            resolver.lookup(ref)
        except Unresolvable as missing:
            sentence = f"the schema refers to {ref}, which is not part of it"
            raise ValueError(sentence) from missing


def _nothing_else() -> Any:
    """A registry that knows no other schemas: nothing is fetched."""
    from referencing import Registry

    made: Any = Registry
    return made()


def _place(path: Any) -> str:
    """Where in the value, written as msgspec does."""
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return f" - at `${steps}`" if steps else ""


def _references(part: object) -> Iterator[str]:
    under_way = [part]
    while under_way:
        each = under_way.pop()
        if isinstance(each, dict):
            fields = cast("Schema", each)
            if isinstance(ref := fields.get("$ref"), str):
                yield ref
            under_way += fields.values()
        elif isinstance(each, list):
            under_way += cast("list[object]", each)


def written_out(schema: Schema) -> Schema:
    """The same schema without references, where it is not recursive and stays short: some models
    cannot read them."""
    definitions: Schema = schema.get("$defs", {})
    if not definitions or any(name in _reached(name, definitions) for name in definitions):
        return schema
    whole = _without_references({k: v for k, v in schema.items() if k != "$defs"}, definitions)
    if len(msgspec.json.encode(whole)) > max(_LONGEST, 2 * len(msgspec.json.encode(schema))):
        return schema
    return whole


def _reached(name: str, definitions: Schema) -> set[str]:
    """The definitions that this one leads to."""
    reached: set[str] = set()
    under_way = [name]
    while under_way:
        for ref in _references(definitions.get(under_way.pop())):
            if (following := ref.removeprefix(_LOCAL)) not in reached:
                reached.add(following)
                under_way.append(following)
    return reached


def _without_references(part: Any, definitions: Schema) -> Any:
    if isinstance(part, list):
        return [_without_references(e, definitions) for e in cast("list[object]", part)]
    if not isinstance(part, dict):
        return part
    fields = cast("Schema", part)
    ref = fields.get("$ref")
    if isinstance(ref, str) and (name := ref.removeprefix(_LOCAL)) in definitions:
        fields = definitions[name] | {key: each for key, each in fields.items() if key != "$ref"}
        return _without_references(fields, definitions)
    return {key: _without_references(each, definitions) for key, each in fields.items()}


_OF_A_DOCUMENT = ("$schema", "$id", "$defs")


def as_property(name: str, schema: Schema) -> Schema:
    """The schema of an object that has such a value as its only property. A schema whose references
    would break there becomes one that accepts anything."""
    definitions = schema.get("$defs", {})
    inner = {key: each for key, each in schema.items() if key not in _OF_A_DOCUMENT}
    is_movable = all(ref.startswith(_LOCAL) for ref in _references(schema)) and "$id" not in schema
    whole: Schema = {
        "type": "object",
        "properties": {name: inner if is_movable else {}},
        "required": [name],
    }
    if definitions and is_movable:
        whole["$defs"] = definitions
    return whole

"""JSON to structs and back: one msgspec decode, and a fallback if that fails.

Knows no protocol version: everything is read off the struct it is asked for. The fallback walks a
struct's types over the raw JSON: a variant the schema does not have becomes `Unknown`, a field or
an item the schema is lenient on is dropped, anything else is a `Misfit` with its path. What was
dropped is logged by path, never by content.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache, partial
from types import NoneType, UnionType
from typing import Any, NamedTuple, TypeGuard, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, DecodeError, Raw, UnsetType, ValidationError
from msgspec.structs import FieldInfo, fields

from dragoman.errors import InvalidMessage
from dragoman.schema.model import Choice, Model, Unknown

T = TypeVar("T")


def decode(data: bytes | Raw, type_: type[T]) -> T:
    """The value of type `type_` that `data` is, or `InvalidMessage`."""
    return examine(data, type_)[0]


def object_of(result: Raw) -> bytes | Raw:
    """A result to decode: some agents answer with null where there is nothing to tell."""
    return b"{}" if bytes(result) == b"null" else result


def examine(data: bytes | Raw, type_: type[T]) -> tuple[T, bool]:
    """The same, and whether it fits as it is: else parts of it may have been left out."""
    try:
        try:
            return decoder(type_).decode(data), True
        except ValidationError:
            return second_look(data, type_), False
    except Misfit as misfit:
        raise InvalidMessage(f"{type_.__name__} is wrong at {misfit.path}: {misfit.why}") from None
    except RecursionError:
        raise InvalidMessage(f"{type_.__name__} is nested too deeply") from None
    except (DecodeError, UnicodeDecodeError) as error:
        raise InvalidMessage(f"{type_.__name__} is not valid JSON: {error}") from error


def encode(value: object) -> bytes:
    """The JSON of a struct; an `Unknown` inside it comes out as it came in.

    Text with a lone surrogate is not Unicode and raises `UnicodeEncodeError`.
    """
    return _encoder.encode(value)


def _as_received(value: object) -> Raw:
    if isinstance(value, Unknown):
        return Raw(value.raw)
    raise NotImplementedError(f"a {type(value).__name__} cannot be sent")


_encoder = msgspec.json.Encoder(enc_hook=_as_received)


# ── one decoder for each type ─────────────────────────────────────────────────────────────────


@cache
def decoder(type_: Any) -> msgspec.json.Decoder[Any]:
    """Built on first use, since that takes milliseconds, and kept."""
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


logger = logging.getLogger("dragoman.schema")

_NULL = Raw(b"null")

# Makes a value of the JSON at a path, or raises `Misfit`.
Builder = Callable[[Raw, str], Any]


class Misfit(Exception):
    """The JSON at `path` is not what its type asks for, and the schema is not lenient there."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path, why)
        self.path = path
        self.why = why


def second_look(data: bytes | Raw, type_: Any) -> Any:
    """The value of `type_` that `data` is after all; the first look has failed already."""
    raw = data if isinstance(data, Raw) else Raw(data)
    if isinstance(type_, type) and issubclass(type_, Model):
        return _walk(type_, raw, "$")
    return _builder(type_)(raw, "$")


class _Field(NamedTuple):
    name: str
    wire: str
    required: bool
    default_on_error: bool
    default_on_null: bool
    build: Builder


@cache
def _plan(struct: type[Model]) -> tuple[_Field, ...]:
    return tuple(_planned(struct, info) for info in fields(struct))


def _planned(struct: type[Model], info: FieldInfo) -> _Field:
    return _Field(
        info.name,
        info.encode_name,
        info.required,
        info.name == "meta" or info.name in struct.__default_on_error__,
        info.name in struct.__default_on_null__,
        _builder(info.type, skip=info.name in struct.__skip_invalid_items__),
    )


def _builder(type_: Any, *, skip: bool = False) -> Builder:
    """How to build a type; `skip` is for a list that leaves out items it cannot build."""
    members = get_args(type_)
    match get_origin(type_):
        case None if isinstance(type_, type) and issubclass(type_, Model):
            return _one_of(type_)
        case None if isinstance(type_, type) and issubclass(type_, Choice):
            return partial(_choose, type_)
        case origin if origin is list:
            return partial(_list, _builder(members[0]), skip)
        case origin if origin is dict:
            return partial(_dict, _builder(members[1]))
        case origin if origin in (Union, UnionType):
            return _union(type_, members, skip)
        case _:
            return partial(_leaf, type_)


def _union(type_: Any, members: tuple[Any, ...], skip: bool) -> Builder:
    values = [member for member in members if member not in (NoneType, UnsetType)]
    if all(isinstance(value, type) and issubclass(value, Model) for value in values):
        inner = _one_of(*values)
    elif len(values) == 1:
        inner = _builder(values[0], skip=skip)
    else:
        return partial(_leaf, type_)
    return partial(_nullable, inner) if NoneType in members else inner


def _one_of(*structs: type[Model]) -> Builder:
    tags = {tag: struct for struct in structs if (tag := tag_of(struct))}
    if not tags:
        return partial(_struct, structs[0])
    tag_field = next(iter(tags))[0]
    return partial(_tagged, tag_field, {tag[1]: struct for tag, struct in tags.items()})


def _nullable(inner: Builder, raw: Raw, path: str) -> Any:
    return None if _is_null(raw) else inner(raw, path)


def _struct(struct: type[Model], raw: Raw, path: str) -> Model:
    try:
        return decoder(struct).decode(raw)
    except ValidationError:
        return _walk(struct, raw, path)


def _walk(struct: type[Model], raw: Raw, path: str) -> Model:
    found = _parsed(dict[str, Raw], raw, path)
    tag = tag_of(struct)
    if tag and tag[0] in found and _parsed(Any, found[tag[0]], path) != tag[1]:
        raise Misfit(f"{path}.{tag[0]}", f"expected {tag[1]!r}")
    values: dict[str, Any] = {}
    for field in _plan(struct):
        if field.wire in found:
            _put(values, field, found[field.wire], f"{path}.{field.wire}")
        elif field.required:
            raise Misfit(f"{path}.{field.wire}", "it is missing")
    return struct(**values)


def _put(values: dict[str, Any], field: _Field, raw: Raw, path: str) -> None:
    try:
        values[field.name] = field.build(raw, path)
    except Misfit as misfit:
        if not (field.default_on_error or (field.default_on_null and _is_null(raw))):
            raise
        logger.debug("dropped %s, wrong at %s", path, misfit.path)
        if field.required:
            values[field.name] = []  # the schema is lenient on no other required type


def _tagged(tag_field: str, structs: dict[str, type[Model]], raw: Raw, path: str) -> Any:
    kind = _peek(tag_field, raw, path)
    if kind in structs:
        return _struct(structs[kind], raw, path)
    if kind is not UNSET:
        return _unknown(kind, raw)
    if len(structs) == 1:
        return _struct(next(iter(structs.values())), raw, path)
    raise Misfit(f"{path}.{tag_field}", "it is missing")


def _choose(choice: type[Choice], raw: Raw, path: str) -> Any:
    value = _parsed(Any, raw, path)
    variant = chosen(choice, value)
    if variant is not None:
        return _struct(variant, raw, path)
    for tag in filter(None, map(tag_of, choice.variants)):
        if is_object(value) and isinstance(kind := value.get(tag[0]), str):
            return _unknown(kind, raw)
    raise Misfit(path, "it has none of the shapes it may have")


def _unknown(kind: str, raw: Raw) -> Unknown:
    """A copy, since a `Raw` pins the whole message; on one line, since it may be put on one."""
    kept = bytes(raw)
    kept.decode()  # msgspec does not check the UTF-8 of what it leaves raw
    return Unknown(kind, msgspec.json.format(kept, indent=-1) if b"\n" in kept else kept)


def _list(build: Builder, skip: bool, raw: Raw, path: str) -> list[Any]:
    items: list[Any] = []
    for index, item in enumerate(_parsed(list[Raw], raw, path)):
        try:
            items.append(build(item, f"{path}[{index}]"))
        except Misfit as misfit:
            if not skip:
                raise
            logger.debug("dropped %s[%d], wrong at %s", path, index, misfit.path)
    return items


def _dict(build: Builder, raw: Raw, path: str) -> dict[str, Any]:
    found = _parsed(dict[str, Raw], raw, path)
    return {key: build(value, f"{path}[...]") for key, value in found.items()}


def _leaf(type_: Any, raw: Raw, path: str) -> Any:
    try:
        return _parsed(type_, raw, path)
    except Misfit:
        # In JSON schema 1.0 is an integer; to msgspec it is not.
        if int in (type_, *get_args(type_)):
            number = _parsed(Any, raw, path)
            if isinstance(number, float) and number.is_integer():
                return int(number)
        raise


def _parsed(type_: Any, raw: Raw, path: str) -> Any:
    try:
        return decoder(type_).decode(raw)
    except ValidationError as error:
        raise Misfit(path, _why(error)) from None


@cache
def _peeker(tag_field: str) -> msgspec.json.Decoder[Any]:
    kind = ("kind", str | UnsetType, UNSET)
    return msgspec.json.Decoder(msgspec.defstruct("Peek", [kind], rename={"kind": tag_field}))


def _peek(tag_field: str, raw: Raw, path: str) -> Any:
    try:
        return _peeker(tag_field).decode(raw).kind
    except ValidationError as error:
        inside = " - at " in str(error)
        raise Misfit(f"{path}.{tag_field}" if inside else path, _why(error)) from None


def _why(error: ValidationError) -> str:
    """What msgspec says is wrong, without its own path, which starts in the middle of ours."""
    why = str(error).partition(" - at ")[0]
    return f"{why[:1].lower()}{why[1:]}"


def _is_null(raw: Raw) -> bool:
    return raw == _NULL

"""Whatever the client can send is valid, and whatever an agent sends is read or refused.

Random structs of every type are built from their annotations; those that the client sends (what
it asks, what it tells, what it answers) are judged by the official JSON schema and the SDK.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import cache, partial
from types import ModuleType, NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import acp.schema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from jsonschema import ValidationError as SchemaError
from msgspec import UNSET, UnsetType
from msgspec.structs import fields
from pydantic import TypeAdapter, ValidationError
from support.examples import examples

from dragoman.errors import InvalidMessage
from dragoman.schema import Model, decode, encode, v1, v2
from dragoman.schema.codec import second_look
from dragoman.schema.model import Choice

Definitions = Callable[..., dict[str, Any]]

_CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large]
EXAMPLES = settings(examples(32), suppress_health_check=_CHECKS)
MORE_EXAMPLES = settings(examples(80), suppress_health_check=_CHECKS)


def versioned(struct: type[Model]) -> str:
    return f"{struct.__module__[-2:]}.{struct.__name__}"


def sent_by_client(module: Any) -> list[type[Model]]:
    asked = [*module.REQUESTS_TO_AGENT.values(), *module.NOTIFICATIONS_TO_AGENT.values()]
    answered = module.REQUESTS_TO_CLIENT.values()
    return [method.params for method in asked] + [method.result for method in answered]


V1, V2 = sent_by_client(v1), sent_by_client(v2)
# The SDK has models of all that is stable and of some that is not; one of these is an old draft.
UNKNOWN_TO_SDK = {name for name in v1.UNSTABLE_TYPES if not hasattr(acp.schema, name)}
V1_OF_SDK = [s for s in V1 if s.__name__ not in UNKNOWN_TO_SDK | {"MessageMcpNotification"}]
FROM_AGENT = [
    *(v1.CreateElicitationRequest, v1.InitializeResponse, v1.NewSessionResponse),
    *(v1.RequestPermissionRequest, v1.SessionNotification),
    *(v2.CreateElicitationRequest, v2.InitializeResponse, v2.NewSessionResponse),
    *(v2.RequestPermissionRequest, v2.UpdateSessionNotification),
]


# Structs from their annotations ------------------------------------------------------------------

TEXT = st.text(max_size=6)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(0, 1) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    Any: JSON,
    str: TEXT,
    bool: st.booleans(),
    int: st.integers(1, 65535),
    float: st.floats(0, 1),
    NoneType: st.none(),
    UnsetType: st.just(UNSET),
}


@cache
def names(module: ModuleType) -> dict[str, Any]:
    """A module's names, but an enum stands for the values it is known to have."""
    found = dict(vars(module))
    for name in list(found):
        words = "".join(f"_{c}" if c.isupper() else c.upper() for c in name).removeprefix("_")
        if values := found.get(f"{words}_VALUES"):
            found[name] = Literal[values]
    return found


def field_types(struct: type[Model]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for owner in struct.__mro__[::-1]:
        texts: dict[str, str] = vars(owner).get("__annotations__", {})
        for name in texts.keys() & set(struct.__struct_fields__):
            found[name] = eval(texts[name], names(sys.modules[owner.__module__]))
    return {name: found[name] for name in struct.__struct_fields__}


def instances(type_: Any) -> st.SearchStrategy[Any]:
    members = get_args(type_)
    match get_origin(type_):
        case None if isinstance(type_, type) and issubclass(type_, Model):
            return structs(type_)
        case None if isinstance(type_, type) and issubclass(type_, Choice):
            return st.one_of(*map(structs, type_.variants))
        case origin if origin is Literal:
            return st.sampled_from(members)
        case origin if origin is list:
            return st.lists(instances(members[0]), max_size=2)
        case origin if origin is dict:
            return st.dictionaries(TEXT, instances(members[1]), max_size=2)
        case origin if origin in (Union, UnionType):
            return st.one_of(*map(instances, members))
        case _:
            return SCALARS[type_]


@cache
def structs(struct: type[Model]) -> st.SearchStrategy[Any]:
    required = {field.name for field in fields(struct) if field.required}
    found = {name: instances(type_) for name, type_ in field_types(struct).items()}
    always = {name: strategy for name, strategy in found.items() if name in required}
    sometimes = {name: strategy for name, strategy in found.items() if name not in required}
    drawn = st.fixed_dictionaries(always, optional=sometimes)
    return drawn.map(lambda values: struct(**agreeing(struct, values)))


def agreeing(struct: type[Model], values: dict[str, Any]) -> dict[str, Any]:
    """Makes fields agree where the schema asks for more than annotations can say."""
    if struct is v1.SetSessionConfigOptionRequest:
        return {**values, "type": "boolean" if isinstance(values["value"], bool) else None}
    if struct is v2.SetSessionConfigOptionRequest:
        value = values["value"]
        other = "id" if isinstance(value, str) else "_other"
        return {**values, "type": "boolean" if isinstance(value, bool) else other}
    if struct is v2.PromptRequest:
        return {**values, "prompt": values["prompt"] or [v2.TextContent(text="")]}
    if struct in (v1.CreateElicitationResponse, v2.CreateElicitationResponse):
        action = ("accept", "decline", "cancel")[len(values["action"]) % 3]
        return {**values, "action": action}
    if struct in (v1.MessageMcpResponse, v2.MessageMcpResponse):
        return values if values.get("error") else {"result": values.get("result") or None}
    return values


# The judges --------------------------------------------------------------------------------------


@cache
def judge(version: str, name: str, definitions: Definitions) -> Any:
    return Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": definitions(version)})


def sdk_type(message: Model) -> Any:
    """The SDK's type for a message; it has two for what is one struct here."""
    if isinstance(message, v1.SetSessionConfigOptionRequest):
        if isinstance(message.value, bool):
            return acp.schema.SetSessionConfigOptionBooleanRequest
        return acp.schema.SetSessionConfigOptionSelectRequest
    return getattr(acp.schema, type(message).__name__)


@cache
def adapter(type_: Any) -> TypeAdapter[Any]:
    return TypeAdapter(type_)


@pytest.mark.parametrize("struct", V1 + V2, ids=versioned)
@EXAMPLES
@given(data=st.data())
def test_what_the_client_sends_is_valid_and_comes_back(
    struct: type[Model], data: st.DataObject, definitions: Definitions
) -> None:
    message = data.draw(structs(struct))
    wire = encode(message)
    judge(struct.__module__[-2:], struct.__name__, definitions).validate(json.loads(wire))
    assert decode(wire, struct) == message


@pytest.mark.parametrize("struct", V1_OF_SDK, ids=lambda s: s.__name__)
@EXAMPLES
@given(data=st.data())
def test_what_the_client_sends_is_read_by_the_official_sdk(
    struct: type[Model], data: st.DataObject
) -> None:
    message = data.draw(structs(struct))
    adapter(sdk_type(message)).validate_json(encode(message))


# What agents send --------------------------------------------------------------------------------


@pytest.mark.parametrize("struct", FROM_AGENT, ids=versioned)
@MORE_EXAMPLES
@given(data=st.data())
def test_the_second_look_sees_in_a_valid_message_what_the_first_saw(
    struct: type[Model], data: st.DataObject
) -> None:
    message = data.draw(structs(struct))
    wire = encode(message)
    assert decode(wire, struct) == message
    assert second_look(wire, struct) == message


@pytest.mark.parametrize("struct", FROM_AGENT, ids=versioned)
@MORE_EXAMPLES
@given(data=st.data())
def test_a_message_with_something_wrong_in_it_is_read_or_refused(
    struct: type[Model], data: st.DataObject
) -> None:
    objects: list[dict[str, Any]] = []
    wire = json.loads(encode(data.draw(structs(struct))), object_hook=partial(kept, objects))
    place = data.draw(st.sampled_from(objects))
    place[data.draw(st.sampled_from([*place, "_meta"]))] = data.draw(JSON)
    try:
        read = decode(json.dumps(wire).encode(), struct)
    except InvalidMessage:
        return
    assert decode(encode(read), struct) == read


def kept(objects: list[dict[str, Any]], value: dict[str, Any]) -> dict[str, Any]:
    objects.append(value)
    return value


# The judges judged -------------------------------------------------------------------------------

WRONG: list[tuple[str, Any]] = [
    ("PromptRequest", {"sessionId": "s"}),
    ("PromptRequest", {"sessionId": "s", "prompt": [{"text": "no type"}]}),
    ("RequestPermissionResponse", {"outcome": {"outcome": "selected"}}),
]
WRONG_BY_SCHEMA: list[tuple[str, Any]] = [
    ("InitializeRequest", {"protocolVersion": "1"}),
    ("NewSessionRequest", {"cwd": "/w", "mcpServers": [{"name": "n", "command": "/c"}]}),
    ("PromptRequest", {"session_id": "s", "prompt": []}),
]


@pytest.mark.parametrize(("name", "wrong"), WRONG + WRONG_BY_SCHEMA)
def test_the_schema_refuses_a_wrong_message(
    name: str, wrong: dict[str, Any], definitions: Definitions
) -> None:
    with pytest.raises(SchemaError):
        judge("v1", name, definitions).validate(wrong)


@pytest.mark.parametrize(("name", "wrong"), WRONG)
def test_the_sdk_refuses_a_wrong_message(name: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        adapter(getattr(acp.schema, name)).validate_python(wrong)

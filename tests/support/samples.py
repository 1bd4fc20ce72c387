"""One valid frame for everything that v1 of the schema knows, built from its structs."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from msgspec import UnsetType
from msgspec.structs import fields

from dragoman.schema import Model, encode, v1
from dragoman.schema.model import Choice
from dragoman.wire.messages import encode_notification, encode_reply, encode_request

REQUESTS = [*v1.REQUESTS_TO_CLIENT.values(), *v1.REQUESTS_TO_AGENT.values()]
NOTIFICATIONS = [*v1.NOTIFICATIONS_TO_CLIENT.values(), *v1.NOTIFICATIONS_TO_AGENT.values()]
CALLS = list(v1.REQUESTS_TO_AGENT.values())
"""What a client calls; the reply to the n-th of them has the id n."""
_SCALARS: dict[Any, Any] = {Any: {"any": [1]}, str: "text", bool: True, int: 7, float: 0.5}


def schema_frames() -> list[bytes]:
    """Every request, notification and reply, and every kind of update."""
    return [
        *(encode_request(b"7", m.name, encode(sample(m.params))) for m in REQUESTS),
        *(encode_notification(m.name, encode(sample(m.params))) for m in NOTIFICATIONS),
        *(encode_notification("session/update", encode(update)) for update in updates()),
        *(encode_reply(b"%d" % n, encode(sample(m.result))) for n, m in enumerate(CALLS)),
    ]


def updates() -> list[v1.SessionNotification]:
    """One of every kind."""
    [kinds] = [field.type for field in fields(v1.SessionNotification) if field.name == "update"]
    return [v1.SessionNotification(session_id="s", update=sample(k)) for k in get_args(kinds)]


def sample(type_: Any) -> Any:
    """A value of this type, the same each time, with all its fields."""
    members = [member for member in get_args(type_) if member not in (NoneType, UnsetType)]
    match get_origin(type_):
        case origin if origin is list:
            return [sample(members[0])]
        case origin if origin is dict:
            return {"key": sample(members[1])}
        case origin if origin in (Union, UnionType):
            return sample(members[0])
        case _ if isinstance(type_, type) and issubclass(type_, Choice):
            return sample(type_.variants[0])
        case _ if isinstance(type_, type) and issubclass(type_, Model):
            return type_(**{field.name: sample(field.type) for field in fields(type_)})
        case _:
            return _SCALARS[type_]

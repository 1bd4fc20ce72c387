"""The settings of a session: which option is meant, and whether a value fits it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.errors import Unsupported
from dragoman.session.facts import ConfigOption

OWN_OPTION = "dragoman."
"""Begins the ids of config options that a dialect made of something else: when an agent tells its
options again, it does not mention these."""


class _Unknown(msgspec.Struct, rename="camel"):
    name: Any = None
    description: Any = None
    current_value: Any = None
    meta: dict[str, Any] | None = msgspec.field(default=None, name="_meta")


def unknown_option(kind: str, raw: bytes) -> ConfigOption | None:
    """An option of a kind that ACP did not have when this was written. None for one that cannot be
    read, or has no id; version 1 calls it `id`."""
    try:
        fields = msgspec.json.decode(raw, type=dict[str, Any])
        option_id = fields.get("configId", fields.get("id"))
        told = msgspec.json.decode(raw, type=_Unknown)
    except msgspec.DecodeError:
        return None
    if not isinstance(option_id, str):
        return None
    about = told.description
    return ConfigOption(
        option_id,
        told.name if isinstance(told.name, str) else option_id,
        _shown(told.current_value),
        [],
        about if isinstance(about, str) else None,
        kind=kind,
        meta=told.meta,
    )


def is_told(option: ConfigOption) -> bool:
    """Whether an agent may tell of it; what is ours it cannot, or it would stay permanently."""
    return not option.id.startswith(OWN_OPTION)


def _shown(value: Any) -> str | bool:
    if value is None:
        return ""
    return value if isinstance(value, str | bool) else msgspec.json.encode(value).decode()


def option_of(options: Sequence[ConfigOption], category: str) -> ConfigOption | None:
    """The option of a category, else the one that is called so."""
    settable = [option for option in options if option.kind is None]
    by_category = (option for option in settable if option.category == category)
    by_id = (option for option in settable if option.id == category)
    return next(by_category, None) or next(by_id, None)


def checked_option(
    options: Sequence[ConfigOption], option_id: str, value: str | bool
) -> ConfigOption:
    """The option of that id. Raises Unsupported where there are none, ValueError for an option or
    a value that does not exist."""
    known = {option.id: option for option in options}
    if not known:
        raise Unsupported("config options")
    option = known.get(option_id)
    if option is None:
        raise ValueError(f"there is no option {option_id!r}; there are: {', '.join(known)}")
    if option.kind is not None:
        raise ValueError(f"{option_id!r} cannot be set from here: it is a {option.kind}")
    if option.choices is None:
        if not isinstance(value, bool):
            raise ValueError(f"the option {option_id!r} is on or off: true or false")
    elif value not in (values := [choice.value for choice in option.choices]):
        raise ValueError(f"{option_id!r} cannot be {value!r}; it can be: {', '.join(values)}")
    return option


def with_value(
    options: Sequence[ConfigOption], changed: ConfigOption, value: str | bool
) -> list[ConfigOption]:
    new = msgspec.structs.replace(changed, value=value)
    return [new if option.id == changed.id else option for option in options]


def with_own(told: list[ConfigOption], known: Sequence[ConfigOption]) -> list[ConfigOption]:
    """What the agent tells, and of what is known those options it does not speak of."""
    ids = {option.id for option in told}
    categories = {option.category for option in told}
    own = [
        option
        for option in known
        if option.id.startswith(OWN_OPTION)
        and option.id not in ids
        and option.category not in categories
    ]
    return [*told, *own] if own else told

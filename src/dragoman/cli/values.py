"""Config options as they are typed: `OPTION=VALUE`."""

from __future__ import annotations

from typing import TypeAlias

from dragoman.cli.guard import UsageError
from dragoman.session.facts import ConfigOption
from dragoman.session.state import SessionState

Assignment: TypeAlias = tuple[str, str]

_SWITCHES = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}


def assignment(text: str) -> Assignment:
    """An option and its value. Raises UsageError."""
    option, separator, value = text.partition("=")
    if not separator or not option:
        raise UsageError(f"expected OPTION=VALUE, not {text!r}")
    return option, value


def typed(state: SessionState, option_id: str, text: str) -> str | bool:
    """The text as the option wants it: some options are switches."""
    for option in state.config_options:
        if option.id == option_id and option.choices is None:
            return _SWITCHES.get(text.lower(), text)
    return text


def as_typed(value: str | bool) -> str:
    """A value as one would type it."""
    return value if isinstance(value, str) else str(value).lower()


def choices_of(option: ConfigOption) -> list[str]:
    """What may be typed for it."""
    if option.choices is None:
        return ["true", "false"]
    return [choice.value for choice in option.choices]

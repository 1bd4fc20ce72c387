"""Config options as they are typed: `OPTION=VALUE`."""

from __future__ import annotations

from dragoman.cli.guard import UsageError
from dragoman.session.state import SessionState

_SWITCHES = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}


def assignment(text: str) -> tuple[str, str]:
    """An option and its value. Raises UsageError."""
    option, separator, value = text.partition("=")
    if not separator or not option:
        raise UsageError(f"{text!r}: expected OPTION=VALUE")
    return option, value


def typed(state: SessionState, option_id: str, text: str) -> str | bool:
    """The text as the option wants it: some options are switches."""
    for option in state.config_options:
        if option.id == option_id and option.choices is None:
            return _SWITCHES.get(text.lower(), text)
    return text

"""The command line as data, read off its own parsers: for completion scripts and the reference."""

from __future__ import annotations

import argparse
from typing import Any

import msgspec

from dragoman.cli.parsers import COMMANDS, parser_for


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """`value` is what the option is followed by, empty for a switch."""

    flags: tuple[str, ...]
    value: str
    help: str
    choices: tuple[str, ...]


class Argument(msgspec.Struct, frozen=True, kw_only=True):
    """A positional argument."""

    name: str
    optional: bool
    help: str
    choices: tuple[str, ...]


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A command or an action of one; `words` are what one types to get there."""

    words: tuple[str, ...]
    about: str
    options: tuple[Option, ...]
    arguments: tuple[Argument, ...]
    actions: tuple[Command, ...]
    notes: str

    def all(self) -> tuple[Command, ...]:
        """Itself and its actions."""
        return (self, *self.actions)


def commands() -> tuple[Command, ...]:
    """Every command, the one without a name first."""
    named = (_command((name,), parser_for(name)) for name in COMMANDS if name != "run")
    return (_command((), parser_for("run")), *named)


def _command(words: tuple[str, ...], parser: argparse.ArgumentParser) -> Command:
    options: list[Option] = []
    arguments: list[Argument] = []
    actions: list[Command] = []
    members: list[Any] = vars(parser)["_actions"]  # argparse has no other way to look
    for member in members:
        if member.option_strings:
            options.append(_option(member))
        elif hasattr(member.choices, "items"):
            actions += [_command((*words, name), sub) for name, sub in member.choices.items()]
        else:
            arguments.append(_argument(member))
    return Command(
        words=words,
        about=(parser.description or "").rstrip("."),
        options=tuple(options),
        arguments=tuple(arguments),
        actions=tuple(actions),
        notes=parser.epilog or "",
    )


def _option(member: Any) -> Option:
    return Option(
        flags=tuple(member.option_strings),
        value="" if member.nargs == 0 else str(member.metavar or member.dest.upper()),
        help=member.help or "",
        choices=tuple(map(str, member.choices or ())),
    )


def _argument(member: Any) -> Argument:
    return Argument(
        name=str(member.metavar or member.dest),
        optional=member.nargs in ("?", "*"),
        help=member.help or "",
        choices=tuple(map(str, member.choices or ())),
    )

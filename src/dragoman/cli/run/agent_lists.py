"""`--list-caps`, `--list-modes` and their kin: what an agent and its session offer, as text."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec

from dragoman.cli.options import LISTS, as_typed
from dragoman.client.client import Client
from dragoman.client.sessions.config_options import option_of
from dragoman.client.sessions.session import Session
from dragoman.hub.hub import Hub
from dragoman.hub.running.running_session import RunningSession
from dragoman.safe_text import sanitise
from dragoman.session.events import CommandsChanged
from dragoman.session.facts import Command, ConfigChoice, ConfigOption, Mode, Modes

WAIT_FOR_COMMANDS = 5.0


class Lists:
    """Prints the lists that were asked for as they become known, a blank line between.

    In jsonl mode nothing is printed: the frames have it all.
    """

    def __init__(self, options: argparse.Namespace, write: Callable[[str], object]) -> None:
        self._options = options
        self._write = write
        self._silent = options.output in ("jsonl", "json")
        self._first = True

    @property
    def need_session(self) -> bool:
        """Whether what is to be printed is known only in a session."""
        return any(getattr(self._options, f"list_{what}") for what in LISTS if what != "caps")

    def of_agent(self, client: Client) -> None:
        if self._options.list_caps:
            self._print(capabilities(client))

    async def of_session(
        self, session: Session, commands_told: Callable[[], Awaitable[None]]
    ) -> None:
        """`commands_told` waits until the agent has sent its commands, even if it has none."""
        if self._options.list_modes:
            self._print(modes(session))
        if self._options.list_models:
            self._print(models(session))
        if self._options.list_options:
            self._print(config_options(session))
        if self._options.list_commands:
            self._print(await commands(session, commands_told))

    def close(self) -> None:
        """Set what follows apart."""
        if not self._first and not self._silent:
            self._write("\n")

    def _print(self, lines: list[str]) -> None:
        if self._silent:
            return
        gap = "" if self._first else "\n"
        self._first = False
        self._write(gap + "".join(f"{sanitise(line, newlines=False)}\n" for line in lines))


def capabilities(client: Client) -> list[str]:
    info = client.agent_info
    name = info.title or info.name or client.name
    methods = [f"{m.id} ({m.kind}): {m.name}" for m in client.auth_methods]
    offered = msgspec.json.format(msgspec.json.encode(client.capabilities.raw), indent=2).decode()
    return [
        f"agent: {name} {info.version}".rstrip(),
        f"protocol version: {client.protocol_version}",
        f"auth methods: {', '.join(methods) or 'none'}",
        *f"capabilities: {offered}".split("\n"),
    ]


def modes(session: Session) -> list[str]:
    """Of an agent that has its modes as an option, the choices of that: `--mode` takes them too."""
    known, option = session.state.modes, option_of(session.state.config_options, "mode")
    if known is None and option is not None and option.choices:
        shown = [Mode(each.value, each.name, each.description) for each in option.choices]
        known = Modes(str(option.value), shown)
    if known is None or not known.available:
        return ["modes: none"]
    return ["modes:", *(_mode_line(mode, known.current) for mode in known.available)]


def _mode_line(mode: Mode, current: str) -> str:
    mark = "*" if mode.id == current else " "
    more = f" - {mode.description}" if mode.description else ""
    return f"  {mark} {mode.id}: {mode.name}{more}"


def models(session: Session) -> list[str]:
    """What `--model` takes."""
    option = option_of(session.state.config_options, "model")
    if option is None or not option.choices:
        return ["models: none"]
    return ["models:", *(f"  {line}" for line in _choice_lines(option))]


def config_options(session: Session) -> list[str]:
    """What `--set` takes."""
    options = session.state.config_options
    if not options:
        return ["options: none"]
    lines = ["options:"]
    for option in options:
        about = f" - {option.description}" if option.description else ""
        lines.append(f"  {option.id}: {option.name}{about}")
        lines += [f"    {line}" for line in _choice_lines(option)]
    return lines


def _choice_lines(option: ConfigOption) -> list[str]:
    """Each value, the current one marked. One of an unknown kind has no choices, only a value."""
    named = {"true": "", "false": ""}
    if option.choices is not None:
        named = {choice.value: _described(choice) for choice in option.choices}
    current = as_typed(option.value)
    if current not in named:
        named = {current: "", **named}
    return [f"{'*' if value == current else ' '} {value}{rest}" for value, rest in named.items()]


def _described(choice: ConfigChoice) -> str:
    more = f" - {choice.description}" if choice.description else ""
    return f": {choice.name}{more}"


async def commands(
    session: Session,
    commands_told: Callable[[], Awaitable[object]],
    within: float = WAIT_FOR_COMMANDS,
) -> list[str]:
    with suppress(TimeoutError):
        async with asyncio.timeout(within):
            await commands_told()
    known = session.state.commands
    if not known:
        return ["commands: none"]
    return ["commands:", *map(_command_line, known)]


def _command_line(command: Command) -> str:
    hint = f" <{command.hint}>" if command.hint else ""
    return f"  /{command.name}{hint}: {command.description}"


async def commands_told(hub: Hub, live: RunningSession, after: int) -> None:
    """Wait until the agent has sent its commands."""
    async for page in hub.watch(live.id, after):
        if any(isinstance(stored.decode(), CommandsChanged) for stored in page):
            return

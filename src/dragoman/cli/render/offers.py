"""`--list-caps`, `--list-modes`, `--list-commands`: what an agent offers, in that order."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec

from dragoman.client.client import Client
from dragoman.client.config_options import option_of
from dragoman.client.session import Session
from dragoman.safe_text import sanitise
from dragoman.session.facts import Command, Mode, Modes

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
        return self._options.list_modes or self._options.list_commands

    def of_agent(self, client: Client) -> None:
        if self._options.list_caps:
            self._print(capabilities(client))

    async def of_session(
        self, session: Session, commands_told: Callable[[], Awaitable[None]]
    ) -> None:
        """`commands_told` waits until the agent has sent its commands, even if it has none."""
        if self._options.list_modes:
            self._print(modes(session))
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

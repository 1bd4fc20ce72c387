"""An agent that wants a sign-in first: which ways it offers, and going one of them."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dragoman.errors import AuthRequired, CommandNotFound, DragomanError
from dragoman.safe_text import reveal

if TYPE_CHECKING:
    from dragoman.agents.known import KnownAgent
    from dragoman.cli.ask import TerminalAsker
    from dragoman.cli.job import Job
    from dragoman.client.capabilities import AuthMethod
    from dragoman.client.client import Client
    from dragoman.transport.stdio import AgentCommand

_CAN_GO = ("agent", "terminal")


class SignInNeeded(DragomanError):
    """The agent does nothing before someone signs in; the sentence says how."""


async def sign_in(
    client: Client, job: Job, error: AuthRequired, asker: TerminalAsker | None
) -> None:
    """Have the person choose a way and go it. Raises SignInNeeded where that cannot be."""
    methods = [method for method in client.auth_methods if method.kind in _CAN_GO]
    if asker is None or not methods:
        raise sign_in_needed(client, job) from error
    names = [reveal(_name(method)) for method in methods]
    title = f"{reveal(client.name)} wants you to sign in first:"
    chosen = await asker.choose(title, [*names, "Give up"])
    if chosen is None or chosen == len(methods):
        raise sign_in_needed(client, job) from error
    method = methods[chosen]
    if method.kind == "agent":
        await client.authenticate(method.id)
    else:
        await run_in_terminal(job.command, method)


async def run_in_terminal(command: AgentCommand, method: AuthMethod) -> None:
    """The agent's own program with the method's words behind it, on the terminal we run on.

    Raises SignInNeeded when it says that it failed, or there is no terminal.
    """
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise SignInNeeded(f"signing in needs a terminal: {_way(method, command)}") from error
    try:
        process = await asyncio.create_subprocess_exec(
            command.command,
            *(*command.args, *method.args),
            cwd=command.cwd,
            env=os.environ | dict(command.env) | method.env,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
        )
    except OSError as error:
        raise CommandNotFound(command.command) from error
    finally:
        os.close(terminal)
    await _ended(process)


async def _ended(process: asyncio.subprocess.Process) -> None:
    try:
        code = await process.wait()
    finally:
        if process.returncode is None:
            process.terminate()
    if code:
        raise SignInNeeded(f"signing in failed: the agent's program ended with code {code}")


def sign_in_needed(client: Client, job: Job) -> SignInNeeded:
    wants = f"{client.name} wants you to sign in first"
    found = ways(client.auth_methods, job.command, job.known)
    if not found:
        return SignInNeeded(f"{wants} and names no way to do so; sign in with its own command")
    return SignInNeeded(f"{wants}; there is {'; '.join(found)}")


def ways(
    methods: Sequence[AuthMethod], command: AgentCommand, known: KnownAgent | None
) -> list[str]:
    """How each method is gone, and what our own table adds."""
    return [*(_way(method, command) for method in methods), *known_ways(known)]


def known_ways(known: KnownAgent | None) -> list[str]:
    """What our own table says, which no agent tells."""
    if known is None:
        return []
    variable = [f"the variable {known.variable}"] if known.variable else []
    return [*variable, *([f"its own way: {known.sign_in}"] if known.sign_in else [])]


def _way(method: AuthMethod, command: AgentCommand) -> str:
    if method.kind != "terminal":
        return f"{_name(method)}: run dragoman on a terminal and choose it"
    settings = [f"{name}={shlex.quote(value)}" for name, value in method.env.items()]
    words = shlex.join([command.command, *command.args, *method.args])
    return f"{_name(method)}: run {' '.join([*settings, words])}"


def _name(method: AuthMethod) -> str:
    described = f", {method.description}" if method.description else ""
    return f"{method.id!r} ({method.name}{described})"

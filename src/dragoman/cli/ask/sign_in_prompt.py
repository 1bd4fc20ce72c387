"""Signing in at the terminal when an agent requires it: choosing a method and using it."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dragoman.cli.exit_codes import SignInNeeded
from dragoman.errors import AuthRequired, CommandNotFound
from dragoman.safe_text import reveal
from dragoman.transport.stdio import AgentCommand

if TYPE_CHECKING:
    from dragoman.agents.known import KnownAgent
    from dragoman.cli.ask.asker import TerminalAsker
    from dragoman.cli.run.job import Job
    from dragoman.client.capabilities import AuthMethod
    from dragoman.client.client import Client

_CAN_GO = ("agent", "terminal")
_CAN_GO_FROM_AFAR = ("agent",)
"""A terminal here is of no use to an agent elsewhere."""


async def sign_in(
    client: Client, job: Job, error: AuthRequired, asker: TerminalAsker | None
) -> None:
    """Have the person choose a way and go it. Raises SignInNeeded where that cannot be."""
    command = job.command
    can_go = _CAN_GO if isinstance(command, AgentCommand) else _CAN_GO_FROM_AFAR
    methods = [method for method in client.auth_methods if method.kind in can_go]
    if asker is None or not methods:
        raise sign_in_needed(client, job) from error
    names = [reveal(_name(method)) for method in methods]
    title = f"{reveal(client.name)} requires you to sign in first:"
    chosen = await asker.choose(title, [*names, "Give up"])
    if chosen is None or chosen == len(methods):
        raise sign_in_needed(client, job) from error
    method = methods[chosen]
    if isinstance(command, AgentCommand) and method.kind == "terminal":
        # Many look only at their start for who has signed in, and two at once may quarrel.
        await client.kill()
        await run_in_terminal(command, method)
    else:
        await client.authenticate(method.id)


async def run_in_terminal(command: AgentCommand, method: AuthMethod) -> None:
    """The agent's own program with the method's words behind it, on the terminal we run on.

    Raises SignInNeeded when it says that it failed, or there is no terminal.
    """
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        typed = _typed(method, command)
        raise SignInNeeded(f"signing in needs a terminal; run {typed}") from error
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
        raise SignInNeeded(f"signing in failed: the agent's command exited with code {code}")


def sign_in_needed(client: Client, job: Job) -> SignInNeeded:
    """A line for each way there is."""
    wants = f"{reveal(client.name)} requires you to sign in first"
    found = [*_commands(client.auth_methods, job), *known_ways(job.known)]
    if not found:
        return SignInNeeded(f"{wants} but offers no method; sign in with its own command")
    return SignInNeeded("\n  ".join([f"{wants}:", *found]))


def _commands(methods: Sequence[AuthMethod], job: Job) -> list[str]:
    """What to type for each, and what that is."""
    pairs = [(_command(method, job), _described(method)) for method in methods]
    width = max((len(command) for command, _ in pairs), default=0)
    return [reveal(f"{command:<{width}}  {words}") for command, words in pairs]


def _command(method: AuthMethod, job: Job) -> str:
    if method.kind == "terminal" and not isinstance(job.command, AgentCommand):
        return "sign in where the agent runs"
    settings, agent = job.options.settings, job.options.agent_command
    where = ["--agent-command", agent] if agent is not None else [job.agent.name]
    where += ["--settings", settings] if settings is not None else []
    return shlex.join(["dragoman", "agents", "login", *where, method.id])


def known_ways(known: KnownAgent | None) -> list[str]:
    """What our own table says, which no agent tells."""
    return [] if known is None or not known.sign_in else [f"outside Dragoman: {known.sign_in}"]


def _typed(method: AuthMethod, command: AgentCommand) -> str:
    """What to type at a shell instead of having us do it."""
    settings = [f"{name}={shlex.quote(value)}" for name, value in method.env.items()]
    return " ".join([*settings, shlex.join([command.command, *command.args, *method.args])])


def _described(method: AuthMethod) -> str:
    return f"{method.name}: {method.description}" if method.description else method.name


def _name(method: AuthMethod) -> str:
    return f"{method.id!r} ({_described(method)})"

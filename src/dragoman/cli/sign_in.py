"""An agent that wants a sign-in first: which ways it offers, and going one of them."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from dragoman.errors import AuthRequired, DragomanError
from dragoman.safe_text import reveal

if TYPE_CHECKING:
    from dragoman.cli.ask import TerminalAsker
    from dragoman.cli.job import Job
    from dragoman.client.capabilities import AuthMethod
    from dragoman.client.client import Client
    from dragoman.transport.stdio import AgentCommand


class SignInNeeded(DragomanError):
    """The agent does nothing before someone signs in; the sentence says how."""


async def sign_in(
    client: Client, job: Job, error: AuthRequired, asker: TerminalAsker | None
) -> None:
    """Have the person choose a way and go it. Raises SignInNeeded where that cannot be."""
    ways = [method for method in client.auth_methods if method.kind == "agent"]
    if asker is None or not ways:
        raise sign_in_needed(client, job) from error
    names = [reveal(_name(method)) for method in ways]
    title = f"{reveal(client.name)} wants you to sign in first:"
    chosen = await asker.choose(title, [*names, "Give up"])
    if chosen is None or chosen == len(ways):
        raise sign_in_needed(client, job) from error
    await client.authenticate(ways[chosen].id)


def sign_in_needed(client: Client, job: Job) -> SignInNeeded:
    wants = f"{client.name} wants you to sign in first"
    ways = [_way(method, job.command) for method in client.auth_methods]
    if job.known is not None and job.known.variable:
        ways.append(f"the variable {job.known.variable}")
    if not ways:
        return SignInNeeded(f"{wants} and names no way to do so; sign in with its own command")
    return SignInNeeded(f"{wants}; there is {'; '.join(ways)}")


def _way(method: AuthMethod, command: AgentCommand) -> str:
    if method.kind != "terminal":
        return f"{_name(method)}: run dragoman on a terminal and choose it"
    settings = [f"{name}={shlex.quote(value)}" for name, value in method.env.items()]
    words = shlex.join([command.command, *command.args, *method.args])
    return f"{_name(method)}: run {' '.join([*settings, words])}"


def _name(method: AuthMethod) -> str:
    described = f", {method.description}" if method.description else ""
    return f"{method.id!r} ({method.name}{described})"

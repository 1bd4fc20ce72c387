"""An agent that wants a sign-in first: which ways it offers, and going one of them."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from dragoman.errors import AuthRequired, DragomanError
from dragoman.safe_text import reveal

if TYPE_CHECKING:
    from dragoman.cli.ask import TerminalAsker
    from dragoman.client.capabilities import AuthMethod
    from dragoman.client.client import Client
    from dragoman.transport.stdio import AgentCommand


class SignInNeeded(DragomanError):
    """The agent does nothing before someone signs in; the sentence says how."""


async def sign_in(
    client: Client, command: AgentCommand, error: AuthRequired, asker: TerminalAsker | None
) -> None:
    """Have the person choose a way and go it. Raises SignInNeeded where that cannot be."""
    ways = [method for method in client.auth_methods if method.kind == "agent"]
    if asker is None or not ways:
        raise sign_in_needed(client, command) from error
    names = [reveal(_name(method)) for method in ways]
    title = f"{reveal(client.name)} wants you to sign in first:"
    chosen = await asker.choose(title, [*names, "Give up"])
    if chosen is None or chosen == len(ways):
        raise sign_in_needed(client, command) from error
    await client.authenticate(ways[chosen].id)


def sign_in_needed(client: Client, command: AgentCommand) -> SignInNeeded:
    wants = f"{client.name} wants you to sign in first"
    if not client.auth_methods:
        return SignInNeeded(f"{wants} and names no way to do so; sign in with its own command")
    ways = "; ".join(_way(method, command) for method in client.auth_methods)
    return SignInNeeded(f"{wants}; it offers {ways}")


def _way(method: AuthMethod, command: AgentCommand) -> str:
    if method.kind != "terminal":
        return f"{_name(method)}: run dragoman on a terminal and choose it"
    settings = [f"{name}={shlex.quote(value)}" for name, value in method.env.items()]
    words = shlex.join([command.command, *command.args, *method.args])
    return f"{_name(method)}: run {' '.join([*settings, words])}"


def _name(method: AuthMethod) -> str:
    described = f", {method.description}" if method.description else ""
    return f"{method.id!r} ({method.name}{described})"

"""`dragoman agents login` and `logout`: signs in to an agent, or out."""

from __future__ import annotations

import argparse
import asyncio
import sys
from functools import partial

from dragoman.agents.sign_ins import SignInNotes
from dragoman.cli.ask.asker import TerminalAsker, Tty
from dragoman.cli.ask.sign_in_prompt import known_ways, run_in_terminal
from dragoman.cli.exit_codes import UsageError
from dragoman.cli.render.status_line import Status
from dragoman.cli.render.style import Style, wants_colour
from dragoman.cli.run import agent_setup
from dragoman.client.client import Client
from dragoman.client.client_options import HostCapabilities
from dragoman.safe_text import reveal


def run(options: argparse.Namespace) -> int:
    if options.agent_command is not None:
        _take_command(options)
    asyncio.run((_login if options.action == "login" else _logout)(options))
    return 0


def _take_command(options: argparse.Namespace) -> None:
    """Next to a command stands no name: the first word is the way already."""
    login = options.action == "login"
    if options.agent is not None and (not login or options.method is not None):
        raise UsageError("name the agent or use --agent-command, not both")
    if login:
        options.method = options.agent
    options.agent = None


async def _login(options: argparse.Namespace) -> None:
    choice = agent_setup.choose_agent(options)
    async with _client(choice) as client:
        if options.method is None:
            _list(client, choice)
            return
        method = next((each for each in client.auth_methods if each.id == options.method), None)
        if method is None:
            known = ", ".join(each.id for each in client.auth_methods) or "none"
            raise UsageError(f"no sign-in method {options.method!r}; available: {known}")
        if method.kind == "agent":
            await client.authenticate(method.id)
            print(reveal(f"signed in to {client.name}"))
            return
    # Only now: two of one agent at once may get in each other's way.
    await run_in_terminal(choice.command, method)


async def _logout(options: argparse.Namespace) -> None:
    async with _client(agent_setup.choose_agent(options)) as client:
        await client.logout()
        print(reveal(f"signed out of {client.name}"))


def _client(choice: agent_setup.ChosenAgent) -> Client:
    agent, asker = choice.agent, _asker()
    client = Client.start(
        agent.target,
        name=agent.name,
        capabilities=HostCapabilities(terminal_sign_in=True, elicitation=asker is not None),
        elicitation=asker,
        protocol=agent.protocol,
    )
    client.on_auth = partial(SignInNotes().note, agent.name)
    return client


def _asker() -> TerminalAsker | None:
    """Who answers what the agent asks meanwhile: a device code to use, for example."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    try:
        tty = Tty()
    except UsageError:
        return None
    style = Style(colour=wants_colour(sys.stdout))
    return TerminalAsker(tty, style, Status(sys.stderr, visible=False))


def _list(client: Client, choice: agent_setup.ChosenAgent) -> None:
    if not client.auth_methods:
        print(reveal(f"{client.name} offers no sign-in method through ACP"))
    for method in client.auth_methods:
        more = f" - {method.description}" if method.description else ""
        where = ", in this terminal" if method.kind == "terminal" else ""
        print(reveal(f"  {method.id}: {method.name}{where}{more}"))
    for way in known_ways(choice.known):
        print(f"  {way}")

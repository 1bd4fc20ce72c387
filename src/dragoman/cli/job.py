"""What there is to do in a run, checked as far as it can be before an agent is started."""

from __future__ import annotations

import argparse
import sys
from typing import TypeAlias

import msgspec

from dragoman.agents.known import KnownAgent
from dragoman.agents.settings import AgentSettings
from dragoman.cli import prompt, setup
from dragoman.cli.guard import UsageError
from dragoman.client.mcp import McpServer
from dragoman.errors import CommandNotFound
from dragoman.host.rulebook import Policy
from dragoman.session.content import Content
from dragoman.transport.stdio import AgentCommand

Setting: TypeAlias = tuple[str, str]


class Job(msgspec.Struct, kw_only=True):
    """`prompt` is None when there are only lists to print."""

    options: argparse.Namespace
    agent: AgentSettings
    known: KnownAgent | None
    command: AgentCommand
    mcp_servers: list[McpServer]
    policy: Policy
    cwd: str
    more_folders: list[str]
    assignments: list[Setting]
    asks: bool
    prompt: list[Content] | None

    def with_hint(self, error: CommandNotFound) -> CommandNotFound:
        """The same error, and how to get the agent if we know that."""
        if self.known is None or not self.known.install:
            return error
        return CommandNotFound(error.command, f"{error.reason}; to install: {self.known.install}")


def prepare(options: argparse.Namespace) -> Job:
    """Raises UsageError, ConfigError or UnknownAgent."""
    choice = setup.choose_agent(options)
    cwd, more_folders = setup.folders(options)
    command = choice.command
    if options.agent_command is None:
        command = setup.started_in(command, cwd)
    return Job(
        options=options,
        agent=choice.agent,
        known=choice.known,
        command=command,
        mcp_servers=choice.mcp_servers,
        policy=setup.policy(options),
        cwd=cwd,
        more_folders=more_folders,
        assignments=[_assignment(text) for text in options.set],
        asks=_asks(options),
        prompt=prompt.prompt(options, cwd) if prompt.is_wanted(options) else None,
    )


def _assignment(text: str) -> Setting:
    option, separator, value = text.partition("=")
    if not separator or not option:
        raise UsageError(f"--set {text}: expected OPTION=VALUE")
    return option, value


def _asks(options: argparse.Namespace) -> bool:
    """On a terminal someone can be asked, unless we are told not to."""
    if options.on_ask is not None:
        return options.on_ask == "prompt"
    return sys.stdin.isatty() and sys.stdout.isatty()

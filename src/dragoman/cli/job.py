"""What there is to do in a run, checked as far as it can be before an agent is started."""

from __future__ import annotations

import argparse
import sys

import msgspec

from dragoman.agents.known import KnownAgent
from dragoman.agents.settings import AgentSettings
from dragoman.cli import prompt, setup
from dragoman.cli.guard import UsageError
from dragoman.cli.values import Assignment, assignment
from dragoman.client.mcp import McpServer
from dragoman.errors import CommandNotFound
from dragoman.host.rulebook import Policy
from dragoman.hub.launcher import started_in
from dragoman.session.content import Content
from dragoman.store.records import SessionRecord
from dragoman.transport.stdio import AgentCommand


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
    assignments: list[Assignment]
    asks: bool
    prompt: list[Content] | None

    def with_hint(self, error: CommandNotFound) -> CommandNotFound:
        """The same error, and how to get the agent if we know that."""
        if self.known is None or not self.known.install:
            return error
        return CommandNotFound(error.command, f"{error.reason}; to install: {self.known.install}")


def prepare(options: argparse.Namespace, *, asks: bool) -> Job:
    """All but a prompt. Raises UsageError, ConfigError or UnknownAgent."""
    choice = setup.choose_agent(options)
    cwd, more_folders = setup.folders(options)
    command = choice.command
    if options.agent_command is None:
        command = started_in(command, cwd)
    return Job(
        options=options,
        agent=choice.agent,
        known=choice.known,
        command=command,
        mcp_servers=choice.mcp_servers,
        policy=setup.policy(options),
        cwd=cwd,
        more_folders=more_folders,
        assignments=[assignment(text) for text in options.set],
        asks=asks,
        prompt=None,
    )


def prepare_turn(options: argparse.Namespace) -> Job:
    """With its prompt, if there is to be a turn. Raises what `prepare` does."""
    job = prepare(options, asks=_asks(options))
    if prompt.is_wanted(options):
        job.prompt = prompt.prompt(options, job.cwd)
    return job


def _asks(options: argparse.Namespace) -> bool:
    """On a terminal someone can be asked, unless we are told not to."""
    if options.on_ask is not None:
        return options.on_ask == "prompt"
    return sys.stdin.isatty() and sys.stdout.isatty()


def of_same_agent(job: Job, record: SessionRecord) -> Job:
    """The job with the agent of the session it continues. Raises UsageError if another was named,
    UnknownAgent if that agent is not there any more."""
    options = job.options
    if record.agent == job.agent.name:
        return job
    if options.agent is not None or options.agent_command is not None:
        raise UsageError(f"session {record.id} is one of {record.agent}, not of {job.agent.name}")
    chosen = argparse.Namespace(**{**vars(options), "agent": record.agent})
    again = prepare(chosen, asks=job.asks)
    again.prompt = job.prompt
    return again

"""`dragoman conformance agent`: checks an agent, and prints the verdicts as they are reached."""

from __future__ import annotations

import argparse
import asyncio

from dragoman.cli.commands.conformance.verdict_lines import (
    VerdictPrinter,
    chosen,
    finished,
    only_told,
)
from dragoman.cli.exit_codes import Exit, UsageError
from dragoman.transport.stdio import AgentCommand
from dragoman.transport.target import RemoteAgent, is_remote, name_of


def run(options: argparse.Namespace) -> int:
    if only_told(options, "agent"):
        return Exit.DONE
    checks = chosen(options, "agent")
    name, agent = _agent(options)
    from dragoman.conformance.examination.agent_examination import examine_agent
    from dragoman.conformance.examination.agent_words import Prompts

    prompts = Prompts(**dict(map(_prompt, options.prompt)))

    printer = VerdictPrinter(checks, quiet=options.json)
    printer.begin(name)
    report = asyncio.run(
        examine_agent(
            agent,
            checks,
            name=name,
            patience=options.timeout,
            prompts=prompts,
            told=printer.tell,
        )
    )
    printer.end(report)
    return finished(report, options)


def _prompt(text: str) -> tuple[str, str]:
    kind, separator, words = text.partition("=")
    if kind not in ("short", "long", "work") or not separator:
        raise UsageError(f"--prompt {text}: expected KIND=TEXT, with short, long or work")
    return kind, words


def _agent(options: argparse.Namespace) -> tuple[str, AgentCommand | RemoteAgent]:
    """Its name, and how it is reached. Raises UsageError."""
    if options.command and options.agent is not None:
        raise UsageError("pass the agent's command after --, or its name with -a, not both")
    if options.agent is not None:
        from dragoman.cli.run.agent_setup import choose_agent

        choice = choose_agent(argparse.Namespace(**vars(options), agent_command=None))
        return choice.agent.name, choice.agent.target
    if not options.command:
        raise UsageError("pass the agent's command after --: dragoman conformance agent -- CMD")
    program, *args = options.command
    if not is_remote(program):
        return program, AgentCommand(program, tuple(args))
    if args:
        raise UsageError("an agent with an address takes no arguments")
    try:
        remote = RemoteAgent(program)
    except ValueError as error:
        raise UsageError(str(error)) from error
    return name_of(remote), remote

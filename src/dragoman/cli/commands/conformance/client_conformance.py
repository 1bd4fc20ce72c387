"""`dragoman conformance client`: checks a client, and prints the verdicts as they are reached."""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex

from dragoman.cli.commands.conformance.verdict_lines import (
    VerdictPrinter,
    chosen,
    finished,
    only_told,
)
from dragoman.cli.exit_codes import Exit, UsageError

HANDS = ("allow", "reject", "cancel", "load")


def run(options: argparse.Namespace) -> int:
    if only_told(options, "client"):
        return Exit.DONE
    checks = chosen(options, "client")
    hands = dict(map(_hand, options.answer))
    from dragoman.conformance.client_stage.client_command import AGENT, ClientCommand
    from dragoman.conformance.examination.client_examination import examine_client

    if not any(AGENT in word for word in options.command):
        example = "dragoman conformance client -- my-client {agent}"
        raise UsageError(f"pass the client's command after --, with {AGENT} in it: {example}")
    name = os.path.basename(options.command[0])
    printer = VerdictPrinter(checks, quiet=options.json)
    printer.begin(name)
    client = ClientCommand([_findable(word) for word in options.command], hands)
    report = asyncio.run(
        examine_client(client, checks, name=name, patience=options.timeout, told=printer.tell)
    )
    printer.end(report)
    return finished(report, options)


def _hand(text: str) -> tuple[str, str]:
    name, _, command = text.partition("=")
    if name not in HANDS or not command:
        raise UsageError(f"--answer {text}: expected ACTION=COMMAND, with {', '.join(HANDS)}")
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--answer {text}: {error}") from error
    return name, shlex.join(map(_findable, words))


def _findable(word: str) -> str:
    """A file by its whole path: the client is started in another folder."""
    return os.path.abspath(word) if os.path.isfile(word) else word

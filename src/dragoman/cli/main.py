"""Dispatches the command line to the module of its command.

Imports next to nothing before Ctrl-C is in hand; a command's own module is imported when it runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from dragoman.cli import standard_streams

_TALKS = ("run", "chat")
"""Those that start an agent whatever their arguments."""


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    standard_streams.leave_at_once_when_interrupted()
    standard_streams.prepare()
    try:
        return _run(list(sys.argv[1:] if words is None else words))
    except KeyboardInterrupt:
        return 130
    finally:
        standard_streams.settle()


def _take_store(address: str | None) -> None:
    """Whatever the command is: what it starts must not inherit the password."""
    if address is None and "DRAGOMAN_STORE" not in os.environ:
        return
    home = import_module("dragoman.data_directory")
    home.store_address() if address is None else home.use_store(address)


def _run(words: list[str]) -> int:
    from dragoman.cli import parsers

    named = bool(words) and words[0].lower() in parsers.COMMANDS
    command = words.pop(0).lower() if named else "run"
    arguments = parsers.parsed(command, words)
    if not named and "--" not in words:
        parsers.refuse_command(arguments.prompt)
    _take_store(getattr(arguments, "store", None))
    if command in _TALKS:
        import_module("dragoman.process.zygote_client").warm_up()  # it gets ready while we import
    module = import_module(f"dragoman.cli.commands.{command.replace('-', '_')}")
    guard = import_module("dragoman.cli.exit_codes")
    if command not in _TALKS:  # those have more to import
        standard_streams.raise_when_interrupted()
    return guard.guarded(lambda: module.run(arguments), debug=getattr(arguments, "debug", False))

"""Dispatches the command line to the module of its command.

Imports next to nothing before Ctrl-C is in hand; a command's own module is imported when it runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from dragoman.cli import standard_streams

TYPE_CHECKING = False  # that of `typing` would cost every command the import
if TYPE_CHECKING:
    import argparse

_TALKS = ("run", "chat")
"""Those that start an agent whatever their arguments."""


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; the exit code.

    Without `words` it is the command of this process, which is then all about it: a Ctrl-C may end
    it at once, and it may continue in the background. Nothing of that happens to a program that
    passes `words`, which has more to do after it.
    """
    is_ours = words is None
    if is_ours:
        standard_streams.leave_at_once_when_interrupted()
    standard_streams.prepare()
    try:
        return _run(list(sys.argv[1:] if words is None else words), parts=is_ours)
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


def _part(arguments: argparse.Namespace) -> None:
    """Make a run two processes, if it may continue in the background."""
    if arguments.no_wait and arguments.steer is None:
        import_module("dragoman.cli.commands.wait.departure").part()
    elif arguments.keep_warm != 0:
        front = import_module("dragoman.cli.warm.front")
        if front.may_stay(arguments):
            front.part()


def _run(words: list[str], *, parts: bool) -> int:
    from dragoman.cli import parsers

    named = bool(words) and words[0].lower() in parsers.COMMANDS
    command = words.pop(0).lower() if named else "run"
    arguments = parsers.parsed(command, words)
    if not named and "--" not in words:
        parsers.refuse_command(arguments.prompt)
    _take_store(getattr(arguments, "store", None))
    if parts and command == "run":
        _part(arguments)
    if command in _TALKS:
        import_module("dragoman.process.zygote_client").warm_up()  # it gets ready while we import
    module = import_module(f"dragoman.cli.commands.{command.replace('-', '_')}")
    guard = import_module("dragoman.cli.exit_codes")
    if command not in _TALKS:  # those have more to import
        standard_streams.raise_when_interrupted()
    run = module.run
    if getattr(arguments, "worktree", None) is not None:
        run = import_module("dragoman.cli.commands.worktrees.worktree_run").around(run)
    return guard.guarded(lambda: run(arguments), debug=getattr(arguments, "debug", False))

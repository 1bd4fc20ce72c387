"""Which command was meant: parses the command line and hands it to the module that does the work.

Imports almost nothing, so that `--help` is quick; a command's own module is imported when it runs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from dragoman._version import __version__
from dragoman.cli import options, streams

COMMANDS = {
    "run": "one turn; the same as no command at all",
    "chat": "talk to an agent in this terminal",
    "agents": "list, check, install and remove agents",
    "policy": "list, check, explain and revoke permission rules",
    "replay": "play a recording, or serve it as an agent",
    "completion": "print the completion script for a shell",
    "demo-agent": "be the built-in demo agent on standard input and output",
}
"""Each but `run` is a module here with `add_arguments(parser)` and `run(arguments) -> code`."""
_TALKS = ("run", "chat")
"""Those that start an agent whatever their arguments."""

EPILOG = """\
commands:
{commands}

examples:
  dragoman "fix the failing test"              one turn with the default agent
  dragoman -a goose --write "add a README"     let it write inside this folder
  git diff | dragoman -o simple > review.md    prompt from standard input, answer to a file
  dragoman --list-modes --list-commands        what the agent offers
  dragoman chat                                stay and talk

A prompt may mention files and addresses: @src/app.py @"a name with spaces" @https://example.com

exit codes:
  0 the turn was completed    1 agent, transport or protocol error    2 usage or settings
  3 no progress in time       4 the session cannot be continued
  5 all that needed permission was refused                          130 cancelled
"""


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    streams.prepare()
    try:
        return _run(list(sys.argv[1:] if words is None else words))
    except KeyboardInterrupt:
        return 130
    finally:
        streams.settle()


def _run(words: list[str]) -> int:
    command = words.pop(0) if words and words[0] in COMMANDS else "run"
    parser = parser_for(command)
    parsed, unexpected = parser.parse_known_args(words)
    if unexpected:
        parser.error(_complaint(unexpected[0], command))
    if command in _TALKS:
        import_module("dragoman.process.launch").warm_up()  # it gets ready while we import
    module = import_module(f"dragoman.cli.{command.replace('-', '_')}")
    guard = import_module("dragoman.cli.guard")
    return guard.guarded(lambda: module.run(parsed), debug=getattr(parsed, "debug", False))


def _complaint(word: str, command: str) -> str:
    if word.startswith("-") and word != "-":
        return f"there is no option {word}"
    if command == "run":
        return f"unexpected argument {word!r}: the prompt is one argument, put it in quotes"
    return f"unexpected argument {word!r}"


def parser_for(command: str) -> argparse.ArgumentParser:
    """The parser of one command; `run` is also the parser of no command at all."""
    return _run_parser() if command == "run" else _command_parser(command)


def _run_parser() -> argparse.ArgumentParser:
    lines = "\n".join(f"  {name:<12} {text}" for name, text in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="dragoman",
        usage="dragoman [OPTIONS] [--] [PROMPT]\n       dragoman COMMAND …",
        description="Talk to any coding agent that speaks ACP, the Agent Client Protocol.",
        epilog=EPILOG.format(commands=lines),
        formatter_class=options.formatter,
        allow_abbrev=False,
    )
    options.add_prompt_options(parser)
    options.add_agent_options(parser)
    options.add_debug_option(parser)
    parser.add_argument("--version", action="version", version=f"dragoman {__version__}")
    return parser


def _command_parser(command: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"dragoman {command}",
        description=f"{COMMANDS[command][:1].upper()}{COMMANDS[command][1:]}.",
        formatter_class=options.formatter,
        allow_abbrev=False,
    )
    import_module(f"dragoman.cli.{command.replace('-', '_')}").add_arguments(parser)
    options.add_debug_option(parser)
    return parser

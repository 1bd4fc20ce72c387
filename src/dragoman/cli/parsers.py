"""The commands and their parsers, with the actions of commands such as `agents list`.

Imports almost nothing, so that `--help` is quick; a command's own module says what it takes.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module

from dragoman._version import __version__
from dragoman.cli import options


class Actions:
    """The actions of one command; what was chosen is `options.action`."""

    def __init__(self, parser: argparse.ArgumentParser, *, stored: bool = False) -> None:
        """With `stored` each takes `--store`."""
        self._stored = stored
        self._actions = parser.add_subparsers(
            dest="action", metavar="ACTION", required=True, title="actions"
        )

    def add(self, name: str, text: str, examples: str = "") -> argparse.ArgumentParser:
        """One more; `text` says what it does, `examples` are lines for its help."""
        parser = self._actions.add_parser(
            name,
            help=text,
            description=f"{text[:1].upper()}{text[1:]}.",
            epilog=f"examples:\n{examples}" if examples else None,
            formatter_class=options.formatter,
            allow_abbrev=False,
        )
        # Without a default of its own, so that `agents --debug list` keeps what was said there.
        parser.add_argument(
            "--debug",
            action="store_true",
            default=argparse.SUPPRESS,
            help="log to standard error, tracebacks included",
        )
        if self._stored:
            options.add_store_option(parser, "use the store in")
        return parser


COMMANDS = {
    "run": "one turn; the same as no command at all",
    "chat": "talk to an agent in this terminal",
    "sessions": "list, show, search, export, fork and delete what was recorded",
    "watch": "follow a session, wherever it runs",
    "cancel": "stop the turn of a session, wherever it runs",
    "serve": "the page, and all sessions over HTTP",
    "bridge": "offer an agent of this machine to others",
    "agents": "list, check, install and remove agents",
    "policy": "list, check, explain and revoke permission rules",
    "store": "check where sessions are recorded, or copy it to another place",
    "replay": "play a recording, or serve it as an agent",
    "completion": "print the completion script for a shell",
    "demo-agent": "be the built-in demo agent on standard input and output",
}
"""Each but `run` is a module here with `add_arguments(parser)` and `run(arguments) -> code`."""

_STORED = ("sessions", "watch", "cancel", "serve", "policy", "store")
"""Those that take `--store`; `run` and `chat` have it among the options of a session."""

EPILOG = """\
commands:
{commands}

examples:
  dragoman "fix the failing test"             one turn with the default agent
  dragoman -a gemini --write "add a README"   let it write inside this folder
  git diff | dragoman -o simple > review.md   from standard input, to a file
  dragoman --list-modes --list-commands       what the agent offers
  dragoman --session fix "now test it"        go on with the session named so
  dragoman chat                               stay and talk

A prompt may mention files and addresses:
  @src/app.py   @"a name with spaces"   @https://example.com

exit codes:
    0  the agent completed the turn
    1  agent, transport or protocol error
    2  usage or settings
    3  no progress in time
    4  the session cannot be continued
    5  every permission request was refused
    7  the turn ended early: a refusal, or a limit of the model
    8  the agent wants you to sign in first
  130  cancelled
"""


def parsed(command: str, words: Sequence[str]) -> argparse.Namespace:
    """The arguments of a command; what cannot be understood ends the process."""
    parser = parser_for(command)
    arguments, unexpected = parser.parse_known_args(words)
    if unexpected:
        if action := getattr(arguments, "action", None):
            parser.prog += f" {action}"
        parser.error(_complaint(unexpected[0], command, getattr(arguments, "prompt", None)))
    return arguments


_ELSEWHERE = {
    "help": "--help",
    "version": "--version",
    "login": "agents login",
    "logout": "agents logout",
    "doctor": "agents doctor",
    "install": "agents install",
}
"""What people type for a command that is called otherwise here."""


def refuse_command(prompt: str | None) -> None:
    """Refuse a prompt that is one word and must be a command: typed wrong, or after an option. A
    usage error, which ends the process."""
    if prompt is None:
        return
    if prompt in COMMANDS:
        how = f"options go after the command: dragoman {prompt} …"
    elif (meant := _ELSEWHERE.get(prompt) or _meant_command(prompt)) is not None:
        how = f"did you mean dragoman {meant}?"
    else:
        return
    parser_for("run").error(f"{prompt!r}: {how} To send it as a prompt: dragoman -- {prompt}")


def _meant_command(prompt: str | None) -> str | None:
    """Hardly any prompt is compared: what does so is not imported for nothing."""
    if prompt is None:
        return None
    alike = [
        name for name in COMMANDS if name[:1] == prompt[:1] and abs(len(name) - len(prompt)) < 3
    ]
    # Short words are words: "see" is not "serve".
    return options.close_to(prompt, alike, 0.8) if alike and len(prompt) > 3 else None


def _complaint(word: str, command: str, prompt: str | None) -> str:
    if word.startswith("-") and word != "-":
        return f"there is no option {word}"
    if command == "run" and prompt in COMMANDS:
        return f"unexpected argument {word!r}: options go after the command: dragoman {prompt} …"
    if command == "run" and (meant := _meant_command(prompt)) is not None:
        return f"unexpected argument {word!r}: did you mean the command {meant}?"
    if command == "run":
        return f"unexpected argument {word!r}: the prompt is one argument, put it in quotes"
    return f"unexpected argument {word!r}"


def parser_for(command: str) -> argparse.ArgumentParser:
    """The parser of one command; `run` is also the parser of no command at all."""
    return _run_parser() if command == "run" else _command_parser(command)


def _run_parser() -> argparse.ArgumentParser:
    lines = "\n".join(f"  {name:<12} {text}" for name, text in COMMANDS.items())
    parser = options.Parser(
        prog="dragoman",
        usage="dragoman [OPTIONS] [--] [PROMPT]\n       dragoman COMMAND …",
        description="Talk to any coding agent that speaks ACP, the Agent Client Protocol.",
        epilog=EPILOG.format(commands=lines),
        formatter_class=options.formatter,
        allow_abbrev=False,
    )
    options.add_prompt_options(parser)
    options.add_agent_options(parser)
    options.add_session_options(parser)
    options.add_debug_option(parser)
    parser.add_argument("--version", action="version", version=f"dragoman {__version__}")
    return parser


def _command_parser(command: str) -> argparse.ArgumentParser:
    parser = options.Parser(
        prog=f"dragoman {command}",
        description=f"{COMMANDS[command][:1].upper()}{COMMANDS[command][1:]}.",
        formatter_class=options.formatter,
        allow_abbrev=False,
    )
    import_module(f"dragoman.cli.commands.{command.replace('-', '_')}").add_arguments(parser)
    if command in _STORED:
        options.add_store_option(parser, "record in" if command == "serve" else "use the store in")
    options.add_debug_option(parser)
    return parser

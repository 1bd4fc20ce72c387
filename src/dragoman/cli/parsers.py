"""The commands and their parsers, with the actions of commands such as `agents list`.

It imports almost nothing, so that `--help` is quick; each command's own module adds its arguments.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module

from dragoman._version import __version__
from dragoman.cli import options


class Actions:
    """The actions of one command; the chosen one is `options.action`."""

    def __init__(
        self, parser: argparse.ArgumentParser, package: str, *, stored: bool = False
    ) -> None:
        """`package` has the modules of the actions. With `stored`, each takes `--store`."""
        self._package = package
        self._stored = stored
        self._actions = parser.add_subparsers(
            dest="action", metavar="ACTION", required=True, title="actions"
        )

    def add(
        self,
        name: str,
        text: str,
        examples: str = "",
        *,
        module: str | None = None,
        alias: str | None = None,
    ) -> argparse.ArgumentParser:
        """Add an action; `text` says what it does, `examples` are lines for its help. Its `module`
        has the name of the action, unless another is given, and a function `run(options)`. People
        may type the `alias` instead."""
        parser = self._actions.add_parser(
            name,
            aliases=[] if alias is None else [alias],
            help=text,
            description=f"{text[:1].upper()}{text[1:]}.",
            epilog=f"examples:\n{examples}" if examples else None,
            formatter_class=options.formatter,
            allow_abbrev=False,
        )
        # Without a default of its own, so that `agents --debug list` keeps the outer value.
        parser.add_argument(
            "--debug",
            action="store_true",
            default=argparse.SUPPRESS,
            help="log to standard error, including tracebacks",
        )
        if self._stored:
            options.add_store_option(parser, "use the store in")
        parser.set_defaults(module=f"{self._package}.{module or name}")
        return parser


def run_action(options: argparse.Namespace) -> int:
    """The `run` of a command with actions: that of the chosen one."""
    return import_module(options.module).run(options)


COMMANDS = {
    "run": "run one turn (the default command)",
    "chat": "talk to an agent in this terminal",
    "sessions": "list, show, search, export, fork and delete recorded sessions",
    "race": "have several agents do one task, and let its tests judge",
    "races": "list, show, replay and merge races",
    "worktrees": "list, compare, merge and remove the worktrees of sessions",
    "review": "go through what a session changed, and send comments to its agent",
    "usage": "add up what sessions have used: time, tokens, money",
    "watch": "follow a session, wherever it is running",
    "wait": "wait until a session is idle, and exit with its last turn's code",
    "cancel": "stop a session's turn, wherever it is running",
    "status": "list what is running: sessions, their processes, and their memory",
    "stop": "end agents that are kept warm",
    "serve": "serve the web page and all sessions over HTTP",
    "tokens": "list and revoke the access tokens of paired devices",
    "acp": "be an agent for editors, with all your agents and sessions",
    "proxy": "be a proxy in a chain: record its sessions, apply rules",
    "mcp": "be an MCP server for agents and programs that start agents",
    "bridge": "make an agent on this machine available to other machines",
    "agents": "list, add, check, install and remove agents",
    "conformance": "check an agent or a client against the specification of ACP",
    "config": "show or edit the settings",
    "policy": "list, add, explain, test and revoke permission rules",
    "store": "check, copy or prune the session store",
    "replay": "play back a recording, or serve it as an agent",
    "completion": "print a shell completion script",
    "demo-agent": "run the built-in demo agent on standard input and output",
}
"""Each except `run` is a module in `commands` with `add_arguments(parser)` and `run(options)`."""

_STORED = (
    "sessions",
    "race",
    "races",
    "worktrees",
    "review",
    "usage",
    "watch",
    "wait",
    "cancel",
    "status",
    "stop",
    "serve",
    "tokens",
    "acp",
    "mcp",
    "proxy",
    "policy",
    "store",
)
"""The commands that take `--store`; `run` and `chat` have it among the session options."""

EPILOG = """\
commands:
{commands}

examples:
  dragoman "fix the failing test"             one turn with the default agent
  dragoman -a gemini --write "add a README"   let it write in this directory
  git diff | dragoman "review this"           add piped input to the prompt
  dragoman --list-modes --list-commands       list what the agent offers
  dragoman --session fix "now test it"        continue the session named fix
  dragoman chat                               talk interactively

A prompt may mention files and addresses:
  @src/app.py   @"a name with spaces"   @https://example.com

environment:
  DRAGOMAN_SETTINGS  the settings file (`dragoman config path` prints it)
  DRAGOMAN_HOME      the directory of the store and all other data
  DRAGOMAN_STORE     PostgreSQL database for the store
  NO_COLOR           no colours

exit codes:
    0  the agent completed the turn
    1  agent, transport or protocol error
    2  usage or settings error
    3  the agent made no progress in time
    4  the session cannot be continued
    5  every permission request was refused
    6  a limit was reached (--max-cost and others)
    7  the turn ended early: the model refused, or reached a limit of its own
    8  the agent requires you to sign in first
    9  the agent gave no result that fits --output-schema
  130  cancelled
"""


_TAKE_A_LINE = (("agents", "add"), ("conformance", "agent"), ("conformance", "client"))
"""Actions with a name, options, and a command line after `--`: argparse would look for the line
where the name is."""


_WITHOUT_ACTION = {"agents": ["list"], "sessions": ["list"]}
"""What a command does that was given nothing."""


def parsed(command: str, words: Sequence[str]) -> argparse.Namespace:
    """The parsed arguments of a command; a usage error ends the process."""
    parser = parser_for(command)
    words = words or _WITHOUT_ACTION.get(command, words)
    line: list[str] = []
    if (command, *words[:1]) in _TAKE_A_LINE and "--" in words:
        at = words.index("--")
        words, line = words[:at], list(words[at + 1 :])
    arguments, unexpected = parser.parse_known_args(options.with_values(words, parser.error))
    if line:
        arguments.command = line
    if unexpected:
        action: str | None = getattr(arguments, "action", None)
        if action:
            parser.prog += f" {action}"
        word, prompt = unexpected[0], getattr(arguments, "prompt", None)
        meant = None if action else _meant_option(word, parser)
        parser.error(_complaint(word, command, prompt) if meant is None else meant)
    return arguments


def _meant_option(word: str, parser: argparse.ArgumentParser) -> str | None:
    """What to say of an option that is nearly one of the parser's."""
    if not word.startswith("--"):
        return None
    import re  # only when there is something to complain about

    name = word.partition("=")[0]
    known = re.findall(r"--[a-z][a-z-]*", parser.format_help())
    meant = options.close_to(name, known)
    return None if meant is None else f"no such option: {name}; did you mean {meant}?"


_ELSEWHERE = {
    "help": "--help",
    "version": "--version",
    "login": "agents login",
    "logout": "agents logout",
    "doctor": "agents doctor",
    "install": "agents install",
}
"""What people type for commands that have another name here."""


def refuse_command(prompt: str | None) -> None:
    """Refuse a one-word prompt that must be a command, mistyped or placed after an option, in
    capitals or not.

    That is a usage error, which ends the process.
    """
    if prompt is None:
        return
    word = prompt.lower()
    if word in COMMANDS:
        how = f"options go after the command: dragoman {word} …"
    elif (meant := _ELSEWHERE.get(word) or _meant_command(word)) is not None:
        how = f"did you mean dragoman {meant}?"
    else:
        return
    parser_for("run").error(f"{prompt!r}: {how} To send it as a prompt: dragoman -- {prompt}")


def _meant_command(prompt: str | None) -> str | None:
    """The command that was probably meant. Few prompts are compared: difflib is slow to import."""
    if prompt is None:
        return None
    alike = [
        name for name in COMMANDS if name[:1] == prompt[:1] and abs(len(name) - len(prompt)) < 3
    ]
    # Short words are words: "see" is not "serve".
    return options.close_to(prompt, alike, 0.8) if alike and len(prompt) > 3 else None


def _complaint(word: str, command: str, prompt: str | None) -> str:
    if word.startswith("-") and word != "-":
        return f"no such option: {word}"
    if command == "run" and prompt in COMMANDS:
        return f"unexpected argument {word!r}: options go after the command: dragoman {prompt} …"
    if command == "run" and (meant := _meant_command(prompt)) is not None:
        return f"unexpected argument {word!r}: did you mean the command {meant}?"
    if command in ("run", "chat"):
        return f"unexpected argument {word!r}: put the prompt in quotes, it is one argument"
    return f"unexpected argument {word!r}"


def parser_for(command: str) -> argparse.ArgumentParser:
    """The parser of one command; that of `run` is also the one used without a command."""
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
    options.add_limit_options(parser)
    session = options.add_session_options(parser)
    add_worktree_options(session.add_argument)
    options.add_keep_warm_option(session.add_argument)
    options.add_debug_option(parser)
    parser.add_argument("--version", action="version", version=f"dragoman {__version__}")
    return parser


def add_worktree_options(add: options.AddArgument) -> None:
    text = (
        "work in a git worktree of the workspace, on a branch of its own (dragoman/NAME): a new "
        "one, or the one of that name. Without a name, one in which nothing was changed is removed "
        "afterwards; see `dragoman worktrees`"
    )
    add("--worktree", nargs="?", metavar="=NAME", help=text)
    text = "begin the worktree with the uncommitted changes of the workspace"
    add("--uncommitted", action="store_true", help=text)


def _command_parser(command: str) -> argparse.ArgumentParser:
    parser = options.Parser(
        prog=f"dragoman {command}",
        description=f"{COMMANDS[command][:1].upper()}{COMMANDS[command][1:]}.",
        formatter_class=options.formatter,
        allow_abbrev=False,
    )
    import_module(f"dragoman.cli.commands.{command.replace('-', '_')}").add_arguments(parser)
    if command in _STORED:
        options.add_store_option(
            parser, "record in" if command in ("serve", "acp", "proxy") else "use the store in"
        )
    options.add_debug_option(parser)
    return parser

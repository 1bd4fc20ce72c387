"""Shared options: how they are parsed, those of a turn, and `OPTION=VALUE` settings."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import TypeAlias

from dragoman.cli.exit_codes import UsageError
from dragoman.cli.streams import terminal_width
from dragoman.session.facts import ConfigOption
from dragoman.session.state import SessionState


class Parser(argparse.ArgumentParser):
    """One that answers what it does not understand with a line, not with a page."""

    def error(self, message: str):
        guard = import_module("dragoman.cli.exit_codes")  # which nobody needs who types no nonsense
        sentence = message.removeprefix("argument ") + _meant_choice(message)
        guard.tell(f"{sentence}{'' if sentence.endswith('?') else ';'} see {self.prog} --help")
        self.exit(guard.Exit.USAGE)


def _meant_choice(message: str) -> str:
    """What was probably meant, if argparse complains of a word that is no choice."""
    import re

    found = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)$", message)
    meant = None if found is None else close_to(found[1], re.findall(r"[\w-]+", found[2]))
    return "" if meant is None else f"; did you mean {meant}?"


def close_to(word: str, words: Iterable[str], likeness: float = 0.75) -> str | None:
    """The one that is almost the same."""
    import difflib

    return next(iter(difflib.get_close_matches(word, list(words), n=1, cutoff=likeness)), None)


def add_agent_options(parser: argparse.ArgumentParser) -> None:
    """Which agent, where, and what it may do."""
    agent = parser.add_argument_group("agent")
    which = agent.add_mutually_exclusive_group()
    which.add_argument(
        "-a",
        "--agent",
        metavar="NAME",
        help="an agent from the settings, else a known one (default: the first in the settings, "
        "else demo)",
    )
    which.add_argument(
        "--agent-command",
        metavar="'CMD ARGS'",
        help="run this command as the agent, or reach one at a ws://, wss://, http:// or https:// "
        "address; no settings are needed",
    )
    add_proxy_option(agent.add_argument)
    agent.add_argument(
        "--files",
        choices=("here", "there"),
        help="where the workspace of an agent on another machine is: here, and it is served from "
        "here; or there (default: not served)",
    )
    agent.add_argument(
        "--protocol",
        type=int,
        choices=(1, 2),
        help="the newest version of ACP to speak; 2 is a draft, and an agent that does not know it "
        "is spoken to in 1 (default: what the settings say, else 1)",
    )
    agent.add_argument("--settings", metavar="PATH", help="the settings file")
    agent.add_argument(
        "--cwd", metavar="DIR", help="the workspace (default: the current directory)"
    )
    agent.add_argument(
        "--add-dir",
        metavar="DIR",
        action="append",
        default=[],
        help="one more root of the workspace; repeatable",
    )
    agent.add_argument("--mode", metavar="ID", help="set the session's mode first")
    agent.add_argument("--model", metavar="ID", help="choose the model first")
    agent.add_argument(
        "--set",
        metavar="OPTION=VALUE",
        action="append",
        default=[],
        help="set a config option first; repeatable",
    )
    _add_permission_options(parser)


def add_proxy_option(add: Callable[..., object]) -> None:
    """What stands between us and the agent; `add` is how a parser, or a group in it, takes it."""
    add(
        "--proxy",
        metavar="'CMD ARGS'",
        action="append",
        default=[],
        help="have everything pass through this ACP proxy, a command or a ws:// or wss:// address, "
        "before those of the settings; repeatable, the first is the nearest to you",
    )


def add_offer_options(add: Callable[..., object]) -> None:
    """What the agent is not offered; `add` is how a parser, or a group in it, takes it."""
    for what in ("files", "terminals"):
        add(
            f"--no-{what}",
            action="store_true",
            help=f"do not offer {what} to the agent; it uses its own, if it has any",
        )


def add_session_options(parser: argparse.ArgumentParser) -> None:
    """Which session, and whether it is recorded."""
    session = parser.add_argument_group("session")
    which = session.add_mutually_exclusive_group()
    which.add_argument(
        "--session",
        type=name,
        metavar="NAME",
        help="continue the session of that name in this workspace; it is made on first use",
    )
    which.add_argument(
        "--resume",
        type=name,
        metavar="ID",
        help="continue a session, by our id or the agent's own, in its own folder",
    )
    which.add_argument(
        "--fork",
        type=name,
        metavar="ID",
        help="begin a new session that remembers this one",
    )
    session.add_argument(
        "--on-reset",
        choices=("fail", "new"),
        default="fail",
        help="what happens when the agent does not remember the session: fail with code 4, or go "
        "on with an empty one (default: fail)",
    )
    session.add_argument(
        "--save-session", metavar="PATH", help="write the session's id into this file"
    )
    session.add_argument("--no-store", action="store_true", help="keep no record of this run")
    session.add_argument(
        "--record",
        metavar="FILE",
        help="write every frame, with its time, into this file, for `dragoman replay` and "
        "`dragoman policy explain --recording`",
    )
    add_store_option(parser, "record in")


def add_store_option(parser: argparse.ArgumentParser, what: str) -> None:
    """Where sessions are recorded; `what` is done there. Without a default of its own, so that an
    action keeps what was said before it."""
    parser.add_argument(
        "--store",
        metavar="ADDRESS",
        default=argparse.SUPPRESS,
        help=f"{what} this PostgreSQL database: postgresql://user@host/database "
        "(default: $DRAGOMAN_STORE, else SQLite in the data directory)",
    )


def _add_permission_options(parser: argparse.ArgumentParser) -> None:
    allowed = parser.add_argument_group("permissions")
    add_offer_options(allowed.add_argument)
    allowed.add_argument("--write", action="store_true", help="allow writes inside the workspace")
    allowed.add_argument(
        "--exec",
        action="store_true",
        help="allow commands whose working directory is inside the workspace",
    )
    allowed.add_argument(
        "--yolo",
        action="store_true",
        help="both of these, reads anywhere, and whatever else can be allowed; writes outside the "
        "workspace are refused always",
    )
    allowed.add_argument(
        "--policy",
        action="append",
        default=[],
        metavar="FILE",
        help="permission rules for this run; repeatable",
    )
    allowed.add_argument(
        "--on-ask",
        choices=("reject", "prompt"),
        help="what happens to a request that no rule or flag decides (default: prompt on a "
        "terminal, else reject)",
    )


def add_prompt_options(parser: argparse.ArgumentParser) -> None:
    """What to say and how to show the answer."""
    parser.add_argument(
        "prompt",
        metavar="PROMPT",
        nargs="?",
        help="what to say, before what is piped in, if anything; - is standard input alone",
    )
    prompt = parser.add_argument_group("prompt and output")
    prompt.add_argument(
        "-f", "--file", metavar="FILE", help="read the prompt from a file; - is standard input"
    )
    prompt.add_argument(
        "--attach",
        metavar="FILE",
        action="append",
        default=[],
        help="attach an image, a sound or any other file; repeatable",
    )
    prompt.add_argument(
        "-o",
        "--output",
        "--outputmode",
        metavar="MODE",
        choices=("text", "simple", "jsonl", "json"),
        default="text",
        help="text: everything, for people; simple: the answer alone; jsonl (or json, the same): "
        "the frames of both directions, a line each (default: text)",
    )
    prompt.add_argument(
        "-j",
        "--jsonl",
        dest="output",
        action="store_const",
        const="jsonl",
        help="the same as -o jsonl",
    )
    for what, text in (
        ("caps", "the agent's name, version and capabilities"),
        ("modes", "the session's modes"),
        ("commands", "the agent's slash commands"),
    ):
        prompt.add_argument(f"--list-{what}", action="store_true", help=f"print {text}")
    prompt.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        help="give up when the agent makes no progress for this long",
    )


def formatter(prog: str) -> argparse.HelpFormatter:
    """How help is laid out; told the width, argparse need not import what finds it out."""
    return argparse.RawDescriptionHelpFormatter(prog, width=terminal_width() - 2)


def add_debug_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--debug", action="store_true", help="log to standard error, tracebacks included"
    )


def name(text: str) -> str:
    """The type of an option that people call something by."""
    if not text.strip():
        raise argparse.ArgumentTypeError("expected a name, not nothing")
    return text


def seconds(text: str) -> float:
    """The type of an option that is a time."""
    value = _number(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"expected a number of seconds above 0, not {text}")
    return value


def count(text: str) -> int:
    """The type of an option that is a number of things."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"expected a whole number from 1, not {text}")
    return int(text)


def not_negative(text: str) -> float:
    """The type of an option that is a number from 0."""
    value = _number(text)
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"expected a number from 0, not {text}")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


Assignment: TypeAlias = tuple[str, str]

_SWITCHES = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}


def assignment(text: str) -> Assignment:
    """An option and its value. Raises UsageError."""
    option, separator, value = text.partition("=")
    if not separator or not option:
        raise UsageError(f"expected OPTION=VALUE, not {text!r}")
    return option, value


def typed(state: SessionState, option_id: str, text: str) -> str | bool:
    """The text as the option wants it: some options are switches."""
    for option in state.config_options:
        if option.id == option_id and option.choices is None:
            return _SWITCHES.get(text.lower(), text)
    return text


def as_typed(value: str | bool) -> str:
    """A value as one would type it."""
    return value if isinstance(value, str) else str(value).lower()


def choices_of(option: ConfigOption) -> list[str]:
    """What may be typed for it."""
    if option.choices is None:
        return ["true", "false"]
    return [choice.value for choice in option.choices]

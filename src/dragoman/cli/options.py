"""Options that several commands share, their types, and `OPTION=VALUE` assignments."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from dragoman.cli.standard_streams import terminal_width

TYPE_CHECKING = False  # that of `typing` would cost `--help` the import
if TYPE_CHECKING:
    from argparse import _ArgumentGroup as ArgumentGroup  # pyright: ignore[reportPrivateUsage]
    from typing import Any, NoReturn, TypeAlias

    from _typeshed import SupportsWrite

    from dragoman.session.facts import ConfigOption
    from dragoman.session.state import SessionState

    AddArgument: TypeAlias = Callable[..., object]
    """`add_argument` of a parser or of a group in it."""

Assignment: TypeAlias = tuple[str, str]

_FENCE_MODES = ("off", "on", "ask", "require")

SESSION_HELP = "session id or a prefix of it, session name, or the agent's own id for the session"
AGENT_HELP = (
    "agent from the settings, or a known one (default: the first in the settings, else demo)"
)


LISTS = {
    "caps": "the agent's name, version and capabilities",
    "modes": "the session's modes, for --mode",
    "models": "the session's models, for --model",
    "options": "the session's config options, for --set",
    "commands": "the agent's slash commands",
}
"""What `--list-…` prints, in this order."""


class Parser(argparse.ArgumentParser):
    """A parser that reports a usage error in one line instead of printing the usage."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # A value, so that the type of its option says what is wrong with it: `-5m` too.
        self._negative_number_matcher = re.compile(r"-\.?\d")

    def error(self, message: str) -> NoReturn:
        from dragoman.cli.exit_codes import Exit, tell  # only needed for usage errors

        sentence = message.removeprefix("argument ") + _meant_choice(message)
        tell(f"{sentence}{'' if sentence.endswith('?') else ';'} see {self.prog} --help")
        self.exit(Exit.USAGE)

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        """argparse ignores that a help or a version could not be written; here it is a failure."""
        if file is not sys.stdout:
            super()._print_message(message, file)
            return
        try:
            print(message, end="", flush=True)
        except BrokenPipeError:
            pass  # the reader has seen enough
        except OSError as error:
            from dragoman.cli.exit_codes import Exit, sentence, tell

            tell(sentence(error))
            self.exit(Exit.FAILED)


def _meant_choice(message: str) -> str:
    """A suggestion, if argparse complains of an invalid choice."""
    import re

    found = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)$", message)
    meant = None if found is None else close_to(found[1], re.findall(r"[\w-]+", found[2]))
    return "" if meant is None else f"; did you mean {meant}?"


def close_to(word: str, words: Iterable[str], likeness: float = 0.75) -> str | None:
    """The most similar of `words`, if any is similar enough."""
    import difflib

    return next(iter(difflib.get_close_matches(word, list(words), n=1, cutoff=likeness)), None)


def add_agent_options(parser: argparse.ArgumentParser) -> None:
    """Options for the agent, its workspace and its permissions."""
    agent = parser.add_argument_group("agent")
    which = agent.add_mutually_exclusive_group()
    which.add_argument("-a", "--agent", metavar="NAME", help=AGENT_HELP)
    which.add_argument(
        "--agent-command",
        metavar="'CMD ARGS'",
        help="run this command as the agent, or connect to a ws://, wss://, http:// or https:// "
        "address; your settings, and the limits in them, are not used unless --settings names them",
    )
    add_proxy_option(agent.add_argument)
    agent.add_argument(
        "--files",
        choices=("here", "there"),
        help="where a remote agent's workspace is: here, on this machine (files and terminals are "
        "served to the agent), or there, on its own (nothing is served, which is also the default)",
    )
    agent.add_argument(
        "--protocol",
        type=int,
        choices=(1, 2),
        help="newest ACP version to offer; 2 is a draft, and agents that do not support it get 1 "
        "(default: from the settings, else 1)",
    )
    add_settings_option(agent.add_argument)
    _add_workspace_options(agent.add_argument)
    text = "pass on the MCP servers in this file too (JSON with `mcpServers`)"
    add_repeatable(agent.add_argument, "--mcp-config", "FILE", text)
    _add_system_prompt_options(agent)
    add_permission_options(parser, "this run").add_argument(
        "--on-ask",
        choices=("reject", "prompt", "wait"),
        help="what to do with requests that no rule decides: refuse them, ask here, or wait for an "
        "answer from another window (default: prompt on a terminal, else reject)",
    )
    agent.add_argument(
        "--question-timeout",
        metavar="TIME",
        type=duration,
        help="refuse a question that waits longer than this, such as 10m (default: from the "
        "settings, else when its turn ends)",
    )


def _add_workspace_options(add: AddArgument) -> None:
    add_folder_options(add)
    add("--mode", metavar="ID", help="set the session mode before prompting")
    add("--model", metavar="ID", help="select the model before prompting")
    add_repeatable(add, "--set", "OPTION=VALUE", "set a config option before prompting")


def _add_system_prompt_options(agent: ArgumentGroup) -> None:
    which = agent.add_mutually_exclusive_group()
    which.add_argument(
        "--system-prompt",
        metavar="TEXT",
        help="an instruction that the agent gets before everything else, now and whenever the "
        "session continues (default: from the settings)",
    )
    which.add_argument(
        "--system-prompt-file",
        metavar="FILE",
        help="read the system prompt from a file",
    )
    agent.add_argument(
        "--system-prompt-mode",
        choices=("append", "override"),
        help="add the system prompt to the agent's own instructions, or replace them with it "
        "(default: append)",
    )


def add_folder_options(add: AddArgument) -> None:
    add("--cwd", metavar="DIR", help="workspace (default: the current directory)")
    add_repeatable(add, "--add-dir", "DIR", "additional workspace root")


def add_server_folder_option(add: AddArgument, what: str) -> None:
    """The `--cwd` of a command that serves others; `what` says what the folder is for."""
    add("--cwd", metavar="DIR", default=".", help=f"{what} (default: the current directory)")


def add_repeatable(
    add: AddArgument, flag: str, metavar: str, text: str, *, order: str = "", **more: object
) -> None:
    """An option that may be given several times; `order` says what their order means."""
    text += f"; repeatable{order and f': {order}'}"
    add(flag, metavar=metavar, action="append", default=[], help=text, **more)


def add_optional(add: AddArgument, name: str, metavar: str, text: str) -> None:
    """An argument that may be left out."""
    add(name, metavar=metavar, nargs="?", help=text)


def add_json_option(add: AddArgument, text: str = "print a JSON array of objects") -> None:
    add("--json", action="store_true", help=text)


def add_settings_option(add: AddArgument) -> None:
    add("--settings", metavar="PATH", help="settings file")


def add_proxy_option(add: AddArgument) -> None:
    add_repeatable(
        add,
        "--proxy",
        "'CMD ARGS'",
        "route all messages through this ACP proxy, a command or a ws:// or wss:// address",
        order="the first is closest to you, and all come before those in the settings",
    )


def add_session_options(parser: argparse.ArgumentParser) -> ArgumentGroup:
    """Add what selects a session and says whether to record it, and return the group."""
    session = parser.add_argument_group("session")
    which = session.add_mutually_exclusive_group()
    which.add_argument(
        "--session",
        type=name,
        metavar="NAME",
        help="continue the session with this name in this workspace, or start it",
    )
    which.add_argument(
        "--resume",
        type=name,
        metavar="ID",
        help="continue a session in its own directory; ID is its id or a prefix of it, its name, "
        "or the agent's own id for the session",
    )
    which.add_argument(
        "--fork",
        type=name,
        metavar="ID",
        help="start a new session with the history of session ID",
    )
    which.add_argument(
        "-c",
        "--continue",
        dest="continues",
        action="store_true",
        help="continue the most recently used session of this workspace",
    )
    session.add_argument(
        "--on-reset",
        choices=("fail", "new"),
        default="fail",
        help="what to do when the agent has forgotten the session: fail with code 4, or start an "
        "empty one (default: fail)",
    )
    session.add_argument("--save-session", metavar="PATH", help="write the session id to this file")
    session.add_argument("--no-store", action="store_true", help="do not record this run")
    session.add_argument(
        "--record",
        metavar="FILE",
        help="write every frame, with its time, to this file, for `dragoman replay` and `dragoman "
        "policy explain --recording`",
    )
    add_store_option(parser, "record in")
    return session


def add_keep_warm_option(add: AddArgument) -> None:
    add(
        "--keep-warm",
        metavar="TIME",
        type=stay,
        help="how long the agent stays after the run, ready for the next prompt: seconds, or a "
        "time such as 10m; 0 ends it with the run; Linux only (default with --session, --resume or "
        "--continue: from the settings, else 300; without them, or where $CI is set: 0)",
    )


def add_limit_options(parser: argparse.ArgumentParser) -> None:
    """Options that limit what the session may use."""
    limits = parser.add_argument_group(
        "limits",
        "By default, a turn that reaches one of these is stopped, with exit code 6.\n"
        "Tokens and costs that the agent reports only at the end of a turn can exceed\n"
        "their limit.",
    )
    scopes = (
        "append /turn, /day, /agent or /project to this or another limit, as in 5/day, to apply it "
        "to each turn, or to all sessions of the day, the agent or the folder"
    )
    for flag, metavar, kind, text in (
        ("cost", "AMOUNT", money, f"cost of the session, as in 2.50 (USD) or 2.50EUR; {scopes}"),
        ("tokens", "N", count, "number of tokens of the session"),
        ("time", "TIME", duration, "time of all turns of the session, as in 90s, 10m or 2h"),
        ("tool-calls", "N", count, "number of tool calls of the session"),
        ("turns", "N", count, "number of turns of the session"),
    ):
        limits.add_argument(
            f"--max-{flag}", metavar=metavar, type=_scoped(kind), help=f"maximum {text}"
        )
    limits.add_argument(
        "--at-max",
        choices=("stop", "ask", "warn"),
        help="what to do at one of these limits: stop the turn, hold it and ask whether it may use "
        "more, or only warn (default: stop)",
    )
    limits.add_argument(
        "--on-limit",
        choices=("park", "ask", "fail"),
        help="what to do when the agent reports a limit of its model provider: wait and send the "
        "prompt again later (park), ask you what to do (ask), or fail (default: from the "
        "settings, else fail)",
    )


def add_store_option(parser: argparse.ArgumentParser, what: str) -> None:
    """The store that the command uses; `what` says for what.

    It has no default of its own, so that an action keeps the value given before it.
    """
    parser.add_argument(
        "--store",
        metavar="ADDRESS",
        default=argparse.SUPPRESS,
        help=f"{what} this PostgreSQL database: postgresql://user@host/database "
        "(default: $DRAGOMAN_STORE, else SQLite in the data directory)",
    )


def add_policy_options(allowed: ArgumentGroup, scope: str) -> None:
    """Add what is allowed in `scope` without asking."""
    allowed.add_argument("--write", action="store_true", help="allow writes inside the workspace")
    allowed.add_argument(
        "--exec",
        action="store_true",
        help="allow commands whose working directory is inside the workspace",
    )
    allowed.add_argument(
        "--yolo",
        action="store_true",
        help="allow everything that can be allowed, including reads and commands outside the "
        "workspace (but no writes outside it); an agent's claims are not checked, but rules that "
        "deny or ask still apply to them",
    )
    text = f"file of permission rules for {scope}"
    add_repeatable(allowed.add_argument, "--policy", "FILE", text)


def add_permission_options(parser: argparse.ArgumentParser, scope: str) -> ArgumentGroup:
    """Add what the agent may do in `scope`, and return the group."""
    allowed = parser.add_argument_group("permissions")
    for what, alone in (("files", "access files"), ("terminals", "run commands")):
        allowed.add_argument(
            f"--no-{what}",
            action="store_true",
            help=f"do not serve {what} to the agent; it can still {alone} by itself",
        )
    add_policy_options(allowed, scope)
    allowed.add_argument(
        "--fence",
        nargs="?",
        metavar=f"={{{','.join(_FENCE_MODES)}}}",
        choices=_FENCE_MODES,
        help="have the Linux kernel confine the agent and everything it starts: it can write only "
        "to the workspace and its own folders; where user namespaces are available, key files are "
        "hidden. on (or just --fence): fence the agent if this system can; ask: the same, but "
        "writes outside become questions; require: start nothing without a fence (default: from "
        "the settings, else off)",
    )
    allowed.add_argument(
        "--fence-network",
        metavar="HOSTS",
        help="hosts that can be reached from inside the fence: all, none, or a comma-separated "
        "list such as example.com:443,*.example.org; implies --fence (default: from the settings, "
        "else all)",
    )
    return allowed


def with_values(words: Sequence[str], refuse: Callable[[str], NoReturn]) -> list[str]:
    """`--fence` and `--worktree` without a value have one; argparse would take the prompt for it. A
    value after a space would be taken for the prompt instead, so it is refused."""
    end = words.index("--") if "--" in words else len(words)
    for word, value in pairwise(words[:end]):
        if word == "--fence" and value in _FENCE_MODES:
            refuse(f"--fence takes its value after an equals sign: --fence={value}")
    for option, value, prompt in zip(words[:end], words[1:end], words[2:end], strict=False):
        if option == "--worktree" and not (value.startswith("-") or prompt.startswith("-")):
            refuse(f"--worktree takes its name after an equals sign: --worktree={value}")
    return [*(_WITHOUT_VALUE.get(word, word) for word in words[:end]), *words[end:]]


_WITHOUT_VALUE = {"--fence": "--fence=on", "--worktree": "--worktree="}


def add_prompt_options(parser: argparse.ArgumentParser) -> None:
    """Options for the prompt, and for how the answer is printed."""
    text = "the prompt, followed by any piped input; - reads standard input only"
    add_optional(parser.add_argument, "prompt", "PROMPT", text)
    prompt = parser.add_argument_group("prompt and output")
    prompt.add_argument(
        "-f", "--file", metavar="FILE", help="read the prompt from a file; - for standard input"
    )
    text = "attach an image, audio or any other file"
    add_repeatable(prompt.add_argument, "--attach", "FILE", text)
    prompt.add_argument(
        "--steer",
        metavar="TEXT",
        help="send this to the running turn of the session that --session, --resume or --continue "
        "names, and print the outcome",
    )
    _add_output_options(prompt.add_argument)
    prompt.add_argument(
        "--no-wait",
        action="store_true",
        help="print the session's id as soon as the prompt is sent, and exit; the turn continues "
        "in the background, and `dragoman wait` waits for it. Requests that no rule decides are "
        "refused, or wait for an answer with --on-ask wait",
    )
    prompt.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        help="give up when the agent makes no progress for this long",
    )


def _add_output_options(add: AddArgument) -> None:
    add(
        "-o",
        "--output",
        "--outputmode",
        metavar="MODE",
        choices=("text", "simple", "result", "events", "jsonl", "json"),
        default="text",
        help="text: everything, for people; simple: only the answer; result: one JSON document at "
        "the end; events: Dragoman's events, one JSON line each; jsonl (or json): the frames in "
        "both directions, one per line (default: text)",
    )
    add(
        "-j",
        "--jsonl",
        dest="output",
        action="store_const",
        const="jsonl",
        help="same as -o jsonl",
    )
    add(
        "--directions",
        action="store_true",
        help="with -o jsonl: print each frame with its time and direction, as "
        '{"t": seconds, "dir": "->" or "<-", "msg": frame}; "->" is what Dragoman sent',
    )
    add(
        "--output-schema",
        metavar="FILE",
        help="have the agent answer with JSON that fits the JSON schema in this file, and print "
        "that alone, on one line; the exit code is 9 if it does not",
    )
    for what, text in LISTS.items():
        add(f"--list-{what}", action="store_true", help=f"print {text}")


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Shows an optional value, which follows `=`, without a space before it. Text of several lines
    is printed as it is; a single line is wrapped."""

    def format_help(self) -> str:
        return super().format_help().replace(" [=", "[=")

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text:
            return super()._fill_text(text, width, indent)
        return argparse.HelpFormatter._fill_text(self, text, width, indent)


def formatter(prog: str) -> argparse.HelpFormatter:
    """The layout of help; given the width, argparse need not import the module that finds it."""
    return _Formatter(prog, width=terminal_width() - 2)


def add_debug_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--debug", action="store_true", help="log to standard error, including tracebacks"
    )


def name(text: str) -> str:
    """The type of an option that is a name."""
    if not text.strip():
        raise argparse.ArgumentTypeError("the name must not be empty")
    return text


def seconds(text: str) -> float:
    """The type of an option that is a duration."""
    value = _number(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"expected a number of seconds above 0, not {text}")
    return value


def _scoped(kind: Callable[[str], Any]) -> Callable[[str], tuple[Any, str]]:
    """The type of an option that is a limit: how much, and of what it is a limit."""

    def read(text: str) -> tuple[Any, str]:
        from dragoman.session.limits.spending_limits import SCOPES  # --help needs none

        most, slash, scope = text.partition("/")
        if slash and scope not in SCOPES:
            known = ", ".join(f"/{each}" for each in SCOPES)
            raise argparse.ArgumentTypeError(f"expected one of {known}, not /{scope}")
        return kind(most), scope or "session"

    return read


def duration(text: str) -> float:
    """The type of an option that is a time with its unit, in seconds."""
    from dragoman.session.limits.spending_limits import seconds_in

    if (value := seconds_in(text)) is None:
        raise argparse.ArgumentTypeError(f"expected a time such as 90s, 10m or 2h, not {text!r}")
    return value


def stay(text: str) -> float:
    """The type of an option that is a time: seconds, not below 0, or with a unit."""
    if 0 <= (value := _number(text)) < float("inf"):
        return value
    try:
        return duration(text)
    except argparse.ArgumentTypeError:
        sentence = f"expected a number of seconds or a time such as 10m, not {text!r}"
        raise argparse.ArgumentTypeError(sentence) from None


def money(text: str) -> tuple[float, str]:
    """The type of an option that is a sum of money: the amount and the currency."""
    import re

    found = re.fullmatch(r"(\d+(?:\.\d+)?|\.\d+) ?([A-Z]{3})?", text)
    if found is None or not float(found[1]):
        sentence = f"expected an amount such as 2.50 or 2.50EUR, not {text!r}"
        raise argparse.ArgumentTypeError(sentence)
    return float(found[1]), found[2] or "USD"


def count(text: str) -> int:
    """The type of an option that is a count, from 1."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, not {text}")
    return int(text)


def not_negative(text: str) -> float:
    """The type of an option that is a number, not below 0."""
    value = _number(text)
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"expected a number of at least 0, not {text}")
    return value


def age(text: str) -> float:
    """The type of an option that is an age or a time to come, in days."""
    import re

    found = re.fullmatch(r"(\d+(?:\.\d+)?)([hdw])", text)
    days = 0.0 if found is None else float(found[1]) * {"h": 1 / 24, "d": 1.0, "w": 7.0}[found[2]]
    if not days:
        raise argparse.ArgumentTypeError(f"expected a time such as 90d, 12w or 36h, not {text!r}")
    return days


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


_SWITCHES = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}


def assignment(text: str) -> Assignment:
    """Split `OPTION=VALUE`. Raises UsageError."""
    from dragoman.cli.exit_codes import UsageError

    option, separator, value = text.partition("=")
    if not separator or not option:
        raise UsageError(f"expected OPTION=VALUE, not {text!r}")
    return option, value


def typed(state: SessionState, option_id: str, text: str) -> str | bool:
    """The text as the type of the option: some options are switches."""
    for option in state.config_options:
        if option.id == option_id and option.choices is None:
            return _SWITCHES.get(text.lower(), text)
    return text


def as_typed(value: str | bool) -> str:
    """A value as a person would type it."""
    return value if isinstance(value, str) else str(value).lower()


def choices_of(option: ConfigOption) -> list[str]:
    """The values that a person may type for the option."""
    if option.choices is None:
        return ["true", "false"]
    return [choice.value for choice in option.choices]

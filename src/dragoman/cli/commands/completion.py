"""`dragoman completion`: prints a completion script for bash, zsh or fish, made from the parsers.

Names of agents, sessions and rules are looked up when they are needed.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from dragoman.cli.parsers import COMMANDS, parser_for

_EXAMPLES = """\
examples:
  dragoman completion bash > ~/.local/share/bash-completion/completions/dragoman
  dragoman completion zsh > ~/.zfunc/_dragoman     if ~/.zfunc is in your fpath
  dragoman completion fish > ~/.config/fish/completions/dragoman.fish"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "shell", metavar="SHELL", choices=("bash", "zsh", "fish"), help="bash, zsh or fish"
    )


def run(options: argparse.Namespace) -> int:
    print(SCRIPTS[options.shell](), end="")
    return 0


_ASKED = {
    "agents": "dragoman agents list --names 2>/dev/null",
    "sessions": "dragoman sessions list --names 2>/dev/null",
    "rules": "dragoman policy list --names 2>/dev/null",
}
"""The command that prints what may be typed, one a line."""
_BY_FLAG = {
    "--agent": "agents",
    "--session": "sessions",
    "--resume": "sessions",
    "--fork": "sessions",
}
_BY_VALUE = {"DIR": "folders", "FILE": "files", "PATH": "files"}


def _option_kind(option: CompletableOption) -> str:
    """What may follow an option: words, folders, files, anything, or one of what is asked for."""
    if option.choices:
        return "words"
    asked = next((_BY_FLAG[flag] for flag in option.flags if flag in _BY_FLAG), None)
    return asked or _BY_VALUE.get(option.value.partition("|")[0], "anything")


def _argument_kind(command: CompletableCommand, argument: Argument) -> str:
    """The same for positional arguments."""
    if argument.choices:
        return "words"
    match (*command.words, argument.name.partition("|")[0]):
        case ("agents", _, "NAME"):
            return "agents"
        case (*_, "SESSION"):
            return "sessions"
        case ("policy", "revoke" | "remove", _):
            return "rules"
        case (*_, name):
            return _BY_VALUE.get(name, "anything")


# ── bash ──────────────────────────────────────────────────────────────────────────────────────

_BASH = """\
# bash completion for dragoman
_dragoman() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}}
    local command=${{COMP_WORDS[1]}}
    COMPREPLY=()
    # bash divides --flag=value into three words.
    if [[ $prev == = ]]; then
        prev=${{COMP_WORDS[COMP_CWORD-2]}}=
    elif [[ $cur == = ]]; then
        prev+== cur=""
    fi
    [[ $COMP_CWORD -gt 1 ]] || command=""
    case $command in {first}) ;; *) command="" ;; esac
    [[ $command != run ]] || command=""
    if [[ $COMP_CWORD -gt 2 ]]; then
        local both="$command ${{COMP_WORDS[2]}}"
        case $both in {second}) command=$both ;; esac
    fi
    case "$command:$prev" in
{values}
    esac
    case $command in
{words}
    esac
}}
complete -o default -F _dragoman dragoman
"""


def bash() -> str:
    root, *others = commands()
    every = [command for each in others for command in each.all()]
    return _BASH.format(
        first="|".join(["run", *(other.words[0] for other in others)]),
        second="|".join(f'"{" ".join(c.words)}"' for c in every if len(c.words) > 1),
        values="\n".join(line for command in (root, *every) for line in _bash_values(command)),
        words="\n".join(_bash_words(command, others) for command in (root, *every)),
    )


def _bash_values(command: CompletableCommand) -> Iterator[str]:
    name = " ".join(command.words)
    for option in command.options:
        if option.value:
            end = "=" if option.optional else ""
            patterns = "|".join(f'"{name}:{flag}{end}"' for flag in option.flags)
            yield f"        {patterns}) {_bash_reply(option)}; return ;;"


def _bash_reply(option: CompletableOption) -> str:
    match _option_kind(option):
        case "words":
            return f'COMPREPLY=($(compgen -W "{" ".join(option.choices)}" -- "$cur"))'
        case kind if kind in _ASKED:
            return f'COMPREPLY=($(compgen -W "$({_ASKED[kind]})" -- "$cur"))'
        case "folders":
            return 'COMPREPLY=($(compgen -d -- "$cur"))'
        case _:
            return ":"


def _bash_words(command: CompletableCommand, others: list[CompletableCommand]) -> str:
    words = [flag for option in command.options for flag in option.flags]
    words += [action.words[-1] for action in command.actions]
    words += [choice for argument in command.arguments for choice in argument.choices]
    if not command.words:
        words += ["run", *(other.words[0] for other in others)]
    kinds = (_argument_kind(command, argument) for argument in command.arguments)
    words += [f"$({_ASKED[kind]})" for kind in kinds if kind in _ASKED]
    pattern = f'"{" ".join(command.words)}"'
    return f'        {pattern}) COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$cur")) ;;'


# ── zsh ───────────────────────────────────────────────────────────────────────────────────────

_ZSH = """\
#compdef dragoman
# zsh completion for dragoman
{asked}

_dragoman() {{
    local -a commands
    commands=({commands})
    case "$words[2] $words[3]" in
{actions}
    esac
    case $words[2] in
{cases}
    esac
    (( CURRENT == 2 )) && _describe command commands
    [[ $words[2] != run ]] || {{ shift words; (( CURRENT-- )) }}
    _arguments -s {root}
}}

# From fpath, this file is the function itself; sourced, it only says which function it is.
if [[ $funcstack[1] == _dragoman ]]; then
    _dragoman "$@"
else
    compdef _dragoman dragoman
fi
"""

_ZSH_ASKED = """\
_dragoman_{kind}() {{
    local -a names
    names=(${{(f)"$({command})"}})
    compadd -a names
}}"""


def zsh() -> str:
    root, *others = commands()
    actions = [action for command in others for action in command.actions]
    listed = [_zsh_pair("run", "Run one turn"), *(_zsh_pair(c.words[0], c.about) for c in others)]
    return _ZSH.format(
        asked="\n".join(_ZSH_ASKED.format(kind=each, command=_ASKED[each]) for each in _ASKED),
        commands=" ".join(listed),
        actions="\n".join(_zsh_case(action, shift=2) for action in actions),
        cases="\n".join(_zsh_case(command, shift=1) for command in others),
        root=_zsh_specs(root),
    )


def _zsh_case(command: CompletableCommand, *, shift: int) -> str:
    moved = f"shift {shift} words; (( CURRENT -= {shift} ))"
    return (
        f'        "{" ".join(command.words)}")'
        f" {moved}; _arguments -s {_zsh_specs(command)}; return ;;"
    )


def _zsh_pair(word: str, about: str) -> str:
    return shlex.quote(f"{word}:{_zsh_text(about)}")


def _zsh_text(text: str) -> str:
    r"""Colons and brackets end a part of a specification unless they are escaped."""
    return re.sub(r"([\\:\[\]])", r"\\\1", text)


def _zsh_specs(command: CompletableCommand) -> str:
    specs = [_zsh_option(flag, option) for option in command.options for flag in option.flags]
    if command.actions:
        names = " ".join(action.words[-1] for action in command.actions)
        specs.append(shlex.quote(f"1:action:({names})"))
    for argument in command.arguments[:1]:
        name = _plain(argument.name)
        kind = _zsh_kind(_argument_kind(command, argument), argument.choices)
        specs.append(shlex.quote(f"*:{name}:{_zsh_hint(name) if kind == ' ' else kind}"))
    return " ".join(specs)


def _zsh_hint(name: str) -> str:
    """What to type, where anything may be. A message keeps zsh from writing out a single match, so
    there is none while an option is typed."""
    return f"{{[[ $PREFIX == -* ]] || _message {shlex.quote(name)}}}"


def _zsh_option(flag: str, option: CompletableOption) -> str:
    value = f":{_plain(option.value)}:{_zsh_kind(_option_kind(option), option.choices)}"
    if option.optional:
        flag, value = f"{flag}=-", f":{value}"
    return shlex.quote(f"{flag}[{_zsh_text(option.help)}]{value if option.value else ''}")


def _plain(text: str) -> str:
    return text.replace(":", " ").replace("'", "")


_ZSH_KINDS = {"folders": "_files -/", "files": "_files"}


def _zsh_kind(kind: str, choices: tuple[str, ...]) -> str:
    if kind == "words":
        return f"({' '.join(choices)})"
    return f"_dragoman_{kind}" if kind in _ASKED else _ZSH_KINDS.get(kind, " ")


# ── fish ──────────────────────────────────────────────────────────────────────────────────────

_FISH = """\
# fish completion for dragoman
function __dragoman_at
    set -l typed (commandline -opc)[2..-1]
    if test (count $argv) -eq 0
        contains -- "$typed[1]" {first}; and return 1
        return 0
    end
    for index in (seq (count $argv))
        test "$typed[$index]" = "$argv[$index]"; or return 1
    end
    return 0
end

complete -c dragoman -f
{lines}
"""


def fish() -> str:
    root, *others = commands()
    every = [command for each in others for command in each.all()]
    lines = [
        f"complete -c dragoman -n __fish_use_subcommand -a {c.words[0]} -d {_quoted(c.about)}"
        for c in others
    ]
    lines += [line for command in (root, *every) for line in _fish_lines(command)]
    return _FISH.format(first=" ".join(c.words[0] for c in others), lines="\n".join(lines))


def _fish_lines(command: CompletableCommand) -> Iterator[str]:
    at = _quoted(" ".join(("__dragoman_at", *command.words)))
    words = ("__dragoman_at", *command.words, "; and test (count (commandline -opc)) -eq 2")
    first = _quoted(" ".join(words))
    for action in command.actions:
        yield f"complete -c dragoman -n {first} -a {action.words[-1]} -d {_quoted(action.about)}"
    for argument in command.arguments:
        if rest := _fish_kind(_argument_kind(command, argument), argument.choices):
            yield f"complete -c dragoman -n {at} {rest}"
    for option in command.options:
        flags = " ".join(_fish_flag(flag) for flag in option.flags)
        value = _fish_kind(_option_kind(option), option.choices)
        takes = "-f" if option.optional else "-r" if value == "-F" else "-x"
        rest = f" {takes} {value}" if option.value else ""
        about = _quoted(option.help)
        yield f"complete -c dragoman -n {at} {flags} -d {about}{rest}".rstrip()


def _fish_flag(flag: str) -> str:
    return f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"


_FISH_KINDS = {"files": "-F", "folders": "-a '(__fish_complete_directories)'"}


def _fish_kind(kind: str, choices: tuple[str, ...]) -> str:
    if kind == "words":
        return f"-a {_quoted(' '.join(choices))}"
    if kind in _ASKED:
        return f"-a {_quoted(f'({_ASKED[kind]})')}"
    return _FISH_KINDS.get(kind, "")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


SCRIPTS: dict[str, Callable[[], str]] = {"bash": bash, "zsh": zsh, "fish": fish}


class CompletableOption(NamedTuple):
    """`value` is what the option is followed by, empty for a switch; if it is `optional`, it
    begins with `=`."""

    flags: tuple[str, ...]
    value: str
    optional: bool
    help: str
    choices: tuple[str, ...]


class Argument(NamedTuple):
    """A positional argument."""

    name: str
    optional: bool
    repeated: bool
    help: str
    choices: tuple[str, ...]


class CompletableCommand(NamedTuple):
    """A command or an action of one; `words` are what one types to get there."""

    words: tuple[str, ...]
    about: str
    options: tuple[CompletableOption, ...]
    arguments: tuple[Argument, ...]
    actions: tuple[CompletableCommand, ...]
    notes: str

    def all(self) -> tuple[CompletableCommand, ...]:
        """Itself and its actions."""
        return (self, *self.actions)


def commands() -> tuple[CompletableCommand, ...]:
    """Every command, the one without a name first."""
    named = (_command((name,), parser_for(name)) for name in COMMANDS if name != "run")
    return (_command((), parser_for("run")), *named)


def _command(words: tuple[str, ...], parser: argparse.ArgumentParser) -> CompletableCommand:
    options: list[CompletableOption] = []
    arguments: list[Argument] = []
    actions: list[CompletableCommand] = []
    members: list[Any] = vars(parser)["_actions"]  # argparse has no other way to look
    for member in members:
        if member.option_strings:
            options.append(_option(member))
        elif hasattr(member.choices, "items"):
            actions += [_command((*words, name), sub) for name, sub in member.choices.items()]
        else:
            arguments.append(_argument(member))
    return CompletableCommand(
        words=words,
        about=(parser.description or "").rstrip("."),
        options=tuple(options),
        arguments=tuple(arguments),
        actions=tuple(actions),
        notes=parser.epilog or "",
    )


def _option(member: Any) -> CompletableOption:
    return CompletableOption(
        flags=tuple(member.option_strings),
        value="" if member.nargs == 0 else str(member.metavar or member.dest.upper()),
        optional=member.nargs == "?",
        help=member.help or "",
        choices=tuple(map(str, member.choices or ())),
    )


def _argument(member: Any) -> Argument:
    return Argument(
        name=str(member.metavar or member.dest),
        optional=member.nargs in ("?", "*"),
        repeated=member.nargs in ("*", "+"),
        help=member.help or "",
        choices=tuple(map(str, member.choices or ())),
    )

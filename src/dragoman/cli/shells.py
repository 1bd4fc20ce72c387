"""Completion scripts for bash, zsh and fish. The names of agents are asked for when needed."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator

from dragoman.cli.described import Argument, Command, Option, commands

_NAMES = "dragoman agents list --names 2>/dev/null"


def _kind(value: str, choices: tuple[str, ...]) -> str:
    """What may be typed there: words, agents, folders, files, or anything."""
    if choices:
        return "words"
    return {"NAME": "agents", "DIR": "folders", "FILE": "files", "PATH": "files"}.get(
        value.partition("|")[0], "anything"
    )


# ── bash ──────────────────────────────────────────────────────────────────────────────────────

_BASH = """\
# bash completion for dragoman
_dragoman() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}}
    local command=${{COMP_WORDS[1]}}
    COMPREPLY=()
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


def _bash_values(command: Command) -> Iterator[str]:
    name = " ".join(command.words)
    for option in command.options:
        if option.value:
            patterns = "|".join(f'"{name}:{flag}"' for flag in option.flags)
            yield f"        {patterns}) {_bash_reply(option)}; return ;;"


def _bash_reply(option: Option) -> str:
    match _kind(option.value, option.choices):
        case "words":
            return f'COMPREPLY=($(compgen -W "{" ".join(option.choices)}" -- "$cur"))'
        case "agents":
            return f'COMPREPLY=($(compgen -W "$({_NAMES})" -- "$cur"))'
        case "folders":
            return 'COMPREPLY=($(compgen -d -- "$cur"))'
        case _:
            return ":"


def _bash_words(command: Command, others: list[Command]) -> str:
    words = [flag for option in command.options for flag in option.flags]
    words += [action.words[-1] for action in command.actions]
    words += [choice for argument in command.arguments for choice in argument.choices]
    if not command.words:
        words += ["run", *(other.words[0] for other in others)]
    names = any(_kind(argument.name, ()) == "agents" for argument in command.arguments)
    agents = f" $({_NAMES})" if names else ""
    pattern = f'"{" ".join(command.words)}"'
    return f'        {pattern}) COMPREPLY=($(compgen -W "{" ".join(words)}{agents}" -- "$cur")) ;;'


# ── zsh ───────────────────────────────────────────────────────────────────────────────────────

_ZSH = """\
#compdef dragoman
# zsh completion for dragoman
_dragoman_agents() {{
    local -a names
    names=(${{(f)"$({names})"}})
    compadd -a names
}}

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

_dragoman "$@"
"""


def zsh() -> str:
    root, *others = commands()
    actions = [action for command in others for action in command.actions]
    listed = [_zsh_pair("run", "one turn"), *(_zsh_pair(c.words[0], c.about) for c in others)]
    return _ZSH.format(
        names=_NAMES,
        commands=" ".join(listed),
        actions="\n".join(_zsh_case(action, shift=2) for action in actions),
        cases="\n".join(_zsh_case(command, shift=1) for command in others),
        root=_zsh_specs(root),
    )


def _zsh_case(command: Command, *, shift: int) -> str:
    moved = f"shift {shift} words; (( CURRENT -= {shift} ))"
    return (
        f'        "{" ".join(command.words)}")'
        f" {moved}; _arguments -s {_zsh_specs(command)}; return ;;"
    )


def _zsh_pair(word: str, about: str) -> str:
    return shlex.quote(f"{word}:{about.replace(':', ';')}")


def _zsh_specs(command: Command) -> str:
    specs = [_zsh_option(flag, option) for option in command.options for flag in option.flags]
    if command.actions:
        names = " ".join(action.words[-1] for action in command.actions)
        specs.append(shlex.quote(f"1:action:({names})"))
    specs += [shlex.quote(f"*:{_zsh_argument(argument)}") for argument in command.arguments[:1]]
    return " ".join(specs)


def _zsh_option(flag: str, option: Option) -> str:
    about = option.help.replace("\\", "").replace("[", "(").replace("]", ")").replace(":", ";")
    value = f":{_plain(option.value)}:{_zsh_kind(option.value, option.choices)}"
    return shlex.quote(f"{flag}[{about}]{value if option.value else ''}")


def _zsh_argument(argument: Argument) -> str:
    return f"{_plain(argument.name)}:{_zsh_kind(argument.name, argument.choices)}"


def _plain(text: str) -> str:
    return text.replace(":", " ").replace("'", "")


def _zsh_kind(value: str, choices: tuple[str, ...]) -> str:
    match _kind(value, choices):
        case "words":
            return f"({' '.join(choices)})"
        case "agents":
            return "_dragoman_agents"
        case "folders":
            return "_files -/"
        case "files":
            return "_files"
        case _:
            return " "


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


def _fish_lines(command: Command) -> Iterator[str]:
    at = _quoted(" ".join(("__dragoman_at", *command.words)))
    for action in command.actions:
        yield (f"complete -c dragoman -n {at} -a {action.words[-1]} -d {_quoted(action.about)}")
    for argument in command.arguments:
        if rest := _fish_kind(argument.name, argument.choices):
            yield f"complete -c dragoman -n {at} {rest}"
    for option in command.options:
        flags = " ".join(_fish_flag(flag) for flag in option.flags)
        value = _fish_kind(option.value, option.choices)
        takes = "-r" if value == "-F" else "-x"
        rest = f" {takes} {value}" if option.value else ""
        about = _quoted(option.help)
        yield f"complete -c dragoman -n {at} {flags} -d {about}{rest}".rstrip()


def _fish_flag(flag: str) -> str:
    return f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"


def _fish_kind(value: str, choices: tuple[str, ...]) -> str:
    match _kind(value, choices):
        case "words":
            return f"-a {_quoted(' '.join(choices))}"
        case "agents":
            return f"-a {_quoted(f'({_NAMES})')}"
        case "files":
            return "-F"
        case "folders":
            return "-a '(__fish_complete_directories)'"
        case _:
            return ""


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


SCRIPTS: dict[str, Callable[[], str]] = {"bash": bash, "zsh": zsh, "fish": fish}

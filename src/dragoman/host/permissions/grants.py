"""What an agent was just allowed to do when it asked, so that doing it needs no second question.

A grant covers exactly what was shown, or what a rule allowed: the text of a diff, the words of a
command. It is used up by the first request it fits, and ends with the turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from dragoman.host.commands.plain_command import plain_words
from dragoman.host.commands.shell_line import Argv, read_line
from dragoman.host.rules.access import Access, Command, normalise
from dragoman.lazy_pattern import lazy_pattern
from dragoman.session.content import Diff
from dragoman.session.state_limits import weigh

_SET_FOR_EVERY_COMMAND = {
    "AGENT_SESSION_ID": lazy_pattern(r"(?s:.*)"),
    "GIT_TERMINAL_PROMPT": lazy_pattern(r"(?s:.*)"),
    "NO_COLOR": lazy_pattern(r"(?s:.*)"),
    "TERM": lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9+._-]*"),
    "SHELL": lazy_pattern(r"/(?:usr/)?bin/(?:ba|da|z)?sh"),
}


def are_harmless(variables: Mapping[str, str]) -> bool:
    """Whether agents set these for every command: they change how a program talks and not what it
    does, so a command with them is the one that was shown."""
    known = _SET_FOR_EVERY_COMMAND
    return all(name in known and known[name].fullmatch(variables[name]) for name in variables)


_MOST_COMMANDS = 256
_MOST_WEIGHT = 8 << 20
"""Of these commands: one of a hundred kilobytes may have tens of thousands of words."""


class Grants:
    """The grants of a session's running turn."""

    def __init__(self) -> None:
        self._diffs: list[tuple[str, Diff]] = []
        self._commands: list[tuple[Command, str | None]] = []

    def add(self, access: Access, diffs: list[tuple[str, Diff]]) -> None:
        """`access` was allowed; a person who did so had seen these diffs of these real paths."""
        self._diffs += diffs
        for each in access.parts or (access,):
            if (command := _only_command(each)) is not None:
                self._commands.append(command)
                self._drop_oldest()

    def take_write(self, path: str, content: str, current: str | None) -> bool:
        """Whether writing `content` is what a diff showed: the whole text, or that one change."""
        for place, diff in self._diffs:
            if place == path and _shows(diff, content, current):
                self._diffs.remove((place, diff))
                return True
        return False

    def take_command(self, access: Access) -> bool:
        """Whether running this, where it is to run, is what was shown."""
        wanted = next((each for each in _equals(access) if each in self._commands), None)
        if wanted is not None:
            self._commands.remove(wanted)
        return wanted is not None

    def _drop_oldest(self) -> None:
        weight, first = 0, len(self._commands)
        for command, _ in reversed(self._commands[-_MOST_COMMANDS:]):
            weight += weigh(list(command) if isinstance(command, tuple) else command)
            if weight > _MOST_WEIGHT:
                break
            first -= 1
        del self._commands[:first]

    def clear(self) -> None:
        self._diffs.clear()
        self._commands.clear()


def _shows(diff: Diff, content: str, current: str | None) -> bool:
    """Without an old text the diff is a new file; with one it says what becomes of what is there.

    An agent may have made the change itself meanwhile: to write what is there changes nothing."""
    if content == current and diff.new_text in content:
        return True
    if diff.operation is not None or diff.replaces is not None:
        return False  # nobody has seen what would be lost
    if not diff.old_text:
        is_as_shown = current is None if diff.old_text is None else not current
        return content == diff.new_text and is_as_shown
    if current is None or current.count(diff.old_text) != 1:
        return False
    return current.replace(diff.old_text, diff.new_text) == content


def _only_command(access: Access) -> tuple[Command, str | None] | None:
    """The one command and its one folder; with variables set it is not what anyone was shown."""
    where_is_clear = not access.cwds and access.unread_cwd is None
    is_clear = access.operation == "execute" and not access.env and where_is_clear
    if not is_clear or len(access.commands) != 1:
        return None
    return _words(access.commands[0]), access.cwd


_cd = lazy_pattern(
    r"cd (?:'(?P<quoted>/[^']*)'|(?P<bare>/[A-Za-z0-9_./-]*)) && (?P<rest>.+)", re.DOTALL
)


def _equals(access: Access) -> Iterator[tuple[Command, str | None]]:
    """The command as it is, and without a `cd` at its beginning that changes nothing: to where it
    is to run anyway, or where all of the line runs."""
    if (only := _only_command(access)) is None:
        return
    yield only
    [command] = access.commands
    line = command if isinstance(command, str) else _line_for_a_shell(command)
    if line is None or (moved := _cd.fullmatch(line)) is None:
        return
    folder = moved["quoted"] or moved["bare"]
    inner = moved["rest"] if isinstance(command, str) else (*command[:2], moved["rest"])
    if normalise(folder) in (access.cwd, *access.cwd_aliases):
        yield _words(inner), access.cwd
    elif _runs_all_in(folder, line):
        yield _words(inner), normalise(folder)


def _runs_all_in(folder: str, line: str) -> bool:
    """Whether nothing of it would run if the `cd` failed."""
    reading = read_line(line)
    folders = {each.folder for run in reading.runs for each in run}
    return reading.unread is None and folders == {folder}


def _line_for_a_shell(argv: Argv) -> str | None:
    match argv:
        case (shell, "-c" | "-lc", line) if shell in _SHELLS:
            return line
        case _:
            return None


def _words(command: Command) -> Command:
    """`npm test` as a line, as two words and handed to a shell are the same command."""
    if isinstance(command, str):
        command = plain_words(command) or command
    line = None if isinstance(command, str) else _line_for_a_shell(command)
    if line is None:
        return command
    # What has no plain words means the same to the shell that would run it as a line.
    return plain_words(line) or (line if command[0] in _BASH else command)


_BASH = frozenset({"bash", "/bin/bash", "/usr/bin/bash"})
_SHELLS = _BASH | {"sh", "/bin/sh", "/usr/bin/sh"}

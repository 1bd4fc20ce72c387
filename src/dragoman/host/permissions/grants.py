"""What a person has just allowed an agent to do, so that doing it needs no second question.

A grant covers exactly what was shown: the text of a diff, the words of a command. It is used up by
the first request it fits, and ends with the turn.
"""

from __future__ import annotations

from dragoman.host.commands.plain_command import plain_words
from dragoman.host.rules.access import Access, Command
from dragoman.session.content import Diff

HARMLESS = frozenset({"AGENT_SESSION_ID", "GIT_TERMINAL_PROMPT", "NO_COLOR"})
"""Variables that agents set for every command: whatever their value, they change how a program
talks and not what it does, so a command with them is the one that was shown."""


class Grants:
    """The grants of a session's running turn."""

    def __init__(self) -> None:
        self._diffs: list[tuple[str, Diff]] = []
        self._commands: list[tuple[Command, str | None]] = []

    def add(self, access: Access, diffs: list[tuple[str, Diff]]) -> None:
        """A person allowed `access`, having seen these diffs of these real paths."""
        self._diffs += diffs
        for each in access.parts or (access,):
            if (command := _only_command(each)) is not None:
                self._commands.append(command)

    def take_write(self, path: str, content: str, current: str | None) -> bool:
        """Whether writing `content` is what a diff showed: the whole text, or that one change."""
        for place, diff in self._diffs:
            if place == path and _shows(diff, content, current):
                self._diffs.remove((place, diff))
                return True
        return False

    def take_command(self, access: Access) -> bool:
        """Whether running this, where it is to run, is what was shown."""
        wanted = _only_command(access)
        if wanted is None or wanted not in self._commands:
            return False
        self._commands.remove(wanted)
        return True

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
    if access.operation != "execute" or access.env or access.cwds or len(access.commands) != 1:
        return None
    return _words(access.commands[0]), access.cwd


def _words(command: Command) -> Command:
    """`npm test` as a line, as two words and handed to a shell are the same command."""
    if isinstance(command, str):
        command = plain_words(command) or command
    match command:
        case (shell, "-c" | "-lc", line) if shell in _SHELLS:
            # What has no plain words means the same to the shell that would run it as a line.
            return plain_words(line) or (line if shell in _BASH else command)
        case _:
            return command


_BASH = frozenset({"bash", "/bin/bash", "/usr/bin/bash"})
_SHELLS = _BASH | {"sh", "/bin/sh", "/usr/bin/sh"}

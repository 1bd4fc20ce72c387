"""What is completed in the prompt of a chat: commands, their arguments, and files.

Files in the folder that was typed come first, then those beneath the workspace that fit.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from dragoman.cli.commands.chat.slash_commands import is_ours
from dragoman.cli.options import choices_of
from dragoman.client.sessions.config_options import option_of
from dragoman.host.workspace.file_search import FileSearch, best
from dragoman.safe_text import single_line
from dragoman.session.state import SessionState

_MOST_FOUND = 20
_FRESH_SECONDS = 5.0
_MOST_FILES = 200
_command = re.compile(r"[/:][\w.:-]*\Z")
_mention = re.compile(r'(?:^|(?<=[\s(\[{]))@(?P<quote>"?)(?P<path>[^\s"]*|(?<=")[^"\n]*)\Z')
_argument = re.compile(r"[/:](?P<command>mode|model|set)\s+(?P<value>\S*)\Z")


class Completions(Completer):
    """Knows the agent's commands from `state`, ours from `own`, and files beneath `cwd`."""

    def __init__(self, own: Mapping[str, str]) -> None:
        self.state = SessionState()
        self.cwd = "."
        self._own = own
        self._paths: list[tuple[str, bool]] = []
        """What is beneath the folder, as it was last looked for there."""
        self._looked_for: tuple[str, float] = ("", -_FRESH_SECONDS)

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        before = document.text_before_cursor
        if found := _mention.search(before):
            return self._files(found["path"], quoted=bool(found["quote"]))
        if found := _argument.match(before):
            return _choices(found["value"], self._values(found["command"]))
        if _command.match(before):
            return self._commands(before)
        return ()

    # ── commands ──────────────────────────────────────────────────────────────────────────────

    def _commands(self, typed: str) -> Iterator[Completion]:
        prefix, begun = typed[0], typed[1:]
        theirs = {c.name: c.description for c in self.state.commands} if prefix == "/" else {}
        ours = {name: about for name, about in self._own.items() if is_ours(name, theirs)}
        for name, about in (ours | theirs).items():  # where a name is theirs, it is not in ours
            if name.startswith(begun):
                yield Completion(
                    f"{prefix}{name}",
                    start_position=-len(typed),
                    display_meta=single_line(about, 60),
                )

    def _values(self, command: str) -> dict[str, str]:
        """The completions for the argument of one of our commands."""
        options = self.state.config_options
        if command == "set":
            return {f"{o.id}={v}": o.name for o in options for v in choices_of(o)}
        if command == "mode" and self.state.modes is not None:
            return {mode.id: mode.name for mode in self.state.modes.available}
        option = option_of(options, command)
        return {c.value: c.name for c in (option.choices if option else None) or ()}

    # ── files ─────────────────────────────────────────────────────────────────────────────────

    def _files(self, typed: str, *, quoted: bool) -> Iterator[Completion]:
        folder, begun = os.path.split(typed)
        base = os.path.join(self.cwd, os.path.expanduser(folder))
        for name, is_folder in _listed(base, begun):
            path = os.path.join(folder, name) + ("/" if is_folder else "")
            yield _file(path, single_line(name, 60), typed, quoted=quoted)
        if not typed or typed[0] in "~/.":
            return
        for match in best(self._beneath(), typed, _MOST_FOUND):
            if not match.path.startswith(typed):  # else it is reached folder by folder
                yield _file(match.path, single_line(match.path, 60), typed, quoted=quoted)

    def _beneath(self) -> list[tuple[str, bool]]:
        root, at = self._looked_for
        if root != self.cwd or time.monotonic() - at > _FRESH_SECONDS:
            self._paths = list(FileSearch(self.cwd).paths())
            self._looked_for = self.cwd, time.monotonic()
        return self._paths


def _file(path: str, display: str, typed: str, *, quoted: bool) -> Completion:
    is_folder = path.endswith("/")
    # Anything but a plain path has to be in quotes, or only a part of it is mentioned.
    needs = quoted or not re.fullmatch(r"[\w./~+-]+", path)
    text = f'"{path}{"" if is_folder else chr(34)}' if needs else path
    return Completion(text, start_position=-len(typed) - quoted, display=display)


def _choices(typed: str, values: Mapping[str, str]) -> Iterator[Completion]:
    for value, about in values.items():
        if value.startswith(typed):
            meta = single_line(about, 60)
            yield Completion(value, start_position=-len(typed), display_meta=meta)


def _listed(folder: str, begun: str) -> list[tuple[str, bool]]:
    """Names in a folder that begin so, hidden ones only when asked for."""
    try:
        with os.scandir(folder) as entries:
            names = [
                (entry.name, entry.is_dir())
                for entry in entries
                if entry.name.startswith(begun)
                and (begun.startswith(".") or not entry.name.startswith("."))
                and entry.name.isprintable()
            ]
    except OSError:
        return []
    return sorted(names)[:_MOST_FILES]

"""A person's way through the changes of a session: what to keep, to put back and to comment on."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Literal, Protocol

import msgspec

from dragoman.cli.ask.asker import Tty
from dragoman.cli.commands.sessions.undo import (
    how_to_undo,
    meant_turn,
    missing_from,
    remarks_on,
)
from dragoman.cli.render.event_text import called
from dragoman.cli.render.style import BOLD, CYAN, DIM, RED, YELLOW, Style, wants_colour
from dragoman.cli.render.terminal_view import painted_line
from dragoman.cli.render.wrap import folded
from dragoman.cli.run.hub_access import opened_session
from dragoman.cli.standard_streams import terminal_width
from dragoman.errors import CommandRefused, RevertConflict
from dragoman.host.snapshots.folder_changes import ChangedFile, FolderChanges
from dragoman.host.snapshots.line_history import Hunk
from dragoman.host.snapshots.undo_plan import Choice
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.review import PutBack, Review, ReviewComment, review_prompt
from dragoman.safe_text import columns, reveal
from dragoman.store.records import SessionRecord

_AROUND = 6
"""Rows of the terminal that are not for the lines of a change."""
_FEWEST = 5
_KEYS = {"k": "keep", "b": "put back", "c": "comment", "q": "quit"}
_MEANINGS = """\
  k  keep it
  b  put it back, after the last change
  c  comment; an empty line ends it
  v  show all of its lines
  q  do what you chose, keep the rest
  Ctrl-C  leave everything, send nothing
"""
_STALE = "the changes are no longer as they were shown; review them again"


class ReviewTerminal(Protocol):
    """Where the person is."""

    def write(self, text: str) -> None: ...

    async def line(self) -> str | None:
        """What was typed; None at the end of input."""
        ...


class Item(msgspec.Struct, frozen=True):
    """One change to decide on: a hunk, or a whole file that has none."""

    file: ChangedFile
    hunk: Hunk | None = None

    @property
    def lines(self) -> list[str]:
        return [] if self.hunk is None else self.hunk.lines

    def comment(self, root: str, text: str) -> ReviewComment:
        path = _name(self.file, root)
        if self.hunk is None:
            return ReviewComment(path=path, text=text)
        side, start, end = span(self.hunk)
        return ReviewComment(
            path=path, text=text, side=side, start=start, end=end, lines=self.hunk.lines
        )

    def undone(self, root: str) -> PutBack:
        if self.hunk is None:
            return PutBack(path=_name(self.file, root))
        side, start, end = span(self.hunk)
        if side == "old":  # nothing of it is left to be numbered
            start = end = max(self.hunk.new_start, 1)
        return PutBack(path=_name(self.file, root), start=start, end=end)


class Decisions(msgspec.Struct):
    """What the person decided so far."""

    kept: int = 0
    put_back: list[Item] = []
    comments: list[ReviewComment] = []


def items_of(found: FolderChanges) -> list[Item]:
    return [
        Item(file, hunk)
        for file in found.files
        for hunk in (file.hunks or (None,))  # a mode, a new name, a file that is not text
    ]


def span(hunk: Hunk) -> tuple[Literal["new", "old"], int, int]:
    """The first and the last line that changed, as they are numbered now, or as they were if all
    of them are gone."""
    old, new = hunk.old_start, hunk.new_start
    added: list[int] = []
    removed: list[int] = []
    for line in hunk.lines:
        if line[:1] == "+":
            added.append(new)
        elif line[:1] == "-":
            removed.append(old)
        old += line[:1] in ("-", " ")
        new += line[:1] in ("+", " ")
    if added:
        return "new", added[0], added[-1]
    return ("old", removed[0], removed[-1]) if removed else ("new", hunk.new_start, new - 1)


class Stroll:
    """Shows one item after another, and takes what the person decides."""

    def __init__(
        self, terminal: ReviewTerminal, style: Style, found: FolderChanges, root: str
    ) -> None:
        self.choices = Decisions()
        self._terminal = terminal
        self._style = style
        self._found = found
        self._root = root

    async def go(self) -> None:
        """To the last item, or until the person quits. Raises EOFError at the end of input."""
        items = items_of(self._found)
        for number, item in enumerate(items, 1):
            self._show(item, f"{number} of {len(items)}")
            if not await self._decide(item):
                self.choices.kept += len(items) - number + 1
                return

    async def _decide(self, item: Item) -> bool:
        """False to quit."""
        while True:
            keys = ", ".join(f"{key} {word}" for key, word in _KEYS.items())
            answer = (await asked(self._terminal, f"{keys}, ? help: ")).strip().lower()
            match answer:
                case "k" | "keep":
                    self.choices.kept += 1
                    return True
                case "b" | "put back":
                    self.choices.put_back.append(item)
                    return True
                case "c" | "comment":
                    await self._comment(item)
                case "v":
                    self._write(self._painted(item.lines))
                case "q" | "quit":
                    return False
                case _:
                    self._terminal.write(_MEANINGS)

    async def _comment(self, item: Item) -> None:
        lines: list[str] = []
        while line := await asked(self._terminal, "  > " if lines else "comment: "):
            lines.append(line)
        if text := "\n".join(lines).strip():
            self.choices.comments.append(item.comment(self._root, text))

    # ── drawing ───────────────────────────────────────────────────────────────────────────────

    def _show(self, item: Item, place: str) -> None:
        self._terminal.write("\n")
        self._write(self._heading(item, place))
        file = item.file
        if file.protected is not None:
            self._write([self._style(f"! protected: {file.protected}", RED)])
        lines = item.lines or file.diff(self._root).splitlines()
        shown = [*fitting(lines, terminal_width(), _rows() - _AROUND)]
        self._write(self._painted(shown))
        if len(shown) < len(lines):
            more = f"  … {len(lines) - len(shown)} more lines: v shows all"
            self._write([self._style(more, DIM)])

    def _heading(self, item: Item, place: str) -> Iterator[str]:
        hunk, file = item.hunk, item.file
        by = file.by if hunk is None else hunk.by
        who = ", ".join(remarks_on(by, is_tracked=self._found.tracked))
        name = reveal(_name(file, self._root))
        if file.old_path is not None:
            name = f"{reveal(_relative(file.old_path, self._root))} → {name}"
        where = "" if hunk is None else f" line {max(hunk.new_start, 1)}"
        for line in folded(f"{name}{where} ({place}{who and f', {who}'})", ""):
            yield self._style(line, BOLD, CYAN)

    def _painted(self, lines: Sequence[str]) -> Iterator[str]:
        return (painted_line(line, self._style) for line in lines)

    def _write(self, lines: Iterator[str] | Sequence[str]) -> None:
        self._terminal.write("".join(f"{line}\n" for line in lines))


def fitting(lines: Sequence[str], width: int, rows: int) -> Iterator[str]:
    """As many lines as there are rows for."""
    room = max(rows, _FEWEST)
    for line in lines:
        room -= -(-(columns(reveal(line).expandtabs(4)) + 2) // width)
        if room < 0:
            return
        yield line


async def asked(terminal: ReviewTerminal, question: str) -> str:
    """Raises EOFError where nobody answers."""
    terminal.write(question)
    if (answer := await terminal.line()) is None:
        terminal.write("\n")
        raise EOFError
    return answer


class Walk:
    """One review, from the changes to the prompt."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.session_id = ""
        self._options = options
        self._terminal = Tty()
        self._style = Style(colour=wants_colour(sys.stdout))
        self._review = Review()

    async def hold(self) -> str | None:
        """The prompt to send; None for nothing. Raises UsageError, StoreError, UnknownSession."""
        options = self._options
        async with opened_session(options, options.settings, options.agent_command) as (hub, it):
            self.session_id = it.id
            turn_id = await meant_turn(hub, it.id, options.turn)
            found = await hub.folders.changes(it.id, turn_id)
            self._announce(it, found)
            if not found.files:
                return None
            stroll = Stroll(self._terminal, self._style, found, it.cwd)
            self._review.comments = stroll.choices.comments
            await self._walked(stroll)
            await self._put_back(hub, it, turn_id, stroll.choices)
        return await self._confirmed()

    async def _walked(self, stroll: Stroll) -> None:
        try:
            await stroll.go()
        except EOFError:
            raise KeyboardInterrupt from None
        chosen = stroll.choices
        counts = f"{chosen.kept} kept, {len(chosen.put_back)} to put back"
        said = len(chosen.comments)
        self._say(f"\n{counts}, {said} comment{'' if said == 1 else 's'}")

    def _announce(self, record: SessionRecord, found: FolderChanges) -> None:
        files, changes = len(found.files), len(items_of(found))
        name = f"session {record.id} {called(record.name, record.title)}"
        counts = f"{_count(changes, 'change')} in {_count(files, 'file')}"
        self._say(f"{name}: {counts if files else 'no changes'}")
        if found.live:
            self._say("a turn is running: what you put back waits for its end")
        for line in missing_from(found, record.cwd):
            self._say(line)

    # ── putting back ──────────────────────────────────────────────────────────────────────────

    async def _put_back(
        self, hub: Hub, record: SessionRecord, turn_id: str | None, chosen: Decisions
    ) -> None:
        items = chosen.put_back
        if not items:
            return
        hunks = [item.hunk.id for item in items if item.hunk is not None]
        paths = [item.file.path for item in items if item.hunk is None]
        command = c.Restore(turn_id, paths=paths or None, hunks=hunks or None)
        reply = await self._carried_out(hub, record, command)
        if reply is None:
            return
        done = [item for item in items if item.file.path not in reply.get("kept", ())]
        self._review.put_back = [item.undone(record.cwd) for item in done]
        if reply.get("waits"):
            self._say("the put-back waits for the end of the turn")
        for path in reply["paths"]:
            self._say(f"put back: {reveal(_relative(path, record.cwd))}")
        if (restore_id := reply.get("restore")) is not None:
            self._say(how_to_undo(record.id, restore_id))

    async def _carried_out(
        self, hub: Hub, record: SessionRecord, command: c.Restore
    ) -> c.Reply | None:
        """With the choices of the person where someone else changed the same; None if the changes
        are others by now."""
        while True:
            try:
                return await hub.send(record.id, command)
            except (CommandRefused, RevertConflict) as error:
                reasons = _reasons(error)
                if not all(map(os.path.isabs, reasons)):
                    self._say(_STALE, YELLOW)
                    return None
                choices = {
                    path: await self._choice(_relative(path, record.cwd), reason)
                    for path, reason in reasons.items()
                }
                command = msgspec.structs.replace(command, choices=command.choices | choices)

    async def _choice(self, name: str, reason: str) -> Choice:
        self._say(f"{reveal(name)}: {reason}", YELLOW)
        while True:
            match (await self._asked("k keep it as it is, b put back anyway: ")).strip().lower():
                case "k":
                    return "keep"
                case "b":
                    return "restore"
                case _:
                    pass

    # ── sending ───────────────────────────────────────────────────────────────────────────────

    async def _confirmed(self) -> str | None:
        if not review_prompt(self._review):
            return None
        self._review.text = (await self._asked("anything else for the agent? ")).strip()
        default = "Y/n" if self._review.comments or self._review.text else "y/N"
        answer = (await self._asked(f"send the review? [{default}] ")).strip().lower()
        if answer in ("y", "yes") or (not answer and default == "Y/n"):
            return review_prompt(self._review)
        self.show_unsent()
        return None

    def show_unsent(self, heading: str = "not sent:") -> None:
        """What was written and is not sent."""
        if self._review.comments or self._review.text:
            self._say(f"\n{heading}")
            self._terminal.write(reveal(review_prompt(self._review), newlines=True) + "\n")

    async def _asked(self, question: str) -> str:
        try:
            return await asked(self._terminal, question)
        except EOFError:
            raise KeyboardInterrupt from None

    def _say(self, sentence: str, *codes: str) -> None:
        lines = [line for each in sentence.split("\n") for line in folded(each, "") or [""]]
        self._terminal.write("".join(f"{self._style(line, *codes)}\n" for line in lines))


def _reasons(error: CommandRefused | RevertConflict) -> dict[str, str]:
    """Why nothing was put back, by path. Raises the error if it is about something else."""
    if isinstance(error, RevertConflict):
        return error.reasons
    if "reasons" not in error.detail:
        raise error
    return error.detail["reasons"]


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _name(file: ChangedFile, root: str) -> str:
    return _relative(file.path, root)


def _relative(path: str, root: str) -> str:
    """To the session's folder, if it is beneath it."""
    return path.removeprefix(root.rstrip("/") + "/")


def _rows() -> int:
    """Of the terminal; people resize windows."""
    try:
        return os.get_terminal_size(sys.__stdout__.fileno() if sys.__stdout__ else 1).lines or 24
    except (OSError, ValueError):
        return 24

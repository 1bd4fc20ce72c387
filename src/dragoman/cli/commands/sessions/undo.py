"""`dragoman sessions changes`, `revert` and `rewind`: what happened in the folders, undone."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import aclosing

from dragoman.cli.commands.sessions.session_list import print_json
from dragoman.cli.exit_codes import UsageError
from dragoman.cli.render.style import BOLD, RED, Style, wants_colour
from dragoman.cli.render.terminal_view import painted_diff
from dragoman.cli.run.hub_access import opened_session
from dragoman.cli.standard_streams import terminal_width
from dragoman.errors import CommandRefused, DragomanError, RevertConflict
from dragoman.host.snapshots.folder_changes import ChangedFile, FolderChanges
from dragoman.host.snapshots.undo_plan import Choice
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.hub.rewound_sessions import Rewound
from dragoman.safe_text import reveal
from dragoman.session.facts import Author
from dragoman.store.base import events_of_types

_BY = {
    "host": "",
    "agent": "by the agent itself",
    "other": "by someone else, between turns",
    "unknown": "by someone, during the turn",
    "restore": "by a revert",
}
_REPORTED = {"host": "", "agent": "as reported by the agent"}
_MOST_IGNORED = 5
_IMPORTED = "as the imported file says"


def run(options: argparse.Namespace) -> int:
    asyncio.run(_ACTS[options.action](options))
    return 0


# ── what happened ─────────────────────────────────────────────────────────────────────────────


async def _changes(options: argparse.Namespace) -> None:
    async with opened_session(options, options.settings) as (hub, record):
        turn_id = await meant_turn(hub, record.id, options.turn)
        found = await hub.folders.changes(record.id, turn_id)
    if options.json:
        print_json([_fields(file, record.cwd) for file in found.files])
    else:
        _print(found, record.cwd)
    for line in missing_from(found, record.cwd):
        print(line, file=sys.stderr)


def _fields(file: ChangedFile, root: str) -> dict[str, object]:
    return {
        "path": file.path,
        "source": file.source,
        "existed": file.existed,
        "diff": file.diff(root),
        "status": file.status,
        "oldPath": file.old_path,
        "by": file.by,
        "turns": file.turns,
        "protected": file.protected,
        "oldMode": file.old_mode,
        "newMode": file.new_mode,
        "binary": file.binary,
        "added": file.added,
        "removed": file.removed,
        "hunks": [{"id": each.id, "by": each.by, "lines": each.lines} for each in file.hunks],
    }


def _print(found: FolderChanges, root: str) -> None:
    style, width = Style(colour=wants_colour(sys.stdout)), terminal_width()
    for line in change_lines(found, root, style, width if sys.stdout.isatty() else 0):
        print(line)


def change_lines(
    found: FolderChanges, root: str, style: Style, width: int, most: int | None = None
) -> Iterator[str]:
    """Who changed which file, and the diffs, painted for a terminal of this width; `most` limits
    the lines of each diff."""
    if not found.files:
        yield "no changes were seen" if found.problems else "no changes"
    for file in found.files:
        path = os.path.relpath(file.path, root) if root else file.path
        remarks = remarks_on(file.by, is_tracked=found.tracked)
        told = f" ({', '.join(remarks)})" if remarks else ""
        yield style(f"{reveal(path)}{told}", BOLD)
        if file.protected is not None:
            yield style(f"! protected: {file.protected}", RED)
        lines = file.diff(root).removesuffix("\n").split("\n")
        yield from painted_diff(lines, style, len(lines) if most is None else most, width)


def missing_from(found: FolderChanges, root: str) -> list[str]:
    """What the changes do not tell of, a line each; what git ignores in one for all."""
    lines = [f"left out: {reveal(each.path)} ({each.reason})" for each in found.left_out]
    if found.ignored:
        above = root.rstrip("/") + "/"
        names = [reveal(each.removeprefix(above)) for each in found.ignored[:_MOST_IGNORED]]
        more = found.ignored_count - len(names)
        rest = f" and {more} more" if more else ""
        lines.append(f"left out: what git ignores ({', '.join(names)}{rest})")
    return lines + [f"incomplete: {reveal(each.reason)}" for each in found.problems]


def remarks_on(by: Iterable[Author], *, is_tracked: bool) -> list[str]:
    """Who did it, where that is worth a word."""
    if "imported" in by:
        return [_IMPORTED]
    words = _BY if is_tracked else _REPORTED
    return [word for each in by if (word := words.get(each, ""))]


async def meant_turn(hub: Hub, session_id: str, named: str | None) -> str | None:
    """The id of the turn that a person means. Raises UsageError."""
    if named is None or not named.lstrip("-").isdigit():
        return named
    events = events_of_types(hub.store, session_id, ("turn_started",))
    async with aclosing(events) as started:
        turns = [getattr(stored.decode(), "turn_id", "") async for stored in started]
    number = int(named)
    at = number - 1 if number > 0 else len(turns) + number
    if number == 0 or not 0 <= at < len(turns):
        raise UsageError(f"no turn {named}: the session has {len(turns)}")
    return turns[at]


# ── the way back ──────────────────────────────────────────────────────────────────────────────


async def _revert(options: argparse.Namespace) -> None:
    async with opened_session(options, options.settings) as (hub, record):
        turn_id = await meant_turn(hub, record.id, options.turn)
        command: c.Command = c.Revert(turn_id, options.force, _absolute(options.path))
        if options.hunk or options.keep:
            command = c.Restore(
                turn_id,
                options.force,
                _absolute(options.path),
                hunks=options.hunk,
                choices=_choices(options),
            )
        reply = await _done(hub, record.id, command)
    if reply.get("waits"):
        print("the revert waits for the end of the turn", file=sys.stderr)
        return
    print("\n".join(map(reveal, reply["paths"])) or "nothing to revert")
    _say_undo(record.id, reply.get("restore"))


async def _done(hub: Hub, session_id: str, command: c.Command) -> c.Reply:
    try:
        return await hub.send(session_id, command)
    except (CommandRefused, RevertConflict) as error:
        raise explained(error) from error


def explained(error: CommandRefused | RevertConflict) -> DragomanError:
    """With what a person can choose."""
    if isinstance(error, RevertConflict):
        by_force = error.by_force
    elif "reasons" in error.detail:
        by_force = error.detail.get("byForce", True)
    else:
        return error
    choices = "use --keep FILE to leave a file as it is"
    if by_force:
        choices += ", --force to revert all others anyway"
    return DragomanError(f"{error}; {choices}")


def _say_undo(session_id: str, restore_id: str | None) -> None:
    if restore_id is not None and sys.stderr.isatty():
        print(how_to_undo(session_id, restore_id), file=sys.stderr)


def how_to_undo(session_id: str, restore_id: str) -> str:
    return f"to undo it: dragoman sessions revert {session_id} --turn {restore_id}"


def _absolute(paths: list[str]) -> list[str] | None:
    return [os.path.abspath(path) for path in paths] or None


def _choices(options: argparse.Namespace) -> dict[str, Choice]:
    return dict.fromkeys(map(os.path.abspath, options.keep or ()), "keep")


async def _rewind(options: argparse.Namespace) -> None:
    if options.no_files and options.no_conversation:
        raise UsageError("--no-files and --no-conversation leave nothing to do")
    async with opened_session(options, options.settings) as (hub, record):
        turn_id = await meant_turn(hub, record.id, options.turn)
        choices: Mapping[str, Choice] = _choices(options)
        try:
            done = await hub.folders.rewind(
                record.id,
                turn_id or "",
                files=not options.no_files,
                conversation=not options.no_conversation,
                summary=options.summary,
                force=options.force,
                choices=choices,
            )
        except (CommandRefused, RevertConflict) as error:
            raise explained(error) from error
        for path in done.paths:
            print(reveal(path), file=sys.stderr)
        if told := _remembered(done):
            print(told, file=sys.stderr)
        print(done.session)
        _say_undo(record.id, done.restore_id)
        await _heard(hub, done.session)


async def _heard(hub: Hub, session_id: str) -> None:
    """A summary is a prompt, and its turn would be cut short if this process ended first."""
    live = hub.live.get(session_id)
    turn = None if live is None else live.session.running
    if turn is None:
        return
    try:
        await turn  # which refuses what is asked in it: nobody answers here
    except DragomanError as error:
        raise DragomanError(f"the turn with the summary failed: {error}") from error


def _remembered(done: Rewound) -> str:
    """What the agent still knows in the session to continue with."""
    if done.continuity == "continued":
        return "the agent forked its conversation: it remembers what was said before"
    if done.continuity == "reset":
        return f"a new conversation: the agent remembers nothing ({reveal(done.reason or '')})"
    return ""


_ACTS = {"changes": _changes, "revert": _revert, "rewind": _rewind}

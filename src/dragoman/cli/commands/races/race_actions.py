"""What `dragoman races` does."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from contextlib import suppress
from datetime import datetime

import msgspec

from dragoman.cli.commands.races.race_run import print_race
from dragoman.cli.commands.races.race_table import end_of_race
from dragoman.cli.exit_codes import Exit
from dragoman.cli.render.printed_json import indented_json
from dragoman.errors import MergeConflict, RaceError, WorktreeError
from dragoman.racing.race import merge_winner
from dragoman.racing.race_record import RaceRecord
from dragoman.racing.race_verdict import encoded, verdict_of
from dragoman.racing.races import Races, read_race
from dragoman.safe_text import sanitise, single_line
from dragoman.worktrees.worktrees import Worktrees


def run(options: argparse.Namespace) -> int:
    work = {
        "list": _list,
        "show": _show,
        "export": _export,
        "replay": _replay,
        "merge": _merge,
        "delete": _delete,
    }
    return work[options.action](options)


def _list(options: argparse.Namespace) -> int:
    races = Races().all()
    if options.json:
        sys.stdout.write(indented_json([msgspec.to_builtins(each) for each in races]))
    elif not races:
        print("no races")
    for race in () if options.json else races:
        when = datetime.fromtimestamp(race.created_at).strftime("%Y-%m-%d %H:%M")
        title = _title(race, 50)
        print(f"{race.id}  {when}  {len(race.entrants):>2}  {title}")
        print(f"{'':<10}  {sanitise(end_of_race(race))}")
    return Exit.DONE


def _show(options: argparse.Namespace) -> int:
    race = Races().find(options.race)
    if options.json:
        sys.stdout.write(indented_json(msgspec.to_builtins(race)))
        return Exit.DONE
    print(f"{race.id}: {_title(race, 200)}")
    print(f"check: {sanitise(race.check)}\n")
    print_race(race)
    for entrant in race.entrants:
        session = "" if entrant.session is None else f"session {entrant.session}"
        print(f"{entrant.label}: {session}, branch {entrant.branch or 'none'}")
    return Exit.DONE


def _title(race: RaceRecord, room: int) -> str:
    return single_line(race.task.strip().splitlines()[0], room)


def _export(options: argparse.Namespace) -> int:
    race = Races().find(options.race)
    sys.stdout.write(indented_json(msgspec.to_builtins(race)))
    return Exit.DONE


def _replay(options: argparse.Namespace) -> int:
    """The verdict is a function of the record, so it can be made again from that."""
    race = _read(options.race)
    if race.verdict is None:
        raise RaceError(f"the race {race.id} has no verdict: {end_of_race(race)}")
    again = verdict_of(race)
    if encoded(again) != encoded(race.verdict):
        raise RaceError(f"the record of {race.id} leads to another verdict: {again.because}")
    print_race(race)
    print("the verdict follows from the record")
    return Exit.DONE


def _read(word: str) -> RaceRecord:
    if os.path.isfile(word):
        with open(word, "rb") as file:
            return read_race(file.read())
    return Races().find(word)


def _merge(options: argparse.Namespace) -> int:
    race = Races().find(options.race)
    try:
        done = asyncio.run(merge_winner(race, Worktrees()))
    except MergeConflict as error:
        if options.json:
            sys.stdout.write(indented_json({"merged": False, "conflicts": error.reasons}))
        raise
    Races().save(race)
    if options.json:
        sys.stdout.write(indented_json({"merged": True, **msgspec.to_builtins(done)}))
    else:
        count = len(done.paths)
        files = f"{count} file{'' if count == 1 else 's'}"
        print(f"merged {files} into {sanitise(race.repository)}")
    return Exit.DONE


def _delete(options: argparse.Namespace) -> int:
    asyncio.run(_deleted([Races().find(word) for word in options.races]))
    return Exit.DONE


async def _deleted(races: list[RaceRecord]) -> None:
    worktrees = Worktrees()
    for race in races:
        if race.ended_at is None:
            raise RaceError(f"the race {race.id} is still running")
        for record in worktrees.all():
            if record.race == race.id:
                with suppress(WorktreeError):
                    await worktrees.remove(record, force=True)
        Races().delete(race.id)
        print(f"deleted {race.id}")

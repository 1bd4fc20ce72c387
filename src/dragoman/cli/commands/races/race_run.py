"""Runs a race for the command line."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys

import msgspec

from dragoman.agents.settings.settings_file import agent_named, load_settings
from dragoman.cli.commands.races.race_table import RaceTable, end_of_race, table
from dragoman.cli.exit_codes import Exit, UsageError, tell
from dragoman.cli.render.printed_json import indented_json
from dragoman.cli.run.agent_setup import folder
from dragoman.cli.standard_streams import terminal_width
from dragoman.errors import MergeConflict, RaceError
from dragoman.racing.judge import RaceCheck
from dragoman.racing.race import Race, RaceTerms, entrants_of
from dragoman.racing.race_record import RaceRecord
from dragoman.racing.races import Races
from dragoman.racing.solve import racing_hub
from dragoman.session.limits.spending_limits import SessionLimits, SpendingLimit


def run_race(options: argparse.Namespace) -> int:
    """Everything that is wrong with the options is said before anything begins."""
    task = _task(options)
    if not options.check:
        raise UsageError('--check CMD is required: the command that judges, such as "pytest -q"')
    settings = load_settings(options.settings)
    try:
        for entrant in entrants_of(options.agent):
            agent_named(entrant.agent, settings)
    except RaceError as error:
        raise UsageError(f"{error}; name entrants with -a") from error
    if options.reviewer is not None:
        agent_named(options.reviewer, settings)
    place = folder("--cwd", options.cwd)
    setup = options.setup
    if setup is None:
        setup = settings.worktrees.setup_in(os.path.realpath(place))
    check = RaceCheck(
        command=options.check,
        junit=options.junit,
        seconds=options.check_time,
        fence=options.fence,
        setup=setup,
    )
    terms = RaceTerms(
        check=check,
        at_once=options.jobs,
        seconds=options.max_time,
        limits=_limits(options),
        prices=settings.prices,
        uncommitted=options.uncommitted,
        reviewer=options.reviewer,
    )
    return asyncio.run(_race(options, task, place, terms))


def _task(options: argparse.Namespace) -> str:
    if (options.task is None) == (options.file is None):
        raise UsageError("pass the task as an argument or with --file")
    task: str = options.task
    if options.file is not None:
        try:
            with open(options.file, encoding="utf-8") as file:
                task = file.read()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise UsageError(f"--file {options.file}: {reason.lower()}") from error
    if not task.strip():
        raise UsageError("the task is empty")
    return os.fsencode(task).decode("utf-8", "replace")


def _limits(options: argparse.Namespace) -> SessionLimits:
    if options.max_cost is None:
        return SessionLimits()
    most, currency = options.max_cost
    limit = SpendingLimit(measure="cost", most=most, currency=currency, source="--max-cost")
    return SessionLimits(limits=(limit,))


async def _race(options: argparse.Namespace, task: str, place: str, terms: RaceTerms) -> int:
    shown = RaceTable()
    async with racing_hub({}, fence=options.fence, record=True, settings=options.settings) as hub:
        race = Race(
            hub, task, options.agent, terms, folder=place, on_change=shown.show, races=Races()
        )
        tell(f"race {race.record.id}: {len(race.record.entrants)} entrants")
        try:
            record = await race.run()
        except asyncio.CancelledError:
            return Exit.CANCELLED
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from group
        finally:
            shown.close()
        code = Exit.DONE if record.verdict and record.verdict.winner else Exit.FAILED
        try:
            if options.pick and code == Exit.DONE:
                await race.merge()
        except MergeConflict:
            _print(options, record)
            raise
    _print(options, record)
    return code


def _print(options: argparse.Namespace, record: RaceRecord) -> None:
    if options.json:
        sys.stdout.write(indented_json(msgspec.to_builtins(record)))
        return
    print_race(record)


def print_race(record: RaceRecord) -> None:
    """The table, who won, and what can be done next."""
    print("\n".join(table(record, terminal_width())))
    print(f"\n{end_of_race(record)}")
    baseline = record.baseline
    if baseline is not None and baseline.code == 0:
        print("note: the check passed before the race, too")
    if record.merged is not None:
        print(f"merged: {', '.join(record.merged) or 'nothing'}")
    elif record.verdict is not None and record.verdict.winner is not None:
        winner = record.entrant(record.verdict.winner)
        print(f"dragoman races merge {record.id}  merges it; it is the branch {winner.branch}")

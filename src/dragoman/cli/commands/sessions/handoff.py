"""`dragoman sessions handoff`: another agent continues a session, in a turn of a new one."""

from __future__ import annotations

import argparse
import asyncio

from dragoman.cli.exit_codes import UsageError
from dragoman.cli.run.hub_access import opened_session
from dragoman.errors import CommandRefused
from dragoman.hub.running.handoffs import briefed
from dragoman.store.records import SessionRecord


def run(options: argparse.Namespace) -> int:
    """The exit code is that of the turn."""
    from dragoman.cli.commands.run import run_job
    from dragoman.cli.parsers import parsed
    from dragoman.cli.run.job import prepare_quoting

    record, text = asyncio.run(_briefed(options))
    words = [
        f"--cwd={record.cwd}",
        *(f"--add-dir={each}" for each in record.additional_directories),
    ]
    given = {name: value for name, value in vars(options).items() if name not in _OWN}
    turn = argparse.Namespace(**(vars(parsed("run", words)) | given))
    # The next agent is offered no more than this one was.
    turn.no_files |= not record.offer.files
    turn.no_terminals |= not record.offer.terminals
    if turn.fence is None and record.offer.fence != "off":
        turn.fence = record.offer.fence
    job = prepare_quoting(turn, text)
    job.continues = record
    return run_job(job)


_OWN = ("session", "prompt", "action", "module")
"""Options that a run does not have, or understands differently."""


async def _briefed(options: argparse.Namespace) -> tuple[SessionRecord, str]:
    """Raises UsageError for a session that cannot be handed off, UnknownSession."""
    async with opened_session(options) as (hub, record):
        try:
            return record, await briefed(hub, record, options.prompt or "")
        except CommandRefused as error:
            raise UsageError(str(error)) from error

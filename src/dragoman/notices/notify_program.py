"""Runs the user's own command for a notice, which it finds on its standard input."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Sequence

import msgspec

from dragoman.errors import StartError
from dragoman.notices.notice import Alert
from dragoman.notices.retried_delivery import Attempt, TryOutcome
from dragoman.process.spawn import spawn

SECONDS = 30.0
"""How long it may take; then it is ended, with everything it started."""


class ProgramAttempt(Attempt):
    def __init__(self, command: Sequence[str], notice: Alert, seconds: float = SECONDS) -> None:
        self._command = command
        self._notice = notice
        self._seconds = seconds

    async def __call__(self) -> TryOutcome:
        """A command is not run twice: whatever it did, it did."""
        notice = self._notice
        environment = os.environ | {
            "DRAGOMAN_NOTICE": notice.kind,
            "DRAGOMAN_SESSION": notice.session,
            "DRAGOMAN_SENTENCE": notice.sentence,
        }
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as nowhere:
            given.write(msgspec.json.encode(notice.public(content=True)))
            given.seek(0)
            try:
                process = await spawn(
                    list(self._command),
                    env=environment,
                    cwd="/",
                    stdin=given.fileno(),
                    stdout=nowhere.fileno(),
                    stderr=nowhere.fileno(),
                )
            except StartError as error:
                return TryOutcome("refused", str(error))
            try:
                status = await asyncio.wait_for(process.wait(), self._seconds)
            except TimeoutError:
                return TryOutcome("refused", f"it took longer than {self._seconds:g} s")
            finally:
                await process.stop(exit_within=0, term_within=1.0)
        return (
            TryOutcome("done") if status.code == 0 else TryOutcome("refused", f"code {status.code}")
        )

"""What one session says to what its agent's programs do by themselves: its rules, and its people.

A start of a program is refused if a rule by the words of a command denies it; everything else may
run. A write beyond the fence needs a rule that names the file, or a person. What ran is
recorded for the session.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

import msgspec

from dragoman.errors import RemoteError
from dragoman.host.permissions.consent import Consent
from dragoman.host.permissions.wording import decision_words
from dragoman.host.rules.access import Access
from dragoman.host.rules.policy import Policy
from dragoman.host.workspace.jail import real_roots
from dragoman.host.workspace.roots import Workspace
from dragoman.process.child import ExitStatus
from dragoman.session.events import AccessDecided, Event, ProgramsRan
from dragoman.session.facts import Decision, ProgramEnd, ProgramRun

# What really ran inside a fence, gathered into few events of a limited size.
#
# Starts are recorded together, at most twice a second; the same one after another is counted. How
# a program ended is recorded with its start, or later by its id.


SECONDS_BETWEEN = 0.5
MOST_AT_ONCE = 100
"""Programs of one event."""
MOST_TOLD = 5_000
"""Programs of a session; more are only counted."""
MOST_REFUSALS = 200
"""Refusals of a session that are events of their own, too."""
MOST_CHARACTERS = 2_000
"""Of the words of a program, and of its folder."""
MOST_WORDS = 64
MOST_PARENTS = 16
MOST_NAME = 64


class ProgramStart(msgspec.Struct, frozen=True):
    """A program that is about to start."""

    argv: tuple[str, ...]
    cwd: str
    parents: tuple[str, ...] = ()
    whole: bool = True
    """Whether these are all its words."""


class ProgramLog:
    """The programs of one session. Everything is called from its event loop."""

    def __init__(
        self, record: Callable[[Event], None], seconds_between: float = SECONDS_BETWEEN
    ) -> None:
        self.record = record
        self._seconds_between = seconds_between
        self._batch: dict[str, ProgramRun] = {}
        self._ended: list[ProgramEnd] = []
        self._left_out = 0
        self._last = ""
        self._last_start: tuple[ProgramStart, str | None] | None = None
        self._numbers = 0
        self._refusals: list[AccessDecided] = []
        self._refusal_count = 0
        # Ids of a session that is opened again must be others.
        self._prefix = f"{os.urandom(4).hex()}-"
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def add(self, start: ProgramStart, refusal: Decision | None = None) -> str:
        """Note a start, or one that was refused; its id, "" if it is only counted."""
        reason = None if refusal is None else refusal.reason
        self._flush_later()
        if self._last_start == (start, reason) and self._last in self._batch:
            self._batch[self._last].count += 1
            return self._last
        if len(self._batch) >= MOST_AT_ONCE or self._numbers >= MOST_TOLD:
            self._left_out += 1
            return ""
        self._numbers += 1
        program = _described(f"{self._prefix}{self._numbers}", start, reason)
        self._batch[program.id] = program
        self._last, self._last_start = program.id, (start, reason)
        if refusal is not None and self._refusal_count < MOST_REFUSALS:
            self._refusal_count += 1
            self._refusals.append(AccessDecided("execute", refusal, argv=program.argv))
        return program.id

    def ended(self, program_id: str, status: ExitStatus) -> None:
        if (program := self._batch.get(program_id)) is not None:
            program.exit_code, program.signal = status.code, status.signal
        else:
            self._ended.append(
                ProgramEnd(id=program_id, exit_code=status.code, signal=status.signal)
            )
            self._flush_later()

    def _flush_later(self) -> None:
        if self._timer is None and not self._closed:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._seconds_between, self.flush)

    def flush(self) -> None:
        """Tell what is known so far."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not (self._batch or self._ended or self._left_out) or self._closed:
            return
        event = ProgramsRan(list(self._batch.values()), self._ended, self._left_out)
        refusals, self._refusals = self._refusals, []
        self._batch, self._ended, self._left_out = {}, [], 0
        for each in (*refusals, event):
            self.record(each)

    def close(self) -> None:
        self.flush()
        self._closed = True


def _described(program_id: str, start: ProgramStart, reason: str | None) -> ProgramRun:
    words: list[str] = []
    room = MOST_CHARACTERS
    for word in start.argv[:MOST_WORDS]:
        words.append(word[:room])
        room -= len(word)
        if room <= 0:
            break
    return ProgramRun(
        id=program_id,
        argv=words,
        cwd=start.cwd[:MOST_CHARACTERS],
        parents=[name[:MOST_NAME] for name in start.parents[-MOST_PARENTS:]],
        refused=reason,
        cut=not start.whole or room < 0 or len(words) < len(start.argv),
    )


class Overseer(msgspec.Struct, eq=False, kw_only=True):
    """Judges for one session. Without `consent`, there is nobody to ask."""

    workspace: Workspace
    agent: str
    policy: Policy
    log: ProgramLog
    consent: Consent | None = None

    def refusal(self, start: ProgramStart) -> Decision | None:
        """Why this program must not start, if a rule says so."""
        if not start.argv:
            return None
        access = Access(
            operation="execute",
            agent=self.agent,
            commands=(start.argv,),
            cwd=start.cwd if os.path.isabs(start.cwd) else None,
            roots=self._roots,
            fenced=True,
        )
        decision = self.policy.forbids(access, self.workspace)
        return None if decision is None else decision_words(decision)

    async def permits(self, path: str, asked: str) -> bool:
        """Whether this file may be written although the fence refuses it. `path` is its real name,
        `asked` the one that the program used."""
        if self.consent is None:
            return False
        access = Access(
            operation="write",
            agent=self.agent,
            paths=(path,),
            aliases=() if asked == path else (asked,),
            roots=self._roots,
            fenced=True,
        )
        try:
            await self.consent.permit(access, f"Write {path} (outside the fence)")
        except RemoteError:
            return False
        return True

    @property
    def _roots(self) -> tuple[str, ...]:
        return real_roots(self.workspace)

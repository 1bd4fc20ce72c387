"""Runs a race: entrants at once, each in its worktree, then the judge, then the merge."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from dragoman.errors import DragomanError, RaceError, WorktreeError
from dragoman.hub.hub import Hub
from dragoman.racing.entrant_run import EntrantRun
from dragoman.racing.judge import Judge, RaceCheck
from dragoman.racing.race_record import Entrant, EntrantStatus, RaceRecord
from dragoman.racing.race_verdict import fault_of, verdict_of
from dragoman.racing.races import Races
from dragoman.racing.reviewer import review
from dragoman.session.limits.prices import Prices
from dragoman.session.limits.spending_limits import SessionLimits
from dragoman.worktrees.users_repository import Checkout, checkout_of
from dragoman.worktrees.worktree_record import MergeResult
from dragoman.worktrees.worktrees import Worktree, Worktrees, WorktreeWish

_SAVE_SECONDS = 0.5
MOST_ENTRANTS = 32
_ENTRANT = re.compile(r"(.+):(\d{1,2})")


class RaceTerms(msgspec.Struct, frozen=True, kw_only=True):
    """How a race is run: what judges it, how many entrants run at once, how long and how much each
    may use, and who reviews those that passed."""

    check: RaceCheck
    at_once: int = 4
    seconds: float = 1800.0
    limits: SessionLimits = SessionLimits()
    prices: Prices = {}
    uncommitted: bool = False
    reviewer: str | None = None
    baseline: bool = True
    plain: bool = False
    """Whether the folder may be in no repository."""


def entrants_of(words: Sequence[str]) -> list[Entrant]:
    """Of names such as `claude` and `gemini:2`, which enters twice. Raises RaceError."""
    agents: list[str] = []
    for word in words:
        found = _ENTRANT.fullmatch(word)
        name, count = (found[1], int(found[2])) if found else (word, 1)
        if not name or not count:
            raise RaceError(f"{word!r} is not an entrant: name an agent, as in `claude` or `x:2`")
        agents += [name] * count
    if not agents or len(agents) > MOST_ENTRANTS:
        raise RaceError(f"a race has 1 to {MOST_ENTRANTS} entrants, not {len(agents)}")
    seen: dict[str, int] = {}
    entrants: list[Entrant] = []
    for agent in agents:
        seen[agent] = number = seen.get(agent, 0) + 1
        label = agent if agents.count(agent) == 1 else f"{agent}-{number}"
        entrants.append(Entrant(label=label, agent=agent))
    return entrants


class Race:
    """One race. `on_change` is called with the record whenever something changed."""

    def __init__(
        self,
        hub: Hub,
        task: str,
        agents: Sequence[str],
        terms: RaceTerms,
        *,
        folder: str,
        on_change: Callable[[RaceRecord], None] = lambda _: None,
        worktrees: Worktrees | None = None,
        races: Races | None = None,
    ) -> None:
        self._hub = hub
        self._terms = terms
        self._on_change = on_change
        self._worktrees = worktrees or Worktrees()
        self._races = races
        self._saved_at = 0.0
        self.record = RaceRecord(
            id=f"r-{os.urandom(4).hex()}",
            task=task,
            check=terms.check.command,
            folder=os.path.realpath(folder),
            repository="",
            base="",
            created_at=time.time(),
            entrants=entrants_of(agents),
            owner=msgspec.to_builtins(hub.owner),
        )
        self._entered: dict[str, Worktree] = {}

    async def run(self) -> RaceRecord:
        """To its verdict. Raises RaceError, WorktreeError or FenceError if it cannot begin."""
        record = self.record
        try:
            origin = await self._begin()
            judge = Judge(self._worktrees, origin, record.base, self._terms.check)
            await self._compete(origin, judge)
            if self._terms.reviewer is not None:
                passed = [each for each in record.entrants if not fault_of(each, record.baseline)]
                record.review = await review(self._hub, record, passed, origin, self._terms)
            record.verdict = verdict_of(record)
        except BaseException as error:
            record.problem = str(error) or "it was cancelled"
            raise
        finally:
            record.ended_at = time.time()
            await self._kept_as_branches()
            self._tell(save=True)
        return record

    async def merge(self) -> MergeResult:
        """The winner, without its changes to tests that the judge did not run. Raises RaceError if
        nobody won, and what a merge raises."""
        result = await merge_winner(self.record, self._worktrees)
        self._tell(save=True)
        return result

    # ── the course of it ──────────────────────────────────────────────────────────────────────

    async def _begin(self) -> Checkout:
        record = self.record
        wish = WorktreeWish(uncommitted=self._terms.uncommitted, race=record.id)
        first = await self._first(wish)
        origin = first.origin
        record.repository, record.base = origin.top, first.record.base
        first.release()
        self._tell(save=True)
        try:
            if self._terms.baseline:
                judge = Judge(self._worktrees, origin, record.base, self._terms.check)
                clean = await judge.judged(record.base)
                record.baseline = await judge.run(record.base, clean, record.id)
        finally:
            await self._worktrees.remove(first.record, force=True)
        return origin

    async def _first(self, wish: WorktreeWish) -> Worktree:
        """The one whose commit all others begin with."""
        folder = self.record.folder
        try:
            origin = await checkout_of(folder)
        except WorktreeError:
            if not self._terms.plain:
                raise
            return await self._worktrees.make_plain(folder, wish)
        return await self._worktrees.make(folder, wish, origin=origin)

    async def _compete(self, origin: Checkout, judge: Judge) -> None:
        room = asyncio.Semaphore(self._terms.at_once)
        judging = asyncio.Semaphore(max(1, (os.cpu_count() or 2) // 2))
        async with asyncio.TaskGroup() as tasks:
            for entrant in self.record.entrants:
                tasks.create_task(self._enter(entrant, origin, judge, room, judging))

    async def _enter(
        self,
        entrant: Entrant,
        origin: Checkout,
        judge: Judge,
        room: asyncio.Semaphore,
        judging: asyncio.Semaphore,
    ) -> None:
        try:
            async with room:
                await self._work(entrant, origin)
            if entrant.outcome == "completed" and entrant.result is not None:
                async with judging:
                    await self._judge(entrant, judge)
        except WorktreeError as error:
            entrant.outcome, entrant.detail = "failed", str(error)
        finally:
            self._now(entrant, "done")

    async def _work(self, entrant: Entrant, origin: Checkout) -> None:
        self._now(entrant, "preparing")
        record = self.record
        wish = WorktreeWish(
            name=f"{record.id}-{re.sub(r'[^A-Za-z0-9_-]+', '-', entrant.label).strip('-')}"[:60],
            base=record.base,
            setup=self._terms.check.setup,
            title=record.task.strip().splitlines()[0][:200],
            race=record.id,
        )
        worktree = await self._worktrees.make(record.folder, wish, origin=origin)
        self._entered[entrant.label] = worktree
        entrant.worktree, entrant.branch = worktree.record.id, worktree.record.branch
        self._now(entrant, "running")
        run = EntrantRun(
            self._hub,
            entrant,
            seconds=self._terms.seconds,
            limits=self._terms.limits,
            prices=self._terms.prices,
            on_change=self._tell,
        )
        await run.run(worktree.inside(record.folder), record.task, entrant.label)
        await self._measure(entrant, worktree)

    async def _measure(self, entrant: Entrant, worktree: Worktree) -> None:
        origin, base = worktree.origin, self.record.base
        entrant.result = await worktree.committed(worktree.record.title)
        trees = await origin.tree_of(base), await origin.tree_of(entrant.result)
        entrant.files = len(await origin.changes(*trees))
        entrant.added, entrant.removed = await origin.line_counts(*trees)

    async def _judge(self, entrant: Entrant, judge: Judge) -> None:
        self._now(entrant, "judging")
        assert entrant.result is not None
        entrant.judged = await judge.judged(entrant.result)
        entrant.check = await judge.run(entrant.result, entrant.judged, self.record.id)

    # ── its record ────────────────────────────────────────────────────────────────────────────

    def _now(self, entrant: Entrant, status: EntrantStatus) -> None:
        entrant.status = status
        self._tell(save=True)

    def _tell(self, *, save: bool = False) -> None:
        now = time.monotonic()
        if self._races is not None and (save or now - self._saved_at > _SAVE_SECONDS):
            self._saved_at = now
            self._races.save(self.record)
        self._on_change(self.record)

    async def _kept_as_branches(self) -> None:
        """The files of the entrants go, what they did stays in their branches."""
        for worktree in self._entered.values():
            with suppress(DragomanError, OSError):
                await worktree.to_branch(worktree.record.title)
            worktree.release()


async def merge_winner(record: RaceRecord, worktrees: Worktrees) -> MergeResult:
    """Raises RaceError if nobody won, MergeConflict, WorktreeError."""
    verdict = record.verdict
    if verdict is None or verdict.winner is None:
        raise RaceError(f"nobody won the race {record.id}: there is nothing to merge")
    winner = record.entrant(verdict.winner)
    worktree = worktrees.opened(worktrees.find(winner.worktree or ""))
    judged = winner.judged
    left_out = [os.fsencode(path) for path in (*judged.edited, *judged.deleted)]
    with worktree.folder.alone(worktree.record.name):
        result = await worktree.merge(without=left_out, message=record.task.strip().split("\n")[0])
    record.merged = result.paths
    return result

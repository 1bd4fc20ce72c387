"""What is on record of a race. All that the verdict needs is in it."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

EntrantStatus: TypeAlias = Literal["waiting", "preparing", "running", "judging", "done"]
Outcome: TypeAlias = Literal["completed", "limit", "timeout", "failed", "ended_early", "cancelled"]
"""How the turn of an entrant ended; only a `completed` one can win."""


class CheckCounts(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a check reported of its tests, as JUnit XML or TAP."""

    total: int
    failed: int
    skipped: int = 0

    @property
    def passed(self) -> int:
        return self.total - self.failed - self.skipped


class CheckRun(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One run of the check; without a code, `problem` says why it was ended."""

    code: int | None
    seconds: float
    problem: str = ""
    counts: CheckCounts | None = None
    output: str = ""
    """The end of what it printed."""


class JudgedFiles(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What an entrant did to the files that the judge takes from the base."""

    edited: list[str] = []
    """Tests that it changed."""
    deleted: list[str] = []
    """Tests that it deleted or moved."""
    added: list[str] = []
    """Tests of its own; they are not run."""
    configuration: list[str] = []
    """Files that say how tests are run, which it changed, added or deleted."""

    @property
    def replaced(self) -> list[str]:
        """In their place the judge has those of the base, or nothing."""
        return sorted((*self.edited, *self.deleted, *self.added, *self.configuration))


class Entrant(msgspec.Struct, kw_only=True, rename="camel"):
    """One agent in a race, and how it did."""

    label: str
    agent: str
    status: EntrantStatus = "waiting"
    outcome: Outcome | None = None
    detail: str = ""
    session: str | None = None
    worktree: str | None = None
    """Its id."""
    branch: str | None = None
    began_at: float | None = None
    seconds: float = 0.0
    tool_calls: int = 0
    cost: dict[str, float] = {}
    tokens: int | None = None
    files: int = 0
    added: int = 0
    removed: int = 0
    result: str | None = None
    """The commit with what it left."""
    judged: JudgedFiles = JudgedFiles()
    check: CheckRun | None = None

    @property
    def size(self) -> int:
        """Of its diff, in lines."""
        return self.added + self.removed


class ReviewRound(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One question to the reviewer: who was shown under which letter, and its answer."""

    shown: dict[str, str]
    answer: str
    best: str | None = None
    """The label of the one it named; None if the answer was not valid."""


class RaceReview(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a reviewer agent said of those that passed, in both orders."""

    agent: str
    rounds: list[ReviewRound] = []

    @property
    def choice(self) -> str | None:
        """The label that it named in both orders."""
        named = {each.best for each in self.rounds}
        return named.pop() if len(self.rounds) == 2 and len(named) == 1 else None


class RacePlace(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An entrant in the verdict, and why it is where it is."""

    label: str
    passed: bool
    reason: str


class RaceVerdict(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Who won, if an entrant did, and all of them in order."""

    winner: str | None
    places: list[RacePlace]
    because: str


class RaceRecord(msgspec.Struct, kw_only=True, rename="camel"):
    """A race, from its start to its verdict."""

    id: str
    task: str
    check: str
    folder: str
    repository: str
    base: str
    created_at: float
    entrants: list[Entrant]
    ended_at: float | None = None
    owner: dict[str, Any] | None = None
    """The process that runs it."""
    baseline: CheckRun | None = None
    """The check on the base, before any entrant did anything."""
    review: RaceReview | None = None
    verdict: RaceVerdict | None = None
    merged: list[str] | None = None
    """The files that the merge of the winner changed."""
    problem: str = ""
    """Why it ended without a verdict."""

    def entrant(self, label: str) -> Entrant:
        return next(each for each in self.entrants if each.label == label)

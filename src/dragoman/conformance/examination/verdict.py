"""What came of checks: a verdict on each, and the report on all."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from dragoman.conformance.check import LEVELS, Check, Level, Side

Outcome: TypeAlias = Literal["pass", "fail", "skip"]


class CheckVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """How one check went. Nothing but `seconds` differs between two runs that went alike."""

    id: str
    level: Level
    version: int
    outcome: Outcome
    text: str = ""
    """Why it failed, or could not be made."""
    says: str
    page: str
    frames: list[str] = []
    """What shows that it failed, `→` being what we sent."""
    seconds: float = 0.0

    @property
    def subject(self) -> str:
        """The first part of the id."""
        return self.id.partition(".")[0]


class ConformanceReport(msgspec.Struct, kw_only=True, rename="camel"):
    """The verdicts on one agent, or on one client."""

    side: Side
    name: str
    """What was examined: its own name, or else its command."""
    version: str = ""
    verdicts: list[CheckVerdict] = []

    def count(self, outcome: Outcome, level: Level | None = None) -> int:
        return sum(
            each.outcome == outcome and level in (None, each.level) for each in self.verdicts
        )

    def fails_at(self, level: Level) -> bool:
        """Whether a check of this level, or of a stricter one, has failed."""
        return any(self.count("fail", each) for each in LEVELS[: LEVELS.index(level) + 1])

    @property
    def share(self) -> int:
        """How many of a hundred checks that could be made were passed; 100 only if all were."""
        made = self.count("pass") + self.count("fail")
        return 100 * self.count("pass") // made if made else 0


def verdict(
    check: Check[Any], outcome: Outcome, text: str, frames: list[str], seconds: float
) -> CheckVerdict:
    return CheckVerdict(
        id=check.id,
        level=check.level,
        version=check.version,
        outcome=outcome,
        text=text,
        says=check.says,
        page=check.page,
        frames=frames,
        seconds=max(0.0, round(seconds, 3)),
    )

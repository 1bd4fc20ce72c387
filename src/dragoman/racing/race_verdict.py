"""Who wins a race: a function of its record, so that the verdict can be made again."""

from __future__ import annotations

import msgspec

from dragoman.racing.race_record import CheckRun, Entrant, RacePlace, RaceRecord, RaceVerdict

_NO_COST = float("inf")
_OUTCOMES = {
    "limit": "was stopped by a limit",
    "timeout": "took too long",
    "failed": "failed",
    "ended_early": "ended early",
    "cancelled": "was cancelled",
}


def verdict_of(race: RaceRecord) -> RaceVerdict:
    """Those that passed come first, in this order: who left the tests alone, more passed tests,
    whom the reviewer named, the smaller diff, the lower cost, the shorter time."""
    choice = None if race.review is None else race.review.choice
    faults = {each.label: fault_of(each, race.baseline) for each in race.entrants}
    passed = [each for each in race.entrants if not faults[each.label]]
    failed = [each for each in race.entrants if faults[each.label]]
    ranked = sorted(passed, key=lambda each: _rank(each, choice))
    places = [
        RacePlace(label=each.label, passed=True, reason=_merits(each, choice)) for each in ranked
    ]
    places += [
        RacePlace(label=each.label, passed=False, reason=faults[each.label]) for each in failed
    ]
    if not ranked:
        return RaceVerdict(winner=None, places=places, because="nobody passed the check")
    because = (
        "nobody else passed" if len(ranked) == 1 else _difference(ranked[0], ranked[1], choice)
    )
    return RaceVerdict(winner=ranked[0].label, places=places, because=because)


def encoded(verdict: RaceVerdict) -> bytes:
    """The same verdict has the same bytes."""
    return msgspec.json.encode(verdict, order="deterministic")


def fault_of(entrant: Entrant, baseline: CheckRun | None) -> str:
    """Why it cannot win; nothing if it can."""
    judged = entrant.judged
    if entrant.outcome != "completed":
        how = _OUTCOMES.get(entrant.outcome or "", "did not end")
        return f"{how}: {entrant.detail}" if entrant.detail else how
    if judged.deleted:
        return f"deleted tests: {_some(judged.deleted)}"
    if judged.configuration:
        return f"changed how the tests are run: {_some(judged.configuration)}"
    if not entrant.files:
        return "changed nothing"
    if entrant.check is None:
        return "was not judged"
    return check_fault(entrant.check, baseline)


def check_fault(check: CheckRun, baseline: CheckRun | None) -> str:
    """Why a run of the check did not pass. What ends it before it reports its tests, or hides
    some, does not pass, whatever its exit code."""
    counts = check.counts
    if check.code != 0:
        why = check.problem or f"exited with code {check.code}"
        tests = "" if counts is None else f"; {counts.failed} of {counts.total} tests failed"
        return f"the check {why}{tests}"
    if counts is not None and counts.failed:
        return f"{counts.failed} of {counts.total} tests failed"
    if baseline is None or baseline.counts is None:
        return ""
    if counts is None:
        return "the check ended before it reported its tests"
    before = baseline.counts
    if counts.total < before.total or counts.skipped > before.skipped:
        ran, wanted = counts.total - counts.skipped, before.total - before.skipped
        return f"only {ran} of {wanted} tests ran"
    return ""


def _rank(entrant: Entrant, choice: str | None) -> tuple[object, ...]:
    counts = None if entrant.check is None else entrant.check.counts
    return (
        bool(entrant.judged.edited),
        0 if counts is None else -counts.passed,
        entrant.label != choice,
        entrant.size,
        _cost(entrant),
        entrant.seconds,
        entrant.label,
    )


def _cost(entrant: Entrant) -> float:
    """In one currency; unknown costs come last."""
    return sum(entrant.cost.values()) if len(entrant.cost) == 1 else _NO_COST


def _difference(first: Entrant, second: Entrant, choice: str | None) -> str:
    """What decided between two that passed."""
    pairs = zip(_rank(first, choice), _rank(second, choice), _REASONS, strict=True)
    reason = next((words for one, other, words in pairs if one != other), _REASONS[-1])
    return f"{reason} than {second.label}" if reason.endswith(_COMPARED) else reason


_COMPARED = ("tests", "diff", "cost", "time")
_REASONS = (
    "it left the tests alone",
    "more passed tests",
    "the reviewer named it in both orders",
    "a smaller diff",
    "a lower cost",
    "a shorter time",
    "the first of equals",
)


def _merits(entrant: Entrant, choice: str | None) -> str:
    counts = None if entrant.check is None else entrant.check.counts
    words = "passed" if counts is None else f"{counts.passed} of {counts.total} tests passed"
    if entrant.judged.edited:
        words += f"; edited tests, judged by the originals: {_some(entrant.judged.edited)}"
    if entrant.label == choice:
        words += "; named by the reviewer"
    return words


def _some(paths: list[str]) -> str:
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return ", ".join(paths[:3]) + more

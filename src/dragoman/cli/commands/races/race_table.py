"""A race as a table: live on a terminal, as lines in a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from dragoman.cli.standard_streams import terminal_width
from dragoman.racing.race_record import Entrant, RaceRecord
from dragoman.safe_text import single_line

_MARKS = {"passed": "✓", "failed": "✗"}
_SECONDS = 0.2


class RaceTable:
    """Shows a race while it runs, on standard error."""

    def __init__(self) -> None:
        self._is_live = sys.stderr.isatty()
        self._drawn = 0
        self._at = 0.0
        self._told: dict[str, str] = {}

    def show(self, race: RaceRecord) -> None:
        """What is new: the table in its place, or a line for each change of status."""
        if self._is_live:
            if time.monotonic() - self._at >= _SECONDS:
                self._draw(table(race, terminal_width()))
            return
        for entrant in race.entrants:
            word = entrant.status if entrant.status != "done" else status_of(entrant, race)
            if entrant.status != "waiting" and self._told.get(entrant.label) != word:
                self._told[entrant.label] = word
                sys.stderr.write(f"{entrant.label}: {word}\n")
        sys.stderr.flush()

    def close(self) -> None:
        """Take it away: the whole comes after it, on standard output."""
        if self._is_live:
            self._draw([])

    def _draw(self, lines: list[str]) -> None:
        self._at = time.monotonic()
        up = f"\x1b[{self._drawn}A" if self._drawn else ""
        sys.stderr.write(f"{up}\r\x1b[J" + "".join(f"{line}\n" for line in lines))
        sys.stderr.flush()
        self._drawn = len(lines)


def _time(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02}"


def _cost(entrant: Entrant) -> str:
    return " ".join(
        f"${amount:.2f}" if currency == "USD" else f"{amount:.2f} {currency}"
        for currency, amount in entrant.cost.items()
    )


_COLUMNS: tuple[tuple[str, int, Callable[[Entrant], str]], ...] = (
    ("time", 60, lambda each: _time(each.seconds) if each.began_at else ""),
    ("calls", 74, lambda each: str(each.tool_calls) if each.began_at else ""),
    ("cost", 66, _cost),
    ("diff", 40, lambda each: f"+{each.added} -{each.removed}" if each.files else ""),
)
"""Heading, the width of the window from which on it is shown, and what is in it."""


def table(race: RaceRecord, width: int) -> list[str]:
    """All entrants, those that passed first once there is a verdict."""
    order = [each.label for each in race.entrants]
    if race.verdict is not None:
        order = [each.label for each in race.verdict.places]
    columns = [each for each in _COLUMNS if width >= each[1]]
    rows = [["", *(heading for heading, _, _ in columns), ""]]
    for label in order:
        entrant = race.entrant(label)
        rows.append([label, *(cell(entrant) for _, _, cell in columns), status_of(entrant, race)])
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]) - 1)]
    lines: list[str] = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(size) for cell, size in zip(row[1:-1], widths[1:], strict=True)]
        head = "  ".join(cells)
        room = max(12, width - len(head) - 3)
        lines.append(f"{head}  {single_line(row[-1], room)}".rstrip())
    return lines


def status_of(entrant: Entrant, race: RaceRecord) -> str:
    """In words, with what the check said."""
    if race.verdict is not None:
        place = next(each for each in race.verdict.places if each.label == entrant.label)
        if entrant.label == race.verdict.winner:
            return f"{_MARKS['passed']} wins: {place.reason}"
        return f"{_MARKS['passed' if place.passed else 'failed']} {place.reason}"
    if entrant.status != "done":
        return entrant.status
    check = entrant.check
    if check is None:
        return f"{entrant.outcome or 'ended'}: {entrant.detail}".rstrip(": ")
    counts = "" if check.counts is None else f", {check.counts.passed} of {check.counts.total}"
    return f"{'passed' if check.code == 0 else 'failed'}{counts}"


def end_of_race(race: RaceRecord) -> str:
    """One sentence."""
    if race.verdict is None:
        return race.problem or "it is still running"
    if race.verdict.winner is None:
        return race.verdict.because
    return f"{race.verdict.winner} wins: {race.verdict.because}"

"""How agents report that their model provider takes no more: rate limits, overload, used-up plans.

ACP has no error for it. Each row of the table is one spelling, with where it is from: it was seen
from the agent, it is in the agent's source, or the provider's documentation has it. An agent that
reports nothing is not in it: Kimi Code 2.1.0 ends its turn as if it had answered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, tzinfo
from functools import partial
from typing import Any, Final, Literal, cast

import msgspec

from dragoman.errors import RemoteError
from dragoman.lazy_pattern import lazy_pattern
from dragoman.session.facts import LimitKind

_LONGEST = 31 * 86400.0
"""Seconds: an end that is further away is not believed."""
_READ = 4_000
"""Characters of a message that are looked at."""


class LimitReport(msgspec.Struct, frozen=True, kw_only=True):
    """One spelling: a `code` of JSON-RPC, a word in the error's `data` at `path`, or a `pattern`,
    in the message of the error or as the last paragraph of the turn's `answer`."""

    said_by: str
    kind: LimitKind
    evidence: str
    basis: Literal["seen", "source", "documentation"]
    where: Literal["error", "answer"] = "error"
    code: int | None = None
    path: tuple[str, ...] = ()
    word: str = ""
    pattern: re.Pattern[str] | None = None

    def fits(self, text: str, code: int | None, data: Any) -> bool:
        if self.code is not None:
            return code == self.code
        if self.path:
            return _at(data, self.path) == self.word
        return self.pattern is not None and self.pattern.search(text) is not None


def _in_data(said_by: str, key: str, evidence: str, kind: LimitKind, word: str) -> LimitReport:
    return LimitReport(
        said_by=said_by, kind=kind, path=(key,), word=word, evidence=evidence, basis="source"
    )


_claude = partial(_in_data, "Claude", "errorKind", "claude-agent-acp 0.99.0, `errorKindData`")
_codex = partial(_in_data, "Codex", "codexErrorInfo", "codex-acp 2.6.0, `createTurnErrorData`")


def _worded(
    said_by: str,
    kind: LimitKind,
    pattern: str,
    evidence: str,
    basis: Literal["seen", "documentation"] = "documentation",
) -> LimitReport:
    found = lazy_pattern(pattern, re.IGNORECASE)
    return LimitReport(said_by=said_by, kind=kind, pattern=found, evidence=evidence, basis=basis)


def _answered(said_by: str, kind: LimitKind, pattern: str) -> LimitReport:
    """An answer that ends with the report; Goose adds a paragraph that suggests to retry."""
    end = r"[^\n]*(?:\n\nPlease retry if you think[^\n]*)?\s*\Z"
    found = lazy_pattern(rf"(?:\A|\n\n){pattern}{end}")
    evidence = f"{said_by} with a model that answers 402, 429, 503 and 529"
    return LimitReport(
        said_by=said_by,
        kind=kind,
        where="answer",
        pattern=found,
        evidence=evidence,
        basis="seen",
    )


REPORTS: Final = (
    LimitReport(
        said_by="Gemini CLI, Qwen Code",
        kind="rate",
        code=429,
        evidence="both throw `RequestError(429, …)` for HTTP status 429",
        basis="source",
    ),
    _claude("rate", "rate_limit"),
    _claude("overloaded", "overloaded"),
    _claude("plan", "billing_error"),
    _codex("plan", "usageLimitExceeded"),
    _codex("rate", "rateLimitExceeded"),
    _codex("overloaded", "serverOverloaded"),
    LimitReport(
        said_by="Goose",
        kind="plan",
        path=("reason",),
        word="credits_exhausted",
        evidence="Goose with a model that answers 402",
        basis="seen",
    ),
    _answered("Goose", "rate", "Ran into this error: Rate limit exceeded"),
    _answered("Goose", "overloaded", r"Ran into this error: Server error: .{0,40}\((503|529) "),
    _answered("Codex", "rate", "exceeded retry limit, last status: 429 "),
    _answered("Codex", "overloaded", "unexpected status (503|529) "),
    _answered("Codex", "plan", "unexpected status 402 "),
    _answered("Hermes", "rate", r"(API call failed after \d+ retries: )?HTTP 429: "),
    _answered("Hermes", "overloaded", r"(API call failed after \d+ retries: )?HTTP (503|529): "),
    _answered("Hermes", "plan", r"(API call failed after \d+ retries: )?HTTP 402: "),
    _worded(
        "Claude",
        "overloaded",
        r"API Error: (503|529) ",
        "Claude with a model that answers that way",
        "seen",
    ),
    _worded(
        "Claude", "plan", r"API Error: 402 ", "Claude with a model that answers that way", "seen"
    ),
    # By their words: what providers say, passed on by agents without a code of their own.
    _worded(
        "several agents",
        "plan",
        r"(hit|reached|exceeded) your (?!.{0,30}(context|token))([\w'-]+ ){0,3}(limit|quota|budget)"
        r"|usage limit (has been )?reached|insufficient[_ ](quota|credits)"
        r"|credit balance is too low|out of (usage )?credits",
        "messages of Anthropic, OpenAI and Google, as agents pass them on",
    ),
    _worded(
        "several agents",
        "overloaded",
        r"\boverloaded(_error)?\b|\b529\b.{0,40}overload"
        r"|model is (currently overloaded|at capacity)",
        "Anthropic's `overloaded_error`, Google's 503 UNAVAILABLE, \"at capacity\" of Codex",
    ),
    _worded(
        "several agents",
        "rate",
        r"rate[ _]limit(_error| exceeded| reached)|too many requests|resource_exhausted",
        "OpenAI's and Anthropic's error types, Google's RESOURCE_EXHAUSTED, HTTP's own words",
    ),
)


class ReportedLimit(msgspec.Struct, frozen=True):
    """What an agent said of a limit; `ends_at` in seconds since 1970, if it said when."""

    kind: LimitKind
    ends_at: float | None
    sentence: str


def limit_in_error(error: RemoteError, now: datetime) -> ReportedLimit | None:
    """None for an error that is about something else."""
    text = f"{error.message}\n{_texts(error.data)}"[:_READ]
    found = (each for each in REPORTS if each.where == "error")
    for report in found:
        if report.fits(text, error.code, error.data):
            return ReportedLimit(report.kind, end_in(text, now), _line(error.message))
    return None


def limit_in_answer(answer: str, now: datetime) -> ReportedLimit | None:
    """Of an agent that says it in words and ends its turn as usual."""
    text = answer[-_READ:]
    for report in REPORTS:
        pattern = report.pattern if report.where == "answer" else None
        if pattern is not None and (found := pattern.search(text)) is not None:
            return ReportedLimit(report.kind, end_in(found[0], now), _line(found[0]))
    return None


def _at(data: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        if not isinstance(data, Mapping):
            return None
        data = cast("Mapping[str, Any]", data).get(key)
    return data


def _texts(data: Any) -> str:
    """What an error's data says in words, and the delays and times that providers put there."""
    return "\n".join(_strings(data, 4))


def _strings(data: Any, depth: int) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, Mapping) and depth:
        for key, value in cast("Mapping[str, Any]", data).items():
            if _DELAY.fullmatch(key) and isinstance(value, (str, int, float)):
                yield f"{key}: {value}"
            else:
                yield from _strings(value, depth - 1)
    elif isinstance(data, list) and depth:
        for value in cast("list[Any]", data)[:20]:
            yield from _strings(value, depth - 1)


def _line(text: str) -> str:
    return " ".join(text.split())[:300]


# ── when it ends ────────────────────────────────────────────────────────────────────────────────

_DELAY = lazy_pattern(
    r"retry[_-]?delay|(?:retry[_-]?after|resets?[_-]?in)(?:[_-]?(?:seconds|ms))?|resets?[_-]?at",
    re.IGNORECASE,
)
"""Keys of an error's data whose value is a delay or a time."""
_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_SPAN = lazy_pattern(
    r"(\d+(?:\.\d+)?)\s*"
    r"(?:(ms)|(d)(?:ays?)?|(h)(?:ours?)?|(m)(?:in(?:ute)?s?)?|(s)(?:ec(?:ond)?s?)?)(?![a-z])"
)
_AFTER = lazy_pattern(
    r"(?:try again|retry|resets?|available(?: again)?|wait)(?:[ _-]?after|[ _-]?delay)?(?: in)?"
    r"[:\" ]+((?:\d+(?:\.\d+)?\s*(?:d|h|m|s)[a-z]*[ ,and]*)+)",
    re.IGNORECASE,
)
_PLAIN = lazy_pattern(
    r"(?:retry[ _-]?after|resets?[_-]?in[_-]?(?=s|ms))(?:[_-]?(seconds|ms))?[:\" ]+"
    r"(\d+(?:\.\d+)?)\b",
    re.IGNORECASE,
)
"""A number without a unit, as in HTTP's `Retry-After`: seconds, unless its key says otherwise."""
_EPOCH = lazy_pattern(r"(?:\||reset[a-z_]*[\": ]+)(1\d{9})(?:\d{3}|\.\d+)?\b", re.IGNORECASE)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CLOCK = lazy_pattern(
    r"(?:resets?|try again|available)(?: again)?(?: at| on)? "
    rf"(?:({'|'.join(_MONTHS)})[a-z]* (\d{{1,2}})(?:st|nd|rd|th)?,? (?:(\d{{4}}),? )?(?:at )?)?"
    r"(\d{1,2})(?::(\d{2}))? ?([ap]m)?\b"
    r"(?: ?\(([A-Za-z_]+/[A-Za-z_/+-]+|UTC)\))?",
    re.IGNORECASE,
)
"""A time of day, as Codex and Claude Code write it: with the day if that is not today."""


def end_in(text: str, now: datetime) -> float | None:
    """When the limit ends, by the words of the agent; None if they do not say, or nothing
    credible. `now` has the time zone that a time of day is in."""
    for read in (_after, _after_plain, _at_second, _at_clock):
        found = read(text, now)
        if found is not None:
            return found if 0 <= found - now.timestamp() <= _LONGEST else None
    return None


def _after(text: str, now: datetime) -> float | None:
    found = _AFTER.search(text)
    if found is None:
        return None
    spans = _SPAN.findall(found[1].lower())
    seconds = sum(float(number) * _UNITS["".join(unit)] for number, *unit in spans)
    return now.timestamp() + seconds if spans else None


def _after_plain(text: str, now: datetime) -> float | None:
    found = _PLAIN.search(text)
    if found is None:
        return None
    unit = _UNITS["ms" if found[1] and found[1].lower() == "ms" else "s"]
    return now.timestamp() + float(found[2]) * unit


def _at_second(text: str, now: datetime) -> float | None:
    found = _EPOCH.search(text)
    return None if found is None else float(found[1])


def _at_clock(text: str, now: datetime) -> float | None:
    """The next time that a calendar and a clock show this; a bare number without am or pm is not a
    time."""
    found = _CLOCK.search(text)
    if found is None or not (found[5] or found[6]):
        return None
    hour, minute = int(found[4]), int(found[5] or 0)
    if hour > (12 if found[6] else 23) or minute > 59:
        return None
    if found[6]:
        hour = hour % 12 + (12 if found[6].lower() == "pm" else 0)
    there = now.astimezone(_zone(found[7]) or now.tzinfo)
    at = there.replace(hour=hour, minute=minute, second=0, microsecond=0)
    if not found[1]:
        return (at if at > there else at + timedelta(days=1)).timestamp()
    month, year = _MONTHS.index(found[1].lower()) + 1, int(found[3] or at.year)
    try:
        at = at.replace(year=year, month=month, day=int(found[2]))
        return (at if found[3] or at > there else at.replace(year=year + 1)).timestamp()
    except ValueError:
        return None  # there is no such day


def _zone(name: str | None) -> tzinfo | None:
    if name is None:
        return None
    from zoneinfo import ZoneInfo  # few reports name one

    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        return None

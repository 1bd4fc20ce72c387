"""What agents say when their provider takes no more, and when that is said to end."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from dragoman.agents.limit_reports import (
    REPORTS,
    LimitReport,
    end_in,
    limit_in_answer,
    limit_in_error,
)
from dragoman.errors import RemoteError
from dragoman.session.facts import LimitKind

NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("message", "code", "data", "kind"),
    [
        ("Rate limit exceeded. Try again later.", 429, None, "rate"),
        ("Internal error", -32603, {"errorKind": "rate_limit"}, "rate"),
        ("Internal error", -32603, {"errorKind": "overloaded"}, "overloaded"),
        ("Internal error", -32603, {"errorKind": "billing_error"}, "plan"),
        ("Internal error", -32603, {"codexErrorInfo": "usageLimitExceeded"}, "plan"),
        ("add more credits", -32603, {"reason": "credits_exhausted"}, "plan"),
        ("Internal error: API Error: 529 fake error. This is", -32603, None, "overloaded"),
        ("Internal error: API Error: 402 fake error", -32603, {"errorKind": "unknown"}, "plan"),
        ("You've hit your limit", -32603, None, "plan"),
        ("API Error: 529 overloaded_error", -32603, None, "overloaded"),
        ("Internal error: Too Many Requests", -32603, None, "rate"),
        ("You've hit your session limit · resets 5pm", -32603, None, "plan"),
        ("You've hit your team's shared budget", -32603, None, "plan"),
        ("Insufficient credits. Add more", -32603, None, "plan"),
        ("Selected model is at capacity. Please try", -32603, None, "overloaded"),
    ],
)
def test_limits_are_recognized(message: str, code: int, data: Any, kind: LimitKind) -> None:
    limit = limit_in_error(RemoteError(message, data, code=code), NOW)
    assert limit is not None
    assert limit.kind == kind


FRAMES: list[RemoteError | str] = [
    RemoteError("Rate limit exceeded. Try again later.", code=429),
    RemoteError("Internal error", {"errorKind": "rate_limit"}),
    RemoteError("Internal error", {"errorKind": "overloaded"}),
    RemoteError("Internal error", {"errorKind": "billing_error"}),
    RemoteError("Internal error", {"codexErrorInfo": "usageLimitExceeded"}),
    RemoteError("Internal error", {"codexErrorInfo": "rateLimitExceeded"}),
    RemoteError("Internal error", {"codexErrorInfo": "serverOverloaded"}),
    RemoteError("add more credits", {"reason": "credits_exhausted"}),
    "Ran into this error: Rate limit exceeded: fake error.\n\nPlease retry if you think",
    "Ran into this error: Server error: Server error (529 <unknown status code>) at",
    "exceeded retry limit, last status: 429 Too Many Requests\n\n",
    "unexpected status 529 <unknown status code>: fake error, url: http://x",
    "Warning: no metadata\n\nunexpected status 402 Payment Required: x",
    "API call failed after 3 retries: HTTP 429: fake error",
    "API call failed after 3 retries: HTTP 503: fake error",
    "HTTP 402: fake error",
    RemoteError("Internal error: API Error: 529 fake error. This is"),
    RemoteError("Internal error: API Error: 402 fake error", {"errorKind": "unknown"}),
    RemoteError("You've hit your session limit · resets 5pm"),
    RemoteError("Selected model is at capacity. Please try"),
    RemoteError("Internal error: Too Many Requests"),
]
"""For each row of the table, in its order, a report that no other row recognises first."""


@pytest.mark.parametrize(("row", "frame"), list(zip(REPORTS, FRAMES, strict=True)))
def test_each_row_of_the_table_recognises_its_report(
    row: LimitReport, frame: RemoteError | str
) -> None:
    if isinstance(frame, str):
        found, code, data, text = limit_in_answer(frame, NOW), None, None, frame
    else:
        found, code, data = limit_in_error(frame, NOW), frame.code, frame.data
        text = frame.message
    assert found is not None
    assert found.kind == row.kind
    same = [each for each in REPORTS if each.where == row.where and each.fits(text, code, data)]
    assert same[0] is row


@pytest.mark.parametrize(
    ("message", "data"),
    [
        ("Internal error: fake error", {"service": "session", "errorName": "APIError"}),
        ("no such session", None),
        ("Internal error", {"errorKind": "authentication_failed"}),
        ("the file has a limit of 10 lines", None),
        ("you have exceeded your context window limit", None),
    ],
)
def test_other_errors_are_none(message: str, data: Any) -> None:
    assert limit_in_error(RemoteError(message, data), NOW) is None


def test_goose_says_it_in_its_answer() -> None:
    said = "Ran into this error: Rate limit exceeded: fake error.\n\nPlease retry if you think"
    limit = limit_in_answer(said, NOW)
    assert limit is not None
    assert limit.kind == "rate"
    overloaded = "Ran into this error: Server error: Server error (529 <unknown status code>) at"
    assert limit_in_answer(overloaded, NOW) is not None


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("exceeded retry limit, last status: 429 Too Many Requests\n\n", "rate"),
        ("Warning: no metadata\n\nunexpected status 402 Payment Required: x", "plan"),
        ("unexpected status 529 <unknown status code>: fake error, url: http://x", "overloaded"),
        ("API call failed after 3 retries: HTTP 429: fake error", "rate"),
        ("HTTP 402: fake error", "plan"),
    ],
)
def test_codex_and_hermes_too(said: str, kind: LimitKind) -> None:
    limit = limit_in_answer(said, NOW)
    assert limit is not None
    assert limit.kind == kind


@pytest.mark.parametrize(
    "said",
    [
        "",
        "done",
        "I ran into this error: Rate limit exceeded",
        "HTTP 429: means too many requests.\n\nSo the server should wait.",
        "The log says\nHTTP 429: x",
    ],
)
def test_an_answer_about_limits_is_no_limit(said: str) -> None:
    assert limit_in_answer(said, NOW) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("resets 3pm (America/Los_Angeles)", 11 * 3600),
        ("usage limit reached|1795010000", 1795010000 - NOW.timestamp()),
        ("try again in 3 days 2 hours 5 minutes.", 3 * 86400 + 2 * 3600 + 300),
        ("Please retry in 34.5s", 34.5),
        ("retryDelay: 34s", 34),
        ("try again at 3:05 PM", 3 * 3600 + 300),
        ("resets at 11:30", 23.5 * 3600),
        ("Retry after 2 s", 2),
        ("Please try again in 1m30.5s.", 90.5),
        ("Please try again in 350ms", 0.35),
        ("Your quota will reset after 17h20m5s.", 17 * 3600 + 20 * 60 + 5),
        ("available again in 5 minutes", 300),
        ("Retry-After: 30", 30),
        ("retry_after_ms: 1500", 1.5),
        ("resets_in_seconds: 90", 90),
        ("resetsAt: 1795010000000", 1795010000 - NOW.timestamp()),
        ("try again at Nov 20th, 2026 3:05 PM.", 2 * 86400 + 3 * 3600 + 300),
        ("resets Nov 22, 5:30pm (UTC)", 4 * 86400 + 5.5 * 3600),
        ("resets Dec 1, 2026, 5am", 12 * 86400 + 17 * 3600),
    ],
)
def test_the_end_is_read(text: str, seconds: float) -> None:
    assert end_in(text, NOW) == pytest.approx(NOW.timestamp() + seconds)


@pytest.mark.parametrize(
    "text",
    [
        "Try again later.",
        "resets 5",
        "resets 99pm",
        "try again in 999999 days",
        "usage limit reached|1000000000",
        "resets Feb 30, 5pm",
        "resets Nov 1, 2026, 5pm",
        "retry after lunch",
    ],
)
def test_what_is_not_said_or_not_credible_is_unknown(text: str) -> None:
    assert end_in(text, NOW) is None


@pytest.mark.parametrize(
    ("data", "seconds"),
    [
        ({"error": {"details": [{"retryDelay": "34s"}]}}, 34),
        ({"headers": {"retry-after": "30"}}, 30),
        ({"retryAfter": 12.5}, 12.5),
        ({"resets_at": 1795010000}, 1795010000 - NOW.timestamp()),
        ({"resets_in_seconds": 3600}, 3600),
        ({"resets_at": None, "attempts": 3}, None),
    ],
)
def test_the_end_is_read_from_the_data_of_an_error(data: Any, seconds: float | None) -> None:
    limit = limit_in_error(RemoteError("Rate limit exceeded", data, code=429), NOW)
    assert limit is not None
    expected = None if seconds is None else pytest.approx(NOW.timestamp() + seconds)
    assert limit.ends_at == expected

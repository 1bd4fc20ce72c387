"""A person's review of changes as one prompt to the agent. Pure.

`dragoman review` and the page write the same text: `web/src/core/changes/review.ts` does it there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Literal

import msgspec

MOST_LINES = 40
"""Quoted lines of a comment; the middle of a longer quote is left out."""
MOST_CHARACTERS = 500
"""Of each quoted line."""
_OPENING = "Please address these comments on your changes."
_STALE = "(This code has changed since the comment was written.)"
_PUT_BACK = "I put these changes back, so the files are as they were before:"
_SPACE = " \t\r\n"
_UNPRINTABLE = re.compile("[\0-\x1f\x7f\x80-\x9f\u2028\u2029]")


class ReviewComment(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """On lines of a file, or on all of it if `start` is 0. `path` is relative to the session's
    folder if it is beneath it. Lines are numbered as they are in the `new` version, or in the `old`
    one where all of them were removed; `lines` are those of the diff, each with its sign.
    `stale`: they are no longer there."""

    path: str
    text: str
    side: Literal["new", "old"] = "new"
    start: int = 0
    end: int = 0
    lines: list[str] = []
    stale: bool = False


class PutBack(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """A change that the person undid: lines of the version that the agent left, or the file."""

    path: str
    start: int = 0
    end: int = 0


class Review(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """What is said about all of it, and about parts, in the order in which it is to be read."""

    text: str = ""
    comments: list[ReviewComment] = []
    put_back: list[PutBack] = []


def review_prompt(review: Review) -> str:
    """Empty if there is nothing to say."""
    parts: list[str] = []
    if text := review.text.strip(_SPACE):
        parts.append(text)
    elif review.comments:
        parts.append(_OPENING)
    parts += [_commented(comment) for comment in review.comments]
    if review.put_back:
        undone = [f"- {_place(each.path, each.start, each.end)}" for each in review.put_back]
        parts.append("\n".join((_PUT_BACK, *undone)))
    return "\n\n".join(parts)


def _commented(comment: ReviewComment) -> str:
    place = _place(comment.path, comment.start, comment.end)
    if comment.side == "old":
        place += " before the change"
    said = [f"{place}:"]
    if comment.lines:
        said.append(_quoted(_shortened(comment.lines)))
    if comment.stale:
        said.append(_STALE)
    return "\n".join((*said, comment.text.strip(_SPACE)))


def _place(path: str, start: int, end: int) -> str:
    name = json.dumps(path) if _UNPRINTABLE.search(path) else path
    if start == 0:
        return name
    return f"{name}:{start}" if end <= start else f"{name}:{start}-{end}"


def _shortened(lines: Sequence[str]) -> list[str]:
    half = MOST_LINES // 2
    if len(lines) > MOST_LINES:
        lines = [*lines[:half], f"… {len(lines) - 2 * half} lines …", *lines[-half:]]
    return [
        line if len(line) <= MOST_CHARACTERS else line[:MOST_CHARACTERS] + "…" for line in lines
    ]


def _quoted(lines: Sequence[str]) -> str:
    """Fenced by more backticks than the lines have in a row."""
    text = "\n".join(lines)
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}diff\n{text}\n{fence}"

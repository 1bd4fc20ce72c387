"""Reviews and the prompts Python makes of them, for the page to match.

Run as a program it writes `web/test/reviews.json`; `test_golden_vectors.py` says when that is
stale.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from dragoman.review import PutBack, Review, ReviewComment, review_prompt

REVIEWS = Path(__file__).parents[2] / "web" / "test" / "reviews.json"

_PATHS = (
    *("a.py", "src/mit Leerzeichen.py", "/etc/x", "a\nb`c", "t\tab", "\x7f\x9f", "z\u2028𝄞"),
    *("ünï.py", 'quo"te\\.py', "<img src=x onerror=alert(1)>"),
)
_LINES: tuple[list[str], ...] = (
    *([], ["+one"], ["-one", "+two", " three"], ["+```", "+````js", "+`"], ["+"]),
    *(["+" + "x" * 499], ["+" + "𝄞" * 500], ["+\r", "-\x1b[31m"]),
    *([f"+{at}" for at in range(40)], [f"-{at}" for at in range(41)], ["+é"] * 100),
)
_SPANS = ((0, 0), (1, 1), (3, 9), (7, 0))
_SAID = ("Why?", "  two\nlines  ", "```\nfence\n```", "\ufeff\x85. \r\n")


def reviews() -> bytes:
    cases = [Review(), Review(text="  \n"), Review(text=" Well done. "), *_each()]
    rows = [{"review": each, "prompt": review_prompt(each)} for each in cases]
    return msgspec.json.format(msgspec.json.encode(rows), indent=1) + b"\n"


def _each() -> list[Review]:
    comments = [
        ReviewComment(
            path=_PATHS[at % len(_PATHS)],
            text=_SAID[at % len(_SAID)],
            side="old" if at % 3 == 2 else "new",
            start=_SPANS[at % len(_SPANS)][0],
            end=_SPANS[at % len(_SPANS)][1],
            lines=_LINES[at % len(_LINES)],
            stale=at % 5 == 4,
        )
        for at in range(60)
    ]
    undone = [
        PutBack(path=path, start=start, end=end)
        for path, (start, end) in zip(_PATHS, _SPANS * 3, strict=False)
    ]
    return [
        *(Review(comments=[comment]) for comment in comments),
        Review(put_back=undone),
        Review(text="In all: good.", comments=comments[:5], put_back=undone[:2]),
        Review(comments=comments[5:9], put_back=undone[2:3]),
    ]


if __name__ == "__main__":
    REVIEWS.write_bytes(reviews())

"""Finds words that read as translated, in the documentation and in the text of the sources.

python scripts/check_words.py [FILE …]

It reads the strings, docstrings and comments of Python files, the text of Markdown outside of code,
and every line of other files. Each finding is one line: the place, the words, and better ones.
"""

from __future__ import annotations

import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
COVERED = (
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "bench/RESULTS.md",
    "docs",
    "examples",
    "src/dragoman",
    "scripts",
    "web/src",
)
SUFFIXES = (".md", ".py", ".sh", ".ts", ".tsx")
GENERATED = ("src/dragoman/schema/v1.py", "src/dragoman/schema/v2.py", "src/dragoman/web/static")
BETTER = {
    r"whoever": "the person or process that …, anyone who …",
    r"(?:some|any|every)body": "someone, anyone, everyone",
    r"notwithstanding": "despite",
    r"anew": "again",
    r"any more": "no longer",
    r"all the same": "anyway",
    r"for ever": "forever",
    r"(?:is|are|was|were|be|been|being) told": "is notified, receives, is reported",
    r"(?:is|are|was|were) no (?!longer\b|more\b|better\b)\w+": "is not a …",
    r"beside": "next to, in addition to",
    r"but for": "except",
    r"behind (?:accept|an? \w+ of|the (?:reply|cursor|event|prompt|last|newest))": "after",
    r"what stands": "what is",
    r"stands? (?:in|under|at|before|behind|between|above|below|there)": "is",
    r"as (?:it|they) stands?": "as it is",
    r"(?:go|goes|went|gone) on(?! record\b| the \w+)": "continue",
    r"again and again": "repeatedly",
    r"put right": "corrected, repaired",
    r"what is the matter": "the reason",
    r"sees? to it": "ensures",
    r"one behind (?:another|the other)": "one after another",
    r"in (?:the )?words of": "in the types of, as",
    r"(?:has|have) told": "has reported",
    r"(?:has|have|had) to be told": "must be notified of",
}
_HABITS = [(re.compile(rf"\b{words}\b", re.IGNORECASE), better) for words, better in BETTER.items()]
_ANY = re.compile(rf"\b(?:{'|'.join(BETTER)})\b")
"""Finds lower-case text with a habit in it: most has none, and is not looked through for each."""
_THERE = re.compile(r"\bthere (?:is|are|was|were) no\b", re.IGNORECASE)
_CODE = re.compile(r"`[^`]*`")
_TEXT_TOKENS = ("STRING", "COMMENT", "FSTRING_MIDDLE")


def main(given: list[str]) -> int:
    paths = [Path(name).resolve() for name in given] or list(covered())
    found = [line for path in paths for line in findings(path.read_text(), path)]
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


def covered() -> Iterator[Path]:
    """Every file that is checked, except this one, which quotes what it looks for."""
    left_out = {ROOT / name for name in GENERATED} | {Path(__file__).resolve()}
    for name in COVERED:
        top = ROOT / name
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            if path.suffix in SUFFIXES and not left_out & {path, *path.parents}:
                yield path


def findings(source: str, path: Path) -> Iterator[str]:
    """A line for each place where the text has one of the habits."""
    place = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    for first, text in _texts(source, path.suffix):
        words, lines = _numbered_words(text, first)
        for number, habit, better in _habits(words, lines):
            yield f"{place}:{number}: {habit}: {better}"


def _habits(words: str, lines: list[int]) -> Iterator[tuple[int, str, str]]:
    if not _ANY.search(words.lower()):
        return
    plain = _THERE.sub(lambda found: "." * len(found[0]), words)
    for pattern, better in _HABITS:
        for found in pattern.finditer(plain):
            yield lines[plain.count(" ", 0, found.start())], found[0], better


def _numbered_words(text: str, first: int) -> tuple[str, list[int]]:
    """The words with one space between them, and the line of each."""
    numbered = [
        (word, number)
        for number, line in enumerate(text.split("\n"), first)
        for word in line.split()
    ]
    return " ".join(word for word, _ in numbered), [number for _, number in numbered]


def _texts(source: str, suffix: str) -> Iterator[tuple[int, str]]:
    """The parts that are prose, each with the number of its first line."""
    if suffix == ".py":
        lines = iter(source.splitlines(keepends=True))
        for token in tokenize.generate_tokens(lambda: next(lines, "")):
            if tokenize.tok_name[token.type] in _TEXT_TOKENS:
                yield token.start[0], token.string
    elif suffix == ".md":
        yield 1, _without_code(source)
    else:
        yield from enumerate(source.split("\n"), 1)


def _without_code(source: str) -> str:
    """Markdown without code, and with every line where it was."""
    kept: list[str] = []
    fenced = False
    for line in source.split("\n"):
        fence = line.lstrip().startswith("```")
        fenced = fenced != fence
        kept.append("" if fenced or fence else _CODE.sub("`…`", line))
    return "\n".join(kept)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

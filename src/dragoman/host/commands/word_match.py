"""Whether the words of a command are those that a rule to deny or to ask names, or might be.

A rule names the first words of a command, or all of them. Options before them, another
folder of the program and what only running the line shows do not hide a command. Pure, and linear
in the words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from dragoman.host.commands.carriers import Argv, program_name, program_places
from dragoman.host.commands.loose_line import ANY, MANY, Suspect, has_marks
from dragoman.lazy_pattern import lazy_pattern


class Named(NamedTuple):
    """The words of a rule; `exact` if nothing may follow them."""

    words: Argv
    exact: bool


class WordMatch(NamedTuple):
    """Where a command was found, and whether it surely is the one."""

    words: Argv
    sure: bool


_SURE, _PERHAPS, _NOT = 2, 1, 0
_MOST_PLACES = 64


def matched(suspect: Suspect, named: Named) -> WordMatch | None:
    """How the words are what the rule names; a sure match before one that may be."""
    found: WordMatch | None = None
    for count, (at, most) in enumerate(_places(suspect, named)):
        if count > _MOST_PLACES:
            return found or WordMatch(suspect.words[at:], sure=False)
        level = min(_level(suspect.words[at:], named), most if suspect.sure else _PERHAPS)
        if level == _SURE:
            return WordMatch(suspect.words[at:], sure=True)
        if level == _PERHAPS and found is None:
            found = WordMatch(suspect.words[at:], sure=False)
    return found


def _places(suspect: Suspect, named: Named) -> Iterator[tuple[int, int]]:
    """Where the command may begin, and how sure that is at most."""
    words = suspect.words
    if suspect.sure or has_marks(words[0]):
        yield 0, _SURE
    if suspect.runs == "never" or not named.words[0]:
        return
    surely = suspect.runs == "surely"
    open_places = set(program_places(words)) if surely else ()
    first = program_name(named.words[0])
    for at in range(int(suspect.sure), len(words)):
        word = words[at]
        if has_marks(word):
            if at in open_places:
                yield at, _PERHAPS
        elif surely and program_name(word).casefold() == first.casefold():
            yield at, _SURE
        elif word == named.words[0] or word.endswith(f"/bin/{first}"):
            yield at, _PERHAPS


def _level(words: Argv, named: Named) -> int:
    level = _program_level(words[0], named.words[0])
    if level == _NOT or (level == _PERHAPS and MANY in words[0]):
        return level
    more = _exactly if named.exact else _at_the_beginning
    return min(level, more(words[1:], named.words[1:], program_name(words[0])))


def _program_level(word: str, named: str) -> int:
    if word == named:
        return _SURE
    name, wanted = program_name(word), program_name(named)
    if has_marks(word):
        return _PERHAPS if may_be(name, wanted) else _NOT
    if name == wanted:
        # Elsewhere it may be another program; a rule that names no folder means them all.
        return _PERHAPS if "/" in named else _SURE
    return _PERHAPS if name.casefold() == wanted.casefold() else _NOT


def _exactly(words: Argv, named: Argv, _program: str) -> int:
    level = _SURE
    for at, word in enumerate(words):
        if MANY in word:
            return _PERHAPS
        if at >= len(named) or not may_be(word, named[at]):
            return _NOT
        level = _PERHAPS if has_marks(word) else level
    return level if len(words) == len(named) else _NOT


def _at_the_beginning(words: Argv, named: Argv, program: str) -> int:
    """In front of each word that is named there may be options, and after an option its value."""
    reached, level = {0: _SURE}, _SURE
    for wanted in named:
        reached, many = _after_next(words, reached, wanted, program)
        if many:
            return _PERHAPS
        if not reached:
            return _NOT
        level = max(reached.values())
    return level


def _after_next(
    words: Argv, reached: dict[int, int], wanted: str, program: str
) -> tuple[dict[int, int], bool]:
    """From these places, where the words continue after the next that may be the wanted one."""
    found: dict[int, int] = {}
    here, before = _NOT, ""
    for at in range(min(reached), len(words)):
        word = words[at]
        here = max(here, reached.get(at, _NOT))
        if here == _NOT:
            if at > max(reached):
                break
            continue
        if MANY in word:
            return found, True
        if may_be(word, wanted):
            in_doubt = has_marks(word) or before in _GIT_VALUES
            found[at + 1] = _PERHAPS if in_doubt else here
        here, before = _over(word, before, here, program), word
    return found, False


def _over(word: str, before: str, here: int, program: str) -> int:
    """How sure it is that a word is only an option, or the value of one."""
    if program == "git" and (word.startswith("-") or before in _GIT_VALUES):
        return here if word not in _GIT_VALUES or before not in _GIT_VALUES else _PERHAPS
    if word.startswith("-"):
        return min(here, _PERHAPS)
    return min(here, _PERHAPS) if before.startswith("-") and "=" not in before else _NOT


_GIT_VALUES = frozenset(
    (
        *("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--super-prefix"),
        *("--config-env", "--exec-path"),
    )
)
"""Options of git that take the next word."""


def may_be(word: str, wanted: str) -> bool:
    """Whether it is that word, or might turn out to be."""
    if word == wanted:
        return True
    if not has_marks(word) or len(word) - word.count(ANY) - word.count(MANY) > len(wanted):
        return False
    # Of several marks in a row one is enough: each may be any text.
    return _pattern(_marks.sub(ANY, word)).fullmatch(wanted) is not None


_marks = lazy_pattern(f"[{ANY}{MANY}]+")


@lru_cache(maxsize=256)
def _pattern(word: str) -> re.Pattern[str]:
    pieces = word.split(ANY)
    # Each star may be tried anywhere.
    pieces = pieces if len(pieces) <= 8 else [*pieces[:8], ""]
    return re.compile("[^\\0]*".join(map(re.escape, pieces)), re.DOTALL)

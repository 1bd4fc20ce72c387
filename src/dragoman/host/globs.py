"""Globs of rules: matched against whole paths and whole names, never by the system's own rules.

`*` stands for any characters of one path component, `**` (alone between slashes) for any number of
components, `?` for one character, `[a-z]` and `[!a-z]` for one of a class; a backslash takes the
meaning from the next character. Case always counts; a leading dot is a character like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias, TypeVar

Class: TypeAlias = tuple[bool, tuple[tuple[str, str], ...]]
Token: TypeAlias = str | Class

T = TypeVar("T")
P = TypeVar("P")

# Longer than any character, so that no literal token can be one of these.
_STAR = "**"
_ANY = "any"


def matches_name(glob: str, name: str) -> bool:
    """Whether the whole name (an agent, a host, a tool) matches; `*` crosses dots and slashes."""
    return _matches(_tokens(glob), name, _STAR, _matches_character)


def matches_path(glob: str, path: str, roots: Sequence[str] = ()) -> bool:
    """Whether the whole path, absolute and normal, matches.

    A relative glob is relative to each of the roots. `folder/**` is the folder and all beneath.
    """
    if glob.startswith("/"):
        return _matches_components(glob, path)
    return any(_matches_components(glob, below) for below in _relative_to(path, roots))


def is_within(path: str, root: str) -> bool:
    """Whether a normal path is the root or lies beneath it, by its name alone."""
    return path == root or path.startswith(f"{root.rstrip('/')}/")


def escape(text: str) -> str:
    """A glob that matches this text and nothing else."""
    return "".join(f"\\{char}" if char in "*?[\\" else char for char in text)


def _relative_to(path: str, roots: Sequence[str]) -> list[str]:
    return [path[len(root.rstrip("/")) :] for root in roots if is_within(path, root)]


def _matches_components(glob: str, path: str) -> bool:
    components = tuple(part for part in path.split("/") if part)
    return _matches(_components(glob), components, _STAR, matches_name)


@lru_cache(maxsize=1024)
def _components(glob: str) -> tuple[str, ...]:
    return tuple(part for part in glob.split("/") if part not in ("", "."))


@lru_cache(maxsize=1024)
def _tokens(glob: str) -> tuple[Token, ...]:
    tokens: list[Token] = []
    at = 0
    while at < len(glob):
        token, at = _token(glob, at)
        tokens.append(token)
    return tuple(tokens)


def _token(glob: str, at: int) -> tuple[Token, int]:
    char = glob[at]
    if char == "*":
        return _STAR, at + 1
    if char == "?":
        return _ANY, at + 1
    if char == "\\" and at + 1 < len(glob):
        return glob[at + 1], at + 2
    # A "]" right after the opening is one of the class.
    start = at + 2 if glob.startswith("[!", at) else at + 1
    end = glob.find("]", start + 1) if char == "[" else -1
    return (char, at + 1) if end < 0 else (_class(glob[at + 1 : end]), end + 1)


def _class(body: str) -> Class:
    chars = body.removeprefix("!")
    ranges: list[tuple[str, str]] = []
    while chars:
        width = 3 if chars[1:2] == "-" and len(chars) > 2 else 1
        ranges.append((chars[0], chars[width - 1]))
        chars = chars[width:]
    return body.startswith("!"), tuple(ranges)


def _matches_character(token: Token, char: str) -> bool:
    if isinstance(token, str):
        return token in (_ANY, char)
    negated, ranges = token
    return negated != any(first <= char <= last for first, last in ranges)


def _matches(
    pattern: Sequence[P], items: Sequence[T], star: str, one: Callable[[P, T], bool]
) -> bool:
    """Match with stars in time |pattern| · |items| at worst: an agent chooses the items.

    Only the last star met ever needs another try, with one item more.
    """
    at = item = 0
    after_star, retry = -1, 0
    while item < len(items):
        if at < len(pattern) and pattern[at] == star:
            at += 1
            after_star, retry = at, item
        elif at < len(pattern) and one(pattern[at], items[item]):
            at, item = at + 1, item + 1
        elif after_star >= 0:
            retry += 1
            at, item = after_star, retry
        else:
            return False
    return all(part == star for part in pattern[at:])

"""Globs in rules: matched against whole paths and names, the same on every system.

`*` stands for any characters of one path component, `**` (alone between slashes) for any number of
components, `?` for one character, `[a-z]` and `[!a-z]` for one of a class; a backslash takes the
meaning from the next character. Case always counts; a leading dot is a character like any other.

A glob becomes a regular expression in which a star never gives back what it took, except the last
one: the time is linear in the path, which an agent chooses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

LONGEST_PATH = 4096
"""What one system call takes."""
MOST_COMPONENTS = 256
"""Deeper than any real file; each costs a look at the disk."""

_ANY = "(?s:.)"
_IN_COMPONENT = "[^/]"


def matches_name(glob: str, name: str) -> bool:
    """Whether the whole name (an agent, a host, a tool) matches; `*` crosses dots and slashes."""
    return _name(glob).match(name) is not None


def matches_path(glob: str, path: str, roots: Sequence[str] = ()) -> bool:
    """Whether the whole path, absolute and normal, matches.

    A relative glob is relative to each of the roots. `folder/**` is the folder and all beneath.
    """
    matching = _path(glob)
    if glob.startswith("/"):
        return matching.match(path.rstrip("/")) is not None
    return any(matching.match(below.rstrip("/")) for below in _relative_to(path, roots))


def is_within(path: str, root: str) -> bool:
    """Whether a normal path is the root or lies beneath it, by its name alone."""
    return path == root or path.startswith(f"{root.rstrip('/')}/")


def escape(text: str) -> str:
    """A glob that matches this text and nothing else."""
    return "".join(f"\\{char}" if char in "*?[\\" else char for char in text)


@lru_cache(maxsize=1024)
def literal_beginning(glob: str) -> tuple[str, str]:
    """The components of a glob that are plain names, and the glob of the others."""
    components = [part for part in glob.split("/") if part not in ("", ".")]
    names: list[str] = []
    for part in components:
        tokens = _tokens(part, _IN_COMPONENT)
        name = _escaped.sub(r"\1", part)
        if name in ("", "..") or tokens != [re.escape(char) for char in name]:
            break
        names.append(name)
    return "/".join(names), "/".join(components[len(names) :])


def literal_end(glob: str) -> str | None:
    """The name that every path ends in that matches, or what follows the last dot of it, with the
    dot; None if it may be any."""
    last = next((part for part in reversed(glob.split("/")) if part not in ("", ".")), "..")
    if last != ".." and not _special.search(last):
        return last
    dot = last.rfind(".")
    return last[dot:] if dot >= 0 and not _special.search(last, dot) and last != ".." else None


_special = re.compile(r"[*?\[\]\\]")
_escaped = re.compile(r"\\(.)", re.DOTALL)


def _relative_to(path: str, roots: Sequence[str]) -> list[str]:
    return [path[len(root.rstrip("/")) :] for root in roots if is_within(path, root)]


@lru_cache(maxsize=1024)
def _name(glob: str) -> re.Pattern[str]:
    return re.compile(_expression(_tokens(glob, _ANY), _ANY) + r"\Z")


@lru_cache(maxsize=1024)
def _path(glob: str) -> re.Pattern[str]:
    """Each component with the slash before it; the top is not a component."""
    components = [part for part in glob.split("/") if part not in ("", ".")]
    parts = [None if part == "**" else _component(part) for part in components]
    return re.compile(_expression(parts, "(?:/[^/]++)") + r"\Z")


def _component(glob: str) -> str:
    return f"(?>/{_expression(_tokens(glob, _IN_COMPONENT), _IN_COMPONENT)}(?![^/]))"


def _expression(parts: Sequence[str | None], item: str) -> str:
    """The parts in a row, None being any number of items.

    What follows a star is found at the first place it can be, and permanently: a later place leaves
    less for the rest. Only the last run has to reach the end, so only its star may try again.
    """
    runs: list[list[str]] = [[]]
    for part in parts:
        if part is None:
            runs.append([])
        else:
            runs[-1].append(part)
    first, *others = ("".join(run) for run in runs)
    found = "".join(f"(?>{item}*?{run})" for run in others[:-1] if run)
    return first + found + "".join(f"{item}*{run}" for run in others[-1:])


def _tokens(glob: str, any_one: str) -> list[str | None]:
    """An expression for each character that is to match; None for a star."""
    tokens: list[str | None] = []
    at = 0
    while at < len(glob):
        token, at = _token(glob, at, any_one)
        tokens.append(token)
    return tokens


def _token(glob: str, at: int, any_one: str) -> tuple[str | None, int]:
    char = glob[at]
    if char == "*":
        return None, at + 1
    if char == "?":
        return any_one, at + 1
    if char == "\\" and at + 1 < len(glob):
        return re.escape(glob[at + 1]), at + 2
    # A "]" right after the opening is one of the class.
    start = at + 2 if glob.startswith("[!", at) else at + 1
    end = glob.find("]", start + 1) if char == "[" else -1
    return (re.escape(char), at + 1) if end < 0 else (_class(glob[at + 1 : end]) + any_one, end + 1)


def _class(body: str) -> str:
    """What is looked for before the one character is taken."""
    chars = body.removeprefix("!")
    ranges: list[str] = []
    while chars:
        width = 3 if chars[1:2] == "-" and len(chars) > 2 else 1
        first, last = chars[0], chars[width - 1]
        if first <= last:
            ranges.append(f"{re.escape(first)}-{re.escape(last)}")
        chars = chars[width:]
    listed = f"[{''.join(ranges)}]" if ranges else "(?!)"
    return f"(?!{listed})" if body.startswith("!") else f"(?={listed})"

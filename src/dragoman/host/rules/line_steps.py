"""The steps of a shell line, each as an access of its own.

A step is a command that the line runs, or a file that it redirects. Nothing is decided here.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Literal, TypeAlias

import msgspec

from dragoman.host.commands.plain_command import plain_words
from dragoman.host.commands.shell_line import carried, read_argv, read_line
from dragoman.host.rules.access import Access, Sighting, normalise
from dragoman.host.rules.rule import Rule

Look: TypeAlias = Callable[[str, bool], Sighting | None]
"""What an absolute path is on the disk, and what it means to write it if that is wanted; None where
that is unknown."""
_MOST_STEPS = 256


def by_letters(path: str, writing: bool) -> Sighting | None:
    """Without a look at the disk."""
    return Sighting(normalise(path))


class RuleIndex:
    """Rules with their places, by the first word of the command that they name: made once for many
    decisions."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        self.by_word: dict[str, list[tuple[int, Rule]]] = {}
        self.of_no_command: list[tuple[int, Rule]] = []
        for numbered in enumerate(self.rules):
            words = numbered[1].argv or numbered[1].argv_prefix
            some = self.by_word.setdefault(words[0], []) if words else self.of_no_command
            some.append(numbered)

    def is_of(self, rules: Sequence[Rule]) -> bool:
        """Whether these are the same rules, one by one."""
        return len(rules) == len(self.rules) and all(map(operator.is_, rules, self.rules))


class Steps:
    """What the commands of an access come to, as far as their lines are read."""

    def __init__(self, access: Access, look: Look) -> None:
        self._access = access
        self._look = look
        self._sightings: dict[tuple[str, bool], Sighting | None] = {}
        runs = access.operation == "execute" and not access.env and all(access.commands)
        commands = access.commands if runs else ()
        self._read = [
            read_line(each) if isinstance(each, str) else read_argv(each) for each in commands
        ]

    @cached_property
    def tell_more(self) -> bool:
        """Whether there is more to them than the words that rules are compared with anyway."""
        opaque = (isinstance(e, str) and plain_words(e) is None for e in self._access.commands)
        return bool(self._read) and (len(self._words) > 1 or any(opaque))

    @property
    def are_all(self) -> bool:
        """Whether nothing else happens, and each where it is looked for now."""
        if len(self._read) != 1:
            return False
        [read] = self._read
        return not read.unread and read.early and bool(read.runs)

    def worth_a_look(self, rules: RuleIndex) -> list[Rule]:
        """The rules without those that cannot match, of which there may be hundreds."""
        found = [
            (at, rule)
            for word, commands in self._by_first_word.items()
            for at, rule in rules.by_word.get(word, ())
            if _begins_one(rule.argv or rule.argv_prefix or (), commands)
        ]
        found += rules.of_no_command
        if not self._has_paths:
            found = [(at, rule) for at, rule in found if rule.path is None]
        return [rule for _, rule in sorted(found, key=_place)]

    @cached_property
    def _by_first_word(self) -> dict[str, list[tuple[str, ...]]]:
        """Every command that a rule may name."""
        whole = (plain_words(e) if isinstance(e, str) else e for e in self._access.commands)
        found: dict[str, list[tuple[str, ...]]] = {}
        for words in (*filter(None, whole), *(argv for argv, _ in self._words)):
            found.setdefault(words[0], []).append(words)
        return found

    @cached_property
    def _has_paths(self) -> bool:
        return bool(self._access.paths or self._access.aliases) or any(
            read.reads or read.writes for read in self._read
        )

    @cached_property
    def _words(self) -> list[tuple[tuple[str, ...], str]]:
        """Every command that may run, with its folder; also what is only carried by another."""
        found: dict[tuple[tuple[str, ...], str], None] = {}
        for read in self._read:
            for run in read.runs:
                found.update(((each.argv, each.folder), None) for each in run)
                # The last is what all the others carry, if they were understood.
                for each in run if read.unread else run[-1:]:
                    found.update(((argv, each.folder), None) for argv in carried(each.argv))
        return list(found)[:_MOST_STEPS]

    @cached_property
    def commands(self) -> list[list[Access]]:
        return [
            [self._command(each.argv, each.folder) for each in run]
            for read in self._read
            for run in read.runs
        ]

    @cached_property
    def files(self) -> list[Access]:
        return [
            *(self._file("read", path) for read in self._read for path in read.reads),
            *(self._file("write", path) for read in self._read for path in read.writes),
        ]

    def concerning(self, rule: Rule) -> Iterator[Access]:
        """Those that a rule to deny or to ask may speak of."""
        words = rule.argv or rule.argv_prefix
        if words:
            count = len(words)
            yield from (each for each in self._carried if each.commands[0][:count] == words)
            return
        if rule.path is None:
            yield from self._carried
        yield from self.files

    @cached_property
    def _carried(self) -> list[Access]:
        return [self._command(*each) for each in self._words]

    def _command(self, argv: tuple[str, ...], folder: str) -> Access:
        if not folder:
            return msgspec.structs.replace(self._access, commands=(argv,))
        seen = None if _may_lead_elsewhere(folder) else self._seen(folder, False)
        return msgspec.structs.replace(
            self._access,
            commands=(argv,),
            cwd=None if seen is None else seen.path,
            cwd_aliases=() if seen is None else seen.aliases,
        )

    def _file(self, operation: Literal["read", "write"], path: str) -> Access:
        seen = self._seen(path, operation == "write")
        return Access(
            operation=operation,
            agent=self._access.agent,
            paths=() if seen is None else (seen.path,),
            aliases=() if seen is None else seen.aliases,
            hazard=None if seen is None else seen.hazard or _hazard(seen.path),
            roots=self._access.roots,
            claimed=self._access.claimed,
            complete=self._access.complete and seen is not None,
        )

    def _seen(self, path: str, writing: bool) -> Sighting | None:
        """What it is on the disk. Not by its letters: the folder before `..` may be a link."""
        if (path, writing) not in self._sightings:
            where = self._access.cwd
            full = path if path.startswith("/") else where and f"{where}/{path}"
            self._sightings[path, writing] = self._look(full, writing) if full else None
        return self._sightings[path, writing]


def _place(numbered: tuple[int, Rule]) -> int:
    return numbered[0]


def _begins_one(words: tuple[str, ...], commands: list[tuple[str, ...]]) -> bool:
    count = len(words)
    return any(command[:count] == words for command in commands)


def _may_lead_elsewhere(folder: str) -> bool:
    """Whether `cd` would look for the folder in other places first."""
    return folder.split("/")[0] not in ("", ".") and bool(os.environ.get("CDPATH"))


def _hazard(path: str) -> str | None:
    """Other redirections of the same line may complete the repository."""
    is_head = "head" in path.casefold().split("/")
    return "with a file HEAD, git may take its folder for a repository" if is_head else None

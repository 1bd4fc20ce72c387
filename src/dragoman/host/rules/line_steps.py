"""The steps of a shell line, each as an access of its own.

A step is a command that the line runs, or a file that it redirects. Nothing is decided here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Literal, TypeAlias

import msgspec

from dragoman.host.commands.file_operands import files_written_by, makes_links
from dragoman.host.commands.plain_command import plain_words
from dragoman.host.commands.shell_line import Argv, Reading, carried, read_argv, read_line
from dragoman.host.rules.access import Access, Command, Sighting, normalise
from dragoman.host.rules.rule import Rule
from dragoman.host.rules.rule_index import RuleIndex

Look: TypeAlias = Callable[[str, bool], Sighting | None]
"""What an absolute path is on the disk, and what it means to write it if that is wanted; None where
that is unknown."""
_MOST_STEPS = 256


def by_letters(path: str, writing: bool) -> Sighting | None:
    """Without a look at the disk."""
    return Sighting(normalise(path))


class Steps:
    """What the commands of an access come to, as far as their lines are read."""

    def __init__(self, access: Access, look: Look) -> None:
        self._access = access
        self._look = look
        self._sightings: dict[tuple[str, bool], Sighting | None] = {}
        self._folders: dict[str, Sighting | None] = {}
        self._accesses: dict[tuple[Argv, str], Access] = {}
        runs = access.operation == "execute" and not access.env and all(access.commands)
        self._read = _readings(access.commands) if runs else []
        self._words = _words(self._read)
        self._whole = [
            plain_words(each) if isinstance(each, str) else each for each in access.commands
        ]

    @property
    def tell_more(self) -> bool:
        """Whether there is more to them than the words that rules are compared with anyway."""
        return bool(self._read) and (len(self._words) > 1 or None in self._whole)

    @property
    def are_lines(self) -> bool:
        """Whether no rule about a command can match the access as a whole."""
        return not any(self._whole)

    @property
    def are_all(self) -> bool:
        """Whether nothing else happens, and each where it is looked for now."""
        if len(self._read) != 1:
            return False
        [read] = self._read
        return not read.unread and read.early and bool(read.runs)

    def worth_a_look(self, rules: RuleIndex) -> list[Rule]:
        """The rules without those that cannot match, of which there may be hundreds."""
        access, files = self._access, self.files
        found = rules.about(
            {*access.operations, *(each.operation for each in files)},
            self._named,
            (*access.paths, *(path for each in files for path in each.paths)),
            access.roots,
        )
        return found if files or access.paths or access.aliases else _without_paths(found)

    @property
    def _named(self) -> set[Argv]:
        """Every command that a rule may name."""
        return {*filter(None, self._whole), *(argv for argv, _ in self._words)}

    @property
    def commands(self) -> list[list[Access]]:
        return [
            [self._command(each.argv, each.folder) for each in run]
            for read in self._read
            for run in read.runs
        ]

    def beyond_an_answer(self, rule: Rule, access: Access) -> str | None:
        """Why a person who allowed a program, or any command, did not mean what it would write.
        The access is this one, or a command of it."""
        if access is not self._access:
            return self._why_beyond(rule, access)
        whys = (self._why_beyond(rule, run) for run in self._runs)
        into = (_why_not_written(file) for file in self.files if file.operation == "write")
        return next(filter(None, chain(whys, into)), None)

    @cached_property
    def _runs(self) -> list[Access]:
        """Each command that is run, behind its wrappers; also with variables."""
        runs = (run for read in _readings(self._access.commands) for run in read.runs)
        return [self._command(run[-1].argv, run[-1].folder) for run in runs]

    def _why_beyond(self, rule: Rule, run: Access) -> str | None:
        [argv] = run.commands
        assert not isinstance(argv, str)  # a step has words
        paths = files_written_by(argv)
        if paths is None:
            why = f"the words of {argv[0]} do not say which files it would write"
            return None if rule.argv_prefix is None else why
        if paths and any(makes_links(_words_of(e)) for e in self._runs if e.commands != (argv,)):
            return f"only running the line shows where {argv[0]} would write"
        for path in paths:
            full = path if path.startswith("/") else f"{run.cwd}/{path}"
            seen = self._look(full, True) if run.cwd is not None else None
            if why := _why_not_written(self._file_at("write", seen), f"{argv[0]} {path}"):
                return why
        return None

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

    def _command(self, argv: Argv, folder: str) -> Access:
        if (known := self._accesses.get((argv, folder))) is None:
            known = self._accesses[argv, folder] = self._run_in(argv, folder)
        return known

    def _run_in(self, argv: Argv, folder: str) -> Access:
        if not folder:
            return msgspec.structs.replace(self._access, commands=(argv,))
        seen = self._folder(folder)
        return msgspec.structs.replace(
            self._access,
            commands=(argv,),
            cwd=None if seen is None else seen.path,
            cwd_aliases=() if seen is None else seen.aliases,
        )

    def _folder(self, folder: str) -> Sighting | None:
        if folder not in self._folders:
            in_doubt = _may_lead_elsewhere(folder)
            self._folders[folder] = None if in_doubt else self._seen(folder, False)
        return self._folders[folder]

    def _file(self, operation: Literal["read", "write"], path: str) -> Access:
        return self._file_at(operation, self._seen(path, operation == "write"))

    def _file_at(self, operation: Literal["read", "write"], seen: Sighting | None) -> Access:
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


def _why_not_written(file: Access, words: str = "") -> str | None:
    """Why no answer about commands covers that they write this file."""
    if file.protection is not None:
        return file.protection
    if file.place != "inside":
        what = words or (file.paths[0] if file.paths else "a file")
        return f"it would write outside the workspace, or where cannot be known: {what}"
    return None


def _readings(commands: Sequence[Command]) -> list[Reading]:
    return [
        read_line(each) if isinstance(each, str) else read_argv(each) for each in commands if each
    ]


def _words_of(step: Access) -> Argv:
    words = step.commands[0]
    return () if isinstance(words, str) else words


def _words(read_ones: Sequence[Reading]) -> list[tuple[Argv, str]]:
    """Every command that may run, with its folder; also what is only carried by another."""
    found: dict[tuple[Argv, str], None] = {}
    for read in read_ones:
        for run in read.runs:
            for each in run:
                found[each.argv, each.folder] = None
            # The last is what all the others carry, if they were understood.
            for each in run if read.unread else run[-1:]:
                found.update(((argv, each.folder), None) for argv in carried(each.argv))
    return list(found)[:_MOST_STEPS]


def _without_paths(rules: list[Rule]) -> list[Rule]:
    return [rule for rule in rules if rule.path is None]


def _may_lead_elsewhere(folder: str) -> bool:
    """Whether `cd` would look for the folder in other places first."""
    return folder.split("/")[0] not in ("", ".") and bool(os.environ.get("CDPATH"))


def _hazard(path: str) -> str | None:
    """Other redirections of the same line may complete the repository."""
    is_head = "head" in path.casefold().split("/")
    return "with a file HEAD, git may take its folder for a repository" if is_head else None

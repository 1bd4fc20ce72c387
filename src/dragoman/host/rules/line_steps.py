"""The steps of a shell line, each as an access of its own.

A step is a command that the line runs, or a file that it redirects. Nothing is decided here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain, islice
from operator import methodcaller
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from dragoman.host.commands.carriers import carried
from dragoman.host.commands.file_operands import (
    files_perhaps_written_by,
    files_written_by,
    is_writer,
    makes_links,
)
from dragoman.host.commands.loose_line import (
    LineOutline,
    LooseLine,
    Suspect,
    has_marks,
    loosely,
    outline,
    shown,
)
from dragoman.host.commands.plain_command import plain_words
from dragoman.host.commands.shell_line import Argv, Reading, read_argv, read_line
from dragoman.host.commands.word_match import Named, matched
from dragoman.host.rules.access import Access, Command, Sighting, normalise
from dragoman.host.rules.rule import Rule
from dragoman.host.rules.rule_index import Numbered, RuleIndex, Sought

Look: TypeAlias = Callable[[str, bool], Sighting | None]
"""What an absolute path is on the disk, and what it means to write it if that is wanted; None where
that is unknown."""
_MOST_FOLDERS = 8
# With paths that are normalised already: that takes longer than everything else. `copy.copy` does
# the same, and importing Dragoman does not load it otherwise.
_copied = methodcaller("__copy__")


def by_letters(path: str, writing: bool) -> Sighting | None:
    """Without a look at the disk."""
    return Sighting(normalise(path))


class StepHit(NamedTuple):
    """A step that a rule to deny or to ask speaks of, or may speak of if it is not `sure`: then
    with the rule without the condition of which nothing is known."""

    rule: Rule
    step: Access
    sure: bool
    words: str


class Steps:
    """What the commands of an access come to, as far as their lines are read."""

    def __init__(self, access: Access, look: Look) -> None:
        self._access = access
        self._look = look
        self._sightings: dict[tuple[str, bool], Sighting | None] = {}
        self._folders: dict[str, Sighting | None] = {}
        self._accesses: dict[tuple[Argv, str], Access] = {}
        self._started: dict[str, Access] = {}
        self._files: list[Access] | None = None
        self._at_most: list[Access] | None = None
        runs = "execute" in access.operations and not access.env and all(access.commands)
        self._outlines = [outline(each) for each in access.commands] if runs else []
        self._read = _readings(access.commands) if runs and access.operation == "execute" else []
        self._layers = {argv for each in self._outlines for argv in each.layers}
        self._whole = [
            plain_words(each) if isinstance(each, str) else each for each in access.commands
        ]

    @property
    def tell_more(self) -> bool:
        """Whether there is more to them than the words that rules are compared with anyway."""
        return bool(self._read) and (len(self._layers) > 1 or None in self._whole)

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

    def worth_a_look(
        self, rules: RuleIndex, real: Mapping[str, list[Numbered]] | None = None
    ) -> list[Rule]:
        """The rules without those that cannot match, of which there may be hundreds."""
        return rules.about(self._sought(), real)

    def _sought(self) -> Sought:
        access, files, lines = self._access, self.files_at_most, self._outlines
        folders = [*access.folders, *access.cwd_aliases]
        seen = self._folders_gone_to if lines else []
        for each in filter(None, seen):
            folders += (each.path, *each.aliases)
        paths = [*access.paths, *access.aliases]
        for file in files:
            paths += (*file.paths, *file.aliases)
        one = lines[0] if len(lines) == 1 else None
        return Sought(
            operations={*access.operations, *(each.operation for each in files)},
            commands={*filter(None, self._whole), *self._layers},
            programs=one.programs if one else {name for each in lines for name in each.programs},
            words=one.words if one else _union(lines),
            any_program=any(each.any_program for each in lines),
            paths=paths,
            any_path=any(not each.paths for each in files),
            folders=folders,
            any_folder=None in seen,
            hosts=bool(access.hosts),
            tools=bool(access.names or access.tool is not None),
            roots=access.roots,
        )

    @property
    def _folders_gone_to(self) -> list[Sighting | None]:
        found = [self._folder(each) for line in self._outlines for each in line.gone_to]
        if not self._are_read:
            found += [each for loose in self._loose for each in self._folders_of(loose)[1:]]
        return [*found, None] if self._outlines and self._access.cwd is None else found

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

    def writes_protected(self) -> str | None:
        """Why it always asks, as far as the words of its commands say which files they write."""
        if self._outlines and not any(each.writes for each in self._outlines):
            return None
        for words, folder in self._programs:
            if (why := self._protected_by(words, folder)) is not None:
                return why
        return None

    @property
    def _programs(self) -> Iterator[tuple[Argv, Callable[[], str | None]]]:
        """The words of each command, and of those that it carries, with a way to its folder."""
        for run in (run for read in _readings(self._access.commands) for run in read.runs):
            argv, folder = run[-1].argv, run[-1].folder
            where = partial(self._path_of, folder)
            yield from ((words, where) for words in _with_writers(argv))
        if not self._are_read:
            for loose in self._loose:
                for suspect in (each for each in loose.suspects if each.sure):
                    for folder in self._where(suspect, loose):
                        where = partial(getattr, folder, "path", None)
                        yield from ((words, where) for words in _with_writers(suspect.words))

    def _path_of(self, folder: str) -> str | None:
        if not folder:
            return self._access.cwd
        seen = self._folder(folder)
        return None if seen is None else seen.path

    def _protected_by(self, argv: Argv, folder: Callable[[], str | None]) -> str | None:
        paths = files_written_by(argv)
        paths = files_perhaps_written_by(argv) if paths is None else paths
        for path in dict.fromkeys(paths):
            where = None if path.startswith("/") else folder()
            full = path if path.startswith("/") else where and f"{where}/{path}"
            seen = self._look(full, True) if full else None
            if (why := self._file_at("write", seen).protection) is not None:
                return why
        return None

    @cached_property
    def _runs(self) -> list[Access]:
        """Each command that is run, behind its wrappers; also with variables."""
        runs = (run for read in _readings(self._access.commands) for run in read.runs)
        return [self._command(run[-1].argv, run[-1].folder) for run in runs]

    @cached_property
    def _linking(self) -> list[Argv]:
        """The commands after which another may write elsewhere."""
        return [words for words in map(_words_of, self._runs) if makes_links(words)]

    def _why_beyond(self, rule: Rule, run: Access) -> str | None:
        [argv] = run.commands
        assert not isinstance(argv, str)  # a step has words
        paths = files_written_by(argv)
        if paths is None:
            why = f"the words of {argv[0]} do not say which files it would write"
            return self._protected_by(argv, lambda: run.cwd) if rule.argv_prefix is None else why
        if paths and any(words != argv for words in self._linking):
            return f"only running the line shows where {argv[0]} would write"
        for path in dict.fromkeys(paths):
            full = path if path.startswith("/") else f"{run.cwd}/{path}"
            seen = self._look(full, True) if run.cwd is not None else None
            if why := _why_not_written(self._file_at("write", seen), f"{argv[0]} {path}"):
                return why
        return None

    @property
    def files(self) -> list[Access]:
        """Those of lines that are read, and of the others as far as they are."""
        if self._files is None:
            self._files = [
                *(self._file("read", path) for read in self._read for path in read.reads),
                *(self._file("write", path) for read in self._read for path in read.writes),
            ]
        return self._files

    # ── for rules that deny or ask ────────────────────────────────────────────────────────────

    @property
    def _loose(self) -> list[LooseLine]:
        return [loosely(each) for each in self._access.commands] if self._outlines else []

    @property
    def _are_read(self) -> bool:
        """Whether every line is read to its end."""
        is_each = len(self._read) == len(self._outlines)
        return is_each and not any(read.unread for read in self._read)

    @property
    def files_at_most(self) -> list[Access]:
        """Every file that may be redirected; one without a path may be any."""
        if self._at_most is None:
            self._at_most = self.files
            if not self._are_read:
                self._at_most = [file for loose in self._loose for file in self._files_of(loose)]
        return self._at_most

    def _files_of(self, loose: LooseLine) -> Iterator[Access]:
        for file in loose.files:
            operation = "write" if file.writes else "read"
            path = os.path.expanduser(file.path) if file.path.startswith("~/") else file.path
            if has_marks(path) or path.startswith("~"):
                yield self._file_at(operation, None)
            elif path.startswith("/"):
                yield self._file(operation, path)
            else:
                for folder in self._folders_of(loose):
                    full = "" if folder is None else f"{folder.path}/{path}"
                    seen = self._look(full, file.writes) if full else None
                    yield self._file_at(operation, seen)

    def _folders_of(self, loose: LooseLine) -> list[Sighting | None]:
        """Where its commands may run: at its start, and wherever it goes. None is anywhere."""
        if self._access.cwd is None:
            return [None]
        if not loose.folders:
            return [Sighting(self._access.cwd, self._access.cwd_aliases)]
        start = Sighting(self._access.cwd, self._access.cwd_aliases)
        found: dict[Sighting | None, None] = {start: None}
        for folder in loose.folders[:_MOST_FOLDERS]:
            path = os.path.expanduser(folder) if folder[:2] in ("~", "~/") else folder
            if has_marks(path) or path[:1] in ("~", "-", "+") or not path:
                found[None] = None
                continue
            for top in list(found)[:_MOST_FOLDERS]:
                full = path if path.startswith("/") else top and f"{top.path}/{path}"
                found[self._look(full, False) if full else None] = None
        if len(loose.folders) > _MOST_FOLDERS or len(found) > _MOST_FOLDERS:
            found[None] = None
        return list(found)

    def hits(self, rule: Rule) -> Iterator[StepHit]:
        """The steps that a rule to deny or to ask may speak of."""
        words = rule.argv or rule.argv_prefix
        if words:
            named = Named(words, exact=rule.argv is not None)
            for loose in self._loose:
                yield from self._named(rule, named, loose)
            return
        if rule.cwd is not None and rule.path is None:
            for folder in self._folders_gone_to:
                yield self._in_folder(rule, folder, self._access.commands, "", sure=True)
        for file in self.files_at_most:
            if file.paths or rule.path is None:
                text = f"{file.operation} {', '.join(file.paths)}".rstrip()
                yield StepHit(rule, file, bool(file.paths), text)
            else:
                anywhere = msgspec.structs.replace(rule, path=None)
                yield StepHit(anywhere, file, False, f"{file.operation} a file that is not known")

    def _named(self, rule: Rule, named: Named, loose: LooseLine) -> Iterator[StepHit]:
        for suspect in loose.suspects:
            if (found := matched(suspect, named)) is not None:
                text = shown(found.words)
                for folder in self._where(suspect, loose):
                    yield self._in_folder(rule, folder, (named.words,), text, sure=found.sure)

    def _where(self, suspect: Suspect, loose: LooseLine) -> list[Sighting | None]:
        if suspect.folder is None:
            return self._folders_of(loose)
        if not suspect.folder:
            cwd = self._access.cwd
            return [None if cwd is None else Sighting(cwd, self._access.cwd_aliases)]
        return [self._folder(suspect.folder)]

    def _in_folder(
        self,
        rule: Rule,
        folder: Sighting | None,
        commands: tuple[Command, ...],
        text: str,
        *,
        sure: bool,
    ) -> StepHit:
        is_known = folder is not None or rule.cwd is None
        step = msgspec.structs.replace(
            self._access,
            commands=commands,
            cwd=None if folder is None else folder.path,
            cwd_aliases=() if folder is None else folder.aliases,
        )
        rule = rule if is_known else msgspec.structs.replace(rule, cwd=None)
        where = text or ("a command" if folder is None else f"a command in {folder.path}")
        return StepHit(rule, step, sure and is_known, where)

    # ── accesses ──────────────────────────────────────────────────────────────────────────────

    def _command(self, argv: Argv, folder: str) -> Access:
        if (known := self._accesses.get((argv, folder))) is None:
            known = self._accesses[argv, folder] = self._run_in(argv, folder)
        return known

    def _run_in(self, argv: Argv, folder: str) -> Access:
        if folder and folder not in self._started:
            seen = self._folder(folder)
            where, aliases = (None, ()) if seen is None else (seen.path, seen.aliases)
            start: Access = _copied(self._access)
            self._started[folder] = start
            msgspec.structs.force_setattr(start, "cwd", where and normalise(where))
            msgspec.structs.force_setattr(start, "cwd_aliases", tuple(map(normalise, aliases)))
        run: Access = _copied(self._started[folder] if folder else self._access)
        msgspec.structs.force_setattr(run, "commands", (argv,))
        return run

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


def _with_writers(argv: Argv) -> Iterator[Argv]:
    """The words of a command, and from each on that names a program which writes files, if it is
    run by the one before it; not all of them, since an agent chooses them."""
    yield argv
    yield from islice((words for words in carried(argv) if is_writer(words)), _MOST_WRITERS)


_MOST_WRITERS = 3


def _union(lines: Sequence[LineOutline]) -> set[str] | None:
    found: set[str] = set()
    for each in lines:
        if each.words is None:
            return None
        found |= each.words
    return found


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


def _may_lead_elsewhere(folder: str) -> bool:
    """Whether `cd` would look for the folder in other places first."""
    return folder.split("/")[0] not in ("", ".") and bool(os.environ.get("CDPATH"))


def _hazard(path: str) -> str | None:
    """Other redirections of the same line may complete the repository."""
    is_head = "head" in path.casefold().split("/")
    return "with a file HEAD, git may take its folder for a repository" if is_head else None

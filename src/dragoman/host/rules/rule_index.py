"""Rules by what they can match: of hundreds, a decision looks only at those that may speak of it.

Made once for many decisions. It errs on one side only: a rule that it leaves out cannot match.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

import msgspec

from dragoman.host.commands.carriers import Argv, program_name
from dragoman.host.rules.access import Operation
from dragoman.host.rules.globs import is_within, literal_beginning, literal_end
from dragoman.host.rules.rule import Rule, covered

Numbered: TypeAlias = tuple[int, Rule]


class Sought(msgspec.Struct, frozen=True, kw_only=True):
    """What an access names, by which rules are found."""

    operations: Collection[Operation] = ()
    commands: Iterable[Argv] = ()
    """For rules that allow."""
    programs: Collection[str] = ()
    """The names, in lower case, of what may be run; for rules that deny or ask."""
    words: Collection[str] | None = ()
    """Every word that may follow one of them, None if it may be any."""
    any_program: bool = False
    paths: Collection[str] = ()
    any_path: bool = False
    folders: Collection[str] = ()
    any_folder: bool = False
    hosts: bool = True
    tools: bool = True
    roots: Sequence[str] = ()


class _Places:
    """Rules by a glob for paths: by the names it begins with, or what it ends in."""

    def __init__(self) -> None:
        self.strict: list[Numbered] = []
        """Those that deny or ask."""
        self._by_beginning: dict[str, list[Numbered]] = {}
        self._by_end: dict[str, list[Numbered]] = {}

    def file(self, numbered: Numbered, glob: str) -> None:
        if numbered[1].effect != "allow":
            self.strict.append(numbered)
        beginning, end = _beginning(glob), literal_end(glob)
        if beginning.strip("/") or end is None:
            self._by_beginning.setdefault(beginning, []).append(numbered)
        else:
            self._by_end.setdefault(end, []).append(numbered)

    def about(
        self, paths: Iterable[str], roots: Sequence[str], real: Mapping[str, list[Numbered]]
    ) -> Iterator[list[Numbered]]:
        known, ends = self._by_beginning, self._by_end
        tops = tuple(roots)
        for path in paths:
            above = (_above if len(path) <= _LONG else _found_above)(path, tops)
            yield from (known[each] for each in above if each in known)
            if real:
                yield from (real[each] for each in above if each in real)
            if ends:
                yield from (ends[each] for each in _ends(path) if each in ends)


_NONE: list[Numbered] = []


class RuleIndex:
    """Rules with their places in the list, by what they name first: a command, a path, a folder, a
    host, a tool, or an operation.

    `projects` are those whose rules count: this one, and for rules that deny or ask all that it is
    in. None is for any.
    """

    def __init__(
        self, rules: Iterable[Rule], project: str | None = None, above: Collection[str] = ()
    ) -> None:
        self.rules = tuple(rules)
        self.above = frozenset(above)
        """Other projects, whose rules that deny or ask count here too."""
        self._project = project
        self._by_argv: dict[Argv, list[Numbered]] = {}
        self._by_prefix: dict[Argv, list[Numbered]] = {}
        self._by_program: dict[str, dict[str, list[Numbered]]] = {}
        self._by_operation: dict[Operation | None, list[Numbered]] = {}
        self._by_host: list[Numbered] = []
        self._by_tool: list[Numbered] = []
        self._places, self._folders = _Places(), _Places()
        file, prefixes = self._file, self._by_prefix
        for numbered in enumerate(self.rules):
            rule = numbered[1]
            if rule.scope == "project" and project is not None and not self._is_for(rule, project):
                continue
            # Most are of this kind, and there may be hundreds.
            if rule.argv_prefix is not None and rule.effect == "allow" and rule.argv is None:
                prefixes.setdefault(rule.argv_prefix, []).append(numbered)
            else:
                file(numbered)
        self._lengths = sorted(set(map(len, self._by_prefix)))

    def _is_for(self, rule: Rule, project: str) -> bool:
        is_above = rule.effect != "allow" and rule.project in self.above
        return rule.project == project or is_above

    def _file(self, numbered: Numbered) -> None:
        rule = numbered[1]
        allows = rule.effect == "allow"
        if rule.argv is not None and allows:
            self._by_argv.setdefault(rule.argv, []).append(numbered)
        elif rule.argv is not None or rule.argv_prefix is not None:
            program, second = (*(rule.argv or rule.argv_prefix or ()), "", "")[:2]
            named = self._by_program.setdefault(program_name(program).casefold(), {})
            named.setdefault(second, []).append(numbered)
        elif rule.path is not None:
            self._places.file(numbered, rule.path)
        elif rule.cwd is not None:
            self._folders.file(numbered, rule.cwd)
        elif rule.host is not None:
            self._by_host.append(numbered)
        elif rule.tool is not None:
            self._by_tool.append(numbered)
        else:
            for each in covered(rule) if allows else (rule.operation,):
                self._by_operation.setdefault(each, []).append(numbered)

    @property
    def placed(self) -> list[Numbered]:
        """The rules that deny or ask about a path or a folder, which may have other names."""
        return [*self._places.strict, *self._folders.strict]

    def is_of(self, rules: tuple[Rule, ...], project: str) -> bool:
        """Whether these are the same rules, one by one."""
        return project == self._project and (rules is self.rules or rules == self.rules)

    def about(self, sought: Sought, real: Mapping[str, list[Numbered]] | None = None) -> list[Rule]:
        """Those that may speak of it, in their order. `real` has, by the real names of their
        paths, rules that deny or ask."""
        lists = [self._by_operation.get(each) for each in (None, *sought.operations)]
        exact, prefixes = self._by_argv, self._by_prefix
        for argv in sought.commands:
            if exact:
                lists.append(exact.get(argv))
            lists += [prefixes.get(argv[:length]) for length in self._lengths]
        if self._by_program:
            lists += self._named(sought)
        lists += self._at(sought, real or {})
        if sought.hosts:
            lists.append(self._by_host)
        if sought.tools:
            lists.append(self._by_tool)
        found = {at: rule for each in lists if each for at, rule in each}
        return [found[at] for at in sorted(found)]

    def _named(self, sought: Sought) -> Iterator[list[Numbered]]:
        """The rules that deny or ask about one of the programs."""
        known = self._by_program
        for program in known if sought.any_program else known.keys() & sought.programs:
            named = known[program]
            if sought.any_program or sought.words is None:
                yield from named.values()
            else:
                yield named.get("", _NONE)
                # At once: there may be hundreds of either.
                for word in named.keys() & sought.words:
                    yield named[word]

    def _at(self, sought: Sought, real: Mapping[str, list[Numbered]]) -> Iterator[list[Numbered]]:
        yield from self._places.about(sought.paths, sought.roots, real)
        yield from self._folders.about(sought.folders, sought.roots, real)
        if sought.any_path:
            yield self._places.strict
        if sought.any_folder:
            yield self._folders.strict


@lru_cache(maxsize=1024)
def _beginning(glob: str) -> str:
    names, _ = literal_beginning(glob)
    return f"/{names}" if glob.startswith("/") else names


_LONG = 256
"""A path with more characters is not kept: all its beginnings are a hundred times as large."""


def _found_above(path: str, roots: tuple[str, ...]) -> tuple[str, ...]:
    """What the globs that match a path may begin with, from the top and from each root."""
    found = _lineage(path)
    for root in roots:
        if is_within(path, root):
            found += _lineage(path[len(root.rstrip("/")) + 1 :])
    return tuple(found)


_above = lru_cache(maxsize=256)(_found_above)


def _lineage(path: str) -> list[str]:
    found = ["/" if path.startswith("/") else ""]
    at = len(path)
    while at > 0:
        found.append(path[:at])
        at = path.rfind("/", 0, at)
    return found


def _ends(path: str) -> Iterator[str]:
    """What the globs that match a path may end in: its name, or what follows a dot in it."""
    name = path.rpartition("/")[2]
    yield name
    at = name.rfind(".")
    if at >= 0:
        yield name[at:]

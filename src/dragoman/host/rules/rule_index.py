"""Rules by what they can match: of hundreds, a decision looks only at those that may speak of it.

Made once for many decisions. It errs on one side only: a rule that it leaves out cannot match.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

from dragoman.host.commands.shell_line import Argv
from dragoman.host.rules.access import Operation
from dragoman.host.rules.globs import is_within, literal_beginning
from dragoman.host.rules.rule import Rule, covered

_Numbered: TypeAlias = tuple[int, Rule]


class RuleIndex:
    """Rules with their places in the list, by the command, the path or the operation they name.

    Rules for another project count nowhere in this one. A rule that denies or asks is not found by
    its path: that may be a link, and lead to what is asked about.
    """

    def __init__(self, rules: Iterable[Rule], project: str | None = None) -> None:
        self.rules = tuple(rules)
        self._project = project
        self._by_argv: dict[Argv, list[_Numbered]] = {}
        self._by_prefix: dict[Argv, list[_Numbered]] = {}
        self._by_path: dict[str, list[_Numbered]] = {}
        self._by_operation: dict[Operation | None, list[_Numbered]] = {}
        for numbered in enumerate(self.rules):
            if project is None or _is_for(numbered[1], project):
                self._file(numbered)
        self._lengths = sorted(set(map(len, self._by_prefix)))

    def _file(self, numbered: _Numbered) -> None:
        rule = numbered[1]
        if rule.argv is not None:
            self._by_argv.setdefault(rule.argv, []).append(numbered)
        elif rule.argv_prefix is not None:
            self._by_prefix.setdefault(rule.argv_prefix, []).append(numbered)
        elif rule.effect == "allow" and rule.path is not None:
            self._by_path.setdefault(_beginning(rule.path), []).append(numbered)
        elif rule.effect == "allow":
            for each in covered(rule):
                self._by_operation.setdefault(each, []).append(numbered)
        else:
            self._by_operation.setdefault(rule.operation, []).append(numbered)

    def is_of(self, rules: tuple[Rule, ...], project: str) -> bool:
        """Whether these are the same rules, one by one."""
        return project == self._project and rules == self.rules

    def about(
        self,
        operations: Collection[Operation],
        commands: Iterable[Argv],
        paths: Iterable[str],
        roots: Sequence[str],
    ) -> list[Rule]:
        """Those that may speak of one of these operations, commands and paths, in their order."""
        lists = [self._by_operation.get(each) for each in (None, *operations)]
        for argv in commands:
            lists.append(self._by_argv.get(argv))
            lists += (self._by_prefix.get(argv[:length]) for length in self._lengths)
        if self._by_path:
            lists += (self._by_path.get(each) for path in paths for each in _above(path, roots))
        found = dict(numbered for each in lists if each for numbered in each)
        return [found[at] for at in sorted(found)]


def _is_for(rule: Rule, project: str) -> bool:
    return rule.scope != "project" or rule.project == project


@lru_cache(maxsize=1024)
def _beginning(glob: str) -> str:
    names, _ = literal_beginning(glob)
    return f"/{names}" if glob.startswith("/") else names


def _above(path: str, roots: Sequence[str]) -> Iterator[str]:
    """What the globs that match a path may begin with, from the top and from each root."""
    yield from _lineage(path)
    for root in roots:
        if is_within(path, root):
            yield from _lineage(path[len(root.rstrip("/")) + 1 :])


def _lineage(path: str) -> Iterator[str]:
    at = len(path)
    while at > 0:
        yield path[:at]
        at = path.rfind("/", 0, at)
    yield path[:1] if path.startswith("/") else ""

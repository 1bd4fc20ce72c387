"""Where the paths and folders of rules really are: the beginning of one may be a link.

Everything beneath a home behind a link is called twice. A rule that denies or asks counts for both
names. Looking that up for hundreds of rules takes milliseconds, so it is done once, and again for
the folders that have changed since: a link that is made, moved or removed changes its folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from dragoman.host.rules.globs import escape, literal_beginning
from dragoman.host.rules.rule import Rule
from dragoman.host.rules.rule_index import Numbered
from dragoman.host.workspace.jail import resolve
from dragoman.host.workspace.reach import FolderStates


class RealNames:
    """The rules of an index that deny or ask about places, by the real names of these."""

    def __init__(self, rules: Iterable[Numbered], roots: Sequence[str]) -> None:
        self._rules = list(rules)
        self._roots = tuple(roots)
        self._states: FolderStates | None = None
        self._also: dict[int, tuple[Rule, ...]] = {}
        self._places: dict[str, list[Numbered]] = {}

    def are_of(self, roots: Sequence[str]) -> bool:
        return self._roots == tuple(roots)

    def also(self, rule: Rule) -> tuple[Rule, ...]:
        """The same rule by its real names."""
        return self._also.get(id(rule), ())

    def places(self) -> Mapping[str, list[Numbered]]:
        """The rules that have other names, by how these begin; looked up if they are not known."""
        if self._rules and (self._states is None or not self._states.still_hold()):
            self._look()
        return self._places

    def _look(self) -> None:
        looking = _Looking(self._roots)
        self._also, self._places = {}, {}
        for number, rule in self._rules:
            renamed = list(_renamed(rule, self._roots, looking))
            if renamed:
                self._also[id(rule)] = tuple(each for each, _ in renamed)
            for _, place in renamed:
                self._places.setdefault(place, []).append((number, rule))
        self._states = looking.states


class _Looking:
    """Follows many paths, each name on the way once."""

    def __init__(self, roots: Sequence[str]) -> None:
        self.states = FolderStates()
        """Of everything where a link would lead elsewhere."""
        self._entered: set[str] = set()
        # These are the real ones.
        self._real: dict[str, str | None] = {"": "", **{root: root for root in roots}}

    def follow(self, path: str) -> str | None:
        """Where it really is; None if that cannot be said."""
        folder, _, name = path.rpartition("/")
        above = self._folder(folder)
        if above is None:
            return None
        self._enter(above)
        return self._followed(f"{above}/{name}")

    def _enter(self, folder: str) -> None:
        """What is made in a folder changes it; of one that is not there, the one above."""
        while folder not in self._entered:
            self._entered.add(folder)
            if os.path.lexists(folder or "/"):
                self.states.add(folder or "/")
                return
            folder = folder.rpartition("/")[0]

    def _folder(self, folder: str) -> str | None:
        if folder not in self._real:
            above, _, name = folder.rpartition("/")
            within = self._folder(above)
            if within is not None and os.path.lexists(f"{within}/{name}"):
                self.states.add_name(f"{within}/{name}")
            elif within is not None:
                self._enter(within)
            self._real[folder] = None if within is None else self._followed(f"{within}/{name}")
        return self._real[folder]

    def _followed(self, here: str) -> str | None:
        try:
            os.readlink(here)
        except OSError:
            return here  # not there, or not a link
        met: list[str] = []
        try:
            real = str(resolve(here, met))
        except (OSError, ValueError):
            real = None
        for each in (*met, *([] if real is None else [real])):
            for name in _lineage(each):
                self.states.add_name(name)
        return real


def _lineage(path: str) -> Iterator[str]:
    while path:
        yield path
        path = path.rpartition("/")[0]


def _renamed(rule: Rule, roots: Sequence[str], looking: _Looking) -> Iterator[tuple[Rule, str]]:
    """The rule for each other name, and how that begins. Outside its project, what a rule says
    about a path of the project is said about that place."""
    own = (rule.project,) if rule.scope == "project" and rule.project is not None else ()
    for name, glob in (("path", rule.path), ("cwd", rule.cwd)):
        if glob is not None:
            for real, place in _real_globs(glob, roots, own, looking):
                yield msgspec.structs.replace(rule, **{name: real}), place


def _real_globs(
    glob: str, roots: Sequence[str], own: Sequence[str], looking: _Looking
) -> Iterator[tuple[str, str]]:
    names, rest = literal_beginning(glob)
    tops = ("",) if glob.startswith("/") else dict.fromkeys((*roots, *own))
    for top in tops:
        is_known = glob.startswith("/") or top in roots
        path = f"{top.rstrip('/')}/{names}".rstrip("/")
        real = looking.follow(path) if names or not is_known else None
        if real is not None and (real != path or not is_known):
            yield f"{escape(real.rstrip('/'))}/{rest}".rstrip("/") or "/", real

"""The floor of a fence: every path that is treated specially, with its mode and its reason.

Everything else can be read and not written. Made from the roots of a session, the agent's own
folders and the tables; looks at the disk, and changes nothing on it.
"""

from __future__ import annotations

import os
import stat
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from dragoman.data_directory import data_directory, settings_file, worktrees_directory
from dragoman.errors import ConfigError
from dragoman.fence.kernel_calls import landlock_version
from dragoman.fence.landlock import GOVERNS_SIGNALS, GOVERNS_TRUNCATION
from dragoman.fence.plan import FencePlan
from dragoman.host.fence import covered_paths
from dragoman.host.fence.mount_table import Mount, names_elsewhere
from dragoman.host.fence.private_places import private_place
from dragoman.host.rules.protected import folded, protection
from dragoman.host.workspace.regular_file import read_regular

FenceWay: TypeAlias = Literal["namespaces", "landlock"]
"""How the kernel holds a fence. Landlock can neither cover a path nor protect one inside a folder
that may be written."""

PlaceMode: TypeAlias = Literal["write", "read-only", "covered", "read"]

_OF_THE_SYSTEM = ("/proc", "/sys", "/dev")
_ALWAYS_PRIVATE = ("/tmp", "/var/tmp", "/dev")
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
_OWN = "rules, sessions and tokens of Dragoman"
_SETTINGS = "keys of agents in Dragoman's settings"
_SOCKET = "a socket of another program"


class FencePlace(msgspec.Struct, frozen=True, rename="camel"):
    """A path and what it is to the fenced programs."""

    path: str
    mode: PlaceMode
    reason: str


class Gap(msgspec.Struct, frozen=True, rename="camel"):
    """What should be held, and cannot be."""

    path: str
    reason: str


class Own(msgspec.Struct, frozen=True):
    """What an agent keeps for itself outside the workspace: where, why, and what of it is held."""

    paths: tuple[str, ...] = ()
    reason: str = ""
    held: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    """Of the paths, those that do not exist, and are made when the agent starts."""


_NOTHING = Own()


class Floor(msgspec.Struct, frozen=True, kw_only=True):
    """What is writable, read-only and covered, and what cannot be held."""

    places: tuple[FencePlace, ...]
    gaps: tuple[Gap, ...] = ()
    temporary: str = ""

    def paths(self, mode: PlaceMode) -> list[str]:
        return [place.path for place in self.places if place.mode == mode]

    def plan(self, way: FenceWay) -> FencePlan:
        """In the kernel's terms. Raises ValueError before there is a temporary folder."""
        if not self.temporary:
            raise ValueError("a plan needs a temporary folder")
        writable = self.paths("write")
        held = self.paths("read-only")
        covered = _outermost(self.paths("covered"), writable)
        there = filter(os.path.exists, covered)
        return FencePlan(
            way,
            temporary=os.fsencode(self.temporary),
            writable=_encoded(writable),
            read_only=_encoded(held),
            pinned=_encoded(_between((*writable, *held, *there), writable, covered)),
            covered=_encoded(covered),
            kept=_encoded(self.paths("read")),
        )

    def refusal(self, path: str, *, write: bool) -> str | None:
        """Why the kernel does not let this through; None if it does."""
        nearest = self._nearest(path)
        if nearest is None and (private := private_place(path)):
            return None if private.lets_through(path, write) else private.reason
        if nearest is None or (nearest.mode == "read" and write):
            return "it is outside the workspace" if write else None
        if nearest.mode == "covered" or (nearest.mode == "read-only" and write):
            how = "hidden" if nearest.mode == "covered" else nearest.mode
            return f"{nearest.path} is {how}: {nearest.reason}"
        return None

    def privacy(self, path: str) -> str | None:
        """Why what is at this path inside is not what is there outside; None if it is."""
        private = private_place(path)
        return None if private is None or self._nearest(path) else private.reason

    def _nearest(self, path: str) -> FencePlace | None:
        above = [place for place in self.places if _is_beneath(path, (place.path,))]
        return max(above, key=lambda place: len(place.path), default=None)

    def gaps_with(self, way: FenceWay) -> list[Gap]:
        """What cannot be held in this way."""
        if way == "namespaces":
            return list(self.gaps)
        missing = [place for place in self.places if place.mode in ("covered", "read-only")]
        open_places = [
            Gap(each.path, f"Landlock cannot do this: it {_open(each)}") for each in missing
        ]
        return [*self.gaps, *open_places, *landlock_gaps(landlock_version())]


def landlock_gaps(version: int) -> list[Gap]:
    """What Landlock of this version leaves open, wherever it is."""
    gaps = {
        "modes, times and attributes": "those of your files outside can be changed",
        "sockets of other programs": "D-Bus, docker and agents for keys can be asked",
        "processes of yours": "they are visible, and share memory, keys and terminals with it",
    }
    if version < GOVERNS_TRUNCATION:
        gaps["truncate(2)"] = "your files outside can be cut; it does so from Linux 6.2 on"
    if version < GOVERNS_SIGNALS:
        gaps["signals"] = "your other processes can be ended; it does so from Linux 6.12 on"
    return [Gap(what, f"Landlock does not govern it: {how}") for what, how in gaps.items()]


def _open(place: FencePlace) -> str:
    return "can be read" if place.mode == "covered" else "can be written"


def floor_for(
    roots: Sequence[str],
    *,
    own: Own = _NOTHING,
    others: Sequence[tuple[str, str]] = (),
    write: Sequence[str] = (),
    read: Sequence[str] = (),
    homes: Sequence[str] = (),
    environments: Sequence[Mapping[str, str]] = (),
    sockets: Sequence[str] = (),
    mounts: Sequence[Mount] = (),
) -> Floor:
    """The floor for sessions in these folders.

    `own` is what the agent itself keeps, `others` what must not be read of other agents, with a
    reason each; `write` and `read` are what the settings add. `environments` may name other places
    for what is in `homes`. What is covered is so by every name that `mounts` give it. Raises
    ConfigError for a folder that does not exist, or that would give
    away what a fence is there to hold.
    """
    homes = tuple(dict.fromkeys(map(os.path.realpath, homes or (os.path.expanduser("~"),))))
    writable = [*_workspace(roots), *_added(write, roots), *_own(own)]
    found = [each for root in roots for each in _protected(root)]
    kept_back = filter(os.path.exists, map(_real, own.held))
    found += [ProtectedPath(path, own.reason) for path in kept_back]
    found += _with_other_names(found)
    inside = tuple(place.path for place in writable)
    held = [each for each in found if each.held and _is_beneath(each.path, inside)]
    covered = [
        *((str(path), reason) for path, reason in _dragomans()),
        *covered_paths.covered(homes, environments),
        *others,
        *((path, _SOCKET) for path in sockets),
    ]
    covered += [
        (name, f"{reason}; it is also {path}")
        for path, reason in covered
        for name in names_elsewhere(_real(path), mounts)
    ]
    return Floor(
        places=(
            *_without_repeats(writable),
            *(FencePlace(each.path, "read-only", each.reason) for each in held),
            *_without_repeats(_covered(covered, inside)),
            *_without_repeats(_kept(read, covered)),
        ),
        gaps=(
            *(Gap(each.path, each.reason) for each in found if not each.held),
            *_too_much(homes, environments),
        ),
    )


def _too_much(homes: Sequence[str], environments: Sequence[Mapping[str, str]]) -> Iterator[Gap]:
    for reason, path in dict.fromkeys(covered_paths.named(environments)):
        if covered_paths.holds(path, homes):
            yield Gap(path, f"{reason}; your home directory is in it, so it is not hidden")


def _workspace(roots: Sequence[str]) -> Iterator[FencePlace]:
    for root in roots:
        yield FencePlace(_checked(root, "the workspace"), "write", "the workspace")
        if _is_beneath(_real(root), (_real(str(worktrees_directory())),)):
            continue  # of our making: the repository is the user's, and the agent's files suffice
        if (repository := repository_of(root)) and not _is_beneath(repository, map(_real, roots)):
            yield FencePlace(
                _checked(repository, "the repository"), "write", "git's data of this worktree"
            )


def _added(paths: Sequence[str], roots: Sequence[str]) -> Iterator[FencePlace]:
    inside = tuple(map(_real, roots))
    for path in paths:
        real = _checked(path, "fence.write")
        if leads_out(path, inside):
            raise ConfigError(
                "fence", "fence.write", f"{real!r} itself, not a link in the workspace: {path!r}"
            )
        yield FencePlace(real, "write", "the settings say so")


def leads_out(path: str, inside: Sequence[str]) -> bool:
    """Whether it is outside, by a link that is inside: a fenced program may have made that."""
    above = map(str, Path(os.path.expanduser(path)).parents)
    is_outside = not _is_beneath(_real(path), inside)
    return is_outside and any(_is_beneath(_real(each), inside) for each in above)


def _own(own: Own) -> Iterator[FencePlace]:
    what = "the agent's own folder"
    for path in own.paths:
        if os.path.exists(path):
            yield FencePlace(_checked(path, what), "write", own.reason)
        elif path in own.made:
            reason = f"{own.reason}; it is made when the agent starts"
            yield FencePlace(_apart(path, what), "write", reason)


def _protected(root: str) -> Iterator[ProtectedPath]:
    yield from protected_in(_real(root))
    if repository := repository_of(root):
        yield from held_in_git(repository)


def _covered(found: Iterable[tuple[str, str]], writable: Sequence[str]) -> Iterator[FencePlace]:
    """By real names. A socket inside the workspace is part of it."""
    for path, reason in found:
        real = _real(path)
        out_of_reach = (*writable, *_ALWAYS_PRIVATE, "/run")
        is_own = real in writable or (reason == _SOCKET and _is_beneath(real, out_of_reach))
        is_there = reason in (_OWN, _SETTINGS) or os.path.exists(real)
        if is_there and not is_own and not _is_beneath(real, _OF_THE_SYSTEM):
            yield FencePlace(real, "covered", reason)


def _kept(read: Sequence[str], covered: Iterable[tuple[str, str]]) -> Iterator[FencePlace]:
    """What is to be read although it is inside something that is empty otherwise."""
    wanted = [
        *covered_paths.kept(),
        *((path, "Python and Dragoman's own programs") for path in (sys.prefix, _PACKAGE)),
        *((path, "the settings say so") for path in read),
    ]
    emptied = [*_ALWAYS_PRIVATE, *(_real(path) for path, _ in covered)]
    for path, reason in wanted:
        if _is_beneath(real := _real(path), emptied) and os.path.exists(real):
            yield FencePlace(real, "read", reason)


def _dragomans() -> Iterator[tuple[Path, str]]:
    yield data_directory(), _OWN
    settings = settings_file()
    if settings.parent.name == "dragoman":
        # A file that is replaced, as we do it, is not covered any longer; a folder is.
        yield settings.parent, _SETTINGS
    yield settings, _SETTINGS


def _checked(path: str, what: str) -> str:
    """The real name of a folder that may be written. Raises ConfigError."""
    real = _real(path)
    if not os.path.exists(real):
        raise ConfigError("fence", what, f"a folder that exists, not {path!r}")
    if real == "/":
        raise ConfigError("fence", what, "a folder other than /, which nothing could be kept from")
    return _apart(path, what)


def _apart(path: str, what: str) -> str:
    """Its real name; it need not exist."""
    real = _real(path)
    kept = _real(str(data_directory()))
    if _is_beneath(kept, (real,)) or _is_beneath(real, (kept,)):
        raise ConfigError(
            "fence", what, f"a folder apart from Dragoman's data in {kept}, not {path!r}"
        )
    if _is_beneath(real, _OF_THE_SYSTEM):
        raise ConfigError(
            "fence", what, f"a folder that does not belong to the system, not {path!r}"
        )
    return real


def _between(inner: Sequence[str], writable: Sequence[str], covered: Sequence[str]) -> list[str]:
    """The folders between a writable one and what is treated specially in it: if they could be
    moved, the fence of the next program would look for it in the wrong place."""
    above = {str(each): None for path in inner for each in Path(path).parents}
    taken, special = {*inner, *writable}, {*writable, *covered}
    return [path for path in above if path not in taken and _nearest(path, special) in writable]


def _outermost(covered: list[str], writable: list[str]) -> list[str]:
    """Without what is inside something that is empty already."""
    emptied = {*covered, *_ALWAYS_PRIVATE}
    special = {*emptied, *writable}
    return [path for path in covered if _nearest(path, special) not in emptied]


def _nearest(path: str, special: set[str]) -> str:
    above = os.path.dirname(path)
    while above not in special and above != "/":
        above = os.path.dirname(above)
    return above


def _is_beneath(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder.rstrip('/')}/") for folder in folders)


def _without_repeats(places: Iterable[FencePlace]) -> list[FencePlace]:
    return list({place.path: place for place in reversed(list(places))}.values())[::-1]


def _real(path: str) -> str:
    return os.path.realpath(os.path.expanduser(path))


def _encoded(paths: Iterable[str]) -> tuple[bytes, ...]:
    return tuple(map(os.fsencode, paths))


# ── protected files ─────────────────────────────────────────────────────────────────────────────

# Finds the protected paths inside a workspace that the kernel is to hold.
#
# A look at names, breadth first and within a limit, since a workspace may be large. What is in a
# folder that tools write all the time cannot be held: it is reported instead, and so are links.


MOST_FOLDERS = 100
_DEEPEST = 3
_LONGEST_LINE = 4096
_NOT_ENTERED = frozenset(
    ("node_modules", ".venv", "venv", "__pycache__", "target", "dist", "build", ".tox", ".cache")
)

# Of a git folder, what makes git run something or says where it does so. The rest changes with
# every commit.
_GIT_HELD = ("config", "config.worktree", "hooks", "info", "commondir")
_GIT_MODULES = ("modules", "worktrees")
# Folders that build tools write themselves, protected as they are.
_USED_BY_TOOLS = frozenset(
    (".gradle", ".yarn", ".m2", ".nuget", ".sbt", ".devbox", ".ipython", ".jupyter", ".bundle")
)


class ProtectedPath(NamedTuple):
    """A protected path; without `held`, the kernel cannot protect it, for the `reason`."""

    path: str
    reason: str
    held: bool = True


def protected_in(root: str, most: int = MOST_FOLDERS) -> Iterator[ProtectedPath]:
    """What is protected beneath a folder, as far as this looks."""
    folders = deque([(root, 0)])
    while folders and most:
        most -= 1
        folder, depth = folders.popleft()
        for entry in _entries(folder):
            name = folded(entry.name)
            if name == ".git" or (name.endswith(".git") and _is_folder(entry)):
                yield from _in_git(entry)
            elif reason := _reason(entry, root):
                yield _as_found(entry, name, reason)
            elif depth < _DEEPEST and name not in _NOT_ENTERED and _is_folder(entry):
                folders.append((entry.path, depth + 1))


def _reason(entry: os.DirEntry[str], root: str) -> str | None:
    """Why all of it is protected; of a folder such as `.github`, only a part may be."""
    path = entry.path[len(root) :]
    return protection(f"{path}/*" if _is_folder(entry) else path)


def _as_found(entry: os.DirEntry[str], name: str, reason: str) -> ProtectedPath:
    if entry.is_symlink():
        return _link(entry.path, reason)
    if name in _USED_BY_TOOLS:
        return ProtectedPath(entry.path, f"{reason}; build tools write to it", held=False)
    return ProtectedPath(entry.path, reason)


def _link(path: str, reason: str) -> ProtectedPath:
    return ProtectedPath(path, f"{reason}; it is a link, which can be replaced", held=False)


def _with_other_names(found: Iterable[ProtectedPath]) -> list[ProtectedPath]:
    """A mount holds one name of a file, and it may have more (hard links)."""
    reason = "it has another name (a hard link), by which it can be changed"
    files = (each for each in found if each.held and _has_other_names(each.path))
    return [ProtectedPath(each.path, f"{each.reason}; {reason}", held=False) for each in files]


def _has_other_names(path: str) -> bool:
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_nlink > 1


_HOOKS = "git runs the commands in it"
_PLACE = "it says where git finds its settings and hooks"


def _in_git(entry: os.DirEntry[str]) -> Iterator[ProtectedPath]:
    if entry.is_symlink():
        yield _link(entry.path, _PLACE)
    elif entry.is_file():
        yield ProtectedPath(entry.path, _PLACE)  # of a worktree or a submodule
    else:
        yield from _held_in_git(entry.path, depth=2)


def held_in_git(folder: str) -> Iterator[ProtectedPath]:
    """What is held of a git folder, wherever it is."""
    return _held_in_git(folder, depth=2)


def _held_in_git(folder: str, depth: int) -> Iterator[ProtectedPath]:
    for name in _GIT_HELD:
        path = os.path.join(folder, name)
        if os.path.islink(path):
            yield _link(path, _HOOKS)
        elif os.path.exists(path):
            yield ProtectedPath(path, _HOOKS)
        elif name in ("config", "hooks", "commondir") and os.path.exists(f"{folder}/HEAD"):
            reason = f"{_HOOKS}; it does not exist yet, so it can be created"
            yield ProtectedPath(path, reason, held=False)
    if depth:
        for name in _GIT_MODULES:
            for entry in _entries(os.path.join(folder, name)):
                if _is_folder(entry):
                    yield from _held_in_git(entry.path, depth - 1)


def repository_of(worktree: str) -> str | None:
    """The git folder that a worktree shares with its repository, if that says so as well and has
    the worktree's own folder in it: files in the workspace could name any folder."""
    named = _line(os.path.join(worktree, ".git"), "gitdir: ")
    if named is None:
        return None
    own = os.path.realpath(os.path.join(worktree, named))
    back, common = _line(os.path.join(own, "gitdir")), _line(os.path.join(own, "commondir"))
    if back is None or common is None or not _is_same(back, os.path.join(worktree, ".git")):
        return None
    repository = os.path.realpath(os.path.join(own, common))
    return repository if os.path.dirname(own) == f"{repository}/worktrees" else None


def _line(path: str, start: str = "") -> str | None:
    try:
        text = read_regular(Path(path), _LONGEST_LINE).decode()
    except (OSError, UnicodeDecodeError):
        return None
    return text[len(start) :].strip() if text.startswith(start) else None


def _is_same(path: str, other: str) -> bool:
    return os.path.realpath(path) == os.path.realpath(other)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)

"""An access to decide about: what is about to happen, as the host sees it or the agent claims.

Pure data. The code that opens files and starts processes describes its real effect here;
`claims` says the same of what an agent only asserts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Literal, TypeAlias

import msgspec

from dragoman.host.rules.globs import is_within
from dragoman.host.rules.protected import protection

Operation: TypeAlias = Literal["read", "write", "execute", "fetch", "mcp", "other"]
OPERATIONS: tuple[Operation, ...] = ("read", "write", "execute", "fetch", "mcp", "other")
# The words of an argv, or a line for a shell.
Command: TypeAlias = tuple[str, ...] | str
MOST_OF_COMMAND = 128 << 10
"""Characters; the kernel takes no longer argument either."""
TOO_LONG = f"a command may have at most {MOST_OF_COMMAND} characters; put the rest in a file"
Place: TypeAlias = Literal["inside", "outside", "unknown"]


_PATHS = ("paths", "aliases", "roots", "cwds", "cwd_aliases")


class Sighting(msgspec.Struct, frozen=True):
    """What a look at the disk says of a path: the real one, the other names it was reached by (as
    it was asked for, and each link on the way), and why writing it asks, if there is a reason
    that its names do not tell."""

    path: str
    aliases: tuple[str, ...] = ()
    hazard: str | None = None


class Access(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, dict=True):
    """One thing an agent wants to do. Paths, cwd and roots are absolute, and are normalised here.

    If it names several things, an allow rule must cover all of them; a deny or ask rule needs only
    one. Some fields count only for deny and ask, never for allow: `also` (other operations that a
    claim could be), `names` (the agent's names for the tool), `aliases` (other names of its paths),
    `cwds` (other folders in which its command might run) and `cwd_aliases` (other names of these
    folders).
    """

    operation: Operation
    agent: str = ""
    also: tuple[Operation, ...] = ()
    paths: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    hazard: str | None = None
    commands: tuple[Command, ...] = ()
    env: bool = False
    variables: tuple[str, ...] = ()
    """The names of the variables set for the command; rules only ask whether there are any."""
    cwd: str | None = None
    cwds: tuple[str, ...] = ()
    cwd_aliases: tuple[str, ...] = ()
    unread_cwd: str | None = None
    """What a claim says about the folder of its command, if it does not name a usable folder."""
    roots: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    tool: str | None = None
    names: tuple[str, ...] = ()
    claimed: bool = False
    action: bool = False
    """Whether the claim names an action: a command, a change, a path, an address or a tool."""
    fenced: bool = False
    """Whether a program inside a fence does it by itself, and the kernel asks us about it."""
    question: bool = False
    complete: bool = True
    contradiction: str | None = None
    """Which words of the agent plainly name something other than its claim does. The claim is then
    not `complete`."""
    said: tuple[Access, ...] = ()
    """What these words name. Each is decided too, and the strictest decision counts."""
    parts: tuple[Access, ...] = ()
    """The separate claims of a request that covers several actions. Each is decided alone; the
    rest of this is only shown to people, and no rule is made of it."""

    def __post_init__(self) -> None:
        for name in _PATHS:
            if paths := getattr(self, name):
                msgspec.structs.force_setattr(self, name, tuple(map(normalise, paths)))
        if self.cwd is not None:
            msgspec.structs.force_setattr(self, "cwd", normalise(self.cwd))

    @property
    def operations(self) -> tuple[Operation, ...]:
        return (self.operation, *self.also)

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders in which its command may run."""
        return () if self.cwd is None else (self.cwd, *self.cwds)

    @property
    def place(self) -> Place:
        """Where the paths are: `inside` only if there is at least one, and all are inside."""
        if not self.paths:
            return "unknown"
        return "inside" if all(map(self._is_inside, self.paths)) else "outside"

    @property
    def place_of_cwd(self) -> Place:
        if self.cwd is None:
            return "unknown"
        return "inside" if self._is_inside(self.cwd) else "outside"

    @cached_property
    def protection(self) -> str | None:
        """Why this write always asks, if it does: the first protected path and its reason."""
        if "write" not in self.operations:
            return None
        reasons = ((path, protection(path)) for path in (*self.paths, *self.aliases))
        named = (f"{path} is protected: {why}" for path, why in reasons if why)
        return next(named, self.hazard)

    def _is_inside(self, path: str) -> bool:
        return any(is_within(path, root) for root in self.roots)


def file_access(
    operation: Literal["read", "write"],
    path: str | Sighting,
    *,
    agent: str,
    roots: Sequence[str],
) -> Access:
    """`fs/*`: the path must be the real one, links resolved."""
    seen = Sighting(path) if isinstance(path, str) else path
    return Access(
        operation=operation,
        agent=agent,
        paths=(seen.path,),
        aliases=seen.aliases,
        hazard=seen.hazard,
        roots=tuple(roots),
    )


def terminal_access(
    command: str,
    args: Sequence[str] = (),
    *,
    agent: str,
    cwd: str | Sighting,
    roots: Sequence[str],
    env: bool = False,
    variables: Iterable[str] = (),
) -> Access:
    """`terminal/create`: without arguments the command is a line, which a shell will run.
    `variables` are the names of what `env` says is set; the path of `cwd` must be the real one."""
    where = Sighting(cwd) if isinstance(cwd, str) else cwd
    return Access(
        operation="execute",
        agent=agent,
        commands=((command, *args) if args else command,),
        env=env,
        variables=tuple(variables),
        cwd=where.path,
        cwd_aliases=where.aliases,
        roots=tuple(roots),
    )


def is_too_long(commands: Sequence[Command]) -> bool:
    """Whether they could not be run as they are, nor judged by a person, nor in little time."""
    lengths = (len(c) if isinstance(c, str) else sum(map(len, c)) + len(c) for c in commands)
    return sum(lengths) > MOST_OF_COMMAND


def normalise(path: str, base: str | None = None) -> str:
    """The path without `.`, `..`, doubled or trailing slashes, by its letters alone."""
    full = path if base is None or path.startswith("/") else f"{base}/{path}"
    if not full.startswith("/"):
        raise ValueError(f"not an absolute path: {full!r}")
    if "/." not in full and "//" not in full and not full.endswith("/"):
        return str(full)  # whatever kind of text it was
    parts: list[str] = []
    for part in full.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)

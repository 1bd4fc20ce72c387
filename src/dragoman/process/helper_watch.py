"""Watches the helpers (warden, zygote, keepers), and does the work of one that is stopped.

All helpers are in the warden's session. No program can enter a session, so this tells them from
everything they look after, whatever their current parent. Runs in the host and in the helpers.
"""

from __future__ import annotations

import os

from .process_tree import children, kill_tree, send, state

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
else:
    import _signal as signal

STOPS = 10
"""A helper that was stopped so often is held by a program, and its work is done for it."""

IMPOSSIBLE = 86
"""How a warden exits that finds the system unable to contain anything: no error of Python's, of the
dynamic linker's or of a shell's exits so."""

WARDEN, ZYGOTE, KEEPER = b"dragoman-warden", b"dragoman-zygote", b"dragoman-keeper"
FENCE = b"dragoman-fence"
"""Process 1 inside a fence. Not one of the helpers: it belongs to the tree that a keeper ends."""


def is_helper(pid: int, session: int) -> bool:
    # The kernel's own processes, and all of a container's first one, are in session 0 or 1.
    try:
        return session > 1 and os.getsid(pid) == session
    except OSError:
        return False


def spared(session: int) -> Callable[[int], bool]:
    """What to leave alone below a helper: another one may be forked, or come there, at any time."""
    return lambda pid: is_helper(pid, session)


def helpers(session: int) -> list[int]:
    """Every helper of this session, found without relying on any of them."""
    pids = (int(name) for name in os.listdir("/proc") if name.isdecimal())
    return [pid for pid in pids if is_helper(pid, session)]


def is_held(pid: int) -> bool:
    """Whether a process is stopped, or traced by another and not running."""
    return state(pid).state in (b"T", b"t")


def end_strays(session: int) -> bool:
    """Kill the programs whose keeper is gone, and which came to a helper above it; whether there
    were any."""
    spare = spared(session)
    above = superiors(helpers(session))
    # A keeper has the zygote's name at first, but no more when it has a child: asked again.
    with_strays = superiors([pid for pid in above if not all(map(spare, children(pid)))])
    for superior in with_strays:
        kill_tree(superior, spare)
    return bool(with_strays)


def superiors(known: list[int]) -> list[int]:
    """The helpers that are not keepers."""
    return [pid for pid in known if state(pid).name in (WARDEN, ZYGOTE)]


def relieve(session: int) -> None:
    """For each helper that is held: kill everything below it, then let it continue."""
    for helper in helpers(session):
        if is_held(helper):
            kill_tree(helper, spared(session))
            resume(helper, session)


def end(keeper: int, session: int) -> None:
    """Kill everything below a keeper that does not do so itself, then let it continue."""
    if is_helper(keeper, session):
        kill_tree(keeper)
        resume(keeper, session)


def end_all(session: int) -> None:
    """Kill everything below all helpers, and leave the helpers to end by themselves."""
    for helper in helpers(session):
        kill_tree(helper, spared(session))


def end_session(program: int, born: bytes) -> None:
    """Kill what is left of a program's own session: all that is known of a tree whose helpers were
    killed together."""
    if program == os.getsid(0) or state(program).born not in (b"", born):
        return  # the number is another's by now
    for pid in helpers(program):
        kill_tree(pid)
        kill(pid, program)


def resume(helper: int, session: int) -> None:
    """Continue a helper if it is stopped; one that runs does not notice."""
    _send(helper, signal.SIGCONT, session)


def kill(helper: int, session: int) -> None:
    """Kill a helper, which is the only way to end one that is traced."""
    _send(helper, signal.SIGKILL, session)


def _send(helper: int, number: int, session: int) -> None:
    send(helper, number, lambda: is_helper(helper, session))

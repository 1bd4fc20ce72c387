"""From exceptions to one clear line on standard error and the right exit code.

No traceback reaches a user, whatever goes wrong and wherever, unless they asked for it.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum
from typing import TYPE_CHECKING

from dragoman.errors import (
    AuthRequired,
    CallTimeout,
    ConfigError,
    DragomanError,
    FenceError,
    LimitUnusable,
    NoProgress,
    PromptTooLarge,
    SessionNotContinued,
    SignInNeeded,
    UnknownSession,
    UsageError,
)

if TYPE_CHECKING:
    from pathlib import Path

_TAIL_LINES = 10
_UNUSABLE = (
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.ENOTDIR,
    errno.EEXIST,
)
_OTHER_HOME = "; $DRAGOMAN_HOME can name another directory, --no-store keeps no record of a run"


class Exit(IntEnum):
    """What the exit codes mean."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NO_PROGRESS = 3
    NOT_CONTINUED = 4
    REFUSED = 5
    LIMIT = 6
    ENDED_EARLY = 7
    SIGN_IN = 8
    NO_RESULT = 9
    ASKED = 10
    DENIED = 11
    CANCELLED = 130


def guarded(work: Callable[[], int], *, debug: bool) -> int:
    """Run `work`; whatever it raises becomes a line and a code, a traceback only with `debug`."""
    _set_up_logging(debug=debug)
    try:
        code = work()
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        return Exit.DONE  # the reader has seen enough
    except KeyboardInterrupt:
        return Exit.CANCELLED
    except Exception as error:
        if debug:
            import traceback

            traceback.print_exc()
        tell(sentence(error))
        return exit_code(error)


def tell(words: str) -> None:
    """A sentence on standard error, if anyone listens there; on a terminal no word is broken."""
    from dragoman.safe_text import sanitise

    text = f"dragoman: {sanitise(words)}"
    with suppress(OSError):
        if sys.stderr.isatty():
            from dragoman.cli.render.wrap import folded

            text = "\n".join(line for each in text.split("\n") for line in folded(each, ""))
        print(text, file=sys.stderr, flush=True)


def exit_code(error: BaseException) -> Exit:
    """The one place where errors become exit codes."""
    from dragoman.errors import UnknownAgent

    match error:
        case (
            UsageError()
            | ConfigError()
            | UnknownAgent()
            | PromptTooLarge()
            | FenceError()
            | LimitUnusable()
        ):
            return Exit.USAGE
        case NoProgress() | CallTimeout():
            return Exit.NO_PROGRESS
        case SessionNotContinued() | UnknownSession():
            return Exit.NOT_CONTINUED
        case AuthRequired() | SignInNeeded():
            return Exit.SIGN_IN
        case _:
            return Exit.FAILED


def ended_with(stop_reason: str | None) -> Exit:
    """The code for a turn that ran to its end: the agent's own, or an early one such as `refusal`
    or `max_tokens`."""
    return Exit.DONE if stop_reason in (None, "end_turn") else Exit.ENDED_EARLY


def sentence(error: BaseException) -> str:
    """What went wrong, for people."""
    match error:
        case DragomanError():
            return _shortened(str(error))
        case OSError(strerror=str(reason)):
            where = f"{error.filename}: " if error.filename else ""
            return f"{where}{reason[:1].lower()}{reason[1:]}{_home_hint(error)}"
        case _:
            return f"internal error: {type(error).__name__}: {error} (--debug shows where)"


def _home_hint(error: OSError) -> str:
    """What to do when it is our own directory that cannot be used, or made."""
    from pathlib import Path

    from dragoman.data_directory import data_directory

    path = error.filename
    if not isinstance(path, str) or error.errno not in _UNUSABLE:
        return ""
    with suppress(ConfigError):  # what is wrong with its name is said elsewhere
        return _OTHER_HOME if _concerns(Path(path), data_directory()) else ""
    return ""


def _concerns(path: Path, home: Path) -> bool:
    """A parent is in the way only if it is not a directory, and could not be made one."""
    import os

    return path.is_relative_to(home) or (home.is_relative_to(path) and not os.path.isdir(path))


def _shortened(text: str) -> str:
    """The sentence, and of what a program printed the end."""
    first, *lines = text.split("\n")
    return "\n".join([first, *(["…"] if len(lines) > _TAIL_LINES else []), *lines[-_TAIL_LINES:]])


def _set_up_logging(*, debug: bool) -> None:
    import logging

    if debug:
        logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
        return
    # Without a handler, errors of the event loop would be printed with their tracebacks.
    logging.root.addHandler(logging.NullHandler())
    sys.unraisablehook = _ignore


def _ignore(unraisable: object) -> None:
    pass

"""Runs a program as a user without rights, also where the tests run as root.

Python and these sources may be where only root can go. The program gets a view of the files in
which the folders on the way are open to everybody, and otherwise empty.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

USER = 12345
_NEEDED = (Path(sys.base_prefix), Path(sys.prefix), Path(__file__).parents[2])
_SETUP = """
set -e
closed=$1; shift
user=$1; shift
if [ "$closed" != none ]; then
    stage=$(mktemp -d)
    for path in $NEEDED; do mkdir -p $stage$path; mount --rbind $path $stage$path; done
    mount -t tmpfs -o mode=755 tmpfs $closed
    for path in $NEEDED; do mkdir -p $path; mount --move $stage$path $path; done
fi
exec setpriv --reuid=$user --regid=$user --clear-groups --inh-caps=-all "$@"
"""


def reason_not_to() -> str | None:
    """Why nobody else can be tried here, if so."""
    if os.geteuid() != 0:
        return None
    missing = [name for name in ("unshare", "setpriv", "mount") if shutil.which(name) is None]
    if missing:
        return f"there is no {missing[0]}"
    done = subprocess.run(command(["true"]), capture_output=True, check=False)
    return done.stderr.decode().strip() if done.returncode else None


def command(words: Sequence[str]) -> list[str]:
    """The words to run so that an ordinary user runs these; those of one already are the same."""
    if os.geteuid() != 0:
        return list(words)
    closed = next(filter(None, map(_closed_above, _NEEDED)), None)
    inside = [path for path in _NEEDED if closed is not None and path.is_relative_to(closed)]
    outermost = [path for path in inside if not any(_is_in(path, other) for other in inside)]
    setup = f"NEEDED='{' '.join(map(str, outermost))}'\n{_SETUP}"
    unshared = ["unshare", "--mount", "--propagation", "private", "sh", "-c", setup, "sh"]
    return [*unshared, str(closed or "none"), str(USER), *words]


def _is_in(path: Path, other: Path) -> bool:
    return path != other and path.is_relative_to(other)


def _closed_above(path: Path) -> Path | None:
    """The highest folder on the way that others cannot pass."""
    folders = [*reversed(path.parents), path]
    return next((each for each in folders if not each.stat().st_mode & stat.S_IXOTH), None)

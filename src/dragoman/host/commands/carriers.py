"""Which programs run what their words say, and which only take them as text. Pure.

For rules that deny or ask, and for marks of danger: what is in doubt counts as running.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, TypeAlias

from dragoman.lazy_pattern import lazy_pattern

Argv: TypeAlias = tuple[str, ...]
Running: TypeAlias = Literal["surely", "perhaps", "never"]

SHELLS = frozenset(
    ("ash", "bash", "csh", "dash", "elvish", "fish", "ksh", "mksh", "nu", "pwsh", "sh", "tcsh")
) | {"xonsh", "yash", "zsh", "rbash"}

# programs, and words of the shell, that run one of the words after them as a program
_RUNNERS_WORDS = """
    bwrap busybox catchsegv cgexec chpst chroot chronic chrt command cpulimit daemonize
    dbus-run-session doas env exec expect eval faketime fakeroot find fd firejail flock gtimeout
    heaptrack ionice linux32 linux64 ltrace nice nocorrect noglob nohup nsenter numactl
    parallel perf pkexec prlimit proot proxychains proxychains4 rr run0 runuser sch script setarch
    setpriv setsid setuidgid stdbuf strace su sudo systemd-inhibit systemd-run taskset time
    timeout torsocks toybox trap tsocks unbuffer unshare valgrind watch xargs xvfb-run builtin
    coproc alias if then else elif do while until ! { function
"""

# programs to which their words are texts or names of files
_TEXTUAL_WORDS = """
    [ [[ : ag basename cat cd chgrp chmod chown cksum cmp column cp cut date df diff dirname du
    echo egrep export expr false fgrep file fmt fold grep head id jq kill ln locate ls man md5sum
    mkdir mktemp mv nl od paste printf ps pwd readlink realpath rev rg rm rmdir seq sha1sum
    sha256sum sleep stat strings tail tee test touch tr tree true type uname uniq unzip wc whatis
    whereis which whoami yq zcat zgrep
"""

_TEXTUAL_GIT_WORDS = """
    add blame branch cat-file checkout cherry-pick clean commit describe diff grep init log
    ls-files ls-tree merge mv notes reflog reset restore rev-list rev-parse revert rm shortlog show
    stash status switch tag
"""
_RUNNERS = frozenset(_RUNNERS_WORDS.split())
_TEXTUAL = frozenset(_TEXTUAL_WORDS.split())
_TEXTUAL_GIT = frozenset(_TEXTUAL_GIT_WORDS.split())
_LAUNCHERS = frozenset(("npx", "bunx", "pnpx", "uvx", "pipx", "ssh", "mosh", "tsx", "nodemon"))
_LAUNCHING = frozenset(("run", "exec", "x", "dlx", "shell", "tool", "compose", "--"))
"""Words by which a program says that others follow: `uv run`, `docker exec`, `bundle exec`."""
_MOST_CARRIED = 48
_OPERANDS_FIRST = {"chroot": 1, "chrt": 1, "flock": 1, "setarch": 1, "su": 1, "taskset": 1}
"""How many words precede the program, other than options."""
_BEFORE_A_PROGRAM = frozenset(("-exec", "-execdir", "-ok", "-okdir", "-c", "-lc", "-x", "--"))
_of_no_interest = lazy_pattern(r"[-+].*|[A-Za-z_]\w*\+?=.*|[0-9.]+[smhd]?", re.DOTALL)


def program_name(word: str) -> str:
    """Without its folder."""
    return word.rpartition("/")[2]


def runs_its_words(argv: Argv) -> Running:
    """Whether the program runs others that its words name."""
    name = program_name(argv[0])
    if name in _RUNNERS or name in SHELLS:
        return "surely"
    textual = name in _TEXTUAL or (name == "git" and argv[1:2] and argv[1] in _TEXTUAL_GIT)
    return "never" if textual else "perhaps"


def carried(argv: Argv) -> Iterator[Argv]:
    """What the words may run besides, by a program that runs others."""
    name = program_name(argv[0])
    if name in _RUNNERS or name in SHELLS or _launches(name, argv):
        yield from (argv[at:] for at in range(1, min(len(argv), _MOST_CARRIED)))


def _launches(name: str, argv: Argv) -> bool:
    return name in _LAUNCHERS or any(word in _LAUNCHING for word in argv[1:4])


def program_places(argv: Argv) -> Iterator[int]:
    """Where the words may name the program that a runner runs, if it is not known which."""
    left = 0
    for at, word in enumerate(argv):
        before = argv[at - 1] if at else ""
        if at and (left == 0 or before in _BEFORE_A_PROGRAM):
            yield at
        name = program_name(word)
        if name in _RUNNERS or name in SHELLS:
            left = _OPERANDS_FIRST.get(name, 0)
        elif not _of_no_interest.fullmatch(word):
            # After an option it may be a value of it.
            left = left - 1 if left > 0 else (0 if _is_option(before) else -1)


def _is_option(word: str) -> bool:
    return word.startswith("-") and "=" not in word

"""Has a real shell run lines in throwaway folders, where every program only says that it ran."""

from __future__ import annotations

import functools
import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

PROGRAMS = ("a", "b", "git", "npm", "ls", "cat", "x.sh", "no")
"""What there is to run; `no` fails."""
BUILTINS = ("echo", "true", "false", "pwd", "test", "[", "printf", "kill", "type")
"""Disabled where the shell can be told to, and then programs like the others."""
FOLDERS = ("src", "src/deep", "my dir")
LINK = "link"

_TRACER = """#!/bin/sh
{ printf '%s\\0' "${0##*/}" "$@"; pwd -P; } > "$TRACES/$ID.$$"
case $0 in */no) exit 1 ;; esac
"""
# A login shell would look for programs where the system's profile says.
_SHELL = """#!/bin/sh
case $1 in
    -lc) shift; set -- -c "$@" ;;
    -l) shift ;;
esac
exec {shell} "$@"
"""
_TIME = """#!/bin/sh
case $1 in -p) shift ;; esac
exec "$@"
"""


class Trace:
    """What a line ran, each with its folder, and which files are there afterwards that were not."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ran: list[tuple[tuple[str, ...], str]] = []

    @functools.cached_property
    def written(self) -> set[str]:
        found = ((where, name) for where, _, names in os.walk(self.folder) for name in names)
        return {os.path.join(*each) for each in found}


def trace(shell: str, lines: Sequence[str], room: Path) -> list[Trace]:
    """Each line is run by itself, in a folder of its own."""
    programs, traces = _programs(room), room / "traces"
    traces.mkdir()
    found = [Trace(_folder(room / "lines" / str(at), line)) for at, line in enumerate(lines)]
    script = room / "script"
    script.write_text(_script(shell, lines, found), encoding="utf-8", newline="")
    environment = {"PATH": str(programs), "TRACES": str(traces), "HOME": str(room)}
    quietly = [] if shell != "zsh" else ["-f"]
    subprocess.run(
        [*confined(room), str(shutil.which(shell)), *quietly, str(script)],
        env=environment,
        cwd=room,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=600,
        check=False,
    )
    assert (room / "done").exists(), f"{shell} did not come to the end of its lines"
    for record in os.scandir(traces):
        number = int(record.name.partition(".")[0])
        *argv, where = Path(record.path).read_bytes().decode().split("\0")
        found[number].ran.append((tuple(argv), where.removesuffix("\n")))
    return found


_READ_ONLY = '"$1" --bind "$2" "$2" && "$1" -o remount,bind,ro / && cd "$2" && shift 2 && exec "$@"'


def confined(room: Path) -> tuple[str, ...]:
    """Without a network, writing nowhere but in the room, and not to outlive this, where the
    system lets us: a line may name any file."""
    path, mount = shutil.which("unshare"), shutil.which("mount")
    if path is None or mount is None:
        return ()
    words = ("--user", "--map-root-user", "--mount", "--net", "--pid", "--fork", "--kill-child")
    command = (path, *words, str(shutil.which("sh")), "-c", _READ_ONLY, "sh", mount, str(room))
    works = subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
    return command if works else ()


def _programs(room: Path) -> Path:
    folder = room / "bin"
    folder.mkdir(parents=True)
    tracer = _program(room / "tracer", _TRACER)
    for name in (*PROGRAMS, *BUILTINS):
        (folder / name).symlink_to(tracer)
    for name in ("env", "timeout", "nice"):
        (folder / name).symlink_to(str(shutil.which(name)))
    for name in ("bash", "sh"):
        _program(folder / name, _SHELL.format(shell=shutil.which(name)))
    _program(folder / "time", _TIME)
    return folder


def _program(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o700)
    return path


def _folder(path: Path, line: str) -> Path:
    """With what the line may speak of: most speak of nothing."""
    path.mkdir(parents=True)
    if any(name in line for name in ("src", "dir", LINK, "*", "?")):
        for name in FOLDERS:
            (path / name).mkdir()
        (path / LINK).symlink_to("src")
    return path


def _script(shell: str, lines: Sequence[str], found: Sequence[Trace]) -> str:
    builtins = f"enable -n {shlex.join(BUILTINS)}\n" if shell == "bash" else ""
    run = "\n".join(
        f"(ID={number}; export ID; cd {shlex.quote(str(each.folder))}; eval {shlex.quote(line)})"
        for number, (line, each) in enumerate(zip(lines, found, strict=True))
    )
    return f"{builtins}{run}\n: > done\n"

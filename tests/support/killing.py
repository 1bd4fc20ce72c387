"""Kills a program before any of its steps: a step is a call that changes a file system, ours or
git's, as `killing_steps.c` counts them."""

from __future__ import annotations

import asyncio
import mmap
import os
import shutil
import struct
import subprocess
import sys
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

_SOURCE = Path(__file__).parents[1] / "host" / "programs" / "killing_steps.c"
_STEPS = struct.Struct("4i")


class Steps:
    """The numbers that `killing_steps.c` reads."""

    def __init__(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDWR)
        self._numbers = mmap.mmap(descriptor, _STEPS.size)
        os.close(descriptor)

    def count(self, until: int) -> None:
        self._numbers[:] = _STEPS.pack(1, 0, until, os.getpid())

    def stop(self) -> int:
        """How many there were."""
        _, made, *_ = _STEPS.unpack(self._numbers[:])
        self._numbers[:] = _STEPS.pack(0, made, 0, 0)
        return made


def apart(work: Callable[[], Awaitable[None]], steps: Steps | None = None, at: int = 0) -> int:
    """In a process of its own, killed before that step; how it ended."""
    if (child := os.fork()) == 0:
        code = 1
        try:
            if steps is not None:
                steps.count(at)
            asyncio.run(work())  # type: ignore[arg-type]
            code = 0
        except BaseException:
            if steps is not None:
                steps.stop()
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def preloaded(folder: Path) -> dict[str, str]:
    """An environment: everything that is started with it, and git whatever it is started with,
    counts its steps."""
    compiler, git = shutil.which("cc"), shutil.which("git")
    if compiler is None or git is None or sys.platform != "linux":
        pytest.skip("counts the calls of the C library on Linux, with a C compiler")
    library, steps, program = folder / "steps.so", folder / "steps", folder / "bin" / "git"
    source = str(_SOURCE)
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    steps.write_bytes(bytes(16))
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nSTEPS={steps} LD_PRELOAD={library} exec {git} "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    return {**os.environ, "STEPS": str(steps), "LD_PRELOAD": str(library), "PATH": path}

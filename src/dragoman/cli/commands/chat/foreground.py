"""Programs of the person who types, which take the terminal over while they run.

These are `!command` and the editor. They are not part of the session, and the agent does not learn
of them.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from prompt_toolkit.application.run_in_terminal import run_in_terminal
from prompt_toolkit.input import Input


async def run_shell(line: str, cwd: str, terminal: Input) -> int:
    """Run a line in the person's shell; its exit code, 128 and more after a signal. Raises
    ValueError if it cannot be started."""
    shell = os.environ.get("SHELL") or "/bin/sh"
    code = await _run([shell, "-c", line], cwd, terminal)
    return code if code >= 0 else 128 - code


async def edited(text: str, terminal: Input) -> str:
    """The text as it comes back from `$VISUAL` or `$EDITOR`. Raises ValueError if the editor cannot
    be started or fails."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        words = shlex.split(editor)
    except ValueError as error:
        raise ValueError(f"the editor {editor!r} cannot be started: {error}") from error
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        path = _written(Path(folder, "prompt.md"), text)
        if code := await _run([*words, str(path)], None, terminal):
            raise ValueError(f"the editor {editor!r} ended with code {code}")
        return _read(path)


def _written(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


def _read(path: Path) -> str:
    return path.read_text("utf-8", "replace").rstrip("\n")


async def _run(argv: Sequence[str], cwd: str | None, terminal: Input) -> int:
    def run() -> int:
        with terminal.cooked_mode():
            try:
                return subprocess.run(argv, cwd=cwd, check=False).returncode
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                raise ValueError(f"{argv[0]} cannot be started: {reason}") from error

    # Ctrl-C is for the program. A handler, not SIG_IGN: the program would inherit that.
    before = signal.signal(signal.SIGINT, _nothing)
    try:
        return await run_in_terminal(run, in_executor=True)
    finally:
        signal.signal(signal.SIGINT, before)


def _nothing(number: int, frame: object) -> None:
    pass

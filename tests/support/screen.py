"""A real terminal, by tmux: type into it and look at what it shows."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

SECONDS = 20.0

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


class Screen:
    """One window of a tmux server that is nobody else's."""

    def __init__(self, socket: Path) -> None:
        self._tmux = ["tmux", "-f", "/dev/null", "-S", str(socket)]

    def start(self, *words: str) -> None:
        self._run("new-session", "-d", *words)

    def type(self, *keys: str) -> None:
        """Keys by their tmux names; anything else is typed as it is."""
        self._run("send-keys", *keys)

    def text(self, *, painted: bool = False) -> str:
        """All of it, what scrolled away too."""
        return self._run("capture-pane", "-p", "-S", "-1000", *(["-e"] if painted else []))

    def wait_for(self, words: str, seconds: float = SECONDS) -> str:
        """The screen, once these words are on it."""
        deadline = time.monotonic() + seconds
        while words not in (shown := self.text()):
            if time.monotonic() > deadline:
                raise AssertionError(f"no {words!r} on the screen:\n{shown}")
            time.sleep(0.03)
        return shown

    def close(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, check=False)

    def _run(self, *words: str) -> str:
        done = subprocess.run(
            [*self._tmux, *words], capture_output=True, text=True, timeout=SECONDS, check=True
        )
        return done.stdout


def wait_for_file(path: Path, seconds: float = SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < deadline, f"no {path}"
        time.sleep(0.01)


@contextmanager
def on_screen(
    command: list[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    width: int = 80,
    height: int = 40,
) -> Generator[Screen]:
    """Run a command in a window of this size; when it has ended, its code is shown."""
    screen = Screen(cwd.parent / "tmux")
    variables = [f"{name}={value}" for name, value in env.items()]
    line = f"{shlex.join(['env', '-i', *variables, 'TERM=screen-256color', *command])}"
    script = f'{line}; echo "exit code $?"; sleep {SECONDS:g}'
    size = ("-x", str(width), "-y", str(height))
    screen.start(*size, "-c", str(cwd), script)
    try:
        yield screen
    finally:
        screen.close()

"""A program on a real terminal: tmux draws it, and we look at what is drawn."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

WAIT_SECONDS = 20.0


def available() -> bool:
    return shutil.which("tmux") is not None


class Tmux:
    """One program in one window; ended with the context, whatever is left of it."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        columns: int = 100,
        rows: int = 40,
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="tmux-")
        settings = [f"{name}={value}" for name, value in env.items()]
        # What the program leaves behind can still be read, and its exit code with it.
        line = f"{shlex.join(['env', *settings, *argv])}; echo EXIT:$?; sleep 60"
        size = ("-x", str(columns), "-y", str(rows))
        self._tmux("-f", "/dev/null", "new-session", "-d", *size, "-c", str(cwd), "sh", "-c", line)

    def __enter__(self) -> Tmux:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._tmux("kill-server")
        self._folder.cleanup()

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-l", "--", text)

    def press(self, *keys: str) -> None:
        """By tmux's names: Enter, Escape, C-c, C-d, Tab."""
        self._tmux("send-keys", *keys)

    def enter(self, text: str) -> None:
        self.type(text)
        self.press("Enter")

    def screen(self) -> str:
        """What can be seen now."""
        return self._tmux("capture-pane", "-p")

    def painted(self) -> str:
        """The same, with its colours."""
        return self._tmux("capture-pane", "-p", "-e")

    def all(self) -> str:
        """What can be seen, and what has scrolled by."""
        return self._tmux("capture-pane", "-p", "-S", "-5000")

    def wait_for(self, pattern: str, *, seconds: float = WAIT_SECONDS) -> str:
        """Everything drawn so far, once it holds this."""
        end = time.monotonic() + seconds
        while True:
            drawn = self.all()
            if re.search(pattern, drawn):
                return drawn
            if time.monotonic() > end:
                raise AssertionError(f"no {pattern!r} within {seconds} s on:\n{drawn}")
            time.sleep(0.05)

    def enter_until(self, text: str, pattern: str) -> str:
        """Type this again and again, until everything drawn so far holds the pattern."""
        end = time.monotonic() + WAIT_SECONDS
        while True:
            self.enter(text)
            try:
                return self.wait_for(pattern, seconds=0.5)
            except AssertionError:
                if time.monotonic() > end:
                    raise

    def wait_until_gone(self, pattern: str, *, seconds: float = WAIT_SECONDS) -> str:
        """What can be seen, once it does not hold this."""
        end = time.monotonic() + seconds
        while re.search(pattern, drawn := self.screen()):
            if time.monotonic() > end:
                raise AssertionError(f"still {pattern!r} after {seconds} s on:\n{drawn}")
            time.sleep(0.05)
        return drawn

    def exit_code(self) -> int:
        found = re.search(r"EXIT:(\d+)", self.wait_for(r"EXIT:\d+"))
        assert found is not None
        return int(found[1])

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(
            ("tmux", "-S", f"{self._folder.name}/socket", *words),
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS,
            check=True,
            env={**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"},
        )
        return done.stdout

"""A real terminal, by tmux: type into it and look at what it shows."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pytest

SECONDS = 60.0
"""How long anything is waited for: long, because only a failure takes that long."""
_LOCALE = {"TERM": "screen-256color", "LC_ALL": "C.UTF-8"}

needs_tmux = pytest.mark.skipif(
    shutil.which("tmux") is None, reason="tmux is not installed; it draws the terminal of this test"
)


class Screen:
    """One window of a tmux server that is nobody else's."""

    def __init__(self, socket: Path) -> None:
        self._tmux = ["tmux", "-u", "-f", "/dev/null", "-S", str(socket)]

    def start(self, *words: str) -> None:
        self._run("new-session", "-d", *words, ";", "set-option", "-s", "set-clipboard", "on")

    def type(self, text: str) -> None:
        self._run("send-keys", "-l", "--", text)

    def press(self, *keys: str) -> None:
        """By tmux's names: Enter, Escape, C-c, C-d, Tab."""
        self._run("send-keys", *keys)

    def enter(self, text: str) -> None:
        self.type(text)
        self.press("Enter")

    def paste(self, text: str) -> None:
        """As a terminal does it that tells a program what is pasted."""
        self._run("load-buffer", "-", stdin=text)
        self._run("paste-buffer", "-p")

    def resize(self, width: int, height: int = 40) -> None:
        self._run("resize-window", "-x", str(width), "-y", str(height))

    def clipboard(self) -> str:
        """What a program has put there."""
        return self._run("show-buffer")

    def text(self, *, painted: bool = False) -> str:
        """All of it, what scrolled away too."""
        return self._run("capture-pane", "-p", "-S", "-5000", *(["-e"] if painted else []))

    def visible(self) -> str:
        """What has not scrolled away."""
        return self._run("capture-pane", "-p")

    def wait_for(self, what: str | re.Pattern[str]) -> str:
        """The screen, once this is on it; words wherever the lines are wrapped."""
        pattern = _wrapped(what) if isinstance(what, str) else what
        return _once(self.text, lambda shown: bool(pattern.search(shown)), f"no {what!r}")

    def wait_until_gone(self, words: str) -> str:
        """What can be seen, once these words cannot."""
        return _once(self.visible, lambda shown: words not in shown, f"still {words!r}")

    def press_until(self, key: str, words: str) -> str:
        """Press it again and again, until these words are there."""

        def pressed() -> str:
            self.press(key)
            time.sleep(0.2)
            return self.text()

        return _once(pressed, lambda shown: words in shown, f"no {words!r}")

    def exit_code(self) -> int:
        """The code of the command, once it has ended."""
        shown = self.wait_for(re.compile(r"^exit code \d+$", re.MULTILINE))
        return int(re.findall(r"^exit code (\d+)$", shown, re.MULTILINE)[-1])

    def kill(self) -> None:
        """End the command as nothing else would."""
        os.kill(self._command(), signal.SIGKILL)
        self.wait_for("exit code 137")

    @contextmanager
    def stopped(self) -> Generator[TextIO]:
        """The terminal, while the command stands still."""
        os.kill(command := self._command(), signal.SIGSTOP)
        try:
            with open(self._run("list-panes", "-F", "#{pane_tty}").strip(), "w") as terminal:
                yield terminal
        finally:
            os.kill(command, signal.SIGCONT)

    def _command(self) -> int:
        shell = self._run("list-panes", "-F", "#{pane_pid}").strip()
        [command] = Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
        return int(command)

    def close(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, check=False)

    def _run(self, *words: str, stdin: str | None = None) -> str:
        done = subprocess.run(
            [*self._tmux, *words],
            env=os.environ | _LOCALE,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=True,
        )
        return done.stdout


def _wrapped(words: str) -> re.Pattern[str]:
    # Where a line is wrapped depends on the length of the paths in it, and so on the machine.
    return re.compile(re.escape(words).replace(r"\ ", r"(?: |\n *)"))


def _once(look: Callable[[], str], there: Callable[[str], bool], complaint: str) -> str:
    deadline, pause = time.monotonic() + SECONDS, 0.03
    while not there(shown := look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{complaint} on the screen:\n{shown}")
        time.sleep(pause)
        # Each look is a process of tmux, and what takes long need not be seen at once.
        pause = min(pause * 1.3, 0.2)
    return shown


def wait_for_file(path: Path) -> None:
    deadline = time.monotonic() + SECONDS
    while not path.exists():
        assert time.monotonic() < deadline, f"no {path}"
        time.sleep(0.01)


@contextmanager
def on_screen(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    width: int = 80,
    height: int = 40,
) -> Generator[Screen]:
    """Run a command in a window of this size; when it has ended, its code is shown."""
    variables = [f"{name}={value}" for name, value in (_LOCALE | dict(env)).items()]
    line = shlex.join(["env", "-i", *variables, *command])
    # A Ctrl-C that comes too late must not end the window.
    script = f'trap : INT; {line}; code=$?; trap "" INT; echo "exit code $code"; sleep 600'
    with tempfile.TemporaryDirectory(prefix="tmux-") as folder:
        screen = Screen(Path(folder, "socket"))
        screen.start("-x", str(width), "-y", str(height), "-c", str(cwd), script)
        try:
            yield screen
        finally:
            screen.close()

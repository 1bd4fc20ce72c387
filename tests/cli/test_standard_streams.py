"""How wide the terminal is that a command writes to."""

from __future__ import annotations

import os
import subprocess
import sys
import termios

import pytest

_ASK = "from dragoman.cli.standard_streams import terminal_width; print(terminal_width())"


@pytest.mark.parametrize(
    ("columns", "told", "width"),
    [(0, None, 80), (0, "0", 80), (132, None, 132), (132, "60", 60), (5, None, 20)],
)
def test_a_terminal_that_does_not_say_how_wide_it_is_is_taken_for_an_ordinary_one(
    columns: int, told: str | None, width: int
) -> None:
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (24, columns))
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    try:
        subprocess.run(
            [sys.executable, "-c", _ASK],
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            env=env if told is None else env | {"COLUMNS": told},
            timeout=120,
            check=True,
        )
        assert os.read(ours, 100).split() == [str(width).encode()]
    finally:
        os.close(ours)
        os.close(theirs)

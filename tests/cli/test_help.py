"""`--help`: complete, and quick because it imports next to nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support.command import Dragoman

from dragoman.cli.main import COMMANDS

HEAVY = ("asyncio", "msgspec", "prompt_toolkit", "dragoman.client", "dragoman.testing", "ssl")


@pytest.mark.parametrize("command", ["", *(name for name in COMMANDS if name != "run")])
def test_help_imports_nothing_that_takes_long(command: str) -> None:
    words = [command, "--help"] if command else ["--help"]
    program = (
        "import sys\nfrom dragoman.cli.main import main\n"
        f"try:\n    main({words!r})\nexcept SystemExit as end:\n    assert end.code == 0\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run(
        (sys.executable, "-c", program), check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stderr == "[]\n"
    assert done.stdout.startswith("usage: dragoman")


def test_the_help_names_every_command(dragoman: Dragoman) -> None:
    done = dragoman("--help")
    assert done.code == 0
    for name, about in COMMANDS.items():
        assert f"  {name:<12} {about}\n" in done.out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("agents", "list", "--loud"), "there is no option --loud"),
        (("policy", "nonsense"), "nonsense"),
        (("completion", "csh"), "csh"),
        (("replay",), "FILE"),
        (("replay", "x", "--speed", "-1"), "--speed"),
        (("chat", "hello"), "unexpected argument 'hello'"),
    ],
)
def test_a_command_that_cannot_be_understood_is_a_usage_error(
    dragoman: Dragoman, words: tuple[str, ...], complaint: str
) -> None:
    done = dragoman(*words)
    assert done.code == 2
    assert complaint in done.err
    assert "Traceback" not in done.err

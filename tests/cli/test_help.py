"""`--help`: complete, and quick because it imports next to nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support.command import Dragoman

from dragoman.cli.parsers import COMMANDS

HEAVY = ("asyncio", "msgspec", "prompt_toolkit", "dragoman.client", "dragoman.testing", "ssl")


PROGRAM = """
import sys
from dragoman.cli.main import main
from dragoman.cli.parsers import COMMANDS
for words in [[], *([name] for name in COMMANDS)]:
    try:
        main([*words, "--help"])
    except SystemExit as end:
        assert end.code == 0
print([name for name in HEAVY if name in sys.modules], file=sys.stderr)
"""


def test_no_help_imports_anything_that_takes_long() -> None:
    program = PROGRAM.replace("HEAVY", repr(HEAVY))
    done = subprocess.run(
        (sys.executable, "-c", program), check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stderr == "[]\n"
    assert done.stdout.count("usage: dragoman") == len(COMMANDS) + 1


def test_the_help_names_every_command(dragoman: Dragoman) -> None:
    done = dragoman("--help")
    assert done.code == 0
    for name, about in COMMANDS.items():
        assert f"  {name:<12} {about}\n" in done.out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("agents", "list", "--loud"), "there is no option --loud"),
        (("completion", "csh"), "csh"),
        (("replay", "x", "--speed", "-1"), "--speed"),
        (("chat", "hello"), "unexpected argument 'hello'"),
        (("agents",), "ACTION; see dragoman agents --help"),
        (("policy", "check"), "FILE; see dragoman policy check --help"),
        (("-o", "xml", "x"), "-o/--output/--outputmode: invalid choice: 'xml'"),
        (("--timeout", "0", "x"), "--timeout: expected a number of seconds above 0, not 0"),
        (("two", "prompts"), "the prompt is one argument, put it in quotes; see dragoman --help"),
    ],
)
def test_a_command_that_cannot_be_understood_is_one_line(
    dragoman: Dragoman, words: tuple[str, ...], complaint: str
) -> None:
    done = dragoman(*words)
    assert done.code == 2
    assert done.err.startswith("dragoman: ")
    assert complaint in done.err
    assert done.err.count("\n") == 1

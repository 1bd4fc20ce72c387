"""How quickly it starts: what is imported for what, and help beside the bare argument parser."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest
from support.command import COMMAND, Dragoman


def imported(dragoman: Dragoman, *words: str, agent: str | None = None) -> set[str]:
    command = [sys.executable, "-X", "importtime", *dragoman.command(*words, agent=agent)]
    done = subprocess.run(command, env=dragoman.env, capture_output=True, text=True, check=True)
    lines = [line for line in done.stderr.split("\n") if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


def cpu_seconds(dragoman: Dragoman, *command: str) -> float:
    """The least of a few runs: other programs only add to it."""

    def once() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, env=dragoman.env, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return min(once() for _ in range(6))


def test_help_needs_next_to_nothing(dragoman: Dragoman) -> None:
    modules = imported(dragoman, "--help")
    assert not modules & {"asyncio", "msgspec", "typing", "logging", "shutil", "socket"}
    assert {name for name in modules if name.startswith("dragoman.")} == {
        "dragoman._version",
        "dragoman.cli",
        "dragoman.cli.main",
        "dragoman.cli.options",
        "dragoman.cli.parsers",
        "dragoman.cli.standard_streams",
    }


def test_a_turn_imports_only_what_it_uses(dragoman: Dragoman) -> None:
    modules = imported(dragoman, "hello", agent="quiet")
    unused = {"prompt_toolkit", "http", "difflib", "tomllib", "mimetypes", "secrets", "shutil"}
    assert not modules & unused
    assert "dragoman.schema.v2" not in modules


def test_the_keeper_of_processes_starts_before_the_long_imports(dragoman: Dragoman) -> None:
    command = [sys.executable, "-X", "importtime", *dragoman.command("hello", agent="quiet")]
    done = subprocess.run(command, env=dragoman.env, capture_output=True, text=True, check=True)
    assert done.stderr.index("dragoman.process.descriptors") < done.stderr.index("asyncio")


@pytest.mark.soak  # it measures; what is imported says the same
def test_help_takes_at_most_twice_as_long_as_importing_argparse(dragoman: Dragoman) -> None:
    ours = cpu_seconds(dragoman, sys.executable, str(COMMAND), "--help")
    floor = cpu_seconds(dragoman, sys.executable, "-c", "import argparse")
    # Twice is the goal, and about 1.4 is usual; the rest is for machines that are busy.
    assert ours <= 3 * floor

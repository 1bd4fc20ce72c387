"""A keeper while its fork is not yet the program."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="containment needs Linux")

PROGRAM = Path(__file__).parent / "programs" / "slow_fork.py"


@contextmanager
def keeping(deed: str) -> Generator[tuple[subprocess.Popen[bytes], socket.socket]]:
    """A keeper that has said so, and our end of its life socket."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(60)
    command = [sys.executable, PROGRAM, deed, str(theirs.fileno())]
    with ours, subprocess.Popen(command, pass_fds=[theirs.fileno()]) as keeper:
        theirs.close()
        try:
            assert ours.recv(64) == b"kept %d" % keeper.pid
            yield keeper, ours
        finally:
            keeper.kill()


def test_a_program_that_is_stopped_before_it_runs_goes_on() -> None:
    with keeping("stop") as (_, life):
        assert life.recv(64).startswith(b"started ")


def test_a_keeper_ends_when_nobody_waits_for_its_program_any_more() -> None:
    with keeping("hang") as (keeper, life):
        life.close()
        assert keeper.wait(60) == 0


@pytest.mark.parametrize("close", ["close_all_but({kept})", "_close_listed({{0, 1, 2, *{kept}}})"])
def test_every_descriptor_is_closed_but_the_standard_ones_and_those_named(close: str) -> None:
    """The second is for kernels that close none by a range."""
    lines = (
        "import os",
        "from dragoman.process import keeper",
        "first = [os.dup(0) for _ in range(9)]",
        "far = os.open('/', os.O_RDONLY)",
        "os.dup2(far, 200)",
        "os.dup2(far, 250)",
        f"keeper.{close.format(kept='[first[1], first[2], first[6], 200]')}",
        "left = [number for number in range(300) if os.path.exists(f'/proc/self/fd/{number}')]",
        "print(left == sorted([0, 1, 2, first[1], first[2], first[6], 200]))",
    )
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("True\n", "")

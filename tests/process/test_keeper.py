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

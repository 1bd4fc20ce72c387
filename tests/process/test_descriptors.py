"""What agents leave: descriptors for a server's connections, and for the store and its files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.descriptor_shortage import limited

PROGRAM = Path(__file__).parent / "programs" / "reserving.py"


@pytest.mark.parametrize(
    ("limit", "connections", "own"), [(256, 0, 64), (256, 100, 64), (512, 300, 64), (100, 40, 25)]
)
def test_pipes_of_agents_leave_what_is_kept_for_connections_and_for_the_store(
    limit: int, connections: int, own: int
) -> None:
    ended = subprocess.run(
        [sys.executable, PROGRAM, str(connections), str(own)],
        preexec_fn=limited(limit, limit),
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )
    refusal, pipes = ended.stdout.splitlines()
    may_have = limit - connections - own
    assert f"all of the {may_have} file descriptors" in refusal
    assert int(pipes) == may_have // 2
    assert ended.returncode == 0, ended.stderr

"""The official TypeScript SDK's example servers and agents, in a lab that $DRAGOMAN_LAB names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SECONDS = 120
PROGRAM = Path(__file__).parent / "programs" / "two_turns.py"

pytestmark = pytest.mark.skipif(
    not os.environ.get("DRAGOMAN_LAB"), reason="DRAGOMAN_LAB names no laboratory"
)


@pytest.mark.parametrize("name", ["ts-ws", "ts-http", "ts-v2"])
def test_an_official_example_completes_turns(name: str, tmp_path: Path) -> None:
    lab = Path(os.environ["DRAGOMAN_LAB"]) / "lab"
    done = subprocess.run(
        [str(lab), "run", name, "--", sys.executable, str(PROGRAM), name],
        env=os.environ | {"DRAGOMAN_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if "not installed" in done.stderr:
        pytest.skip(f"{name} is not installed in the lab")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["turns"] == ["end_turn", "end_turn"]
    assert told["text"]
    if name != "ts-v2":  # which is a process, and keeps nothing when it ends
        assert told["continuity"] == "continued"

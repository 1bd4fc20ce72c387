"""A program that stops or kills those who look after it, in whatever order, outlives nothing.

Each case is a host of its own, with one program that attacks its keeper and whoever is above it;
then the host ends. Nothing of the program is left, and none of the helpers.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import time
import uuid
from pathlib import Path

import pytest
from process.survivors import descendants, registered, started, survivors, survivors_after
from process.test_nothing_left import (
    SECONDS,
    end_survivors,
    expect,
    host,
    left_of,
    must_be_possible,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="containment needs Linux")

ATTACKS = [
    "stop_zygote,stop_keeper",
    "stop_zygote,kill_keeper",
    "kill_zygote,kill_keeper",
    "kill_zygote,pause,kill_keeper",
    "kill_keeper,kill_zygote",
    "stop_keeper,kill_zygote",
    "stop_all",
    "stop_warden,stop_zygote,kill_keeper",
    "stop_warden,kill_zygote,kill_keeper",
    "kill_warden,stop_zygote,stop_keeper",
    "kill_warden,pause,stop_zygote,stop_keeper",
    "kill_warden,kill_zygote,stop_keeper",
    "kill_warden,kill_zygote,pause,stop_keeper",
    "kill_warden,kill_keeper",
    "kill_warden,pause,kill_zygote,pause,kill_keeper",
    "hold_keeper,pause",
    "hold_all,pause",
    "starve_all",
    "starve_all,kill_keeper",
    "starve_all,kill_zygote",
    "starve_all,kill_warden,kill_keeper",
    "starve_all,stop_all",
    "starve_all,hold_keeper,pause",
]
ENDS = {"aclose": None, "killed": signal.SIGKILL}


# Inside, nobody of those who look after it is to be seen: what it takes for its keeper is process 1
# of its own world. These are enough for every kind of deed.
FENCED_ATTACKS = ["stop_all", "kill_keeper", "hold_all,pause", "starve_all,kill_keeper"]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("steps", [*ATTACKS, *(f"fenced:{steps}" for steps in FENCED_ATTACKS)])
def test_nothing_is_left(steps: str, end: str) -> None:
    must_be_possible(steps)
    fenced, _, steps = steps.rpartition(":")
    shape, token = f"attack:{steps}", uuid.uuid4().hex
    way = "closed_when_told" if end == "aclose" else end
    way = f"{fenced}:{way}" if fenced else way
    with tempfile.TemporaryDirectory() as folder, host(way, folder, token, [shape]) as process:
        expect(process, "ready")
        pidfile = Path(folder) / shape
        below = {pid: started(pid) for pid in descendants(process.pid)}
        try:
            attack(pidfile, f"{token}-{shape}.")
            if end == "killed":
                process.send_signal(signal.SIGKILL)
                process.wait(timeout=60)
            else:
                assert process.stdin is not None
                process.stdin.write("end\n")
                process.stdin.flush()
                expect(process, "done")
                if "kill_keeper" not in steps:  # then somebody else collects the dead, later
                    assert survivors([pidfile], f"{token}-{shape}.") == []
            assert registered(pidfile) >= 4
            assert survivors_after(SECONDS, pidfile, f"{token}-{shape}.") == []
            process.communicate(timeout=60)
            assert left_of(below) == set()
        finally:
            end_survivors(Path(folder), token, [shape])


def attack(pidfile: Path, marker: str) -> None:
    """Let it begin, and wait until it is done or has cost the attackers their lives."""
    pidfile.with_name(f"{pidfile.name}.go").touch()
    done = pidfile.with_name(f"{pidfile.name}.attacked")
    deadline = time.monotonic() + 60  # only a failure takes that long
    while not done.exists() and survivors_after(0, pidfile, marker):
        assert time.monotonic() < deadline
        time.sleep(0.01)

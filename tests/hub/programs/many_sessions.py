"""Many sessions in a process of their own, which says at the end how much memory it ever had."""

from __future__ import annotations

import asyncio
import resource
import sys
from pathlib import Path

from hub.test_scale import run_sessions

asyncio.run(run_sessions(Path(sys.argv[1]), sessions=int(sys.argv[2]), agents=int(sys.argv[3])))
try:
    # A process starts with its parent's ru_maxrss on Linux; VmHWM is its own.
    status = Path("/proc/self/status").read_text().splitlines()
    peak = next(line for line in status if line.startswith("VmHWM:")).split()[1]
except OSError:
    peak = str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
sys.stdout.write(peak)

"""What a client measures of itself around its prompt: its own CPU, not the agent's.

Imports next to nothing, since a one shot pays for it.
"""

from __future__ import annotations

import resource
import sys
import time


class Gauge:
    """Counts what the handlers saw; between `start` and `stop` it measures."""

    def __init__(self) -> None:
        self.updates = 0
        self.chars = 0
        self._cpu = self._wall = 0.0

    def saw(self, chars: int) -> None:
        self.updates += 1
        self.chars += chars

    def start(self) -> None:
        self._cpu, self._wall = time.process_time(), time.perf_counter()

    def stop(self) -> None:
        cpu, wall = time.process_time() - self._cpu, time.perf_counter() - self._wall
        sys.stdout.write(
            f'{{"updates":{self.updates},"chars":{self.chars},'
            f'"cpu_s":{cpu},"wall_s":{wall},"peak_mb":{_peak_mb()}}}\n'
        )


def _peak_mb() -> float:
    # A process starts with its parent's ru_maxrss on Linux; VmHWM is its own.
    try:
        with open("/proc/self/status") as status:
            peak = next(line for line in status if line.startswith("VmHWM:"))
        return int(peak.split()[1]) / 1024
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20

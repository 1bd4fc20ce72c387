"""A terminal that is flooded: memory stays where it was, and the others are served."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from host.watching import SECONDS, Bench, bench

from dragoman.host.terminals.provider import TerminalCommand, TerminalExit

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="terminals need Linux or macOS")

FLOOD = Path(__file__).parent / "programs" / "flood.py"
MOST_MIB = 32.0
FLOOD_BYTES = 250_000_000


def flood(megabytes: int, *options: str) -> dict[str, float]:
    """In a process of its own, where nothing else uses memory."""
    command = [sys.executable, str(FLOOD), str(megabytes), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    return json.loads(done.stdout)


@pytest.mark.parametrize("options", [(), ("--pipe",)], ids=["pty", "pipe"])
def test_a_flood_is_seen_whole_and_adds_little_memory(options: tuple[str, ...]) -> None:
    measured = flood(64, *options)
    assert measured["seen"] == 64_000_000
    assert measured["peak_growth_mib"] <= MOST_MIB


@pytest.mark.soak
def test_a_flood_of_a_gigabyte_adds_little_memory_and_gives_it_back() -> None:
    measured = flood(1000)
    assert measured["seen"] == 1_000_000_000
    assert measured["peak_growth_mib"] <= MOST_MIB
    assert measured["left_mib"] <= MOST_MIB / 4


async def test_control_a_watcher_that_keeps_everything_is_noticed() -> None:
    measured = await asyncio.to_thread(flood, 64, "--hoard")
    assert measured["peak_growth_mib"] > MOST_MIB


async def test_commands_beside_floods_are_served_before_any_flood_has_ended(tmp_path: Path) -> None:
    """However busy the machine is: what slows the commands slows the floods too."""
    async with bench(tmp_path) as b:
        floods = Floods(b)
        await floods.start(8, f"yes | head -c {FLOOD_BYTES}")
        for _ in range(5):
            await served(b, floods.ids[0])
        assert not floods.ended
        await b.release_all()


class Floods:
    """Terminals whose output is not kept."""

    def __init__(self, b: Bench) -> None:
        self.ids: list[str] = []
        self.ended: list[str] = []
        self._bench = b
        self._heard: set[str] = set()
        self._news = asyncio.Event()

    async def start(self, count: int, line: str) -> None:
        """All of them print when this returns."""
        command = TerminalCommand(command="sh", args=("-c", line))
        for _ in range(count):
            workspace = self._bench.workspace
            self.ids.append(await self._bench.provider.create(workspace, command, self))
        async with asyncio.timeout(SECONDS):
            while len(self._heard) < count:
                self._news.clear()
                await self._news.wait()

    def on_output(self, terminal_id: str, text: str) -> None:
        self._heard.add(terminal_id)
        self._news.set()

    def on_exit(self, terminal_id: str, ended: TerminalExit) -> None:
        self.ended.append(terminal_id)


async def served(b: Bench, flood: str) -> None:
    await b.output(flood)
    quick = await b.create("sh", "-c", "echo quick; exit 3")
    assert (await b.wait(quick)).exit_code == 3
    await b.release(quick)

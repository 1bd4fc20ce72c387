"""A terminal that is flooded: memory stays where it was, and the others are served."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from host.watching import Bench, bench

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="terminals need Linux or macOS")

FLOOD = Path(__file__).parent / "programs" / "flood.py"
MOST_MIB = 32.0


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


async def test_floods_do_not_keep_others_from_their_turn(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        floods = [await b.create("sh", "-c", "yes") for _ in range(8)]
        await b.told.until("y")
        for _ in range(5):
            await served(b, floods[0])
        await b.release_all()


@pytest.mark.soak
async def test_beside_floods_a_command_is_served_within_seconds(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        floods = [await b.create("sh", "-c", "yes") for _ in range(8)]
        await b.told.until("y")
        for _ in range(5):
            async with asyncio.timeout(5):
                await served(b, floods[0])
        await b.release_all()


async def served(b: Bench, flood: str) -> None:
    await b.output(flood)
    quick = await b.create("sh", "-c", "echo quick; exit 3")
    assert (await b.wait(quick)).exit_code == 3
    await b.release(quick)

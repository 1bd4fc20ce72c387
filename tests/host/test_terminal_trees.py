"""Whatever a command in a terminal starts and however the terminal ends, nothing of it is left.

The programs, and the look for survivors, are those of the process tests. The control is the
same look while the terminals are still there.
"""

from __future__ import annotations

import asyncio
import sys
import time
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from host.watching import Bench, bench
from process.survivors import registered, survivors_after
from process.test_attacks import ATTACKS, attack

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="containment needs Linux")

TREE = Path(__file__).parents[1] / "process" / "programs" / "tree.py"
WORST = ["deaf", "setsid", "daemon", "hydra", "respawner", "stopped", "holder", "quitter"]
OTHERS = [
    "plain", "chain", "wide", "closer", "blocker", "noisy", "talker", "zombies", "nested",
    "threads", "storm",
]  # fmt: skip
SECONDS = 60.0

Way = Callable[[Bench, list[str]], Awaitable[object]]


async def _kill(b: Bench, ids: list[str]) -> None:
    await asyncio.gather(*map(b.kill, ids))


async def _release(b: Bench, ids: list[str]) -> None:
    await asyncio.gather(*map(b.release, ids))


async def _release_all(b: Bench, ids: list[str]) -> None:
    await b.release_all()


async def _close(b: Bench, ids: list[str]) -> None:
    await b.provider.aclose()


WAYS: dict[str, Way] = {
    "kill": _kill,
    "release": _release,
    "release_all": _release_all,
    "aclose": _close,
}


@pytest.mark.parametrize("way", ["kill", "release"])
async def test_nothing_is_left_of_the_worst(tmp_path: Path, way: str) -> None:
    await _end(tmp_path, WAYS[way], WORST, use_pty=True)


@pytest.mark.parametrize("steps", ATTACKS)
async def test_nothing_is_left_of_a_command_that_attacks_its_keeper(
    tmp_path: Path, steps: str
) -> None:
    shape, token = f"attack:{steps}", uuid.uuid4().hex
    async with bench(tmp_path, kill_grace=0.3, use_pty=True) as b:
        terminal = await _start(b, shape, token)
        await asyncio.to_thread(_await_all, tmp_path, [shape])
        await asyncio.to_thread(attack, tmp_path / shape, f"{token}-{shape}.")
        await b.release(terminal)
        assert registered(tmp_path / shape) >= 4
        assert not await asyncio.to_thread(_is_left, tmp_path, shape, token, SECONDS)


@pytest.mark.soak
@pytest.mark.within(120)
@pytest.mark.parametrize("use_pty", [True, False])
@pytest.mark.parametrize("way", WAYS)
async def test_nothing_is_left_of_any(tmp_path: Path, way: str, use_pty: bool) -> None:
    await _end(tmp_path, WAYS[way], WORST + OTHERS, use_pty=use_pty)


def test_there_are_enough_cases() -> None:
    assert 2 * len(WAYS) * len(WORST + OTHERS) >= 150


async def _end(folder: Path, way: Way, shapes: list[str], *, use_pty: bool) -> None:
    token = uuid.uuid4().hex
    async with bench(folder, kill_grace=0.3, use_pty=use_pty) as b:
        ids = [await _start(b, shape, token) for shape in shapes]
        await asyncio.to_thread(_await_all, folder, shapes)
        assert all(_is_left(folder, shape, token, 0) for shape in shapes if shape != "plain")
        async with asyncio.timeout(SECONDS):
            await way(b, ids)
        deadline = time.monotonic() + SECONDS
        for shape in shapes:
            seconds = deadline - time.monotonic()
            assert registered(folder / shape)
            assert not await asyncio.to_thread(_is_left, folder, shape, token, seconds), shape
        assert len(b.told.ends) == len(shapes)


async def _start(b: Bench, shape: str, token: str) -> str:
    pidfile = str(Path(b.workspace.cwd) / shape)
    words = (sys.executable, "-I", "-S", str(TREE), shape, f"{token}-{shape}.", pidfile)
    return await b.create(*words)


def _await_all(folder: Path, shapes: list[str]) -> None:
    deadline = time.monotonic() + SECONDS
    while not all((folder / f"{shape}.ready").exists() for shape in shapes):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _is_left(folder: Path, shape: str, token: str, seconds: float) -> bool:
    return bool(survivors_after(seconds, folder / shape, f"{token}-{shape}."))

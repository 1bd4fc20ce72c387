"""A restore that is cancelled anywhere has either done nothing or all of it, and knows which."""

from __future__ import annotations

import asyncio
import shutil
import threading
from pathlib import Path

import pytest
from host.stories import Interruption
from support.folders import Watched, contents

BOUND = 60
LINES = 20_000
"""More than a restore has."""


def begin(folder: Path) -> None:
    (folder / "d" / "e").mkdir(parents=True)
    (folder / "void").mkdir()
    for name in ("changed", "deleted", "d/one", "d/e/two"):
        (folder / name).write_text(f"{name} before\n")
    (folder / "link").symlink_to("changed")


def act(folder: Path) -> None:
    (folder / "changed").write_text("agent\n")
    (folder / "new").write_text("agent\n")
    (folder / "deleted").unlink()
    (folder / "link").unlink()
    (folder / "void").rmdir()
    shutil.rmtree(folder / "d")
    (folder / "d").symlink_to("nowhere")
    (folder / "f" / "g").mkdir(parents=True)
    (folder / "f" / "g" / "file").write_text("agent\n")


class Cancelled:
    """A restore that is cancelled, and then once more, before some line of it."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._loop = asyncio.get_running_loop()

    async def at(self, line: int) -> bool:
        """Whether it has so many lines."""
        interruption = Interruption(self._watched.folder, self._cancel, line)
        with interruption.at_work():
            self._restoring = asyncio.create_task(self._watched.revert("t"))
            await asyncio.wait([self._restoring])
        if interruption.happened and not self._restoring.cancelled():
            raise AssertionError(f"not cancelled: {self._restoring.exception()!r}")
        return interruption.happened

    def _cancel(self) -> None:
        """Of a thread, only once whoever waits for it has heard of it."""
        if threading.current_thread() is threading.main_thread():
            self._restoring.cancel()
            self._loop.call_soon(self._restoring.cancel)
        else:
            asyncio.run_coroutine_threadsafe(self._cancel_twice(), self._loop).result(BOUND)

    async def _cancel_twice(self) -> None:
        for _ in range(2):
            self._restoring.cancel()
            for _ in range(20):
                await asyncio.sleep(0)


@pytest.mark.parametrize(
    "apart",
    [331, pytest.param(7, marks=(pytest.mark.soak, pytest.mark.within(10_800)))],
)
async def test_a_cancelled_restore_is_done_or_taken_back(tmp_path: Path, apart: int) -> None:
    found: list[str] = []
    for line in range(1, LINES, apart):
        folder = tmp_path / "project"
        begin(folder)
        watched = Watched(folder, tmp_path / "data")
        await watched.turn("t", act)
        after_turn = contents(folder)
        is_cut = await Cancelled(watched).at(line)
        found.append(await outcome(watched, after_turn, line))
        assert [*(tmp_path / "data").glob("*/journal/*")] == [], line
        shutil.rmtree(folder)
        shutil.rmtree(tmp_path / "data")
        if not is_cut:
            break
    assert {"nothing", "taken back", "done"} == {*found}


async def outcome(watched: Watched, after_turn: dict[str, object], line: int) -> str:
    step = watched.timeline.step("restore-1")
    if contents(watched.folder) == after_turn:
        assert step is None or step.left_no_trace, line
        return "nothing" if step is None else "taken back"
    assert step is not None, line
    assert step.end is not None, line
    await watched.revert("restore-1")
    assert contents(watched.folder) == after_turn, line
    return "done"

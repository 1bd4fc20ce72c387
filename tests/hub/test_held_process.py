"""A process that is held: signals reach it or nobody."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Generator

import msgspec
import pytest

from dragoman.hub.cluster.held_process import CAN_HOLD, HeldProcess, wake
from dragoman.hub.cluster.owner import started, this_process
from dragoman.store.records import Owner

pytestmark = pytest.mark.skipif(not CAN_HOLD, reason="needs a descriptor of a process")


@pytest.fixture
def other() -> Generator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def owner(process: subprocess.Popen[bytes], **changed: object) -> Owner:
    its = {"pid": process.pid, "started": started(process.pid)} | changed
    return msgspec.structs.replace(this_process(), **its)


async def test_a_signal_reaches_it_and_its_end_is_noticed(other: subprocess.Popen[bytes]) -> None:
    with HeldProcess.of(owner(other)) as held:
        assert not held.has_ended
        held.send(signal.SIGTERM)
        async with asyncio.timeout(60):
            await held.ended()
        assert held.has_ended
        assert other.wait(60) == -signal.SIGTERM
        held.send(signal.SIGTERM)  # to nobody


@pytest.mark.parametrize("changed", [{"started": "another boot-1"}, {"machine": "another"}])
def test_another_process_of_its_number_is_not_held(
    other: subprocess.Popen[bytes], changed: dict[str, object]
) -> None:
    """It came later, or is on another machine."""
    with pytest.raises(ProcessLookupError):
        HeldProcess.of(owner(other, **changed))


def test_one_that_has_ended_is_not_held(other: subprocess.Popen[bytes]) -> None:
    was = owner(other)
    other.kill()
    other.wait(60)
    with pytest.raises(ProcessLookupError):
        HeldProcess.of(was)


def test_one_that_is_paused_is_woken(other: subprocess.Popen[bytes]) -> None:
    with HeldProcess.of(owner(other)) as held:
        held.send(signal.SIGSTOP)
        while not held.is_paused:
            pass
        wake(owner(other))
        while held.is_paused:
            pass

"""A host that cannot start a thread, since some program has used up all processes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from typing import Any

import pytest
from process.running import gone, output_of, parent, running
from process.survivors import descendants

from dragoman.errors import StartError
from dragoman.process import zygote_client
from dragoman.process.child import ExitStatus

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="containment needs Linux")


def exhaust(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)


async def test_a_keeper_is_overruled(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running("sleep", "60") as (process, _):
        with monkeypatch.context() as patched:  # the event loop ends with a thread of its own
            exhaust(patched)
            await process.overrule()
        await gone(process.pid)


async def test_a_program_whose_keeper_was_killed_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    async with running("sleep", "60") as (process, _):
        exhaust(monkeypatch)
        os.kill(parent(process.pid), signal.SIGKILL)
        assert await process.wait() == ExitStatus(None, "SIGKILL")
        await gone(process.pid)
        await process.stop(exit_within=0, term_within=0)
    assert complaints == []


@pytest.mark.parametrize("contained", [True, False])
async def test_a_start_fails_with_a_sentence_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, contained: bool
) -> None:
    await output_of("true")
    with monkeypatch.context() as patched:
        if contained:
            old = zygote_client.zygote().session
            zygote_client.dismiss(zygote_client.zygote())
            await gone(old)
        else:
            patched.setattr(zygote_client, "available", lambda: False)
        before = descendants(os.getpid())
        exhaust(patched)
        with pytest.raises(StartError, match=r"no thread|temporarily unavailable"):
            await output_of("sleep", "60")
        await gone(*(descendants(os.getpid()) - before))
    assert await output_of("echo", "again") == "again\n"

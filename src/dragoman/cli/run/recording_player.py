"""Plays a recording: on the terminal with the views of a live turn, or as an agent on stdio.

A recording holds frames, or it is an exported session: that one can only be shown.
"""

from __future__ import annotations

import asyncio
import shlex
import sys

from dragoman.cli.commands import demo_agent
from dragoman.cli.render.playback import Playback
from dragoman.cli.render.status_line import Status
from dragoman.cli.run.follower import Follower
from dragoman.cli.run.recording_file import recorded, recorded_or_exported
from dragoman.store.archive import Archive
from dragoman.store.records import decode_event
from dragoman.testing.recorded_events import Transcript
from dragoman.testing.recording import Recording
from dragoman.testing.replay import ReplayAgent

_MOST_SECONDS = 3600.0


def serve(path: str) -> int:
    """Be the agent of the recording, until standard input ends."""
    agent = ReplayAgent(recorded(path, but="it can be shown, but not be an agent"))
    command = shlex.join(["dragoman", "replay", path, "--serve"])
    return demo_agent.serve(agent.serve_stdio, f"dragoman --agent-command {shlex.quote(command)}")


def show(path: str, speed: float) -> int:
    """Play it on the terminal."""
    asyncio.run(_show(recorded_or_exported(path), speed))
    return 0


async def _show(recording: Recording | Archive, speed: float) -> None:
    with Status(sys.stdout, visible=False) as status:
        stage = Playback(status)
        if isinstance(recording, Archive):
            await _retell(recording, stage, speed)
        else:
            await _replay(recording, stage, speed)
        stage.close()


async def _replay(recording: Recording, stage: Playback, speed: float) -> None:
    transcript, before = Transcript(), 0.0
    for line in recording.lines:
        await _pause(line.t - before, speed)
        before = line.t
        for happened in transcript.feed(line):
            if not happened.event.replay:
                stage.present(happened.event, happened.state)


async def _retell(archive: Archive, stage: Playback, speed: float) -> None:
    stage.introduce(archive.record)
    # History that an agent told us is all there is of it here.
    follower, before = Follower(stage, retells=True), 0.0
    for body in archive.events:
        event = decode_event(body)
        # Between two turns somebody was away, and nobody waits for that.
        await _pause(event.at - before if follower.state.turn is not None else 0.0, speed)
        before = event.at
        follower.take(event)


async def _pause(seconds: float, speed: float) -> None:
    if speed:
        await asyncio.sleep(min(max(0.0, seconds) / speed, _MOST_SECONDS))

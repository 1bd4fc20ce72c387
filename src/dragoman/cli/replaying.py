"""Plays a recording: on the terminal with the views of a live turn, or as an agent on stdio."""

from __future__ import annotations

import asyncio
import shlex
import sys

from dragoman.cli import serving
from dragoman.cli.guard import UsageError
from dragoman.cli.plain import PlainView
from dragoman.cli.recorded import Happened, Transcript
from dragoman.cli.status import Status
from dragoman.cli.style import BOLD, CYAN, RED, Style, can_draw, wants_colour
from dragoman.cli.terminal import TerminalView
from dragoman.cli.view import View
from dragoman.cli.wrap import folded
from dragoman.errors import ConfigError
from dragoman.safe_text import sanitise, single_line
from dragoman.session import events as e
from dragoman.testing.recording import Recording, load_recording
from dragoman.testing.replay import ReplayAgent

_MOST_SECONDS = 3600.0


def serve(path: str) -> int:
    """Be the agent of the recording, until standard input ends."""
    agent = ReplayAgent(_recording(path))
    command = shlex.join(["dragoman", "replay", path, "--serve"])
    return serving.serve(agent.serve_stdio, f"dragoman --agent-command {shlex.quote(command)}")


def show(path: str, speed: float) -> int:
    """Play it on the terminal."""
    asyncio.run(_show(_recording(path), speed))
    return 0


def _recording(path: str) -> Recording:
    try:
        recording = load_recording(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {(error.strerror or 'error').lower()}") from error
    if not recording.frames:
        raise ConfigError(path, "", "a recording with at least one frame")
    return recording


async def _show(recording: Recording, speed: float) -> None:
    transcript, before = Transcript(), 0.0
    with Status(sys.stdout, visible=False) as status:
        stage = Stage(status)
        for line in recording.lines:
            if speed:
                pause = max(0.0, line.t - before) / speed
                await asyncio.sleep(min(pause, _MOST_SECONDS))
                before = line.t
            for happened in transcript.feed(line):
                stage.show(happened)
        stage.close()


class Stage:
    """One view a session, and headings that say whose turn it is."""

    def __init__(self, status: Status) -> None:
        self._status = status
        self._style = Style(colour=wants_colour(sys.stdout))
        self._views: dict[str, View] = {}
        self._on = ""

    def show(self, happened: Happened) -> None:
        event, state = happened.event, happened.state
        if event.replay:
            return
        view = self._enter(state.session_id)
        match event:
            case e.SessionOpened():
                where = single_line(f"session {event.session_id} in {event.cwd}", 200)
                self._heading(view, "", where, BOLD)
            case e.TurnStarted():
                self._heading(view, "› ", sanitise(event.text), BOLD, CYAN)
            case e.TurnEnded(error=str(error)):
                self._heading(view, "", f"the turn failed: {sanitise(error)}", RED)
            case _:
                pass
        view.show(event, state)

    def close(self) -> None:
        for view in self._views.values():
            view.close()

    def _enter(self, session_id: str) -> View:
        if session_id != self._on and self._on in self._views:
            self._views[self._on].close()
        self._on = session_id
        if session_id not in self._views:
            self._views[session_id] = self._view()
        return self._views[session_id]

    def _view(self) -> View:
        if can_draw(sys.stdout):
            return TerminalView(self._status, self._style)
        return PlainView(self._status)

    def _heading(self, view: View, prefix: str, text: str, *codes: str) -> None:
        view.close()
        first, *more = text.split("\n")
        lines = self._laid_out(first, prefix)
        lines += [line for each in more for line in self._laid_out(each, " " * len(prefix))]
        painted = [self._style(line, *codes) for line in lines]
        self._status.write("\n".join(["", *painted, ""]))

    def _laid_out(self, line: str, prefix: str) -> list[str]:
        return folded(line, prefix) if can_draw(sys.stdout) else [f"{prefix}{line}"]

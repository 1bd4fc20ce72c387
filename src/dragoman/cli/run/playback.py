"""Plays a recording or an exported session: on the terminal, or as an agent on stdio.

A recording holds frames, or it is an exported session: that one can only be shown.

One that is neither is refused with a word on how to make the right one.
"""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Awaitable, Callable

import msgspec

from dragoman.cli.commands import demo_agent
from dragoman.cli.exit_codes import UsageError
from dragoman.cli.render import plain, terminal_view
from dragoman.cli.render.event_text import called, fenced, notice_words, shown
from dragoman.cli.render.status_line import Status
from dragoman.cli.render.style import BOLD, CYAN, DIM, RED, YELLOW, Style, can_draw, wants_colour
from dragoman.cli.render.view import Stage, View, heading
from dragoman.cli.run.follower import Follower
from dragoman.cli.standard_streams import terminal_width
from dragoman.errors import ConfigError
from dragoman.safe_text import sanitise, single_line
from dragoman.session import events as e
from dragoman.session.state import SessionState
from dragoman.store.archive import Archive, read_archive
from dragoman.store.mirror_lines import is_header
from dragoman.store.records import SessionRecord, decode_event
from dragoman.testing.recordings.recorded_events import Transcript
from dragoman.testing.recordings.recording import Recording, load_recording
from dragoman.testing.recordings.replay import ReplayAgent

_MOST_SECONDS = 3600.0
Sleep = Callable[[float], Awaitable[None]]


def serve(path: str) -> int:
    """Be the agent of the recording, until standard input ends."""
    agent = ReplayAgent(recorded(path, but="it can be shown, but not be an agent"))
    command = shlex.join(["dragoman", "replay", path, "--serve"])
    return demo_agent.serve(agent.serve_stdio, f"dragoman --agent-command {shlex.quote(command)}")


def show(path: str, speed: float) -> int:
    """Play it on the terminal."""
    asyncio.run(play(recorded_or_exported(path), speed))
    return 0


async def play(recording: Recording | Archive, speed: float, sleep: Sleep = asyncio.sleep) -> None:
    """Print it, with pauses that are the recorded ones divided by `speed`; 0 leaves them out."""

    async def pause(seconds: float) -> None:
        if speed:
            await sleep(min(max(0.0, seconds) / speed, _MOST_SECONDS))

    with Status(sys.stdout, visible=False) as status:
        stage = Playback(status)
        if isinstance(recording, Archive):
            await _retell(recording, stage, pause)
        else:
            await _replay(recording, stage, pause)
        stage.close()


async def _replay(recording: Recording, stage: Playback, pause: Sleep) -> None:
    transcript, before = Transcript(), 0.0
    for line in recording.lines:
        await pause(line.t - before)
        before = line.t
        for happened in transcript.feed(line):
            if not happened.event.replay:
                stage.present(happened.event, happened.state)


async def _retell(archive: Archive, stage: Playback, pause: Sleep) -> None:
    stage.introduce(archive.record)
    # History that an agent told us is all there is of it here.
    follower, before = Follower(stage, retells=True), 0.0
    for body in archive.events:
        event = decode_event(body)
        # Between two turns someone was away, and nobody waits for that.
        await pause(event.at - before if follower.state.turn is not None else 0.0)
        before = event.at
        follower.take(event)


HOW = 'dragoman --record recording.jsonl "…" makes a recording'


class _Frame(msgspec.Struct):
    jsonrpc: str


def recorded_or_exported(path: str) -> Recording | Archive:
    """Raises UsageError, ConfigError."""
    try:
        with open(path, "rb") as file:
            first = file.readline()
            if is_header(first):
                file.seek(0)
                return read_archive(file, path)
        return _recorded(path, first)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {(error.strerror or 'error').lower()}") from error


def recorded(path: str, *, but: str) -> Recording:
    """Frames alone; `but` says what can be done with an exported session instead, or why it will
    not do. Raises UsageError, ConfigError."""
    found = recorded_or_exported(path)
    if isinstance(found, Archive):
        raise UsageError(f"{path}: an exported session has no frames; {but}; {HOW}")
    return found


def _recorded(path: str, first: bytes) -> Recording:
    if _is_frame(first):
        what = "these are frames as -o jsonl prints them, without their times and directions"
        raise UsageError(f"{path}: {what}; {HOW}")
    try:
        recording = load_recording(path)
    except ConfigError as error:
        raise ConfigError(error.file, error.place, f"{error.expected}; {HOW}") from error
    if not recording.frames:
        raise ConfigError(path, "", f"a recording with at least one frame; {HOW}")
    return recording


def _is_frame(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=_Frame)
    except msgspec.DecodeError:
        return False
    return True


class Playback(Stage):
    """One view a session, and headings that say whose turn it is.

    With `full`, all of what commands and tool calls brought back.
    """

    def __init__(self, status: Status, *, full: bool = False) -> None:
        self.status = status
        self._full = full
        self._style = Style(colour=wants_colour(sys.stdout))
        self._views: dict[str, View] = {}
        self._on = ""
        self._retold: list[str] = []
        self._introduced = False

    def introduce(self, record: SessionRecord, state: SessionState | None = None) -> None:
        """The session that is shown, the only one, and how it is fenced."""
        self._introduced = True
        where = record.cwd or ("" if record.imported is None else record.imported.cwd)
        words = f"{record.id}  {called(record.name, record.title)}".rstrip()
        lines = [(words, BOLD), (f"{record.agent} in {where}", DIM)]
        if state is not None and state.fence is not None:
            lines.append((fenced(state.fence, state.network), DIM))
        if (prompt := record.system_prompt) is not None:
            instead = " (override)" if prompt.mode == "override" else ""
            lines.append((f"system prompt{instead}: {prompt.text}", DIM))
        for line, code in lines:
            self.status.write(self._style(single_line(line, terminal_width()), code) + "\n")

    def present(self, event: e.Event, state: SessionState, *, known: bool = False) -> None:
        if self._introduced and not _is_news(event):
            return
        self._enter(state.session_id)
        if isinstance(event, e.UserMessage) and state.turn is None:
            self._retold.append(shown(event.content))  # it comes in pieces
            return
        self._show_retold()
        super().present(event, state, known=known)

    def asked(self, text: str) -> None:
        self._heading("› ", sanitise(text), BOLD, CYAN)

    def show(self, event: e.Event, state: SessionState) -> None:
        self._view.show(event, state)
        if not isinstance(self._view, plain.PlainView):
            return  # it says so itself
        if isinstance(event, e.TurnEnded):
            self._ended_early(event)
        elif isinstance(event, e.Notice) and (words := notice_words(event)) is not None:
            self.remark(words)

    def _ended_early(self, event: e.TurnEnded) -> None:
        if event.error is None and event.stop_reason not in ("cancelled", "end_turn", None):
            self.remark(f"the turn ended early: {single_line(event.stop_reason, 80)}")

    def remark(self, sentence: str, *, failed: bool = False) -> None:
        self._heading("", sanitise(sentence), RED if failed else YELLOW)

    def close(self) -> None:
        for view in self._views.values():
            view.close()

    def _announce(self, event: e.Event) -> None:
        match event:
            case e.SessionOpened(continuity="reset"):
                self.remark("the agent had forgotten the session")
            case e.SessionOpened():
                how = "" if event.fence is None else f", {fenced(event.fence, event.network)}"
                where = single_line(f"session {event.session_id} in {event.cwd}{how}", 200)
                self._heading("", where, BOLD)
            case e.PromptQueued():
                pass  # it is above its turn, or nothing came of it
            case _:
                super()._announce(event)

    def _show_retold(self) -> None:
        """What was asked before the session was known here, as the agent remembers it."""
        if self._retold:
            asked = "".join(self._retold)
            self._retold.clear()
            self.asked(asked)

    @property
    def _view(self) -> View:
        return self._views[self._on]

    def _enter(self, session_id: str) -> None:
        if session_id != self._on and self._on in self._views:
            self._view.close()
        self._on = session_id
        if session_id not in self._views:
            self._views[session_id] = self._new_view()

    def _new_view(self) -> View:
        if can_draw(sys.stdout):
            lines = None if self._full else terminal_view.OUTPUT_LINES
            return terminal_view.TerminalView(self.status, self._style, lines)
        return plain.PlainView(self.status, None if self._full else plain.OUTPUT_LINES)

    def _heading(self, prefix: str, text: str, *codes: str) -> None:
        self._view.close()
        self.status.write(heading(prefix, text, self._style, *codes))


def _is_news(event: e.Event) -> bool:
    """That someone came back to the session is none, unless the agent had forgotten it; nor is
    what could have been typed then."""
    match event:
        case e.SessionOpened():
            return event.continuity == "reset"
        case e.CommandsChanged():
            return False
        case _:
            return True

"""What programs read of a run: its events, one per line, or one document at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import msgspec

from dragoman.cli.render.printed_json import json_line
from dragoman.cli.render.view import JsonView
from dragoman.session import events as e
from dragoman.session.facts import Author, Cost, Decision, FileStatus, TokenUsage
from dragoman.session.state import SessionState
from dragoman.store.mirror_lines import header_line
from dragoman.store.records import encode_event

if TYPE_CHECKING:
    from dragoman.host.snapshots.folder_changes import FolderChanges
    from dragoman.store.records import SessionRecord

LONGEST_ANSWER = 16 << 20
MOST_DECISIONS = 1000


class EventLines(JsonView):
    """The events of a turn, as an export has them: a header with the session, then one per line."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def begin(self, record: SessionRecord, last_seq: int) -> None:
        self._write(header_line(record, last_seq))

    def show(self, event: e.Event, state: SessionState) -> None:
        self._write(encode_event(event) + b"\n")

    def close(self) -> None:
        pass

    def _write(self, line: bytes) -> None:
        self._out.write(json_line(line))
        self._out.flush()


class DecisionMade(msgspec.Struct, rename="camel"):
    """A decision about something that the agent wanted to do, or did in a fence."""

    title: str
    operation: str
    decision: Decision
    paths: list[str] = []
    argv: list[str] | None = None


class FileChanged(msgspec.Struct, rename="camel"):
    """A file that changed during the turn; `dragoman sessions changes` has the diff."""

    path: str
    status: FileStatus
    by: list[Author]
    added: int
    removed: int


class RunResult(msgspec.Struct, rename="camel"):
    """The document of `-o result`. What the run did not get as far as is null or empty."""

    version: int = 1
    session_id: str | None = None
    name: str | None = None
    agent: str | None = None
    agent_session_id: str | None = None
    cwd: str | None = None
    turn_id: str | None = None
    answer: str = ""
    """The agent's messages, with a blank line between two of them."""
    answer_cut: bool = False
    """The answer was longer than 16 Mi characters, and only its beginning is here."""
    stop_reason: str | None = None
    error: str | None = None
    usage: TokenUsage | None = None
    """Tokens of the turn, as the agent reports them."""
    cost: Cost | None = None
    """Of the session so far, as the agent reports it."""
    changes: list[FileChanged] = []
    decisions: list[DecisionMade] = []
    exit_code: int = 0


class ResultView(JsonView):
    """Shows nothing while a turn runs, and collects what its result says."""

    def __init__(self, longest: int = LONGEST_ANSWER) -> None:
        self.result = RunResult()
        self._longest = longest
        self._messages: list[list[str]] = []
        self._length = 0
        self._entry: int | None = None
        self._asked: dict[str, e.PermissionRequested] = {}

    def begin(self, record: SessionRecord, last_seq: int) -> None:
        result = self.result
        result.session_id, result.name, result.agent = record.id, record.name, record.agent
        result.agent_session_id, result.cwd = record.agent_session_id, record.cwd

    def show(self, event: e.Event, state: SessionState) -> None:
        match event:
            case e.AgentMessage() if not event.replay:
                self._say(event, state)
            case e.UsageChanged():
                self.result.cost = event.cost or self.result.cost
            case e.TurnEnded():
                self.result.turn_id, self.result.usage = event.turn_id, event.usage
                self.result.stop_reason, self.result.error = event.stop_reason, event.error
            case e.PermissionRequested():
                self._asked[event.request_id] = event
            case e.PermissionSettled():
                self._settled(event)
            case e.AccessDecided():
                self._decided(event.title, event.operation, event.decision, event.paths, event.argv)
            case _:
                pass

    def close(self) -> None:
        pass

    def changed(self, found: FolderChanges) -> None:
        self.result.changes = [
            FileChanged(file.path, file.status, list(file.by), file.added, file.removed)
            for file in found.files
        ]

    def document(self, code: int, error: str | None) -> bytes:
        """The document as a line."""
        said = ("".join(pieces).strip() for pieces in self._messages)
        self.result.answer = "\n\n".join(filter(None, said))
        self.result.exit_code = code
        self.result.error = error or self.result.error
        return json_line(msgspec.json.encode(self.result)) + b"\n"

    def _say(self, event: e.AgentMessage, state: SessionState) -> None:
        entry = state.entries[-1].seq if state.entries else None
        if entry != self._entry or not self._messages:
            self._messages.append([])
            self._entry = entry
        if event.replaces:
            self._messages[-1].clear()
        room = self._longest - self._length
        self.result.answer_cut |= len(event.text) > room
        self._messages[-1].append(event.text[:room])
        self._length += len(self._messages[-1][-1])

    def _settled(self, event: e.PermissionSettled) -> None:
        if (asked := self._asked.pop(event.request_id, None)) is not None:
            self._decided(asked.title, asked.operation, event.decision, asked.paths, asked.argv)

    def _decided(
        self,
        title: str,
        operation: str,
        decision: Decision,
        paths: list[str],
        argv: list[str] | None,
    ) -> None:
        if len(self.result.decisions) < MOST_DECISIONS:
            made = DecisionMade(title, operation, decision, paths, argv)
            self.result.decisions.append(made)

"""The demo agent: its modes, options, commands and capabilities, and its sessions on disk.

The script itself is imported with the first prompt: until then only a quick answer matters.

The first line is what there is to know about a session, each further line an update of its
conversation. The oldest sessions, and the oldest turns of a long one, are let go.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

import msgspec

from dragoman._version import __version__
from dragoman.schema import v1
from dragoman.testing.scripted_agent import EVERYTHING, AgentSession, ScriptedAgent
from dragoman.testing.scripted_turn import AgentTurn

CAPABILITIES: Final = msgspec.structs.replace(
    EVERYTHING,
    mcp_capabilities=v1.McpCapabilities(),
    auth=v1.AgentAuthCapabilities(),
)
"""No MCP transports: it would accept servers and never use them."""

MODES: Final = (
    v1.SessionMode(id="ask", name="Ask", description="Asks before it changes a file"),
    v1.SessionMode(id="plan", name="Plan", description="Reads and plans, changes nothing"),
    v1.SessionMode(id="auto", name="Auto", description="Never asks; the client's rules decide"),
)


_MODELS = {
    "demo-swift": ("Demo Swift", "Says everything at once"),
    "demo-steady": ("Demo Steady", "Speaks word by word"),
    "demo-slow": ("Demo Slow", "Takes its time"),
}
_THOUGHTS = {
    "off": ("Off", "Keeps its thoughts to itself"),
    "short": ("Short", "One thought before it acts"),
    "long": ("Long", "A thought for every step"),
}


def _select(
    name: str,
    category: str,
    current: str,
    values: dict[str, tuple[str, str]],
    description: str | None = None,
) -> v1.SessionConfigSelect:
    return v1.SessionConfigSelect(
        id=name.lower(),
        name=name,
        description=description,
        category=category,
        current_value=current,
        options=[
            v1.SessionConfigSelectOption(value=value, name=name, description=description)
            for value, (name, description) in values.items()
        ],
    )


OPTIONS: Final = (
    _select(
        "Model",
        "model",
        "demo-steady",
        _MODELS,
        "There is none; these differ in how fast they speak",
    ),
    _select("Thinking", "thought_level", "short", _THOUGHTS),
    v1.SessionConfigBoolean(
        id="verbose",
        name="Verbose",
        description="Ends each answer with what it knows about the session",
        current_value=False,
    ),
)


def _command(name: str, description: str, hint: str | None = None) -> v1.AvailableCommand:
    given = None if hint is None else v1.UnstructuredCommandInput(hint=hint)
    return v1.AvailableCommand(name=name, description=description, input=given)


COMMANDS: Final = (
    _command("help", "Say what this agent can do"),
    _command("plan", "Make a plan and work through it", "what to plan"),
    _command("diff", "Show a change without making it"),
    _command("run", "Run a command in a terminal", "the command"),
    _command("think", "Think aloud"),
    _command("image", "Answer with a picture"),
    _command("ask", "Ask you to fill in a form"),
    _command("slow", "Speak for some seconds, to be cancelled", "seconds"),
    _command("long", "Answer in many pieces", "how many"),
    _command("fail", "Answer with an error"),
    _command("crash", "Exit in the middle of the turn"),
    _command("unknown", "Send an update no client knows"),
    _command("notice", "Send a notice"),
    _command("compact", "Shorten the context"),
)


class DemoAgent(ScriptedAgent):
    """Keeps its sessions on disk, so that another process can continue them."""

    def __init__(self) -> None:
        super().__init__(
            _script,
            name="dragoman-demo",
            title="Dragoman's demo agent",
            version=__version__,
            capabilities=CAPABILITIES,
            modes=MODES,
            config_options=OPTIONS,
            commands=COMMANDS,
            sessions=StoredSessions.at_home(),
            page_size=20,
        )
        self.trusted: set[str] = set()
        """Sessions in which the user said that edits are always fine."""

    def new_session_id(self) -> str:
        return f"demo-{os.urandom(8).hex()}"

    def keep(self, session: AgentSession) -> None:
        session.updated_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        super().keep(session)


async def _script(turn: AgentTurn) -> None:
    from dragoman.testing.demo.script import perform

    await turn.until_cancelled(perform(turn))


_is_id = re.compile(r"[A-Za-z0-9-]{1,64}").fullmatch
_TURN = b'"user_message_chunk"'


class StoredSessions(MutableMapping[str, AgentSession]):
    """Sessions by id, newest first; each look is a fresh one, so that processes can share them."""

    def __init__(
        self,
        folder: str,
        *,
        max_sessions: int = 100,
        max_history_bytes: int = 256 * 1024,
    ) -> None:
        self._folder = folder
        self._max_sessions = max_sessions
        self._max_history_bytes = max_history_bytes

    @classmethod
    def at_home(cls) -> MutableMapping[str, AgentSession]:
        """Where Dragoman keeps things; in memory alone where it may not."""
        folder = os.path.join(_home(), "demo-agent")
        try:
            os.makedirs(os.path.dirname(folder), 0o700, exist_ok=True)
            os.makedirs(folder, 0o700, exist_ok=True)
        except OSError:
            return {}
        return cls(folder)

    def __getitem__(self, session_id: str) -> AgentSession:
        try:
            with open(self._path(session_id), "rb") as file:
                header, *updates = file.read().rstrip(b"\n").split(b"\n")
            session = msgspec.json.decode(header, type=AgentSession)
        except (OSError, msgspec.DecodeError):
            raise KeyError(session_id) from None
        session.history = [msgspec.Raw(update) for update in updates]
        return session

    def __setitem__(self, session_id: str, session: AgentSession) -> None:
        session.history = _bounded(session.history, self._max_history_bytes)
        about = msgspec.structs.replace(session, history=[], request=None)
        lines = [msgspec.json.encode(about), *map(bytes, session.history)]
        try:
            self._write(self._path(session_id), b"\n".join(lines) + b"\n")
        except OSError as error:
            # The conversation continues; only the next process will know nothing of it.
            sys.stderr.write(f"the session could not be kept: {error}\n")
        for oldest in list(self)[self._max_sessions :]:
            self.pop(oldest, None)

    def __delitem__(self, session_id: str) -> None:
        try:
            os.unlink(self._path(session_id))
        except OSError:
            raise KeyError(session_id) from None

    def __iter__(self) -> Iterator[str]:
        with os.scandir(self._folder) as entries:
            found = [(_changed(e), e.name[:-6]) for e in entries if e.name.endswith(".jsonl")]
        return iter([session_id for _, session_id in sorted(found, reverse=True)])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _path(self, session_id: str) -> str:
        """Ids come from clients: an id that is not ours must not become a file name."""
        if not _is_id(session_id):
            raise KeyError(session_id)
        return os.path.join(self._folder, f"{session_id}.jsonl")

    def _write(self, path: str, data: bytes) -> None:
        unfinished = f"{path}.{os.getpid()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        with os.fdopen(os.open(unfinished, flags, 0o600), "wb") as file:
            file.write(data)
        os.replace(unfinished, path)


def _changed(entry: os.DirEntry[str]) -> int:
    with suppress(OSError):  # another process may have let it go
        return entry.stat().st_mtime_ns
    return 0


def _home() -> str:
    if home := os.environ.get("DRAGOMAN_HOME"):
        return os.path.abspath(home)
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return os.path.join(os.path.abspath(os.path.expanduser(data)), "dragoman")


def _bounded(history: list[msgspec.Raw], most: int) -> list[msgspec.Raw]:
    """Without the oldest turns, if there are more than `most` bytes."""
    size = sum(len(update) for update in history)
    start = 0
    while size > most and start < len(history):
        size -= len(history[start])
        start += 1
        while start < len(history) and _TURN not in bytes(history[start]):
            size -= len(history[start])
            start += 1
    return history[start:]

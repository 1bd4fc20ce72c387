"""An agent that follows a script: the other side of ACP, complete enough to test a client.

It keeps sessions, tells their history again on load, lists, forks and forgets them, has modes,
options and commands if it is given some, and does with each prompt what the script says.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from dragoman.schema import v1
from dragoman.testing.agent_stdio import Served
from dragoman.testing.scripted_connection import Answer, ScriptedConnection
from dragoman.testing.scripted_turn import AgentTurn, Script, Step
from dragoman.transport.transport import Transport

if TYPE_CHECKING:
    from dragoman.transport.stdio import AgentCommand

EVERYTHING: Final = v1.AgentCapabilities(
    load_session=True,
    prompt_capabilities=v1.PromptCapabilities(image=True, audio=True, embedded_context=True),
    mcp_capabilities=v1.McpCapabilities(http=True, sse=True, acp=True),
    session_capabilities=v1.SessionCapabilities(
        list=v1.SessionListCapabilities(),
        delete=v1.SessionDeleteCapabilities(),
        fork=v1.SessionForkCapabilities(),
        resume=v1.SessionResumeCapabilities(),
        close=v1.SessionCloseCapabilities(),
        title=v1.SessionTitleCapabilities(),
        status=v1.SessionStatusCapabilities(),
        archive=v1.SessionArchiveCapabilities(),
        additional_directories=v1.SessionAdditionalDirectoriesCapabilities(),
    ),
    auth=v1.AgentAuthCapabilities(logout=v1.LogoutCapabilities()),
)
"""What a scripted agent advertises unless told otherwise."""

ConfigOption: TypeAlias = v1.SessionConfigSelect | v1.SessionConfigBoolean


class AgentSession(msgspec.Struct, kw_only=True):
    """What the agent remembers of a session."""

    id: str
    cwd: str
    additional_directories: list[str] = []
    mode: str | None = None
    options: dict[str, str | bool] = {}
    title: str | None = None
    updated_at: str | None = None
    archived: bool = False
    used: int = 0
    """Tokens in its context."""
    cost: float = 0.0
    history: list[msgspec.Raw] = []
    """The conversation so far, as updates."""
    request: Any = None
    """What opened it last: new, load, resume or fork."""


class ScriptedAgent(Served):
    """Follows `script`: an async function of the turn, or a list of steps, for every prompt.

    `answers` overrides the reply to a method: a result, an error, a function of the params, or
    `faults.NEVER`. `sessions` is where sessions are kept. Scripts use the types of ACP v1; for a
    client that asks for v2 they are translated.
    """

    def __init__(
        self,
        script: Script | Sequence[Step] = (),
        *,
        name: str = "scripted",
        version: str = "1",
        title: str | None = None,
        capabilities: v1.AgentCapabilities = EVERYTHING,
        modes: Sequence[v1.SessionMode] = (),
        config_options: Sequence[ConfigOption] = (),
        commands: Sequence[v1.AvailableCommand] = (),
        auth_methods: Sequence[v1.AuthMethod] = (),
        answers: Mapping[str, Answer] | None = None,
        sessions: MutableMapping[str, AgentSession] | None = None,
        page_size: int = 2,
        banner: bytes = b"",
        protocol_versions: Sequence[int] = (1, 2),
    ) -> None:
        super().__init__()
        self.script = script
        self.info = v1.Implementation(name=name, version=version, title=title)
        self.capabilities = capabilities
        self.modes = modes
        self.config_options = config_options
        self.commands = commands
        self.auth_methods = auth_methods
        self.answers = dict(answers or {})
        self.sessions: MutableMapping[str, AgentSession] = {} if sessions is None else sessions
        self.page_size = page_size
        self.banner = banner
        """What it prints before it speaks ACP."""
        self.protocol_versions = protocol_versions
        self.received: list[tuple[str, Any]] = []
        """Every request and notification that was received, with its params."""
        self._numbers = count(1)

    async def serve(self, transport: Transport) -> None:
        """Serve one client on this transport until it disconnects."""
        connection = ScriptedConnection(self, transport)
        async with connection.peer:
            if self.banner:
                transport.send(self.banner)
            try:
                await connection.peer.wait_ended()
            finally:
                connection.close()

    @staticmethod
    def command(
        target: str, *, env: Mapping[str, str] | None = None, cwd: str | None = None
    ) -> AgentCommand:
        """How to run the agent that `target` names as a process: "package.module:agent" or
        "path/to/file.py:agent", where `agent` is an agent or a function that makes one."""
        from dragoman.testing.serve import command  # an agent's own process has no use for it

        return command(target, env=env, cwd=cwd)

    # ── what it does ──────────────────────────────────────────────────────────────────────────

    async def play(self, turn: AgentTurn) -> None:
        """Follow the script for one prompt."""
        if callable(self.script):
            await self.script(turn)
            return
        for step in self.script:
            doing = step(turn)
            if doing is not None:
                await doing

    def new_session(self, cwd: str, additional_directories: list[str]) -> AgentSession:
        session = AgentSession(
            id=self.new_session_id(),
            cwd=cwd,
            additional_directories=additional_directories,
            mode=self.modes[0].id if self.modes else None,
            options={option.id: option.current_value for option in self.config_options},
        )
        self.keep(session)
        return session

    def new_session_id(self) -> str:
        """An id that was never used: a deleted session may still be remembered elsewhere."""
        names = (f"session-{number}" for number in self._numbers)
        return next(name for name in names if name not in self.sessions)

    def keep(self, session: AgentSession) -> None:
        """Called after every change that a restart should not undo."""
        self.sessions[session.id] = session

    def modes_of(self, session: AgentSession) -> v1.SessionModeState | None:
        if session.mode is None:
            return None
        return v1.SessionModeState(current_mode_id=session.mode, available_modes=list(self.modes))

    def options_of(
        self, session: AgentSession, client: v1.ClientCapabilities
    ) -> list[v1.SessionConfigOption] | None:
        """The config options with this session's values, as far as the client supports them."""
        options: list[v1.SessionConfigOption] = [
            msgspec.structs.replace(option, current_value=session.options[option.id])
            for option in self.config_options
            if isinstance(option, v1.SessionConfigSelect) or _takes_booleans(client)
        ]
        return options or None


def _takes_booleans(client: v1.ClientCapabilities) -> bool:
    offered = None if client.session is None else client.session.config_options
    return offered is not None and offered.boolean is not None

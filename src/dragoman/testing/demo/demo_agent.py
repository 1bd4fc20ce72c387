"""What the demo agent offers: its modes, options, commands and capabilities.

The script itself is imported with the first prompt: until then only a quick answer matters.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Final

from dragoman._version import __version__
from dragoman.schema import v1
from dragoman.testing.demo.stored import StoredSessions
from dragoman.testing.scripted_agent import AgentSession, ScriptedAgent
from dragoman.testing.scripted_turn import AgentTurn

CAPABILITIES: Final = v1.AgentCapabilities(
    load_session=True,
    prompt_capabilities=v1.PromptCapabilities(image=True, audio=True, embedded_context=True),
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
)
"""No MCP transports: it would accept servers and never use them."""

MODES: Final = (
    v1.SessionMode(id="ask", name="Ask", description="Asks before it changes a file"),
    v1.SessionMode(id="plan", name="Plan", description="Reads and plans, changes nothing"),
    v1.SessionMode(id="auto", name="Auto", description="Never asks; the client's rules decide"),
)


def _choice(value: str, name: str, description: str) -> v1.SessionConfigSelectOption:
    return v1.SessionConfigSelectOption(value=value, name=name, description=description)


OPTIONS: Final = (
    v1.SessionConfigSelect(
        id="model",
        name="Model",
        description="There is none; these differ in how fast they speak",
        category="model",
        current_value="demo-steady",
        options=[
            _choice("demo-swift", "Demo Swift", "Says everything at once"),
            _choice("demo-steady", "Demo Steady", "Speaks word by word"),
            _choice("demo-slow", "Demo Slow", "Takes its time"),
        ],
    ),
    v1.SessionConfigSelect(
        id="thinking",
        name="Thinking",
        category="thought_level",
        current_value="short",
        options=[
            _choice("off", "Off", "Keeps its thoughts to itself"),
            _choice("short", "Short", "One thought before it acts"),
            _choice("long", "Long", "A thought for every step"),
        ],
    ),
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

"""What a script can do in a turn: speak, use tools, ask the client for things, and misbehave."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import msgspec

from dragoman.schema import codec, v1
from dragoman.testing.agent_stdio import StandardStreams

if TYPE_CHECKING:
    from dragoman.testing.scripted_agent import AgentSession, ScriptedAgent
    from dragoman.testing.scripted_connection import ScriptedConnection
    from dragoman.transport.transport import Transport


class AgentTurn:
    """One prompt, from the agent's side. `cancelled` is set when the client cancels it."""

    def __init__(
        self,
        connection: ScriptedConnection,
        session: AgentSession,
        prompt: list[v1.ContentBlock],
        request_id: bytes,
    ) -> None:
        self.session = session
        self.prompt = prompt
        self.request_id = request_id
        """The prompt's id, as raw JSON."""
        self.cancelled = asyncio.Event()
        self.ignores_cancel = False
        self.stop_reason = "end_turn"
        self.usage: v1.Usage | None = None
        self.afterwards: list[Callable[[], None]] = []
        """What to do when the prompt has been answered."""
        self._connection = connection
        self._interrupt: Callable[[], object] = _nothing
        self._parent: AgentTurn | None = None

    @property
    def session_id(self) -> str:
        return self.session.id

    @property
    def text(self) -> str:
        """The text of the prompt."""
        return "".join(part.text for part in self.prompt if isinstance(part, v1.TextContent))

    @property
    def cwd(self) -> str:
        return self.session.cwd

    @property
    def mode(self) -> str | None:
        return self.session.mode

    @property
    def client(self) -> v1.ClientCapabilities:
        """What the client offers."""
        return self._connection.client

    @property
    def agent(self) -> ScriptedAgent:
        return self._connection.agent

    # ── speaking ──────────────────────────────────────────────────────────────────────────────

    def update(self, update: Any, *, keep: bool = True) -> None:
        """Send any update: a v1 struct, or a dict as ACP writes it."""
        self._connection.update(self.session_id, update, keep=keep)

    def say(self, text: str, message_id: str | None = None) -> None:
        self.update(v1.AgentMessageChunk(content=v1.TextContent(text=text), message_id=message_id))

    def think(self, text: str, message_id: str | None = None) -> None:
        self.update(v1.AgentThoughtChunk(content=v1.TextContent(text=text), message_id=message_id))

    def plan(self, *steps: tuple[str, str]) -> None:
        """Each step is its text and its status."""
        entries = [v1.PlanEntry(content=c, priority="medium", status=s) for c, s in steps]
        self.update(v1.Plan(entries=entries))

    def tool_call(self, tool_call_id: str, title: str, **fields: Any) -> None:
        self.update(v1.ToolCall(tool_call_id=tool_call_id, title=title, **fields))

    def tool_call_update(self, tool_call_id: str, **fields: Any) -> None:
        self.update(v1.SessionToolCallUpdate(tool_call_id=tool_call_id, **fields))

    def report_usage(self, used: int, size: int, cost: float | None = None) -> None:
        money = None if cost is None else v1.Cost(amount=cost, currency="USD")
        self.update(v1.UsageUpdate(used=used, size=size, cost=money))

    # ── having others work ────────────────────────────────────────────────────────────────────

    def subagent(self, subagent_id: str, **fields: Any) -> Self:
        """Announce a subagent, with fields as ACP writes them, and return its own turn: what that
        says and asks comes from the subagent. It runs until it is `done`."""
        self.tell_of(subagent_id, **{"state": {"state": "running"}, **fields})
        session = self._connection.open_subagent(subagent_id, self.session)
        child = type(self)(self._connection, session, [], self.request_id)
        child._parent = self
        self._connection.turns[subagent_id] = child
        return child

    def tell_of(self, subagent_id: str, **fields: Any) -> None:
        """Report what changed about a subagent."""
        told = {"sessionUpdate": "subagent_update", "sessionId": subagent_id, **fields}
        self.update(told)

    def done(self, stop_reason: str = "end_turn") -> None:
        """For a subagent: report that it has nothing left to do."""
        if self._parent is not None:
            idle = {"state": "idle", "stopReason": stop_reason}
            self._parent.tell_of(self.session_id, state=idle)
            self._connection.turns.pop(self.session_id, None)

    def remember(self, update: v1.SessionUpdate) -> None:
        """Send this on load, but not now."""
        self.session.history.append(msgspec.Raw(codec.encode(update)))

    # ── asking the client ─────────────────────────────────────────────────────────────────────

    async def call(self, method: str, params: Any) -> Any:
        """Any request; the result as plain Python. Raises RemoteError for an error reply."""
        raw = await self._connection.peer.call(method, codec.encode(params))
        return msgspec.json.decode(raw)

    def notify(self, method: str, params: Any) -> None:
        """Any notification."""
        self._connection.peer.notify(method, codec.encode(params))

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run this in the background, beyond the turn if need be; its errors are ignored."""
        self._connection.spawn(work)

    async def read_text_file(self, path: str, **fields: Any) -> str:
        request = v1.ReadTextFileRequest(session_id=self.session_id, path=path, **fields)
        return (await self.call("fs/read_text_file", request))["content"]

    async def write_text_file(self, path: str, content: str) -> None:
        request = v1.WriteTextFileRequest(session_id=self.session_id, path=path, content=content)
        await self.call("fs/write_text_file", request)

    async def request_permission(
        self,
        tool_call_id: str,
        options: Sequence[tuple[str, str, str]] | None = None,
        **fields: Any,
    ) -> str | None:
        """The id of the chosen option, None if cancelled; an option is id, name and kind."""
        chosen = options or DEFAULT_OPTIONS
        request = v1.RequestPermissionRequest(
            session_id=self.session_id,
            tool_call=v1.ToolCallUpdate(tool_call_id=tool_call_id, **fields),
            options=[v1.PermissionOption(option_id=i, name=n, kind=k) for i, n, k in chosen],
        )
        outcome = (await self.call("session/request_permission", request))["outcome"]
        return outcome.get("optionId")

    async def elicit(self, message: str, schema: dict[str, Any]) -> dict[str, Any]:
        """Ask the user to fill in a form; the answer has an `action`, and `content` if accepted."""
        params = {
            "sessionId": self.session_id,
            "mode": "form",
            "message": message,
            "requestedSchema": schema,
        }
        return await self.call("elicitation/create", params)

    async def create_terminal(self, command: str, *args: str, **fields: Any) -> str:
        request = v1.CreateTerminalRequest(
            session_id=self.session_id, command=command, args=list(args), **fields
        )
        return (await self.call("terminal/create", request))["terminalId"]

    async def terminal(self, verb: str, terminal_id: str) -> Any:
        """`output`, `wait_for_exit`, `kill` or `release`."""
        params = {"sessionId": self.session_id, "terminalId": terminal_id}
        return await self.call(f"terminal/{verb}", params)

    # ── being cancelled ───────────────────────────────────────────────────────────────────────

    def cancel(self) -> None:
        """Called when the client cancels."""
        self.cancelled.set()
        self._interrupt()

    async def until_cancelled(self, work: Coroutine[Any, Any, None]) -> None:
        """Run this to its end; if the client cancels, stop it where it is waiting."""
        if self.cancelled.is_set():
            work.close()
            return
        task = asyncio.ensure_future(work)
        self._interrupt = task.cancel
        try:
            await task
        except asyncio.CancelledError:
            if not self.cancelled.is_set():
                raise
        finally:
            self._interrupt = _nothing

    # ── misbehaving ───────────────────────────────────────────────────────────────────────────

    def raw(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._connection.transport.send(data)

    async def drain(self) -> None:
        """Wait until the client has taken most of what was sent."""
        await self._connection.transport.drain()

    @property
    def streams(self) -> StandardStreams:
        """The streams of the process. Raises RuntimeError for an agent that is not a process."""
        transport: Transport = self._connection.transport
        if not isinstance(transport, StandardStreams):
            raise RuntimeError("this fault needs an agent that runs as a process")
        return transport

    async def vanish(self, code: int = 1) -> None:
        """End the connection in the middle of the turn; a process exits at once with `code`."""
        await self._connection.vanish(code)


def _nothing() -> None:
    pass


DEFAULT_OPTIONS = (
    ("allow", "Allow", "allow_once"),
    ("always", "Always allow", "allow_always"),
    ("reject", "Reject", "reject_once"),
)

Script: TypeAlias = Callable[[AgentTurn], Awaitable[None]]
"""What the agent does with each prompt."""
Step: TypeAlias = Callable[[AgentTurn], Awaitable[None] | None]
"""A piece of a script, such as `say("hello")`."""

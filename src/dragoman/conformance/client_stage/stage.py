"""What a scene is played on: starts the client, is its agent, and sees what it does."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any, Final

from dragoman.conformance.check import CheckFailed, NotApplicable, expect
from dragoman.conformance.client_stage.client_command import ExaminedClient, RunningClient, Setting
from dragoman.conformance.client_stage.pretend_agent import HELD, SESSION, PretendAgent
from dragoman.conformance.probing.evidence import Evidence
from dragoman.conformance.probing.loose_json import Wire, at, obj
from dragoman.conformance.probing.pretend_host import AgentRequest, Refused
from dragoman.conformance.probing.probe import Probe, frame_of
from dragoman.conformance.probing.wait_limit import WaitLimit, ended
from dragoman.errors import DragomanError

_MOMENT_SECONDS: Final = 0.3
"""For what a client should not do."""
_LOOK_SECONDS: Final = 0.05
EXIT_SECONDS: Final = 10.0
"""How long a client may take to end what it has started."""


class ClientStage:
    """One run of the client, for one scene. Use it as an async context manager."""

    def __init__(self, client: ExaminedClient, folder: str, patience: float) -> None:
        self.client = client
        self.folder = folder
        self.limit = WaitLimit(patience, self._processes)
        self.agent = PretendAgent()
        self.evidence = Evidence()
        # The agent is in a folder of its own, whose name is longer.
        self.evidence.call(f"{folder}-agent", "$AGENT")
        self.evidence.call(folder, "$CWD")
        self._running: RunningClient | None = None
        self._probe: Probe[PretendAgent] | None = None

    async def __aenter__(self) -> ClientStage:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._probe is not None:
            await self._probe.aclose()
        if self._running is not None:
            await self._running.aclose()

    def _processes(self) -> list[int]:
        return [] if self._running is None else self._running.processes()

    @property
    def running(self) -> RunningClient:
        assert self._running is not None
        return self._running

    @property
    def probe(self) -> Probe[PretendAgent]:
        assert self._probe is not None
        return self._probe

    # ── the beginning of a scene ──────────────────────────────────────────────────────────────

    def needs(self, hand: str) -> None:
        """Raises NotApplicable without a command for this hand."""
        if not self.client.has(hand):
            raise NotApplicable(f"it needs a person, or --answer {hand}=COMMAND")

    async def start(self, *, costume: str = "", exit_code: int = 0, hand: str = "") -> None:
        """Start the client, with its usual command or with that of a hand."""
        if hand:
            self.needs(hand)
        setting = Setting(folder=self.folder, costume=costume, exit_code=exit_code)
        if hand and self.client.starts(hand):
            setting.hand = hand
        try:
            self._running = await self.client.start(setting)
        except DragomanError as error:
            raise CheckFailed(f"the client cannot be started: {error}") from error

    async def connect(self, *, costume: str = "", exit_code: int = 0, hand: str = "") -> None:
        """Start the client, and wait until it has started its agent."""
        await self.start(costume=costume, exit_code=exit_code, hand=hand)
        connecting = asyncio.ensure_future(self.running.connected())
        try:
            if not await self.limit.happens(lambda: asyncio.wait([connecting])):
                said = self.running.output.strip()[-200:]
                raise CheckFailed(f"the client did not start its agent; it printed: {said}")
        finally:
            connecting.cancel()
        transport = await connecting
        self._probe = Probe(transport, self.agent, self.evidence, self.limit, "the client")
        await self._probe.__aenter__()

    async def asked(self, method: str) -> AgentRequest:
        """The first request of this method. Raises CheckFailed if there is none."""
        wanted = f"a {method} request"
        await self.probe.until(lambda each: each.get("method") == method, wanted)
        return self.agent.of(method)[0]

    async def prompted(
        self, *, welcome: Wire | None = None, hand: str = "", costume: str = "", exit_code: int = 0
    ) -> AgentRequest:
        """The prompt of a client that was started for this. What `welcome` says is added to what
        the agent says of itself."""
        if welcome is not None:
            usual = obj(self.agent.replies["initialize"])
            self.agent.replies["initialize"] = {**usual, **welcome}
        await self.connect(hand=hand, costume=costume, exit_code=exit_code)
        return await self.asked("session/prompt")

    @property
    def session_id(self) -> Any:
        """That of the prompt."""
        return self.agent.of("session/prompt")[0].params.get("sessionId")

    @property
    def offered(self) -> Wire:
        """The capabilities of the client."""
        return obj(self.agent.of("initialize")[0].params.get("clientCapabilities"))

    # ── what the agent does ───────────────────────────────────────────────────────────────────

    def update(self, update: Wire, session_id: str | None = None) -> None:
        params = {"sessionId": session_id or self.session_id, "update": update}
        self.probe.notify("session/update", params)

    def say(self, text: str) -> None:
        self.update(chunk(text))

    async def ask(self, method: str, params: Any, key: Any = None) -> Wire:
        """A request to the client; its answer."""
        return await self.probe.call(method, params, key)

    async def call(self, method: str, params: Wire) -> Wire:
        """The result of a request about the session, which has to succeed."""
        return await self.probe.result(method, {"sessionId": self.session_id, **params})

    async def settle(self, after: str) -> None:
        await self.probe.settle(after)

    def end(self, stop_reason: str = "end_turn") -> None:
        """Answer the prompt."""
        self.probe.grant(self.agent.of("session/prompt")[-1], {"stopReason": stop_reason})

    def fail(self, method: str, code: int = -32603, message: str = "conformance") -> None:
        """Have a method answered with an error from now on."""
        self.agent.replies[method] = Refused(code, message)

    def hold(self, method: str) -> None:
        """Have a method not answered by itself."""
        self.agent.replies[method] = HELD

    def together(self, *messages: Wire) -> None:
        """Send messages in one piece."""
        self.probe.write(b"".join(map(frame_of, messages)))

    # ── the end of a scene ────────────────────────────────────────────────────────────────────

    async def over(self, what: str) -> None:
        """Wait until the client has closed the connection. Raises CheckFailed if it stays."""
        if not await self.probe.end():
            seconds = self.limit.seconds
            raise CheckFailed(f"the client was still connected {seconds:g} s after {what}")

    async def moment(self) -> None:
        """Leave the client a moment for what it should not do."""
        await self.limit.of(_MOMENT_SECONDS).rest()

    async def exited(self, after: str) -> int:
        """The client's exit code. Raises CheckFailed if it stays."""
        if not await self.limit.happens(self.running.exited):
            seconds = self.limit.seconds
            raise CheckFailed(f"the client was still running {seconds:g} s after {after}")
        return await self.running.exited()

    async def printed(self) -> str:
        """End the turn; what the client has printed."""
        self.end()
        return await self.printed_after_turn()

    async def printed_after_turn(self) -> str:
        """What the client has printed. Raises NotApplicable if it does not exit, as one with a
        window does not."""
        await self.left()
        return self.running.output

    async def left(self) -> None:
        """Wait for the client's exit. Raises NotApplicable if it stays, as one with a window
        does."""
        if not await self.limit.happens(self.running.exited):
            raise NotApplicable("the client does not exit after the turn")

    async def gone(self, pid: int, what: str) -> None:
        """Wait for the end of a process. Raises CheckFailed if it stays."""
        if not await ended(pid, self.limit.of(EXIT_SECONDS)):
            raise CheckFailed(f"{what} was still running {EXIT_SECONDS:g} s later")

    async def pid_in(self, path: str) -> int:
        """The pid that a program writes to a file as soon as it runs."""
        await self.until(lambda: text_of(path).endswith("\n"), "the program did not run")
        return int(text_of(path))

    async def until(self, holds: Callable[[], bool], otherwise: str) -> None:
        """Look repeatedly whether something holds. Raises CheckFailed if it does not in time."""
        for _ in range(round(self.limit.seconds / _LOOK_SECONDS)):
            if holds():
                return
            await self.limit.of(_LOOK_SECONDS).rest()
        raise CheckFailed(otherwise)

    def path(self, name: str, text: str | None = None) -> str:
        """A file in the session's folder, with this text."""
        path = os.path.join(self.folder, name)
        if text is not None:
            write_text(path, text)
        return path


def write_text(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)


def text_of(path: str) -> str:
    """What is in a file, as it is; empty if there is none."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except OSError:
        return ""


def chunk(text: str) -> Wire:
    content = {"type": "text", "text": text}
    return {"sessionUpdate": "agent_message_chunk", "content": content}


def told(update: Wire, session_id: str = SESSION) -> Wire:
    """An update as a message."""
    params = {"sessionId": session_id, "update": update}
    return {"jsonrpc": "2.0", "method": "session/update", "params": params}


def chosen(reply: Wire) -> Any:
    """The option that an answer to a permission request has chosen. Raises CheckFailed for an
    error."""
    expect("error" not in reply, f"the question was answered with an error: {reply.get('error')}")
    return at(reply, "result", "outcome", "optionId")

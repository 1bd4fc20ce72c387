"""A turn of the demo agent: speaking word by word, and using what the client offers.

Everything here can be broken off by a cancel wherever it waits, and then leaves no tool call open.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from dragoman.errors import DragomanError, RemoteError
from dragoman.schema import v1
from dragoman.testing.demo.demo_agent import DemoAgent
from dragoman.testing.scripted_turn import AgentTurn

CONTEXT_SIZE: Final = 128_000
_PAUSES = {"demo-swift": 0.0, "demo-steady": 0.006, "demo-slow": 0.05}
_PRICES = {"demo-swift": 0.2, "demo-steady": 1.0, "demo-slow": 5.0}  # for a million tokens
_SHOWN_LINES = 20
_KEPT_OUTPUT = 64 * 1024


class Ran(msgspec.Struct, frozen=True):
    """How a command ended, and what it printed."""

    line: str
    code: int | None
    output: str

    @property
    def report(self) -> str:
        """What there is to say about it, with the end of what it printed."""
        output = self.output[-2000:].rstrip("\n")
        ended = "was ended" if self.code is None else f"exited with code {self.code}"
        return f"Ran `{self.line}`, which {ended}:\n\n```text\n{output}\n```\n"


class DemoTurn:
    """Wraps the turn of the scripted agent; counts what is read and said."""

    def __init__(self, turn: AgentTurn) -> None:
        self.turn = turn
        self.read_chars = len(turn.text)
        self.said_chars = 0
        self.thought_chars = 0

    @property
    def cwd(self) -> str:
        return self.turn.cwd

    def option(self, option_id: str) -> str | bool:
        return self.turn.session.options.get(option_id, False)

    @property
    def _pause(self) -> float:
        return _PAUSES.get(str(self.option("model")), 0.0)

    # ── speaking ──────────────────────────────────────────────────────────────────────────────

    async def say(self, text: str) -> None:
        """Speak Markdown in small pieces, as one message."""
        self.said_chars += await self.stream(_pieces(text), self._pause)

    async def think(self, text: str, *, at: Sequence[str] = ("short", "long")) -> None:
        """Think aloud, if the thinking option is one of `at`."""
        if self.option("thinking") in at:
            pieces = _pieces(text)
            self.thought_chars += await self.stream(pieces, self._pause, v1.AgentThoughtChunk)

    async def stream(
        self,
        pieces: Iterable[str],
        pause: float,
        chunk: type[v1.AgentMessageChunk | v1.AgentThoughtChunk] = v1.AgentMessageChunk,
    ) -> int:
        """One message in pieces, remembered as a whole; how many characters that were."""
        message_id, said = _new_id(), list[str]()
        try:
            for piece in pieces:
                said.append(piece)
                content = v1.TextContent(text=piece)
                self.turn.update(chunk(content=content, message_id=message_id), keep=False)
                await self.turn.drain()
                await asyncio.sleep(pause)
        finally:
            whole = v1.TextContent(text="".join(said))
            self.turn.remember(chunk(content=whole, message_id=message_id))
        return len(whole.text)

    def plan(self, steps: Sequence[str], done: int, *, working: bool = True) -> None:
        """Show the plan with its first `done` steps completed and the next one under way."""
        next_status = "in_progress" if working else "pending"
        statuses = ["completed"] * done + [next_status] + ["pending"] * len(steps)
        self.turn.plan(*zip(steps, statuses, strict=False))

    def report_usage(self) -> None:
        """What this turn took, and what the session holds now."""
        read, said, thought = (
            -(-chars // 4) for chars in (self.read_chars, self.said_chars, self.thought_chars)
        )
        session = self.turn.session
        tokens = read + said + thought
        session.used = min(session.used + tokens, CONTEXT_SIZE)
        session.cost += tokens * _PRICES.get(str(self.option("model")), 0.0) / 1_000_000
        self.turn.report_usage(session.used, CONTEXT_SIZE, round(session.cost, 8))
        self.turn.usage = v1.Usage(
            total_tokens=tokens, input_tokens=read, output_tokens=said, thought_tokens=thought
        )

    # ── tools ─────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def tool(self, title: str, kind: str, **fields: Any) -> Generator[str]:
        """A tool call that fails with whatever goes wrong in it; the caller completes it."""
        call = _new_id()
        self.turn.tool_call(call, title, kind=kind, **fields)
        try:
            yield call
        except BaseException as error:
            why = str(error) if isinstance(error, DragomanError) else "cancelled"
            self.turn.tool_call_update(call, status="failed", raw_output={"error": why})
            raise

    async def read(self, path: str) -> str | None:
        """A file's text through the client; None where it cannot be had."""
        if not self.turn.client.fs.read_text_file:
            return None
        place = [v1.ToolCallLocation(path=path)]
        try:
            with self.tool(
                f"Read {self.name(path)}",
                "read",
                status="in_progress",
                locations=place,
                raw_input={"path": path},
            ) as call:
                text = await self.turn.read_text_file(path)
                shown = "".join(text.splitlines(keepends=True)[:_SHOWN_LINES])
                self.turn.tool_call_update(call, status="completed", content=[_text(shown)])
        except RemoteError:
            return None
        self.read_chars += len(text)
        return text

    async def current(self, path: str) -> str | None:
        """A file before a change, without a word about it; None where there is none."""
        if not self.turn.client.fs.read_text_file:
            return None
        try:
            return await self.turn.read_text_file(path)
        except RemoteError:
            return None

    async def edit(self, path: str, before: str | None, after: str) -> str:
        """Propose a change, ask if the mode says so, make it; how that went, as a sentence."""
        name = self.name(path)
        diff = v1.Diff(path=path, old_text=before, new_text=after)
        place = [v1.ToolCallLocation(path=path)]
        try:
            with self.tool(
                f"Edit {name}", "edit", status="pending", content=[diff], locations=place
            ) as call:
                if not await self._may_edit(call, name, diff):
                    self.turn.tool_call_update(call, status="failed")
                    return f"You did not allow the change, so `{name}` is as it was."
                if not self.turn.client.fs.write_text_file:
                    self.turn.tool_call_update(call, status="failed")
                    return f"The client offers no writing, so `{name}` is as it was."
                self.turn.tool_call_update(call, status="in_progress")
                await self.turn.write_text_file(path, after)
                self.turn.tool_call_update(call, status="completed")
        except RemoteError as error:
            return f"The client did not write `{name}`: {error.message}."
        return f"Wrote `{name}`."

    async def _may_edit(self, call: str, name: str, diff: v1.Diff) -> bool:
        agent, session_id = self.turn.agent, self.turn.session_id
        assert isinstance(agent, DemoAgent)
        if self.turn.mode == "auto" or session_id in agent.trusted:
            return True
        choice = await self.turn.request_permission(
            call, title=f"Edit {name}", kind="edit", content=[diff], status="pending"
        )
        if choice == "always":
            agent.trusted.add(session_id)
        return choice in ("allow", "always")

    async def run(self, argv: Sequence[str]) -> Ran | str:
        """Run a command in a terminal of the client; why not, as a sentence, if it would not."""
        line = shlex.join(argv)
        if not self.turn.client.terminal:
            return "The client offers no terminals, so I ran nothing."
        try:
            with self.tool(
                f"Run {line}", "execute", status="in_progress", raw_input={"command": line}
            ) as call:
                return await self._run(call, line, argv)
        except RemoteError as error:
            return f"The client did not run `{line}`: {error.message}."

    async def _run(self, call: str, line: str, argv: Sequence[str]) -> Ran:
        turn = self.turn
        terminal = await self._terminal(argv)
        shown = v1.SessionToolCallUpdate(
            tool_call_id=call, content=[v1.Terminal(terminal_id=terminal)]
        )
        turn.update(shown, keep=False)
        try:
            ended = await turn.terminal("wait_for_exit", terminal)
            output: str = (await turn.terminal("output", terminal))["output"]
        except BaseException:
            turn.spawn(turn.terminal("release", terminal))
            raise
        await turn.terminal("release", terminal)
        code: int | None = ended.get("exitCode")
        self.read_chars += len(output)
        turn.tool_call_update(
            call,
            status="completed" if code == 0 else "failed",
            raw_output={"exitCode": code, "output": output},
        )
        # Told again on load, when the terminal is long gone.
        turn.remember(v1.SessionToolCallUpdate(tool_call_id=call, content=[_text(output)]))
        return Ran(line, code, output)

    async def _terminal(self, argv: Sequence[str]) -> str:
        """A new terminal; one that comes too late, after a cancel, is released anyway."""
        creating = asyncio.ensure_future(
            self.turn.create_terminal(*argv, cwd=self.cwd, output_byte_limit=_KEPT_OUTPUT)
        )
        try:
            return await asyncio.shield(creating)
        except asyncio.CancelledError:
            self.turn.spawn(self._release(creating))
            raise

    async def _release(self, creating: asyncio.Future[str]) -> None:
        await self.turn.terminal("release", await creating)

    def name(self, path: str) -> str:
        """How to call a file: from the session's folder, if it is in there."""
        inside = os.path.relpath(path, self.cwd)
        return path if inside.startswith("..") else inside


def _new_id() -> str:
    return os.urandom(8).hex()


def _text(text: str) -> v1.Content:
    return v1.Content(content=v1.TextContent(text=text))


def _pieces(text: str) -> list[str]:
    """A few words at a time, white space kept."""
    return re.findall(r"(?:\S+\s*){1,3}|\s+", text)

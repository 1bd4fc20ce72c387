"""A turn in v2, where the agent itself does what the client does for it in v1.

It asks first where a client of v1 would decide, so that the same rules hold.
"""

from __future__ import annotations

import asyncio
import base64
import os
import shlex
import signal
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from dragoman.errors import InternalError, InvalidParams, ResourceNotFound
from dragoman.schema import codec, v1
from dragoman.testing.scripted_turn import DEFAULT_OPTIONS, AgentTurn
from dragoman.testing.v2.words import Json, tool_call


class TurnV2(AgentTurn):
    """The turn a script sees; its own part is what the client no longer has methods for."""

    over = False
    _allowed = False
    """The client said yes to what the script asked for last."""

    @cached_property
    def displays(self) -> dict[str, Display]:
        return {}

    @cached_property
    def _stopping(self) -> dict[str, asyncio.Event]:
        return {}

    def stopping(self, tool_call_id: str) -> asyncio.Event:
        """Set when the client wants this tool call to be stopped."""
        return self._stopping.setdefault(tool_call_id, asyncio.Event())

    def state(self, state: str, **fields: Any) -> None:
        """Say what the agent is at: `running`, `requires_action` or `idle`."""
        self.update({"sessionUpdate": "state_update", "state": state, **fields}, keep=False)

    # ── asking the client ─────────────────────────────────────────────────────────────────────

    async def request_permission(
        self,
        tool_call_id: str,
        options: Sequence[tuple[str, str, str]] | None = None,
        **fields: Any,
    ) -> str | None:
        call = v1.ToolCallUpdate(tool_call_id=tool_call_id, **fields)
        told = tool_call(msgspec.json.decode(codec.encode(call)))
        title = fields.get("title") or "May I?"
        return await self.ask(title, {"type": "tool_call", "toolCall": told}, options)

    async def ask(
        self,
        title: str,
        subject: Json | None,
        options: Sequence[tuple[str, str, str]] | None = None,
        **fields: Any,
    ) -> str | None:
        """The id of the chosen option, None when cancelled; `subject` is as it goes on the wire."""
        kinds = {i: kind for i, _, kind in options or DEFAULT_OPTIONS}
        params = {
            "sessionId": self.session_id,
            "title": title,
            "subject": subject,
            "options": [
                {"optionId": i, "name": n, "kind": k} for i, n, k in options or DEFAULT_OPTIONS
            ],
            **fields,
        }
        self.state("requires_action")
        try:
            outcome = (await self.call("session/request_permission", params))["outcome"]
        finally:
            if not self.over:
                self.state("running")
        chosen = outcome.get("optionId")
        self._allowed = kinds.get(chosen, "").startswith("allow")
        return chosen

    async def elicit(self, message: str, schema: dict[str, Any]) -> dict[str, Any]:
        self.state("requires_action")
        answer = await super().elicit(message, schema)
        self.state("running")
        return answer

    # ── doing it itself ───────────────────────────────────────────────────────────────────────

    async def read_text_file(self, path: str, **fields: Any) -> str:
        text = _text(path)
        if text is None:
            raise ResourceNotFound(f"{path} cannot be read", {"path": path})
        lines = text.splitlines(keepends=True)[(fields.get("line") or 1) - 1 :]
        return "".join(lines[: fields.get("limit")])

    async def write_text_file(self, path: str, content: str) -> None:
        if not self._allowed:
            diff = v1.Diff(path=path, new_text=content, old_text=_text(path))
            place = [v1.ToolCallLocation(path=path)]
            await self.request_permission(
                f"write {path}", title=f"Write {path}", kind="edit", content=[diff], locations=place
            )
        if not self._allowed:
            raise InternalError(f"{path}: refused")
        self._allowed = False
        _write(path, content)

    async def create_terminal(self, command: str, *args: str, **fields: Any) -> str:
        line, cwd = shlex.join([command, *args]), fields.get("cwd") or self.cwd
        subject = {"type": "command", "command": line, "cwd": cwd}
        await self.ask("Run a command?", subject)
        if not self._allowed:
            raise InternalError(f"{line}: refused")
        self._allowed = False
        display = Display(f"terminal-{self.request_id.decode()}-{len(self.displays) + 1}", self)
        await display.start((command, *args), line, cwd)
        self.displays[display.id] = display
        return display.id

    async def terminal(self, verb: str, terminal_id: str) -> Any:
        display = self.displays.get(terminal_id)
        if display is None:
            raise InvalidParams(f"there is no terminal {terminal_id}")
        match verb:
            case "wait_for_exit":
                return await display.ended()
            case "output":
                return {"output": display.output, "truncated": False}
            case _:
                display.kill()
                return {}


def _text(path: str) -> str | None:
    try:
        return Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _write(path: str, content: str) -> None:
    try:
        Path(path).write_text(content, "utf-8")
    except OSError as error:
        raise InternalError(f"{path}: {error.strerror}") from error


_MOST_AT_ONCE = 64 * 1024


class Display:
    """One process and what it printed so far."""

    def __init__(self, terminal_id: str, turn: TurnV2) -> None:
        self.id = terminal_id
        self._turn = turn
        self._printed = bytearray()
        self._process: asyncio.subprocess.Process | None = None
        self._showing: asyncio.Task[dict[str, Any]] | None = None

    @property
    def output(self) -> str:
        return self._printed.decode("utf-8", "replace")

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self, argv: Sequence[str], line: str, cwd: str) -> None:
        self._tell({"command": line, "cwd": cwd, "capabilities": {"cancel": {}}})
        try:
            self._process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                cwd=cwd,
                start_new_session=True,
            )
        except OSError as error:
            self._print(f"{argv[0]}: {error.strerror}\n".encode())
        self._showing = asyncio.create_task(self._show(self._process))

    async def _show(self, process: asyncio.subprocess.Process | None) -> dict[str, Any]:
        code = 127
        if process is not None:
            assert process.stdout is not None
            while data := await process.stdout.read(_MOST_AT_ONCE):
                self._print(data)
            code = await process.wait()
        ended: dict[str, Any] = {"exitCode": code} if code >= 0 else {"signal": _name(-code)}
        self._tell({"exitStatus": ended, "capabilities": None})
        return {"exitCode": None, "signal": None} | ended

    def _print(self, data: bytes) -> None:
        self._printed += data
        told = base64.b64encode(data).decode()
        chunk = {"sessionUpdate": "terminal_output_chunk", "terminalId": self.id, "data": told}
        self._turn.update(chunk, keep=False)

    def _tell(self, now: dict[str, Any]) -> None:
        told = {"sessionUpdate": "terminal_update", "terminalId": self.id, **now}
        self._turn.update(told, keep=False)

    async def ended(self) -> dict[str, Any]:
        assert self._showing is not None
        return await asyncio.shield(self._showing)

    def kill(self) -> None:
        """End it with everything it started, if it still runs."""
        if self._process is not None and self.runs:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)

"""A small client that does what the conformance scenes ask for, and does it right.

It talks to the stage in memory; `tests/support/programs/starting_client.py` is one that starts a
process.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from support.mutant_link import MutantLink, Mutation

from dragoman.conformance.client_stage.client_command import RunningClient, Setting
from dragoman.conformance.probing.loose_json import Wire, at, obj, objects
from dragoman.errors import (
    DragomanError,
    InvalidParams,
    MethodNotFound,
    ResourceNotFound,
)
from dragoman.rpc import Peer
from dragoman.transport.memory import memory_pair
from dragoman.transport.transport import Transport

OFFERS: Wire = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "elicitation": {"form": {}},
}
_STARTS = ("allow", "reject", "load")


class ClientMutation(Mutation):
    """A mutation of a client; from here, `sent` is what the client gets."""

    def exit_code(self, code: int) -> int:
        return code


class ReferenceClient:
    """Starts a `ReferenceRun` for each scene, with a mutation of its own."""

    def __init__(self, make: Callable[[], Mutation] = Mutation, offers: Wire = OFFERS) -> None:
        self._make = make
        self._offers = offers

    def has(self, hand: str) -> bool:
        return hand in (*_STARTS, "cancel")

    def starts(self, hand: str) -> bool:
        return hand in _STARTS

    async def start(self, setting: Setting) -> RunningClient:
        return ReferenceRun(self._make(), self._offers, setting)


class ReferenceRun:
    """One session with one prompt."""

    agent_pid = 0

    def __init__(self, mutation: Mutation, offers: Wire, setting: Setting) -> None:
        stage, ours = memory_pair()
        self.link = MutantLink(stage, mutation)
        self._mutation = mutation
        self._offers = offers
        self._hand = setting.hand
        self._folder = setting.folder
        self._said: list[str] = []
        self._session_id = ""
        self._prompting = False
        self._cancelled = False
        self._held: list[asyncio.Future[Any]] = []
        self._terminals: dict[str, Terminal] = {}
        self._made: list[Terminal] = []
        self._peer = Peer(
            ours,
            on_notification=self._notified,
            on_request=self._requested,
            waits=frozenset({"session/request_permission", "terminal/wait_for_exit"}),
        )
        self._work = asyncio.create_task(self._run())

    def processes(self) -> list[int]:
        return []

    async def connected(self) -> Transport:
        return self.link

    async def exited(self) -> int:
        code = await asyncio.shield(self._work)
        code = 1 if self.link.died else code
        return (
            self._mutation.exit_code(code) if isinstance(self._mutation, ClientMutation) else code
        )

    @property
    def output(self) -> str:
        return "".join(self._said)

    async def lend(self, hand: str) -> None:
        """The one hand that helps: it cancels."""
        self._cancelled = True
        params = {"sessionId": self._session_id}
        self._peer.notify("session/cancel", msgspec.json.encode(params))
        for question in self._held:
            question.set_result(_CANCELLED)

    async def aclose(self) -> None:
        self._work.cancel()
        await asyncio.gather(self._work, return_exceptions=True)
        for terminal in self._made:
            await terminal.aclose()
        await self._peer.aclose()
        await self.link.aclose()

    # ── what it sends ─────────────────────────────────────────────────────────────────────────

    async def _call(self, method: str, **params: Any) -> Wire:
        return obj(msgspec.json.decode(await self._peer.call(method, msgspec.json.encode(params))))

    async def _run(self) -> int:
        async with self._peer:
            try:
                return await self._converse()
            except DragomanError:
                return 1

    async def _converse(self) -> int:
        info = {"name": "reference", "version": "1"}
        offered = {"clientCapabilities": self._offers, "clientInfo": info}
        welcome = await self._call("initialize", protocolVersion=1, **offered)
        if welcome.get("protocolVersion") != 1:
            return 1
        where: Wire = {"cwd": self._folder, "mcpServers": []}
        if self._hand == "load":
            self._session_id = "conformance-session"
            await self._call("session/load", sessionId=self._session_id, **where)
        else:
            self._session_id = str((await self._call("session/new", **where)).get("sessionId"))
        self._prompting = True
        block = {"type": "text", "text": "go"}
        await self._call("session/prompt", sessionId=self._session_id, prompt=[block])
        return 0

    # ── what it takes ─────────────────────────────────────────────────────────────────────────

    def _notified(self, method: str, params: msgspec.Raw) -> None:
        told = obj(msgspec.json.decode(params))
        is_its_own = method == "session/update" and told.get("sessionId") == self._session_id
        if is_its_own and self._prompting:
            self._said.append(str(at(told, "update", "content", "text") or ""))

    def _requested(self, method: str, params: msgspec.Raw) -> Any:
        answer = _METHODS.get(method)
        if answer is None or not self._has(method):
            raise MethodNotFound(method)
        asked = obj(msgspec.json.decode(params))
        if asked.get("sessionId") != self._session_id:
            raise InvalidParams("there is no such session")
        return self._answered(answer(self, asked))

    async def _answered(self, answer: Any) -> bytes:
        return msgspec.json.encode(await answer)

    def _has(self, method: str) -> bool:
        return method.startswith("session/") or bool(self._offers)

    async def permit(self, asked: Wire) -> Wire:
        if not objects(asked.get("options")):
            raise InvalidParams("there is nothing to choose from")
        if self._cancelled:
            return _CANCELLED
        if at(asked, "toolCall", "toolCallId") == "open":
            self._held.append(asyncio.get_running_loop().create_future())
            return await self._held[-1]
        wanted = "allow" if self._hand == "allow" else "reject"
        kinds = [(str(each.get("kind")), each) for each in objects(asked["options"])]
        option = next(each for kind, each in kinds if kind.startswith(wanted))
        return {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}

    def _inside(self, path: Any) -> Path:
        place = Path(str(path))
        if not place.is_absolute():
            raise InvalidParams("the path is not absolute")
        if not place.resolve().is_relative_to(Path(self._folder).resolve()):
            raise InvalidParams("the path is outside the session's folder")
        return place

    async def on_read(self, asked: Wire) -> Wire:
        try:
            with self._inside(asked.get("path")).open(encoding="utf-8", newline="") as file:
                content = file.read()
        except OSError as error:
            raise ResourceNotFound("there is no such file") from error
        if "line" in asked:
            first = asked["line"] - 1
            lines = content.splitlines(keepends=True)[first : first + asked["limit"]]
            content = "".join(lines)
        return {"content": content}

    async def on_write(self, asked: Wire) -> Wire:
        with self._inside(asked.get("path")).open("w", encoding="utf-8", newline="") as file:
            file.write(str(asked.get("content")))
        return {}

    async def decline(self, asked: Wire) -> Wire:
        return {"action": "decline"}

    async def on_create(self, asked: Wire) -> Wire:
        key = f"terminal-{len(self._made)}"
        cwd = str(asked.get("cwd") or self._folder)
        variables = {each["name"]: each["value"] for each in objects(asked.get("env"))}
        argv = [str(asked.get("command")), *map(str, asked.get("args") or [])]
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                cwd=cwd,
                env={**os.environ, **variables},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise InvalidParams("the command cannot be run") from error
        self._terminals[key] = Terminal(process, asked.get("outputByteLimit"))
        self._made.append(self._terminals[key])
        return {"terminalId": key}

    def _terminal(self, asked: Wire) -> Terminal:
        terminal = self._terminals.get(str(asked.get("terminalId")))
        if terminal is None:
            raise ResourceNotFound("there is no such terminal")
        return terminal

    async def on_output(self, asked: Wire) -> Wire:
        return self._terminal(asked).output()

    async def on_wait(self, asked: Wire) -> Wire:
        return await self._terminal(asked).wait()

    async def on_kill(self, asked: Wire) -> Wire:
        self._terminal(asked).kill()
        return {}

    async def on_release(self, asked: Wire) -> Wire:
        self._terminal(asked).kill()
        del self._terminals[str(asked["terminalId"])]
        return {}


class Terminal:
    """A command that runs, and what it has printed."""

    def __init__(self, process: asyncio.subprocess.Process, limit: int | None) -> None:
        self._process = process
        self._limit = limit
        self._printed = b""
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while data := await self._process.stdout.read(65536):
            self._printed += data
        await self._process.wait()

    def output(self) -> Wire:
        kept = self._printed if self._limit is None else self._printed[-self._limit :]
        told = {
            "output": kept.decode(errors="replace"),
            "truncated": len(kept) < len(self._printed),
        }
        return told if self._process.returncode is None else {**told, "exitStatus": self._status()}

    def _status(self) -> Wire:
        code = self._process.returncode
        assert code is not None
        return {"exitCode": code if code >= 0 else None, "signal": None if code >= 0 else "KILL"}

    async def wait(self) -> Wire:
        await asyncio.shield(self._reading)
        return self._status()

    async def aclose(self) -> None:
        self.kill()
        await self._reading

    def kill(self) -> None:
        if self._process.returncode is None:
            os.killpg(self._process.pid, 9)


_CANCELLED: Wire = {"outcome": {"outcome": "cancelled"}}
_METHODS: dict[str, Callable[[ReferenceRun, Wire], Any]] = {
    "session/request_permission": ReferenceRun.permit,
    "fs/read_text_file": ReferenceRun.on_read,
    "fs/write_text_file": ReferenceRun.on_write,
    "elicitation/create": ReferenceRun.decline,
    "terminal/create": ReferenceRun.on_create,
    "terminal/output": ReferenceRun.on_output,
    "terminal/wait_for_exit": ReferenceRun.on_wait,
    "terminal/kill": ReferenceRun.on_kill,
    "terminal/release": ReferenceRun.on_release,
}

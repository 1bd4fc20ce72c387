"""Load on several hosts: sessions that are prompted, answered and read through whichever is up.

Everything is counted: what was acknowledged, what each reader saw, how often an answer counted.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from typing import Any

import httpx
from support.host_process import HostProcess
from support.serving import STREAM, sent_events

_PAUSE = 0.3


class Reader:
    """Reads one session from its first event on; comes back with its cursor, to another host."""

    def __init__(self, load: Load, session_id: str, first: int) -> None:
        self.bodies: list[str] = []
        self.breaks = 0
        self._load = load
        self._id = session_id
        self._next = first

    async def run(self) -> None:
        while True:
            try:
                await self._read(self._load.hosts[self._next % len(self._load.hosts)])
            except (httpx.HTTPError, json.JSONDecodeError):
                self.breaks += 1
            self._next += 1
            await asyncio.sleep(_PAUSE)

    async def _read(self, host: HostProcess) -> None:
        headers = STREAM | {"last-event-id": str(len(self.bodies))}
        path = f"/api/sessions/{self._id}/events?coalesce=false"
        async with host.http.stream("GET", path, headers=headers) as response:
            if not response.is_success:
                return
            async for sent in sent_events(response):
                if sent.event == "message":
                    self._take(sent.id, sent.data)

    def _take(self, number: str | None, data: str) -> None:
        assert number == str(len(self.bodies) + 1), (self._id, number, len(self.bodies))
        self.bodies.append(data)
        self._load.saw(self._id, json.loads(data))


class Load:
    """On these hosts; `stopping` ends the prompts, not the readers."""

    def __init__(self, hosts: list[HostProcess], cwd: str, seed: int) -> None:
        self.hosts = hosts
        self.readers: dict[str, list[Reader]] = {}
        self.accepted: dict[str, tuple[str, str]] = {}
        """What was acknowledged: the text, its session and its turn."""
        self.delayed: dict[str, str] = {}
        """What was taken while the database was unavailable, and said to be so: the turn, its
        session."""
        self.answered: Counter[str] = Counter()
        """How many answers to each question were said to count."""
        self.refusals: Counter[str] = Counter()
        self.moves = 0
        self.stopping = asyncio.Event()
        self._cwd = cwd
        self._random = random.Random(seed)
        self._ended: dict[str, asyncio.Event] = {}
        self._asked: set[str] = set()
        self._settled: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._errors: list[BaseException] = []

    def told(self) -> str:
        """What has happened so far, in numbers."""
        readers = [reader for both in self.readers.values() for reader in both]
        return (
            f"{sum(len(reader.bodies) for reader in readers)} events read, "
            f"{sum(reader.breaks for reader in readers)} times cut off, "
            f"{len(self.accepted)} prompts accepted, {len(self.delayed)} delayed, "
            f"{len(self.answered)} questions answered, "
            f"{self.moves} sessions moved, refused {dict(self.refusals)}"
        )

    # ── sessions ──────────────────────────────────────────────────────────────────────────────

    async def begin(self, host: HostProcess) -> None:
        body = {"agent": "loaded", "cwd": self._cwd, "host": host.name}
        # An agent is started for it, on a machine that may have a lot to do.
        response = await self._any_host().http.post("/api/sessions", json=body, timeout=120)
        assert response.status_code == 201, response.text
        session_id = response.json()["id"]
        self.readers[session_id] = [Reader(self, session_id, n) for n in range(2)]
        for reader in self.readers[session_id]:
            self._spawn(reader.run())
        self._spawn(self._prompt(session_id))

    def _any_host(self) -> HostProcess:
        return self._random.choice([host for host in self.hosts if host.is_up])

    def _spawn(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._errors.append(error)

    async def aclose(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def check(self) -> None:
        """Raise what went wrong in the background."""
        if self._errors:
            raise self._errors[0]

    # ── prompts ───────────────────────────────────────────────────────────────────────────────

    async def _prompt(self, session_id: str) -> None:
        number = 0
        while not self.stopping.is_set():
            number += 1
            text = f"{session_id}/{number}"
            path = f"/api/sessions/{session_id}/prompt"
            response = await self._post(path, {"text": text})
            if response is not None and response.status_code == 202:
                told = response.json()
                if "delayed" in told:
                    self.delayed[told["turn"]] = session_id
                else:
                    self.accepted[text] = (session_id, told["turn"])
                await self._until_ended(told["turn"])
            else:
                await self._make_up(session_id, response)

    async def _until_ended(self, turn: str) -> None:
        """Or until it has taken too long: its host may be gone."""
        ended = self._ended.setdefault(turn, asyncio.Event())
        try:
            async with asyncio.timeout(90):
                await ended.wait()
        except TimeoutError:
            self.refusals["no end"] += 1

    async def _make_up(self, session_id: str, response: httpx.Response | None) -> None:
        code = _code(response)
        self.refusals[code] += 1
        if code == "host_gone":
            body = {"cwd": self._cwd, "reset": True}
            moved = await self._post(f"/api/sessions/{session_id}/move", body)
            if moved is not None and moved.is_success:
                self.moves += 1
            else:
                self.refusals[f"moving: {_code(moved)}"] += 1
        await asyncio.sleep(_PAUSE)

    async def _post(self, path: str, body: Any) -> httpx.Response | None:
        try:
            return await self._any_host().http.post(path, json=body)
        except httpx.HTTPError:
            return None

    # ── what readers see ──────────────────────────────────────────────────────────────────────

    def saw(self, session_id: str, event: dict[str, Any]) -> None:
        match event:
            case {"type": "turn_ended", "turnId": turn}:
                self._ended.setdefault(turn, asyncio.Event()).set()
            case {"type": "permission_settled", "requestId": request}:
                self._settled.add(f"{session_id} {request}")
            case {"type": "permission_requested", "requestId": request, "options": options}:
                key = f"{session_id} {request}"
                if key not in self._asked:
                    self._asked.add(key)
                    for option in options[:2]:
                        self._spawn(self._answer(session_id, request, option["id"]))
            case _:
                pass

    async def _answer(self, session_id: str, request: str, option: str) -> None:
        """Two at once, through different hosts: one of them counts."""
        key = f"{session_id} {request}"
        path = f"/api/sessions/{session_id}/permissions/{request}"
        while key not in self._settled:
            response = await self._post(path, {"optionId": option})
            if response is not None and response.is_success:
                self.answered[key] += 1
                return
            if response is not None and response.json()["error"]["code"] == "settled":
                return
            await asyncio.sleep(_PAUSE)


def _code(response: httpx.Response | None) -> str:
    if response is None:
        return "no response"
    error = response.json()["error"]
    # What may be anything is told in full.
    return error["message"] if error["code"] == "failed" else error["code"]

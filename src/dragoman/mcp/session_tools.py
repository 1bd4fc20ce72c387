"""The tools: list, start, prompt, wait, read, cancel. A caller stays within its bounds.

There is none to answer a question: what no rule decides is refused, or waits for a person.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, TypeAlias

import msgspec

from dragoman.agents.listing import list_agents
from dragoman.briefing import transcript
from dragoman.errors import DragomanError, InvalidParams, ResourceNotFound, UnknownSession
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.hub.running.settings_launcher import SettingsLauncher
from dragoman.hub.stored.stored_sessions import status_of
from dragoman.mcp.caller_bounds import Bounds, refused
from dragoman.mcp.mcp_connection import Json, Progress
from dragoman.results.json_schema import written_out
from dragoman.session import events as e
from dragoman.session.facts import TurnTerms
from dragoman.session.limits.model_prices import all_prices
from dragoman.session.state import SessionState, answer_of
from dragoman.store.records import SessionFilter, SessionRecord

MOST_TEXT = 100_000
"""Characters of a diff, an answer or a transcript: they become part of a model's context."""
_LONGEST_WAIT = 3600.0
_MOST_LISTED = 100
_SCHEME = "dragoman://sessions/"


class ListAgents(msgspec.Struct, tag="list_agents", tag_field="tool"):
    """Lists the agents that you can start."""


class ListSessions(msgspec.Struct, tag="list_sessions", tag_field="tool"):
    """Lists the sessions in your folders, newest first. You can read all of them, and prompt and
    cancel those that you started."""


class StartSession(msgspec.Struct, tag="start_session", tag_field="tool"):
    """Starts an agent in a new session, and sends it a prompt if there is one. Waits for the answer
    as many seconds as `wait` says; else call wait. The agent knows nothing of your conversation:
    the prompt has to say all it needs."""

    agent: str
    prompt: str | None = None
    cwd: str | None = None
    wait: float = 0


class PromptSession(msgspec.Struct, tag="prompt", tag_field="tool"):
    """Sends a prompt to a session that you started; if it is busy, the prompt is queued. Waits for
    the answer as many seconds as `wait` says; else call wait."""

    session: str
    text: str
    wait: float = 0


class WaitForSession(msgspec.Struct, tag="wait", tag_field="tool"):
    """Waits until a session is idle, or waits for a person, and returns its status and answer.
    After `seconds` it returns in any case; call it again."""

    session: str
    seconds: float = 300


class ReadAnswer(msgspec.Struct, tag="read_answer", tag_field="tool"):
    """Returns the status of a session and what it answered last, without waiting."""

    session: str


class ReadChanges(msgspec.Struct, tag="read_changes", tag_field="tool"):
    """Returns the files that a session changed, as a diff."""

    session: str


class CancelTurn(msgspec.Struct, tag="cancel", tag_field="tool"):
    """Cancels the running turn of a session that you started."""

    session: str


Call: TypeAlias = (
    ListAgents
    | ListSessions
    | StartSession
    | PromptSession
    | WaitForSession
    | ReadAnswer
    | ReadChanges
    | CancelTurn
)
TOOLS: dict[str, type[Call]] = {
    "list_agents": ListAgents,
    "list_sessions": ListSessions,
    "start_session": StartSession,
    "prompt": PromptSession,
    "wait": WaitForSession,
    "read_answer": ReadAnswer,
    "read_changes": ReadChanges,
    "cancel": CancelTurn,
}
_READS = frozenset({"list_agents", "list_sessions", "wait", "read_answer", "read_changes"})


class SessionTools:
    """What one caller of MCP is offered, of the sessions of one hub."""

    instructions = (
        "Starts coding agents in sessions of their own and returns their answers and changes. "
        "Start a session with a prompt, then call wait. What an agent wants to do and no rule "
        "allows is refused, or decided by a person; you cannot decide it."
    )

    def __init__(
        self, hub: Hub, launcher: SettingsLauncher, bounds: Bounds, *, attended: bool
    ) -> None:
        """`attended` says whether questions of what it starts wait for a person."""
        self._hub = hub
        self._launcher = launcher
        self._bounds = bounds
        self._attended = attended
        self._mine: set[str] = set()

    # ── tools ─────────────────────────────────────────────────────────────────────────────────

    def tools(self) -> list[Json]:
        return [_described(name, kind) for name, kind in TOOLS.items()]

    async def call(self, name: str, arguments: Json, progress: Progress) -> Json:
        if (kind := TOOLS.get(name)) is None:
            raise InvalidParams(f"there is no tool {name!r}; there are {', '.join(TOOLS)}")
        try:
            call = msgspec.convert({**arguments, "tool": name}, kind)
            found = await self._done(call, progress)
        except (DragomanError, msgspec.ValidationError, ValueError) as error:
            return {"content": [_text(str(error))], "isError": True}
        return {"content": [_text(msgspec.json.encode(found).decode())], "structuredContent": found}

    async def _done(self, call: Call, progress: Progress) -> Json:
        match call:
            case ListAgents():
                return {"agents": self._agents()}
            case ListSessions():
                return {"sessions": [self._listed(each) for each in await self._readable()]}
            case StartSession():
                return await self._start(call, progress)
            case PromptSession():
                return await self._prompt(call.session, call.text, call.wait, progress)
            case WaitForSession():
                return await self._wait(call.session, call.seconds, progress)
            case ReadAnswer():
                await self._must_be_readable(call.session)
                return _answer(await self._hub.state(call.session))
            case ReadChanges():
                return await self._changes(call.session)
            case CancelTurn():
                self._must_be_mine(call.session)
                return await self._hub.send(call.session, c.Cancel(), opens=False)

    def _agents(self) -> list[Json]:
        return [
            {"name": each.name, "title": each.title, "state": each.state}
            for each in list_agents(self._launcher.settings())
            if each.state != "missing" and self._bounds.may_start(each.name)
        ]

    async def _start(self, call: StartSession, progress: Progress) -> Json:
        self._bounds.must_have_agent(call.agent)
        self._launcher.target(call.agent)  # it is one
        if call.prompt is not None and not call.prompt.strip():
            raise refused("the prompt is empty")
        cwd = self._bounds.folder(call.cwd)
        prices = all_prices(self._launcher.settings().prices)
        limits = await self._bounds.take_place(self._hub.store, prices)
        caller = self._bounds.caller
        given: dict[str, Any] = {} if caller is None else {"offer": caller.offer}
        live = await self._hub.create(call.agent, cwd, limits=limits, **given)
        self._mine.add(live.id)
        if caller is not None:
            note = e.Notice(f"started by session {caller.session}", source="client")
            live.session.log.record(note)
            with suppress(DragomanError):  # it may be one that is not recorded
                words = f"started session {live.id} with {call.agent}"
                await self._hub.send(caller.session, c.Note(words), opens=False)
        told = {"session": live.id, "agent": call.agent, "cwd": cwd}
        if call.prompt is None:
            return told
        return told | await self._prompt(live.id, call.prompt, call.wait, progress)

    async def _prompt(self, session_id: str, text: str, wait: float, progress: Progress) -> Json:
        self._must_be_mine(session_id)
        reply = await self._hub.send(session_id, self._ruled(text))
        told = {"turn": reply["turn"], "queued": reply["queued"]}
        return told if wait <= 0 else told | await self._wait(session_id, wait, progress)

    def _ruled(self, text: str) -> c.Command:
        """Nobody reads the turn: without a person, its questions must not wait."""
        if self._attended:
            return c.Prompt(text)
        terms = TurnTerms(by="dragoman mcp", on_ask="reject", home=self._hub.hosts.home)
        return c.RuledPrompt(text, terms)

    async def _wait(self, session_id: str, seconds: float, progress: Progress) -> Json:
        await self._must_be_readable(session_id)
        state = await self._hub.state(session_id)
        with suppress(TimeoutError):
            async with asyncio.timeout(min(max(seconds, 0), _LONGEST_WAIT)):
                if self._is_at_work(session_id, state):
                    await self._until_idle(session_id, state.last_seq, progress)
        return _answer(await self._hub.state(session_id))

    async def _until_idle(self, session_id: str, after: int, progress: Progress) -> None:
        async for page in self._hub.watch(session_id, after):
            state = await self._hub.state(session_id)
            progress(page[-1].seq, status_of(state))
            if not self._is_at_work(session_id, state):
                return

    def _is_at_work(self, session_id: str, state: SessionState) -> bool:
        """A question that nobody answers is about to be refused."""
        if state.pending and (self._attended or session_id not in self._mine):
            return False
        return state.turn is not None or bool(state.queue)

    async def _changes(self, session_id: str) -> Json:
        record = await self._must_be_readable(session_id)
        found = await self._hub.folders.changes(session_id)
        diff = "".join(file.diff(record.cwd) for file in found.files)
        return {
            "files": [{"path": file.path, "status": file.status} for file in found.files],
            "diff": diff[:MOST_TEXT],
            "diffIsCut": len(diff) > MOST_TEXT,
            "complete": found.complete and found.tracked,
        }

    # ── which sessions ────────────────────────────────────────────────────────────────────────

    async def _readable(self) -> list[SessionRecord]:
        listed = await self._hub.store.sessions(SessionFilter(limit=_MOST_LISTED))
        return [each for each in listed if self._may_read(each)]

    def _may_read(self, record: SessionRecord) -> bool:
        return record.id in self._mine or (bool(record.cwd) and self._bounds.holds(record.cwd))

    async def _must_be_readable(self, session_id: str) -> SessionRecord:
        record = await self._hub.store.session(session_id)
        if record is None or not self._may_read(record):
            raise UnknownSession(session_id)
        return record

    def _must_be_mine(self, session_id: str) -> None:
        if session_id not in self._mine:
            raise refused(f"you have not started a session {session_id!r}")

    def _listed(self, record: SessionRecord) -> Json:
        return {
            "session": record.id,
            "agent": record.agent,
            "title": record.title or record.name or "",
            "status": record.status,
            "cwd": record.cwd,
            "startedByYou": record.id in self._mine,
        }

    # ── transcripts, as resources and as prompts ──────────────────────────────────────────────

    async def resources(self) -> list[Json]:
        return [_resource(record) for record in await self._readable()]

    def resource_templates(self) -> list[Json]:
        template = {"uriTemplate": f"{_SCHEME}{{session}}", "name": "transcript"}
        return [{**template, "title": "The transcript of a session", "mimeType": "text/markdown"}]

    async def read(self, uri: str) -> list[Json]:
        if not uri.startswith(_SCHEME):
            raise ResourceNotFound(f"there is no {uri}")
        text = await self._transcript(uri.removeprefix(_SCHEME))
        return [{"uri": uri, "mimeType": "text/markdown", "text": text}]

    def prompts(self) -> list[Json]:
        argument = {"name": "session", "description": "the id of a session", "required": True}
        words = "What was asked and done in a session, to continue from there"
        return [{"name": "session", "description": words, "arguments": [argument]}]

    async def prompt(self, name: str, arguments: Json) -> Json:
        session = arguments.get("session")
        if name != "session" or not isinstance(session, str):
            raise InvalidParams("the only prompt is session, with the id of one as its argument")
        content = _text(await self._transcript(session))
        return {"messages": [{"role": "user", "content": content}]}

    async def _transcript(self, session_id: str) -> str:
        try:
            record = await self._must_be_readable(session_id)
        except UnknownSession as error:
            raise ResourceNotFound(str(error)) from error
        state = await self._hub.state(session_id)
        return transcript(state, f"Session {record.id} of {record.agent}", MOST_TEXT)


def _described(name: str, kind: type[Call]) -> Json:
    schema = written_out(msgspec.json.schema(kind))
    del schema["properties"]["tool"]
    schema["required"] = [each for each in schema["required"] if each != "tool"]
    words = " ".join(schema.pop("description", "").split())
    hints = {"readOnlyHint": name in _READS, "openWorldHint": name not in _READS}
    return {"name": name, "description": words, "inputSchema": schema, "annotations": hints}


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _resource(record: SessionRecord) -> Json:
    title = record.title or record.name or record.id
    return {"uri": f"{_SCHEME}{record.id}", "name": title, "mimeType": "text/markdown"}


def _answer(state: SessionState) -> Json:
    told: Json = {"status": status_of(state)}
    if state.pending:
        told["waitsForAPerson"] = [getattr(each, "title", "") for each in state.pending.values()]
    if not state.turns:
        return told
    turn = state.turns[-1]
    answer = answer_of(state, turn.id)
    told |= {"answer": answer[-MOST_TEXT:], "ended": turn.status, "stopReason": turn.stop_reason}
    return told if turn.error is None else told | {"error": turn.error}

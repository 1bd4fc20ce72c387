"""What an editor asks of the hub, whatever version of the protocol it speaks.

The sessions of an editor are the hub's, under the hub's ids. A session that is opened here stays
the hub's: another window may use it at the same time, and it continues when the editor has gone.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Literal, Protocol, TypeAlias

from dragoman.client.dialects.encoding import UpdateEncoder
from dragoman.editor.editor_launcher import EditorPlace
from dragoman.editor.editor_questions import EditorQuestions, Wording
from dragoman.editor.link import EditorLink
from dragoman.editor.open_editors import Editors
from dragoman.editor.own_terms import NO_TERMS, OwnTerms
from dragoman.editor.window import EditorWindow
from dragoman.errors import (
    DragomanError,
    InvalidParams,
    ResourceNotFound,
    UnknownSession,
)
from dragoman.hub.cluster import commands as c
from dragoman.hub.cluster.owner import is_gone
from dragoman.hub.hub import Hub
from dragoman.session.facts import ConfigOption
from dragoman.store.records import SessionFilter, SessionRecord

logger = logging.getLogger("dragoman.editor")

_PAGE = 100

OnClose: TypeAlias = Literal["continue", "cancel"]
"""What becomes of a turn whose session the editor closes."""
Opening: TypeAlias = Callable[[], Awaitable[Hub]]


class Speech(Wording, Protocol):
    """How a version of the protocol says things to an editor."""

    def encoder(self, session_id: str) -> UpdateEncoder: ...


class Agents(Protocol):
    """The agents that a session can be given to."""

    def default_in(self, cwd: str) -> str:
        """The one for a session that names none."""
        ...

    def usable(self) -> list[str]:
        """Those that can be started."""
        ...


class Desk:
    """The sessions of one editor. `hub` opens the store when it is first needed: an editor is
    greeted at once, and told of an outage where it asks for something."""

    def __init__(
        self,
        hub: Opening,
        agents: Agents,
        places: dict[str, EditorPlace],
        editors: Editors,
        link: EditorLink,
        *,
        agent: str | None = None,
        on_close: OnClose = "continue",
        terms: OwnTerms = NO_TERMS,
    ) -> None:
        self._terms = terms
        self._hub = hub
        self._agents = agents
        self._places = places
        self._editors = editors
        self.link = link
        self.agent = agent
        self._on_close: OnClose = on_close
        self.windows: dict[str, EditorWindow] = {}
        self._made: set[str] = set()
        """Sessions that this editor made: those that nobody used are deleted."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def aclose(self) -> None:
        """The editor is gone."""
        for session_id in list(self.windows):
            self._shut(session_id)
        for session_id in list(self._made):
            with suppress(DragomanError):
                await self._forget_unused(session_id)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something that nobody waits for."""
        self._tasks.add(task := asyncio.create_task(_quietly(work)))
        task.add_done_callback(self._tasks.discard)

    # ── opening ───────────────────────────────────────────────────────────────────────────────

    async def new(self, place: EditorPlace, speech: Speech) -> EditorWindow:
        """A new session, with a window on it. Raises what `Hub.create` raises."""
        hub = await self._hub()
        agent = self.agent or self._agents.default_in(place.cwd)
        session_id = f"s-{os.urandom(8).hex()}"
        await self._create(hub, session_id, agent, place)
        window = await self._known(hub, session_id, speech)
        window.agent = agent
        if self.agent is None:
            window.agents = list(dict.fromkeys((agent, *self._agents.usable())))
        return window

    async def _create(self, hub: Hub, session_id: str, agent: str, place: EditorPlace) -> None:
        self._places[session_id] = place
        live = await hub.create(
            agent,
            place.cwd,
            session_id=session_id,
            additional_directories=place.additional_directories,
        )
        self._made.add(session_id)
        await live.recording.stored()

    async def give_to(self, window: EditorWindow, agent: str) -> None:
        """Have another agent do the work of a session that was not prompted yet. If that cannot be
        started, the session keeps its agent. Raises InvalidParams, and what `Hub.create` raises."""
        if window.agents and window.state.turns:
            window.agents = ()
        if agent not in window.agents:
            known = ", ".join(window.agents)
            why = f"there is no agent {agent!r}; there are: {known}"
            raise InvalidParams(why if known else "the session has begun with its agent")
        if agent == window.agent:
            return
        hub = await self._hub()
        place = self._places[window.id]
        window.pause()
        await hub.delete(window.id)
        try:
            await self._create(hub, window.id, agent, place)
            window.agent = agent
        except BaseException:
            await self._create(hub, window.id, window.agent, place)
            raise
        finally:
            await window.catch_up()
            window.begin()

    async def attach(
        self,
        session_id: str,
        place: EditorPlace,
        speech: Speech,
        *,
        replay: bool,
    ) -> EditorWindow:
        """A window on a session that there is, wherever it runs. With `replay` the editor gets
        its history before this returns. Raises ResourceNotFound."""
        hub = await self._hub()
        record = await self._recovered(hub, session_id)
        if not record.cwd:
            await hub.give_folder(session_id, place.cwd)
        self._places[session_id] = place
        self._shut(session_id)
        if not replay:
            return await self._known(hub, session_id, speech)
        window = self._window(hub, session_id, speech)
        await window.tell_history()
        return window

    async def _recovered(self, hub: Hub, session_id: str) -> SessionRecord:
        """With what an owner that is gone left open ended."""
        try:
            record = await hub.record(session_id)
        except UnknownSession:
            raise unknown(session_id) from None
        owner = await hub.store.owner(session_id)
        if owner is not None and is_gone(owner):
            await hub.maintenance.recover()
        return record

    async def fork(self, session_id: str, place: EditorPlace, speech: Speech) -> EditorWindow:
        """A new session that remembers another. Raises what `Hub.fork` raises."""
        hub = await self._hub()
        record = await self._recovered(hub, session_id)
        if not hub.hosts.has(record):
            forked = await hub.elsewhere.fork(record)
        else:
            more = place.additional_directories
            live = await hub.fork(session_id, cwd=place.cwd, more_directories=more)
            await live.recording.stored()
            forked = live.id
        self._places[forked] = place
        return await self._known(hub, forked, speech)

    async def _known(self, hub: Hub, session_id: str, speech: Speech) -> EditorWindow:
        window = self._window(hub, session_id, speech)
        await window.catch_up()
        return window

    def _window(self, hub: Hub, session_id: str, speech: Speech) -> EditorWindow:
        questions = EditorQuestions(hub, session_id, self.link, speech)
        encoder = speech.encoder(session_id)
        window = EditorWindow(hub, session_id, self.link, encoder, questions, self._terms)
        self.windows[session_id] = window
        self._editors.hub = hub
        self._editors.links[session_id] = self.link
        return window

    # ── sessions that are open ────────────────────────────────────────────────────────────────

    def open(self, session_id: str) -> EditorWindow:
        """Raises ResourceNotFound."""
        window = self.windows.get(session_id)
        if window is None:
            raise ResourceNotFound(
                f"session {session_id} is not open here", {"sessionId": session_id}
            )
        return window

    async def options(self, window: EditorWindow) -> list[ConfigOption]:
        """The config options of a session as they are now."""
        hub = await self._hub()
        state = await hub.state(window.id)
        return window.options(state.config_options)

    async def send(self, session_id: str, command: c.Command) -> c.Reply:
        """Raises what `Hub.send` raises."""
        hub = await self._hub()
        return await hub.send(session_id, command)

    async def close(self, session_id: str) -> None:
        """The editor no longer shows it. Its turn continues, unless that was switched off."""
        self.open(session_id)
        cancels = self._on_close == "cancel"
        self._shut(session_id, cancels=cancels)
        hub = await self._hub()
        if cancels:
            self.spawn(_stop(hub, session_id))
        await self._forget_unused(session_id)
        live = hub.live.get(session_id)
        if live is not None and live.idle:
            await hub.detach(live)

    def _shut(self, session_id: str, *, cancels: bool = False) -> None:
        if (window := self.windows.pop(session_id, None)) is not None:
            window.close(cancels=cancels)
            if self._editors.links.get(session_id) is self.link:
                del self._editors.links[session_id]

    async def _forget_unused(self, session_id: str) -> None:
        """A new session in which nothing was asked: nobody will want to continue it."""
        if session_id not in self._made:
            return
        hub = await self._hub()
        live = hub.live.get(session_id)
        if live is not None and live.is_unused:
            self._made.discard(session_id)
            await hub.delete(session_id)

    # ── sessions that are kept ────────────────────────────────────────────────────────────────

    async def list(
        self, cwd: str | None, cursor: str | None
    ) -> tuple[list[SessionRecord], str | None]:
        """The sessions of a folder, or all, the last used first; and the cursor of the next page.
        Raises InvalidParams."""
        hub = await self._hub()
        wanted = SessionFilter(cwd=cwd, archived=False, limit=_PAGE, before=cursor)
        try:
            found = await hub.store.sessions(wanted)
        except UnknownSession:
            raise InvalidParams(
                "the cursor is not one of ours, or its session was deleted"
            ) from None
        return found, found[-1].id if len(found) == _PAGE else None

    async def delete(self, session_id: str) -> None:
        """Raises ResourceNotFound, and what `Hub.delete` raises."""
        hub = await self._hub()
        await self._recovered(hub, session_id)
        self._shut(session_id)
        self._made.discard(session_id)
        await hub.delete(session_id)

    async def authenticate(self, method_id: str) -> None:
        """Sign in to the agent. Raises InvalidParams for a way that it does not offer."""
        hub, cwd = await self._hub(), os.getcwd()
        agent = self.agent or self._agents.default_in(cwd)
        async with hub.using(agent, cwd) as client:
            try:
                await client.authenticate(method_id)
            except ValueError as error:
                raise InvalidParams(str(error)) from error

    async def extension(self, session_id: str, method: str, params: dict[str, object]) -> object:
        """What the agent of a session answers to a method of its own. Raises ResourceNotFound where
        the session does not run here."""
        hub = await self._hub()
        live = hub.live.get(session_id)
        if live is None:
            raise ResourceNotFound(f"session {session_id} does not run here")
        told = params | {"sessionId": live.session.id}
        return await live.agent.client.dialect.call_extension(method, told, None)


async def _stop(hub: Hub, session_id: str) -> None:
    await hub.send(session_id, c.Cancel())


async def _quietly(work: Coroutine[Any, Any, None]) -> None:
    with suppress(DragomanError):
        await work


def unknown(session_id: str) -> ResourceNotFound:
    return ResourceNotFound(f"there is no session {session_id}", {"sessionId": session_id})

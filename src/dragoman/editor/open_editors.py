"""Which editor has a session of ours open, for the agent that works on it."""

from __future__ import annotations

from typing import NamedTuple

from dragoman.client.client import Client
from dragoman.editor.link import EditorLink
from dragoman.hub.hub import Hub


class EditorSession(NamedTuple):
    """An editor, and what it calls the session."""

    link: EditorLink
    session_id: str


class Editors:
    """The editors of one hub, by the sessions that they have open; the last to open it counts."""

    def __init__(self) -> None:
        self.hub: Hub | None = None
        self.links: dict[str, EditorLink] = {}

    def of(self, client: Client, agent_session_id: str) -> EditorSession | None:
        """For a session as the agent of this client calls it."""
        if self.hub is None:
            return None
        for live in self.hub.live.values():
            if live.session.id == agent_session_id and live.agent.client is client:
                link = self.links.get(live.id)
                return EditorSession(link, live.id) if link is not None and link.is_open else None
        return None


class OpenEditors:
    """The same for one agent process, once there is a `client` of it."""

    def __init__(self, editors: Editors) -> None:
        self._editors = editors
        self.client: Client | None = None

    def of(self, agent_session_id: str) -> EditorSession | None:
        """The editor that has a session of this agent open."""
        return None if self.client is None else self._editors.of(self.client, agent_session_id)

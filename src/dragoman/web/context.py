"""What the handlers share: the hub, what belongs to this server alone, and whether it is ending."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dragoman.data_directory import data_directory
from dragoman.host.forms.elicitation import ElicitationRequest
from dragoman.host.rules.rule import Rule
from dragoman.hub.cluster.owner import is_gone
from dragoman.hub.hub import Hub
from dragoman.hub.running.settings_launcher import SettingsLauncher
from dragoman.notices.notice_board import Notices
from dragoman.store.records import Owner
from dragoman.web.last_turn import Endings
from dragoman.web.server.visitors import Visitors
from dragoman.web.shapes.session_shapes import OwnerShape
from dragoman.web.spent_today import Costs
from dragoman.web.streams.list_changes import Roster
from dragoman.web.streams.sse import Batches
from dragoman.web.uploads import Uploads


@dataclass(kw_only=True)
class Server:
    """What all handlers share. `agent` and `cwd` are the defaults for new sessions; `closing` ends
    the streams."""

    hub: Hub
    launcher: SettingsLauncher
    uploads: Uploads
    cwd: str
    agent: str | None = None
    given: Sequence[Rule] = ()
    """What it was started with: a file of rules, and flags."""
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    batches: Batches = field(default_factory=Batches)
    document: Callable[[], dict[str, Any]] = dict[str, Any]
    """What the API looks like."""
    making_chats: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Two requests of one new chat make one session."""
    costs: Costs = field(init=False)
    endings: Endings = field(init=False)
    roster: Roster = field(init=False)
    visitors: Visitors = field(init=False)
    notices: Notices = field(init=False)

    def __post_init__(self) -> None:
        self.costs = Costs(self.hub.store)
        self.endings = Endings(self.hub.store)
        self.visitors = Visitors(self.hub.store)
        self.notices = Notices(self.hub, lambda: self.launcher.settings().notices, data_directory())
        self.roster = Roster(self.hub.store, self.hub.news, self.closing, self.questions_outside)

    def questions_outside(self) -> list[tuple[str, ElicitationRequest]]:
        """What agents that run here ask outside any session, with their names."""
        clients = self.hub.clients(None)
        return [(client.name, asked) for client in clients for asked in client.pending]

    def default_agent(self, cwd: str | None, host: str | None) -> str:
        """Of a new session in a folder, by default this server's. The project there has a say only
        on this host. Raises ConfigError."""
        if self.agent is not None:
            return self.agent
        folder = self.cwd if cwd is None else cwd
        is_here = host is None and os.path.isabs(folder)
        return self.launcher.default_in(folder) if is_here else self.launcher.default

    def owner_shape(self, owner: Owner | None) -> OwnerShape | None:
        """None for an owner that is gone: the next one to look puts that right."""
        here = owner is not None and owner.id == self.hub.owner.id
        if owner is None or (not here and is_gone(owner)):
            return None
        return OwnerShape(label=owner.label, pid=owner.pid, here=here)

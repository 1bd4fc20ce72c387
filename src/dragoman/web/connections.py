"""Who is connected to a server, and who has to go when there are too many.

Whoever has shown the token is served. Anybody else can open connections too: those are strangers,
and where there is no room the oldest of them is cut off, so that whoever has the token gets in
however many others hold the door.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TypeAlias

from dragoman.process import descriptors
from dragoman.web.stream import STALL_SECONDS

logger = logging.getLogger("dragoman.web")

HEAD_SECONDS = 10.0
"""For the head of a request, from its connection or from the head's first byte on."""
IDLE_SECONDS = 30
"""Between two requests."""
_AT_THE_DOOR = 32
"""So many strangers are heard however many connections are in use."""
_QUIET_SECONDS = 60.0

_Transports: TypeAlias = dict[asyncio.Transport, None]


class Connections:
    """At most `most`, by default as many as leave half of the descriptors for the store, agents and
    terminals. `head_seconds` is for a request's head; a reader that takes nothing of its answer for
    `stall_seconds` is cut off."""

    def __init__(
        self,
        most: int | None = None,
        *,
        head_seconds: float = HEAD_SECONDS,
        stall_seconds: float = STALL_SECONDS,
    ) -> None:
        self.most = descriptors.limit() // 2 if most is None else most
        self.head_seconds = head_seconds
        self.stall_seconds = stall_seconds
        self._strangers: _Transports = {}
        self._idle: _Transports = {}
        self._busy: _Transports = {}
        self._told_at: float | None = None

    def came(self, transport: asyncio.Transport) -> None:
        self._strangers[transport] = None
        while len(self._strangers) + len(self._idle) + len(self._busy) > self.most:
            self._tell(f"{self.most} connections are open: the oldest unused ones are cut off")
            if len(self._strangers) > min(_AT_THE_DOOR, self.most):
                self._cut_off(next(iter(self._strangers)))
            elif self._idle:
                self._cut_off(next(iter(self._idle)))
            else:
                break

    def no_descriptors(self) -> None:
        """Not even for whoever comes next, who may have the token: strangers make room."""
        self._tell("no descriptor is free for a new connection: those without a token are cut off")
        for transport in list(self._strangers):
            self._cut_off(transport)

    def admit(self, transport: asyncio.Transport) -> bool:
        """It has shown the token; False when too many others have, and are being served."""
        if len(self._busy) >= self.most:
            return False
        self.left(transport)
        self._busy[transport] = None
        return True

    def answered(self, transport: asyncio.Transport) -> None:
        if self._busy.pop(transport, transport) is None:
            self._idle[transport] = None

    def left(self, transport: asyncio.Transport) -> None:
        for each in (self._strangers, self._idle, self._busy):
            each.pop(transport, None)

    def _cut_off(self, transport: asyncio.Transport) -> None:
        self.left(transport)
        transport.abort()

    def _tell(self, sentence: str) -> None:
        now = asyncio.get_running_loop().time()
        if self._told_at is None or now - self._told_at > _QUIET_SECONDS:
            self._told_at = now
            logger.warning("%s", sentence)

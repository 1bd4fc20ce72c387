"""Deletes sessions that do not run: on request, and unused ones.

With a session go its events, the snapshots of its folders and, on request, the agent's copy. Its
uploads are deleted by the server (`web/uploads.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING

from dragoman.errors import MethodNotFound, ResourceNotFound, SessionOwned, UnknownSession
from dragoman.store.base import events_of_types
from dragoman.store.records import SessionRecord

if TYPE_CHECKING:
    from dragoman.hub.hub import Hub
    from dragoman.hub.opener import Opener


class Deletion:
    """Deletes sessions from the store, and from their agents' memory."""

    def __init__(self, hub: Hub, opener: Opener) -> None:
        self._hub = hub
        self._opener = opener

    async def delete(self, record: SessionRecord, *, local: bool) -> None:
        """Forget a session that does not run here: on its host, and by its agent where that is
        offered, unless `local`. Raises SessionOwned."""
        hub = self._hub
        if not hub.hosts.has(record):
            if await hub.elsewhere.delete(record, local=local):
                return
            local = True  # its agent is where nobody is now
        await asyncio.shield(hub.running.free_after(record.id, self._delete(record, local)))

    async def forget(self, session_id: str, still: Callable[[SessionRecord], bool]) -> int | None:
        """Delete a session that nobody uses, here alone, if it is `still` so once it is ours; how
        many bytes it had, None when it stays. Raises StoreError."""
        hub = self._hub
        if session_id in hub.live:
            return None
        try:
            async with hub.running.opening(session_id), self._opener.holding(session_id) as lease:
                record = await hub.store.session(session_id)
                if record is None or not still(record):
                    return None
                size = await hub.store.size_of(session_id)
                await hub.store.delete_session(session_id, lease)
                await hub.folders.forget(session_id)
        except (SessionOwned, UnknownSession):
            return None
        hub.news.tell(session_id)
        return size

    async def _delete(self, record: SessionRecord, local: bool) -> None:
        """To its end, even if its caller is cancelled: nobody can continue what its agent has
        forgotten."""
        hub = self._hub
        async with hub.running.opening(record.id), self._opener.holding(record.id) as lease:
            is_ours = not local and record.cwd and await self._was_opened(record)
            if is_ours and (known := await self._opener.conversation_of(record)):
                await self._delete_remotely(record, known)
            await hub.store.delete_session(record.id, lease)
            await hub.folders.forget(record.id)
        hub.news.tell(record.id)

    async def _was_opened(self, record: SessionRecord) -> bool:
        if record.imported is None:
            return True
        opened = events_of_types(
            self._hub.store, record.id, ["session_opened"], after=record.imported.events
        )
        async with aclosing(opened):
            return [each async for each in opened] != []

    async def _delete_remotely(self, record: SessionRecord, known: str) -> None:
        async with self._hub.using(record.agent, record.cwd, record.offer) as client:
            if client.capabilities.delete:
                # It has forgotten already, or offers what it does not have.
                with suppress(ResourceNotFound, MethodNotFound):
                    await client.delete_session(known)

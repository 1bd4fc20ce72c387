"""Requests to other hosts: to start, fork, continue or delete a session."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from dragoman.client.client_options import current_trace
from dragoman.errors import (
    CommandRefused,
    DragomanError,
    SessionOwned,
    UnknownSession,
    Unsupported,
)
from dragoman.hub.cluster import commands as c
from dragoman.hub.cluster.command_inbox import ask_owner
from dragoman.hub.cluster.held_process import wake
from dragoman.hub.cluster.host_directory import host_of, name_of
from dragoman.hub.cluster.owner import is_gone
from dragoman.hub.cluster.warm_notes import note_of
from dragoman.hub.opener import OnReset
from dragoman.hub.session_records import fork_record
from dragoman.store.records import HostRecord, Owner, SessionRecord, Standing

if TYPE_CHECKING:
    from dragoman.hub.hub import Hub

_BETWEEN_LOOKS = 0.02
_GIVE_UP_SECONDS = 15.0
"""How long the end of an agent that is kept warm is waited for."""


class Elsewhere:
    """The requests of one hub to other hosts. Every method raises CommandRefused with the other
    host's reason."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    async def ask(self, record: SessionRecord, at: Standing, command: c.Command) -> c.Reply:
        """Have a session do something: its owner if it has one, else the host of its workspace.

        Raises CommandRefused when there is neither: with `owner_gone` where one that is gone still
        has it, and may only be cut off, else with `host_gone`.
        """
        hub, to = self._hub, None
        if not hub.hosts.has(record):
            host = host_of(record, at.hosts)
            if host is None and (at.owner is None or is_gone(at.owner)):
                cut_off = hub.hosts.may_be_cut_off(record, at)
                raise _gone(record, at, "owner_gone" if cut_off else "host_gone")
            to = None if host is None else host.id
        if isinstance(command, c.AnswerElicitation) and command.content is not None:
            reply = await ask_owner(hub.store, hub.news, record.id, c.AskKey(), to=to)
            command = c.sealed(command, reply["key"])
        if isinstance(command, c.Prompt | c.RuledPrompt | c.SteerTurn) and (
            trace := current_trace()
        ):
            command = msgspec.structs.replace(command, trace=trace)
        return await ask_owner(hub.store, hub.news, record.id, command, to=to)

    async def begin(self, record: SessionRecord, host: HostRecord) -> None:
        """Start a new session on a host; when that fails there is no trace of it."""
        hub, opened = self._hub, c.Open(host=host.id)
        record.home = host.home
        record.created_at = record.updated_at = hub.store.now()
        await hub.store.create_session(record)
        try:
            await ask_owner(hub.store, hub.news, record.id, opened, to=host.id)
        except UnknownSession:
            sentence = f"the host {host.name} ended while starting the session"
            raise CommandRefused(record.id, "host_gone", sentence) from None
        except BaseException:
            # If a process runs it now, against all we know, it keeps it.
            with suppress(DragomanError):
                await hub.store.delete_session(record.id)
            raise

    async def fork(self, parent: SessionRecord, name: str | None = None) -> str:
        """A new session that remembers another, on that one's host; its id. Raises Unsupported."""
        if parent.agent_session_id is None:
            raise Unsupported("forking a session that was never opened")
        at = await self._hub.store.standing(parent.id)
        host = host_of(parent, at.hosts)
        if host is None:
            raise _gone(parent, at, "host_gone")
        record = fork_record(parent, host.home, name=name)
        await self.begin(record, host)
        return record.id

    async def move(
        self, record: SessionRecord, host: HostRecord, cwd: str | None, on_reset: OnReset
    ) -> None:
        """Continue a session on a host, in a folder there; one that is idle on another is put
        down first.

        Raises SessionOwned while something happens in it, and what opening it raises.
        """
        hub = self._hub
        owner = await hub.store.owner(record.id)
        if owner is not None and not is_gone(owner):
            await self._must_leave(record.id, owner, host)
        if host.id == hub.owner.id:
            await hub.open_here(record.id, cwd=cwd, on_reset=on_reset)
            return
        command = c.Open(host=host.id, cwd=cwd, on_reset=on_reset)
        await ask_owner(hub.store, hub.news, record.id, command, to=host.id)

    async def _must_leave(self, session_id: str, owner: Owner, host: HostRecord) -> None:
        """Have its owner stop running a session, for a host. Raises SessionOwned if it does not."""
        owned = SessionOwned(session_id, f"process {owner.pid} on {owner.label}")
        if owner.id == host.id:
            raise owned
        hub = self._hub
        try:
            if owner.id == hub.owner.id:
                await hub.send(session_id, c.Leave())
            else:
                await ask_owner(hub.store, hub.news, session_id, c.Leave())
        except CommandRefused as error:
            # What it refuses it still runs; else it has gone meanwhile.
            if error.code not in ("owner_gone", "failed"):
                raise owned from error

    async def take_from_warm(self, session_id: str) -> bool:
        """Have a process end that only keeps the agent of a session warm; whether it has, and its
        agent too. False for any other owner, and for one that is busy."""
        hub = self._hub
        owner = await hub.store.owner(session_id)
        if owner is None:
            return True
        if note_of(owner) is None:
            return False
        wake(owner)
        try:
            await ask_owner(hub.store, hub.news, session_id, c.GiveUp())
        except CommandRefused as error:
            if error.code not in ("owner_gone", "failed"):
                return False
        deadline = time.monotonic() + _GIVE_UP_SECONDS
        while (await hub.store.owner(session_id)) == owner and not is_gone(owner):
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(_BETWEEN_LOOKS)
        return True

    async def delete(self, record: SessionRecord, *, local: bool) -> bool:
        """By the host of its workspace, where the agent is that should forget it too; whether it
        was: without that host, or an owner, it is our own business."""
        hub, at = self._hub, await self._hub.store.standing(record.id)
        host = None if hub.hosts.has(record) else host_of(record, at.hosts)
        if host is None or (at.owner is not None and not is_gone(at.owner)):
            return False
        with suppress(UnknownSession):  # which is what was wanted
            await ask_owner(hub.store, hub.news, record.id, c.Delete(local), to=host.id)
        return True


def _gone(record: SessionRecord, at: Standing, code: str) -> CommandRefused:
    sentence = (
        f"the workspace of this session is on the host {name_of(record.home, at.hosts)}, which is "
        "gone; the session can be moved to another host"
    )
    return CommandRefused(record.id, code, sentence)

"""Another agent continues a session: in one of its own, with a briefing, and linked both ways."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from dragoman.briefing import briefing
from dragoman.errors import CommandRefused, DragomanError
from dragoman.hub.cluster import commands as c
from dragoman.hub.session_records import RecordReach, workspace_of
from dragoman.session import events as e
from dragoman.session.content import Text
from dragoman.store.records import SessionRecord

if TYPE_CHECKING:
    from dragoman.hub.hub import Hub
    from dragoman.hub.running.running_session import RunningSession


async def hand_off(hub: Hub, session_id: str, agent: str, asked: str = "") -> str:
    """A new session of that agent, in the same folders and with no more than this one has, which
    begins with a briefing and what is `asked`; its id. It runs here.

    Raises what `briefed` raises, and what starting the agent raises: then nothing has changed.
    """
    record = await hub.record(session_id)
    text = await briefed(hub, record, asked)
    live = await hub.create(agent, workspace_of(record), **reach_of(record))
    try:
        await live.prompt([Text(text)])
    except BaseException:
        await hub.send(live.id, c.Close())
        await hub.delete(live.id)
        raise
    await link(hub, record, live)
    return live.id


async def briefed(hub: Hub, record: SessionRecord, asked: str = "") -> str:
    """What the next agent is to know. Raises CommandRefused for a session that is at work, has done
    nothing, or is on another host."""
    if not hub.hosts.has(record):
        where = await hub.hosts.name_of(record.home)
        raise CommandRefused(record.id, "elsewhere", f"the files of the session are on {where}")
    state = await hub.state(record.id)
    if state.turn is not None:
        sentence = "the session is at work: cancel its turn, or wait for its end"
        raise CommandRefused(record.id, "busy", sentence)
    if not state.turns and not state.entries:
        raise CommandRefused(record.id, "nothing", "nothing was done in the session yet")
    changed: list[str] = []
    with suppress(DragomanError):  # it may have no snapshots
        found = await hub.folders.changes(record.id)
        changed = [f"{file.path} ({file.status})" for file in found.files]
    return briefing(state, session_id=record.id, agent=record.agent, changed=changed, asked=asked)


def reach_of(record: SessionRecord) -> RecordReach:
    """What the next session is given: nothing more."""
    return {
        "additional_directories": record.additional_directories,
        "offer": record.offer,
        "limits": record.limits,
    }


async def link(hub: Hub, old: SessionRecord, new: RunningSession) -> None:
    """Say in both records where the work came from, and where it went."""
    said = f"continues session {old.id} of {old.agent}"
    new.session.log.record(e.Notice(said, source="client"))
    note = c.Note(f"handed off to session {new.id} of {new.record.agent}")
    with suppress(DragomanError):  # the new one says it in any case
        await hub.send(old.id, note, opens=False)

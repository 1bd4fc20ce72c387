"""What another process is to a run or a chat that wants the session which it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.cli.warm.start_terms import fits
from dragoman.hub.cluster.held_process import wake
from dragoman.hub.cluster.warm_notes import WarmNote, note_of

if TYPE_CHECKING:
    from dragoman.cli.run.job import Job
    from dragoman.hub.hub import Hub
    from dragoman.store.records import SessionRecord


async def met(
    hub: Hub, job: Job, record: SessionRecord, *, attended: bool
) -> tuple[bool, WarmNote | None]:
    """Whether another process runs the session after this, and its note if that only keeps an agent
    that this job may use. One whose agent it may not use has ended; it has not if it is busy."""
    if (note := note_of(await hub.store.owner(record.id))) is None:
        return True, None
    wake(note.owner)
    state = await hub.state(record.id)
    if fits(job, note, record, state, attended=attended):
        return True, note
    return not await hub.elsewhere.take_from_warm(record.id), None

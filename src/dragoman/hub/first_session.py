"""The sample session of a new user: one whole turn with the demo agent.

It works in a directory made for it, so everything the demo agent asks for is allowed, once.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
from contextlib import suppress
from pathlib import Path

from dragoman.errors import CommandRefused, DragomanError
from dragoman.hub import commands as c
from dragoman.hub.hub import Hub
from dragoman.session.events import PermissionRequested, TurnEnded
from dragoman.store.records import SessionFilter

logger = logging.getLogger("dragoman.hub")

_PROMPT = "Improve @README.md a little and show me what you did"
_README = "# A scratch project\n\nNothing in here matters.\n"
_SECONDS = 20.0


async def first_session(hub: Hub) -> str | None:
    """The id of the session; None where there are others already, or it did not come to its end."""
    if await hub.store.sessions(SessionFilter(limit=1)):
        return None
    folder = Path(tempfile.mkdtemp(prefix="dragoman-demo-"))
    (folder / "README.md").write_text(_README)
    try:
        async with asyncio.timeout(_SECONDS):
            return await _turn(hub, str(folder))
    except (DragomanError, TimeoutError) as error:
        logger.warning("the first session could not be made: %s", error)
        return None


async def _turn(hub: Hub, folder: str) -> str:
    live = await hub.create("demo", folder)
    await hub.send(live.id, c.Prompt(_PROMPT))
    async for events in hub.watch(live.id):
        for stored in events:
            match stored.decode():
                case PermissionRequested(request_id=request, options=options):
                    once = next(option.id for option in options if option.kind == "allow_once")
                    with suppress(CommandRefused):  # a rule of the user's has answered
                        await hub.send(live.id, c.AnswerPermission(request, once))
                case TurnEnded():
                    return live.id
                case _:
                    pass
    return live.id

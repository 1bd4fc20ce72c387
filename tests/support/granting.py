"""A yes to a diff, and what is refused, in a scene."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from support.peers import soon
from support.permission_scene import Scene, question
from support.raw_agent import Json

from dragoman.session import events as e


def diff(cwd: Path, new: str, old: str | None = None, name: str = "a.txt") -> Json:
    shown = {"type": "diff", "path": str(cwd / name), "newText": new}
    return {"kind": "edit", "content": [shown | ({} if old is None else {"oldText": old})]}


async def allow(s: Scene, call: Json, option: str = "once") -> None:
    """A person says yes to what the agent claims."""
    asking = s.ask_permission(question(call=call))
    await s.answer(option)
    await soon(asking)


async def refused(s: Scene, doing: Coroutine[Any, Any, Json]) -> e.PermissionRequested:
    """It is asked for, and the answer is no."""
    before = len(s.requests)
    task = asyncio.create_task(doing)
    await s.answer("reject")
    assert "error" in await soon(task)
    assert len(s.requests) == before + 1
    return s.requests[-1]

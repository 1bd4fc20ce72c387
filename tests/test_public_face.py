"""What `help` and completion show of the classes that people use."""

from __future__ import annotations

import pydoc
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman.public_face import PublicFace

FACES = [dragoman.Client, dragoman.Session, dragoman.Turn]


@pytest.mark.parametrize("cls", FACES)
def test_help_leaves_out_what_only_dragoman_calls(cls: type[PublicFace]) -> None:
    shown = pydoc.plain(pydoc.render_doc(cls))
    listed = {name for name in cls.internal if f" {name}(" in shown or f"\n |  {name}\n" in shown}
    assert (listed, "internal" in dir(cls)) == (set(), False)


@pytest.mark.parametrize(
    ("cls", "names"),
    [
        (dragoman.Client, ["agent_info", "capabilities", "new_session", "start"]),
        (dragoman.Session, ["state", "id", "prompt", "answer", "changes"]),
        (dragoman.Turn, ["text", "stop_reason", "usage", "error", "detach", "cancel"]),
    ],
)
def test_help_names_what_people_need(cls: type[PublicFace], names: list[str]) -> None:
    shown = pydoc.plain(pydoc.render_doc(cls))
    assert [name for name in names if name not in shown] == []


async def test_every_name_that_is_left_out_is_one(tmp_path: Path) -> None:
    async with dragoman.Client.start("demo") as client:
        session = await client.new_session(tmp_path)
        turn = session.prompt("/think")
        things: list[Any] = [client, session, turn]
        for thing in things:
            assert [name for name in thing.internal if not hasattr(thing, name)] == []
            assert thing.internal.isdisjoint(dir(thing))
        await turn

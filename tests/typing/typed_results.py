"""A user's program whose types follow from what it asks for. It is checked, and never run."""

from __future__ import annotations

import dataclasses
from typing import Any, TypedDict, assert_type

import msgspec
import pydantic

import dragoman


class Invoice(msgspec.Struct):
    number: str


@dataclasses.dataclass
class Point:
    x: int


class Verdict(TypedDict):
    good: bool


class Model(pydantic.BaseModel):
    name: str


async def in_a_session(session: dragoman.Session) -> None:
    assert_type(await session.ask("x", output=Invoice), Invoice)
    assert_type(await session.ask("x", output=Point, retries=3), Point)
    assert_type(await session.ask("x", output=Verdict), Verdict)
    assert_type(await session.ask("x", output=Model), Model)
    assert_type(await session.ask("x", output=list[Invoice]), list[Invoice])
    assert_type(await session.ask("x", output={"type": "object"}), Any)
    assert_type(await session.ask("x"), str)


async def opened(client: dragoman.Client) -> None:
    await client.new_session(".", results=True)
    await client.new_session(".", results=Invoice)
    await client.new_session(".", results={"type": "object"})


def in_a_script(session: dragoman.SyncSession) -> None:
    assert_type(session.ask("x", output=Invoice), Invoice)
    assert_type(session.ask("x"), str)
    assert_type(dragoman.ask("x", output=Verdict), Verdict)
    assert_type(dragoman.ask("x", output={}), Any)
    assert_type(dragoman.ask("x", agent="claude"), str)

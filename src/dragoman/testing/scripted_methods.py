"""Which methods a scripted agent has, and what a test may have it answer instead."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeAlias

import msgspec

from dragoman.schema import codec, v1

Answer: TypeAlias = Callable[[Any], Any] | BaseException | Any
"""A result, an error to answer with, or a function of the params that returns one of them."""

NEVER: Final = object()
"""An `Answer`: the method is never answered."""

_ADVERTISED = {
    "session/list": "list",
    "session/delete": "delete",
    "session/fork": "fork",
    "session/resume": "resume",
    "session/close": "close",
    "session/archive": "archive",
    "session/unarchive": "archive",
    "session/status": "status",
    "session/set_title": "title",
}


def offers(capabilities: v1.AgentCapabilities, method: str) -> bool:
    """Whether an agent with these capabilities has this method."""
    if method == "session/load":
        return capabilities.load_session
    if method == "logout":
        return capabilities.auth.logout is not None
    name = _ADVERTISED.get(method)
    return name is None or getattr(capabilities.session_capabilities, name) is not None


def instead(answer: Any, params: msgspec.Raw) -> Coroutine[Any, Any, bytes] | bytes:
    """What a test wants to be answered."""
    if answer is NEVER:
        return _never()
    if callable(answer):
        answer = answer(msgspec.json.decode(params))
    if isinstance(answer, BaseException):
        raise answer
    return codec.encode(answer)


async def _never() -> bytes:
    await asyncio.Event().wait()
    raise AssertionError

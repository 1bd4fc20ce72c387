"""Delivers something with a bounded number of tries, each after a longer pause."""

from __future__ import annotations

import asyncio
import random
from typing import Literal, NamedTuple, Protocol

import httpx

PAUSES = (1.0, 4.0, 15.0, 60.0)
"""Between tries, in seconds; after the last one it is given up."""
_LONGEST_PAUSE = 120.0


class TryOutcome(NamedTuple):
    """Of a try: it is `done`; may be tried `again`; never works, since the other side is `gone`; or
    is `refused`, and would be again. `pause` is what the other side asks for."""

    what: Literal["done", "again", "gone", "refused"]
    why: str = ""
    pause: float | None = None


class Attempt(Protocol):
    async def __call__(self) -> TryOutcome: ...


async def delivered(attempt: Attempt, pauses: tuple[float, ...] = PAUSES) -> TryOutcome:
    """How it ended; "again" when it was given up."""
    for pause in pauses:
        outcome = await attempt()
        if outcome.what != "again":
            return outcome
        wanted = pause * random.uniform(0.75, 1.25) if outcome.pause is None else outcome.pause
        await asyncio.sleep(min(wanted, _LONGEST_PAUSE))
    return await attempt()


def retry_after(answer: httpx.Response) -> TryOutcome:
    """What an answer means that reports a failure."""
    why = f"status {answer.status_code}"
    if answer.status_code not in (408, 425, 429) and answer.status_code < 500:
        return TryOutcome("refused", why)
    said = answer.headers.get("retry-after", "")
    return TryOutcome("again", why, float(said) if said.isdigit() else None)

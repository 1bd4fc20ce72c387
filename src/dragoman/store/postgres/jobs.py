"""What waits to be written, and whoever waits for it. Knows neither tables nor connections."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

from dragoman.store.postgres.appending import Sent
from dragoman.store.postgres.database import Database
from dragoman.store.postgres.plans import Plan

T = TypeVar("T")

_MUCH_BYTES = 1024 * 1024


class Job(Generic[T]):
    """`work` is called, or carried out, in a transaction of its own, and other hosts are told what
    it `tells`, unless that is None. One that is `lasting` waits for a database that is away for as
    long as it takes; one that `is_long` has it do much at once."""

    def __init__(
        self,
        work: Callable[[Database], Awaitable[T]] | Plan[T],
        future: asyncio.Future[T],
        *,
        tells: str | None = "",
        lasting: bool = False,
        is_long: bool = False,
    ) -> None:
        self.work = work
        self.future = future
        self.tells = tells
        self.lasting = lasting
        self.is_long = is_long
        self.is_settled = False
        self.since = time.monotonic()
        self.lost = 0
        """How often the connection was lost while it ran."""


class Append:
    """A batch of events; those that wait one behind the other are written together."""

    lasting = True
    tells = ""

    def __init__(self, sent: Sent, future: asyncio.Future[int]) -> None:
        self.sent = sent
        self.future = future
        self.is_settled = False
        self.size = sum(map(len, sent.batch.events))
        self.kept = False
        """Whether it is in the outbox, or comes from there."""
        self.is_stuck = False
        """Whether it can neither be delivered nor be set aside."""


AnyJob: TypeAlias = Job[Any] | Append


class Doubt(Generic[T]):
    """A transaction whose commit was sent, and perhaps carried out."""

    def __init__(self, xid: str, job: Job[T], result: T) -> None:
        self.xid = xid
        self.job = job
        self.result = result


def is_much(unit: Sequence[AnyJob]) -> bool:
    """Whether it may take a while, on a slow line too."""
    if any(isinstance(job, Job) and job.is_long for job in unit):
        return True
    return sum(job.size for job in unit if isinstance(job, Append)) > _MUCH_BYTES


def settle(job: AnyJob, result: Any) -> None:
    """`result` may be the exception for whoever waits."""
    job.is_settled = True
    if job.future.done():
        return  # whoever waited was cancelled
    if isinstance(result, BaseException):
        job.future.set_exception(result)
    else:
        job.future.set_result(result)


def has_succeeded(job: AnyJob) -> bool:
    future = job.future
    return job.is_settled and (future.cancelled() or future.exception() is None)

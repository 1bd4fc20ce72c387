"""Examines a client: starts it for each scene, a few at a time, and reports on each check."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dragoman.conformance.check import Check, CheckFailed, NotApplicable
from dragoman.conformance.client_stage.client_command import ExaminedClient
from dragoman.conformance.client_stage.stage import ClientStage
from dragoman.conformance.examination.verdict import (
    CheckVerdict,
    ConformanceReport,
    Outcome,
    verdict,
)


async def examine_client(
    client: ExaminedClient,
    checks: Sequence[Check[ClientStage]],
    *,
    name: str,
    patience: float = 10.0,
    at_once: int = 2,
    told: Callable[[CheckVerdict], None] = lambda verdict: None,
) -> ConformanceReport:
    """The report on a client; `told` hears of the verdicts in the order of the table. `patience`
    bounds each wait for the client, in seconds; `at_once` is how many scenes are played at a
    time."""
    report = ConformanceReport(side="client", name=name)
    turns = asyncio.Semaphore(at_once)
    with tempfile.TemporaryDirectory(prefix="acp-") as folder:
        async with _tasks(
            [_judge(client, check, folder, patience, turns) for check in checks]
        ) as tasks:
            for task in tasks:
                reached = await task
                report.verdicts.append(reached)
                told(reached)
    return report


@asynccontextmanager
async def _tasks(
    work: Sequence[Any],
) -> AsyncGenerator[list[asyncio.Task[CheckVerdict]]]:
    """All of them at once; if one fails, or we are interrupted, the others are ended in order."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _judge(
    client: ExaminedClient,
    check: Check[ClientStage],
    folder: str,
    patience: float,
    turns: asyncio.Semaphore,
) -> CheckVerdict:
    async with turns:
        start = time.monotonic()
        async with ClientStage(client, _workspace(folder, check.id), patience) as stage:
            outcome, text, frames = await _played(stage, check)
            shown = stage.evidence.text(text)
            return verdict(check, outcome, shown, frames, time.monotonic() - start)


def _workspace(folder: str, key: str) -> str:
    workspace = Path(folder, key)
    workspace.mkdir()
    return str(workspace)


async def _played(stage: ClientStage, check: Check[ClientStage]) -> tuple[Outcome, str, list[str]]:
    try:
        await check.examine(stage)
    except NotApplicable as reason:
        return "skip", str(reason), []
    except CheckFailed as failed:
        frames = [f"← {stage.evidence.text(frame)}" for frame in failed.frames]
        return "fail", str(failed), frames or stage.evidence.since(0)
    return "pass", "", []

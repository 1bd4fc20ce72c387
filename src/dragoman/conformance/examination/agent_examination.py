"""Examines an agent: goes through the checks one after the other, and reports on each."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from dragoman.agents.doctor.examined_agent import WatchedTransport
from dragoman.conformance.check import Check, CheckFailed, NotApplicable
from dragoman.conformance.examination.examinee import Examinee, Prompts
from dragoman.conformance.examination.verdict import CheckVerdict, ConformanceReport, verdict
from dragoman.conformance.loose_json import obj
from dragoman.safe_text import single_line
from dragoman.transport.stdio import AgentCommand
from dragoman.transport.target import RemoteAgent, way_to
from dragoman.transport.transport import Start

_NAME_CHARACTERS = 200
_ELSEWHERE = "/tmp"
"""A folder that there is on another machine too; a scratch folder is only here."""


async def examine_agent(
    agent: AgentCommand | RemoteAgent | Start,
    checks: Iterable[Check[Examinee]],
    *,
    name: str,
    patience: float = 20.0,
    exit_seconds: float = 5.0,
    prompts: Prompts | None = None,
    told: Callable[[CheckVerdict], None] = lambda verdict: None,
) -> ConformanceReport:
    """The report on an agent; `told` hears of each verdict as it is reached. `patience` bounds
    each wait for an answer, and `exit_seconds` how long its process may take to end."""
    report = ConformanceReport(side="agent", name=name)
    with tempfile.TemporaryDirectory(prefix="dragoman-conformance-") as folder:
        is_elsewhere = isinstance(agent, RemoteAgent) and agent.files != "here"
        cwd = _ELSEWHERE if is_elsewhere else folder
        async with Examinee(_start(agent), cwd, patience, exit_seconds, prompts) as examinee:
            for check in checks:
                reached = await _judge(examinee, check)
                report.verdicts.append(reached)
                told(reached)
            await _introduced(examinee, report)
    return report


def _start(agent: AgentCommand | RemoteAgent | Start) -> Start:
    match agent:
        case AgentCommand():
            return partial(WatchedTransport.start, agent)
        case RemoteAgent():
            return way_to(agent)
        case _:
            return agent


async def _judge(examinee: Examinee, check: Check[Examinee]) -> CheckVerdict:
    mark, start = examinee.evidence.mark, time.monotonic()

    def done(outcome: Any, text: str = "", frames: list[str] | None = None) -> CheckVerdict:
        shown = examinee.evidence.text(text) if text else ""
        return verdict(check, outcome, shown, frames or [], time.monotonic() - start)

    try:
        await check.examine(examinee)
    except NotApplicable as reason:
        return done("skip", str(reason))
    except CheckFailed as failed:
        frames = [f"← {examinee.evidence.text(frame)}" for frame in failed.frames]
        shown = frames or examinee.evidence.since(mark)
        # What has gone wrong here must not go wrong again in the next check.
        await examinee.drop()
        return done("fail", str(failed), shown)
    return done("pass")


async def _introduced(examinee: Examinee, report: ConformanceReport) -> None:
    """Note what the agent calls itself."""
    try:
        async with asyncio.timeout(examinee.patience):
            info = obj((await examinee.welcome()).get("agentInfo"))
    except (CheckFailed, TimeoutError):
        return
    report.name = single_line(str(info.get("name") or report.name), _NAME_CHARACTERS)
    report.version = single_line(str(info.get("version") or ""), _NAME_CHARACTERS)

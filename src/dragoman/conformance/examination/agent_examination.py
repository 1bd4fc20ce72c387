"""Examines an agent: goes through the checks one after the other, and reports on each."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from dragoman.conformance.check import Check, CheckFailed, NotApplicable
from dragoman.conformance.examination.agent_words import Prompts
from dragoman.conformance.examination.examinee import Examinee
from dragoman.conformance.examination.verdict import CheckVerdict, ConformanceReport, verdict
from dragoman.conformance.examination.watched_transport import WatchedTransport
from dragoman.conformance.probing.loose_json import obj
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
        async with Examinee(
            way_in(agent), cwd, patience, exit_seconds, prompts, by_line=goes_by_line(agent)
        ) as examinee:
            for check in checks:
                reached = await judge(examinee, check)
                report.verdicts.append(reached)
                told(reached)
            await _introduced(examinee, report)
    return report


def way_in(agent: AgentCommand | RemoteAgent | Start) -> Start:
    """How a connection to it is opened."""
    match agent:
        case AgentCommand():
            return partial(WatchedTransport.start, agent)
        case RemoteAgent():
            return way_to(agent)
        case _:
            return agent


def goes_by_line(agent: AgentCommand | RemoteAgent | Start) -> bool:
    """Whether messages follow each other on one stream."""
    return not isinstance(agent, RemoteAgent) or agent.url.lower().startswith("ws")


async def judge(examinee: Examinee, check: Check[Examinee]) -> CheckVerdict:
    """Make one check."""
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
        info = obj((await examinee.welcome()).get("agentInfo"))
    except CheckFailed:
        return
    report.name = single_line(str(info.get("name") or report.name), _NAME_CHARACTERS)
    report.version = single_line(str(info.get("version") or ""), _NAME_CHARACTERS)

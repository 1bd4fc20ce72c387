"""What is tried, how a trial ends, and the table of it all. Knows no agent and no face."""

from __future__ import annotations

import asyncio
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Literal, TypeAlias

import msgspec

FEATURES = (
    "start",
    "text",
    "thought",
    "write",
    "write_flag",
    "write_unasked",
    "shell",
    "exec_flag",
    "exec_unasked",
    "yolo",
    "rules",
    "undo",
    "rewind",
    "plan",
    "question",
    "mcp",
    "typed",
    "providers",
    "mode",
    "config",
    "commands",
    "list",
    "load",
    "resume",
    "fork",
    "close",
    "delete",
    "rejected",
    "steer",
    "subagents",
    "usage",
    "limit",
    "cancel",
    "failure",
    "killed",
    "always",
    "replay",
    "editor",
    "doctor",
    "exit",
)
FACES = ("library", "command", "server")

Word: TypeAlias = Literal["ok", "not offered", "failed"]
Trial: TypeAlias = Callable[[], Awaitable[str]]
"""Returns a remark, which may be empty; raises NotOffered, or whatever went wrong."""


class NotOffered(Exception):
    """The agent does not do this; the text says how we know."""


class Outcome(msgspec.Struct):
    word: Word
    remark: str = ""


class Result(msgspec.Struct):
    agent: str
    face: str
    feature: str
    outcome: Outcome


async def try_all(
    trials: Mapping[str, Trial], wanted: Collection[str], *, seconds: float, debug: bool
) -> dict[str, Outcome]:
    """The trials of the features that are wanted, in their order, each within its time; none
    without a start."""
    outcomes: dict[str, Outcome] = {}
    for feature in FEATURES:
        if feature not in trials or feature not in {*wanted, "start", "exit"}:
            continue
        outcomes[feature] = await _tried(trials[feature], seconds, debug)
        if feature == "start" and outcomes[feature].word == "failed":
            break
    return outcomes


async def _tried(trial: Trial, seconds: float, debug: bool) -> Outcome:
    try:
        async with asyncio.timeout(seconds):
            return Outcome("ok", await trial())
    except NotOffered as error:
        return Outcome("not offered", str(error))
    except TimeoutError:
        return Outcome("failed", f"nothing came of it in {seconds:.0f} s")
    except Exception as error:
        if debug:
            traceback.print_exception(error)
        return Outcome("failed", f"{type(error).__name__}: {error}"[:500])


_MARKS: dict[Word, str] = {"ok": "ok", "not offered": "-", "failed": "FAILED"}


def summary(results: list[Result]) -> str:
    """How many there are of each outcome, and which failed."""
    counts = Counter(result.outcome.word for result in results)
    failed = [f"{r.feature} [{r.face}]" for r in results if r.outcome.word == "failed"]
    told = [f"{counts[word]} {word}" for word in _MARKS if counts[word]]
    return ", ".join(told) + (f": {', '.join(failed)}" if failed else "")


def table(results: list[Result]) -> str:
    """A row for each agent and feature, a column for each face; below it, what was remarked."""
    rows = [_row(results, agent, feature) for agent in _agents(results) for feature in FEATURES]
    return "\n".join(
        [_line("agent", "feature", *FACES), *filter(None, rows), "", *_remarks(results)]
    )


def _agents(results: list[Result]) -> list[str]:
    return list(dict.fromkeys(result.agent for result in results))


def _row(results: list[Result], agent: str, feature: str) -> str:
    found = {r.face: r.outcome for r in results if (r.agent, r.feature) == (agent, feature)}
    if not found:
        return ""
    marks = [_MARKS[found[face].word] if face in found else "" for face in FACES]
    return _line(agent, feature, *marks)


def _line(*cells: str) -> str:
    return "".join(f"{cell:<14}" for cell in cells).rstrip()


def _remarks(results: list[Result]) -> list[str]:
    """The same remark on several faces is one line; failures come last, where they are seen."""
    faces: dict[tuple[str, str, str, str], list[str]] = {}
    for r in sorted(results, key=lambda result: result.outcome.word == "failed"):
        if r.outcome.remark:
            key = (r.agent, r.feature, _MARKS[r.outcome.word], r.outcome.remark)
            faces.setdefault(key, []).append(r.face)
    return [
        f"{agent} {feature} [{', '.join(where)}] {mark}: {remark}"
        for (agent, feature, mark, remark), where in faces.items()
    ]

"""Races and single attempts for programs, such as evaluations."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from weakref import WeakKeyDictionary

import msgspec

from dragoman.agents.settings.settings_file import AgentSettings, load_settings
from dragoman.errors import DragomanError
from dragoman.host.rules.policy import Policy
from dragoman.hub.assembly import new_hub
from dragoman.hub.hub import Hub
from dragoman.hub.running.settings_launcher import SettingsLauncher
from dragoman.racing.judge import RaceCheck
from dragoman.racing.race import Race, RaceTerms
from dragoman.racing.race_record import CheckRun, Entrant, RaceRecord
from dragoman.racing.race_verdict import fault_of
from dragoman.racing.races import Races
from dragoman.session.facts import FenceMode
from dragoman.session.limits.spending_limits import SessionLimits, SpendingLimit
from dragoman.store.base import Store
from dragoman.store.open import open_default, open_store
from dragoman.transport.stdio import AgentCommand
from dragoman.worktrees.worktrees import Worktrees


class Solution(msgspec.Struct, frozen=True, kw_only=True):
    """What one agent made of a task: whether the check passed, and if not, why; what it changed, as
    a patch; and how it went, with time, tool calls and cost."""

    passed: bool
    reason: str
    patch: str
    entrant: Entrant
    check: CheckRun | None = None


class RaceLauncher(SettingsLauncher):
    """Each entrant has a process of its own: one that crashes takes nobody along."""

    def is_shared(self, agent: str) -> bool:
        return False


async def race(
    task: str,
    agents: Sequence[str | AgentCommand],
    check: str,
    *,
    cwd: str | os.PathLike[str] = ".",
    max_cost: float | None = None,
    max_seconds: float = 1800.0,
    check_seconds: float = 600.0,
    junit: str = "",
    setup: str = "",
    at_once: int = 4,
    uncommitted: bool = False,
    fence: FenceMode = "require",
    reviewer: str | None = None,
    merge: bool = False,
    record: bool = True,
    on_change: Callable[[RaceRecord], None] = lambda _: None,
) -> RaceRecord:
    """Have several agents do one task, each in a worktree of the repository in `cwd`, and judge
    them by a shell command: the `check` runs on each result with the tests of the base.

    An agent is a name (`x:2` enters twice) or a command. Each entrant may use `max_cost` (USD) and
    `max_seconds`; `at_once` run at the same time, in a fence unless that is `off`. `junit` is the
    file that the check writes, if it is not pytest's. With `merge`, the winner is merged into the
    checkout. Without `record`, neither the race nor its sessions are stored. Raises RaceError,
    WorktreeError, FenceError, MergeConflict, and what opening the store raises.
    """
    terms = RaceTerms(
        check=RaceCheck(
            command=check, junit=junit, seconds=check_seconds, fence=fence, setup=setup
        ),
        at_once=at_once,
        seconds=max_seconds,
        limits=_cost_limit(max_cost),
        uncommitted=uncommitted,
        reviewer=reviewer,
    )
    names, own = _named(agents)
    async with racing_hub(own, fence=fence, record=record) as hub:
        kept = Races() if record else None
        run = Race(hub, task, names, terms, folder=os.fspath(cwd), on_change=on_change, races=kept)
        result = await run.run()
        if merge and result.verdict is not None and result.verdict.winner is not None:
            await run.merge()
        return result


async def solve(
    task: str,
    agent: str | AgentCommand,
    check: str,
    *,
    cwd: str | os.PathLike[str] = ".",
    max_cost: float | None = None,
    max_seconds: float = 1800.0,
    check_seconds: float = 600.0,
    junit: str = "",
    setup: str = "",
    uncommitted: bool = False,
    fence: FenceMode = "require",
) -> Solution:
    """Have one agent do a task in a copy of `cwd`, a git checkout or any other folder, and judge it
    by a shell command, as in a race. Nothing is stored, and `cwd` stays as it is.

    Call it as often as you like at once: each event loop runs some at a time, and the others wait.
    Raises WorktreeError, FenceError and UnknownAgent; what the agent does wrong is the `reason`.
    """
    terms = RaceTerms(
        check=RaceCheck(
            command=check, junit=junit, seconds=check_seconds, fence=fence, setup=setup
        ),
        seconds=max_seconds,
        limits=_cost_limit(max_cost),
        uncommitted=uncommitted,
        baseline=False,
        plain=True,
    )
    names, own = _named([agent])
    async with _room(), racing_hub(own, fence=fence, record=False) as hub:
        worktrees = Worktrees()
        run = Race(hub, task, names, terms, folder=os.fspath(cwd), worktrees=worktrees)
        await run.run()
        try:
            return await _solution(run.record, worktrees)
        finally:
            await _cleared(run.record, worktrees)


async def _solution(record: RaceRecord, worktrees: Worktrees) -> Solution:
    [entrant] = record.entrants
    fault = fault_of(entrant, record.baseline)
    patch = ""
    if entrant.worktree is not None:
        patch = await worktrees.opened(worktrees.find(entrant.worktree)).diff()
    return Solution(
        passed=not fault,
        reason=fault or "passed",
        patch=patch,
        entrant=entrant,
        check=entrant.check,
    )


async def _cleared(record: RaceRecord, worktrees: Worktrees) -> None:
    for each in worktrees.all():
        if each.race == record.id:
            with suppress(DragomanError):
                await worktrees.remove(each, force=True)


# ── what they run in ────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def racing_hub(
    own: dict[str, AgentSettings],
    *,
    fence: FenceMode,
    record: bool,
    settings: str | None = None,
) -> AsyncGenerator[Hub]:
    """A hub that asks nobody, for these agents and those of the settings. Raises StoreError and
    ConfigError."""
    given = load_settings(settings)
    given = msgspec.structs.replace(given, agents={**given.agents, **own})
    store: Store = await (open_default() if record else open_store(None))
    try:
        rules = Policy(yolo=True, stored=store.rules)
        launcher = RaceLauncher(lambda: given, rules, fence=fence)
        async with new_hub(store, launcher, attended=False, tracks_agents=record) as hub:
            yield hub
    finally:
        await store.aclose()


def _named(agents: Sequence[str | AgentCommand]) -> tuple[list[str], dict[str, AgentSettings]]:
    """Commands by the name of their program, with a number if there are several."""
    names: list[str] = []
    own: dict[str, AgentSettings] = {}
    for agent in agents:
        if isinstance(agent, str):
            names.append(agent)
            continue
        name = program = os.path.basename(agent.command)
        while name in own and own[name].command != agent:
            name = f"{program}-{len(own) + 1}"
        own[name] = AgentSettings(name=name, command=agent)
        names.append(name)
    return names, own


def _cost_limit(most: float | None) -> SessionLimits:
    if most is None:
        return SessionLimits()
    return SessionLimits(limits=(SpendingLimit(measure="cost", most=most, source="max_cost"),))


_AT_ONCE = 8
"""Attempts for each processor: agents mostly wait for their model."""
_rooms: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


def _room() -> asyncio.Semaphore:
    """Of this event loop."""
    loop = asyncio.get_running_loop()
    if loop not in _rooms:
        _rooms[loop] = asyncio.Semaphore(_AT_ONCE * (os.cpu_count() or 1))
    return _rooms[loop]

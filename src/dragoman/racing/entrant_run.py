"""Runs one entrant: a session of its agent in its worktree, within its limits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from dragoman.client.sessions.turn import Turn
from dragoman.errors import DragomanError
from dragoman.hub.hub import Hub
from dragoman.hub.running.running_session import RunningSession
from dragoman.hub.stored.spent import spent_by
from dragoman.racing.race_record import Entrant, Outcome
from dragoman.session.limits.model_prices import all_prices
from dragoman.session.limits.prices import Prices
from dragoman.session.limits.spending_limits import SessionLimits
from dragoman.session.state import ToolCall

_LOOK_SECONDS = 0.5


class EntrantRun:
    """One turn of one agent. `on_change` is called when there is something new to show."""

    def __init__(
        self,
        hub: Hub,
        entrant: Entrant,
        *,
        seconds: float,
        limits: SessionLimits,
        prices: Prices,
        on_change: Callable[[], None],
    ) -> None:
        self._hub = hub
        self._entrant = entrant
        self._seconds = seconds
        self._limits = limits
        self._prices = all_prices(prices)
        self._on_change = on_change

    async def run(self, folder: str, task: str, name: str) -> None:
        """To its end, whatever that is; the entrant says which."""
        entrant, began = self._entrant, time.monotonic()
        entrant.began_at = time.time()
        live: RunningSession | None = None
        try:
            async with asyncio.timeout(self._seconds):
                live = await self._hub.create(entrant.agent, folder, limits=self._limits)
                entrant.session = live.id
                await self._turn(live, task, began)
        except TimeoutError:
            self._ended("timeout", f"no end after {self._seconds:g} s")
        except DragomanError as error:
            self._ended("failed", str(error).partition("\n")[0])
        except asyncio.CancelledError:
            self._ended("cancelled", "")
            raise
        finally:
            entrant.seconds = round(time.monotonic() - began, 3)
            if live is not None:
                await self._closed(live)

    async def _turn(self, live: RunningSession, task: str, began: float) -> None:
        turn = await live.prompt(task)
        ended = asyncio.ensure_future(_end(turn))
        try:
            while not (await asyncio.wait([ended], timeout=_LOOK_SECONDS))[0]:
                self._look(live, began)
            ended.result()
        finally:
            ended.cancel()
            self._look(live, began)
        if turn.limit is not None and turn.limit.limit.ends_turn:
            self._ended("limit", turn.limit.text)
        elif turn.stop_reason == "cancelled":
            self._ended("cancelled", "")
        elif turn.stop_reason not in (None, "end_turn"):
            self._ended("ended_early", turn.stop_reason)
        else:
            self._ended("completed", "")

    def _look(self, live: RunningSession, began: float) -> None:
        entrant = self._entrant
        entrant.tool_calls = sum(isinstance(each, ToolCall) for each in live.state.entries)
        entrant.seconds = round(time.monotonic() - began, 1)
        self._on_change()

    def _ended(self, outcome: Outcome, detail: str) -> None:
        self._entrant.outcome, self._entrant.detail = outcome, detail

    async def _closed(self, live: RunningSession) -> None:
        """The agent is ended, since it may hang, and what it used is counted."""
        if self._entrant.outcome in ("timeout", "cancelled"):
            await live.agent.client.kill("its time is over")
        await self._hub.detach(live)
        record = await self._hub.record(live.id)
        spent = await spent_by(self._hub.store, record, self._prices)
        self._entrant.cost = spent.cost
        self._entrant.tokens = None if spent.tokens is None else spent.tokens.total


async def _end(turn: Turn) -> None:
    """Raises what cut it short."""
    await turn

"""`dragoman --output-schema FILE "…"`: one turn, and as many more as it takes to a valid result."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from dragoman.cli.commands.run import Run
from dragoman.cli.exit_codes import Exit
from dragoman.cli.render.printed_json import json_line
from dragoman.cli.render.view import AnswerView
from dragoman.cli.run.follower import Follower
from dragoman.cli.run.hub_access import Meant, meant_by
from dragoman.cli.run.interrupts import Interrupts
from dragoman.cli.run.job import Job
from dragoman.client.client import Client
from dragoman.client.sessions.turn import Turn
from dragoman.hub.hub import Hub
from dragoman.hub.running.running_session import RunningSession
from dragoman.results.wanted_result import WantedResult
from dragoman.session.content import Content, Text

if TYPE_CHECKING:
    from dragoman.client.asking.result_tool import ResultTool

_JUDGED = (Exit.DONE, Exit.REFUSED, Exit.ENDED_EARLY)
"""How a turn may end whose answer is looked at. Anything else says more than a missing result."""


class TypedRun(Run):
    """Prints the result, and nothing else on standard output."""

    def __init__(self, job: Job, wanted: WantedResult[Any]) -> None:
        super().__init__(job, "answers")
        self._wanted = wanted
        self._here_in: tuple[RunningSession, Interrupts] | None = None

    async def run(self) -> int:
        code = await super().run()
        if code not in _JUDGED:
            return code
        if not self._wanted.found:
            self._tell(self._wanted.failure)
            return Exit.REFUSED if code == Exit.REFUSED else Exit.NO_RESULT
        sys.stdout.buffer.write(json_line(self._wanted.json) + b"\n")
        return code

    def _mentioning(self) -> list[Content]:
        """What was typed, and after it what the answer has to be."""
        text, *others = super()._mentioning()
        return [text, Text(self._wanted.instructions(by_tool=True)), *others]

    async def _turn_of(
        self,
        hub: Hub,
        client: Client,
        live: RunningSession,
        follower: Follower,
        interrupts: Interrupts,
        queued_as: str,
    ) -> int:
        self._here_in = live, interrupts
        return await super()._turn_of(hub, client, live, follower, interrupts, queued_as)

    async def _turn(
        self, client: Client, turn: Turn, follower: Follower, *, by_us: Callable[[], bool]
    ) -> int:
        """This turn, and those that correct its result."""
        assert self._here_in is not None
        live, interrupts = self._here_in
        tool = cast("ResultTool", self._job.result_tool)
        with tool.desk.taking(self._wanted, live.session) as in_turn:
            while True:
                in_turn(turn.id)
                code = await super()._turn(client, turn, follower, by_us=by_us)
                if self._wanted.is_given_up and code == Exit.CANCELLED and not by_us():
                    return Exit.DONE  # it was we who stopped it
                if (following := self._correction(code)) is None:
                    return code
                turn = await live.prompt(following)
                interrupts.turn_of(turn)

    async def _elsewhere(self, hub: Hub, meant: Meant, interrupts: Interrupts) -> int:
        """In the process that runs the session, which has no tool for us."""
        code = await super()._elsewhere(hub, meant, interrupts)
        while (following := self._correction(code)) is not None:
            self._prompt = following
            code = await super()._elsewhere(hub, await meant_by(hub, self._job), interrupts)
        return code

    def _correction(self, code: int) -> list[Content] | None:
        """The next prompt, if the turn had no valid result and the agent may try again."""
        if code not in _JUDGED or self._wanted.find(cast("AnswerView", self._console.view).answer):
            return None
        return None if self._wanted.is_given_up else [Text(self._wanted.correction(by_tool=True))]

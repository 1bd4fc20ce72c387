"""What the faces have in common: what is tried, with which prompts, and what must come of it."""

from __future__ import annotations

from pathlib import Path

from agent_trials.features import FEATURES, NotOffered, Trial
from agent_trials.lab import LabAgent
from agent_trials.learned import Learned
from agent_trials.marked import Mark
from agent_trials.turns import a_moment, contents

_REMEMBERED = "remembered"
STEER = "Please:\nsay:steered"
"""A directive in a line of its own: some agents put words before what is said."""
_AGAIN = "and the same again, please"
"""No directive: the stand-in plays the last one it received, if the agent remembers it."""
_HARMLESS = ("help", "about", "status", "version", "usage", "context", "tools", "mcp")
"""Commands that an agent may have and that change nothing."""
_TRIES = "it tries again by itself for minutes before it reports anything"
_NO_LIMITS = {
    "gemini": _TRIES,
    "kimicode": "its turn ends as if it had answered",
    "opencode": "it tries again by itself, until its provider takes the request",
    "qwen": _TRIES,
}
"""Agents that do not report a provider which takes no more, or only after minutes."""


class Face:
    """A trial is a method that has the name of its feature."""

    def __init__(
        self, agent: LabAgent, workspace: Path, home: Path, mark: Mark, learned: Learned
    ) -> None:
        self._agent = agent
        self._workspace = workspace
        self._home = home
        self._mark = mark
        self._learned = learned

    def trials(self) -> dict[str, Trial]:
        return {name: getattr(self, name) for name in FEATURES if hasattr(self, name)}

    # ── what to ask for; NotOffered where the agent does not do it ────────────────────────────

    def _prompt(self, kind: str) -> str:
        if kind not in self._agent.prompts:
            raise NotOffered(f"the agent has no way to {kind}")
        return self._agent.prompts[kind]

    def _slow_prompt(self) -> str:
        """It leaves time to do something in the middle of the turn."""
        if self._agent.slow is None:
            raise NotOffered("the agent's turns end at once")
        return self._agent.slow

    def _working_prompt(self) -> str:
        """A command that leaves `_at_work` at once, and `_ran` after a while."""
        for file in (self._at_work, self._ran):
            file.unlink(missing_ok=True)
        if not self._agent.has_model:
            raise NotOffered("the agent has no model")
        return self._prompt("shell").replace("echo SHELL &&", "touch c.md && sleep 4 &&")

    def _require_limits(self) -> None:
        if not self._agent.has_model:
            raise NotOffered("the agent has no model")
        if reason := _NO_LIMITS.get(self._agent.name):
            raise NotOffered(reason)

    def _counting_prompt(self) -> str:
        """A command that adds a line to `_at_work` each time it runs, and leaves `_ran`."""
        for file in (self._at_work, self._ran):
            file.unlink(missing_ok=True)
        return self._prompt("shell").replace("echo SHELL &&", "echo once >> c.md &&")

    def _failing_prompt(self) -> str:
        if not self._agent.has_model:
            raise NotOffered("the agent has no model")
        return "fail:400"

    def _refused_prompt(self) -> str:
        """It asks for permission to write `_written`."""
        return self._prompt("write" if self._agent.has_model else "say")

    def _harmless(self, names: list[str]) -> str | None:
        """A command to call, of those that the agent lists."""
        self._learned.require_seen("available_commands_update", "the agent has no commands")
        if not names:
            raise NotOffered("the agent's list of commands is empty")
        return next((name for name in _HARMLESS if name in names), None)

    # ── what must come of it ──────────────────────────────────────────────────────────────────

    @property
    def _written(self) -> Path:
        return self._workspace / "a.txt"

    def _unwritten(self) -> Path:
        """The file of the prompt `write`, gone."""
        self._written.unlink(missing_ok=True)
        return self._written

    def _assert_written(self) -> None:
        assert self._written.read_text() == "AAA\n"

    @property
    def _ran(self) -> Path:
        """What the prompt `shell` leaves."""
        return self._workspace / "b.md"

    @property
    def _at_work(self) -> Path:
        """What `_working_prompt` leaves at once, and `_counting_prompt` too."""
        return self._workspace / "c.md"

    async def _works(self) -> None:
        """Wait until a command of `_working_prompt` runs."""
        while not self._at_work.exists():
            await a_moment()
        assert not self._ran.exists(), "it was over before it could be steered"

    def _assert_ran(self) -> None:
        assert self._ran.exists()

    def _assert_told(self, told: set[str], before: dict[str, object]) -> None:
        """Every file that is not as before is among them, and no other."""
        after = contents(self._workspace)
        differing = {path for path in {*before, *after} if before.get(path) != after.get(path)}
        assert told == differing, f"seen: {sorted(told)}, there: {sorted(differing)}"

    def _assert_ran_once(self, *, is_repeated: bool) -> str:
        """A prompt that is sent again may be in the agent's memory twice: the stand-in then does
        what it says twice."""
        self._assert_ran()
        times = self._at_work.read_text().count("once")
        assert times == 1 or (times == 2 and is_repeated), f"it ran {times} times"
        return "" if times == 1 else ", which its model sees twice"

    # ── memory ────────────────────────────────────────────────────────────────────────────────

    @property
    def _memorable(self) -> str:
        """To be asked of a session that one comes back to."""
        return f"say:{_REMEMBERED}" if self._agent.has_model else self._agent.prompts["say"]

    @property
    def _again(self) -> str:
        """To be asked later; an agent that remembers answers with `_remembered`."""
        return _AGAIN if self._agent.has_model else self._agent.prompts["say"]

    @property
    def _remembered(self) -> str:
        """Nothing if it is unknown."""
        return _REMEMBERED if self._agent.has_model else ""

    @property
    def _reopens(self) -> bool:
        """Whether a session can be continued in another process of the agent."""
        return self._learned.capabilities.load or self._learned.capabilities.resume

"""Asking a session for a result: its prompt, and as many more as it takes until one is valid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from dragoman.client.asking.result_tool import ResultDesk, desk_in
from dragoman.client.sessions.prompts import PromptInput, find_mentions
from dragoman.errors import NoResult
from dragoman.public_face import PublicFace
from dragoman.results.result_type import result_type
from dragoman.results.wanted_result import RETRIES, WantedResult
from dragoman.session.content import Text

if TYPE_CHECKING:
    from dragoman.client.sessions.session import Session
    from dragoman.client.sessions.turn import Turn

T = TypeVar("T")

_WORTH_ANOTHER = frozenset({None, "end_turn", "max_tokens"})
"""How a turn may end after which the agent may try again."""


class Askable(PublicFace):
    """What of a session asks for results."""

    @overload
    async def ask(
        self,
        prompt: PromptInput,
        *,
        output: type[T],
        retries: int = RETRIES,
        timeout: float | None = None,
        meta: dict[str, Any] | None = None,
    ) -> T: ...
    @overload
    async def ask(
        self,
        prompt: PromptInput,
        *,
        output: Mapping[str, Any],
        retries: int = RETRIES,
        timeout: float | None = None,
        meta: dict[str, Any] | None = None,
    ) -> Any: ...
    @overload
    async def ask(
        self,
        prompt: PromptInput,
        *,
        timeout: float | None = None,
        meta: dict[str, Any] | None = None,
    ) -> str: ...
    async def ask(
        self,
        prompt: PromptInput,
        *,
        output: type[Any] | Mapping[str, Any] | None = None,
        retries: int = RETRIES,
        timeout: float | None = None,
        meta: dict[str, Any] | None = None,
    ) -> Any:
        """Send a prompt and return the agent's answer as a value of the type `output`: a msgspec
        struct, a dataclass, a TypedDict, a model of pydantic, or anything else that msgspec reads;
        or as JSON that fits a JSON schema. Without `output`, return the text of the answer.

        In a session that was opened with `results`, the agent submits the result with a tool;
        otherwise it is taken from the last fenced code block of the answer. If it is not valid, the
        agent reads why, and may try again up to `retries` times.

        Raises NoResult if no valid one came, TypeError or ValueError for an `output` that cannot be
        the type of a result, and what `prompt` and awaiting a turn raise.
        """
        session = cast("Session", self)
        if output is None:
            return (await session.prompt(prompt, timeout=timeout, meta=meta)).text
        wanted = WantedResult[Any](result_type(output), retries)
        return await _Asking(session, wanted, timeout, meta).result(prompt)


class _Asking:
    """One result, wanted of one session."""

    def __init__(
        self,
        session: Session,
        wanted: WantedResult[Any],
        timeout: float | None,
        meta: dict[str, Any] | None,
    ) -> None:
        self._session = session
        self._wanted = wanted
        self._timeout = timeout
        self._meta = meta
        desk = desk_in(session.place)
        self._by_tool = desk is not None and desk.suits(wanted)
        self._desk = desk if desk is not None and self._by_tool else ResultDesk({})

    async def result(self, prompt: PromptInput) -> Any:
        wanted = self._wanted
        with self._desk.taking(wanted, self._session) as in_turn:
            self._in_turn = in_turn
            turn = await self._turn(self._with_instructions(prompt))
            while not wanted.find(turn.text):
                if wanted.is_given_up or turn.stop_reason not in _WORTH_ANOTHER:
                    raise NoResult(self._session.id, self._why(turn), wanted.problems)
                turn = await self._turn(Text(wanted.correction(by_tool=self._by_tool)))
        return wanted.found[-1]

    def _with_instructions(self, prompt: PromptInput) -> PromptInput:
        words = Text(self._wanted.instructions(by_tool=self._by_tool))
        if isinstance(prompt, str):
            # Only what was typed mentions files: a schema may have an @ of its own.
            return [Text(prompt), words, *find_mentions(prompt, self._session.cwd).links]
        parts = prompt if isinstance(prompt, list | tuple) else [cast("Any", prompt)]
        return [*parts, words]

    def _why(self, turn: Turn) -> str:
        if self._wanted.is_given_up or turn.stop_reason in _WORTH_ANOTHER:
            return self._wanted.failure
        return f"the turn ended with {turn.stop_reason}, and without a valid result"

    async def _turn(self, prompt: PromptInput) -> Turn:
        """The turn of this prompt at its end, or that of its last try if limits came between."""
        turn: Turn | None = self._session.prompt(prompt, timeout=self._timeout, meta=self._meta)
        while turn is not None:
            self._in_turn(turn.id)
            await turn
            if turn.parked is None:
                return turn
            turn = await self._session.parking.continued(turn)
        raise NoResult(self._session.id, _DROPPED, self._wanted.problems)


_DROPPED = "the prompt was parked at a limit of the agent's provider, and dropped there"

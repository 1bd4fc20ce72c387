"""One result that a program waits for: what the agent reads, what it gave, and what was wrong.

Knows no session: the library and the command line send the prompts in their own ways.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar, cast

import msgspec

from dragoman.results.answer_text import json_in
from dragoman.results.json_schema import Schema, as_property
from dragoman.results.result_type import InvalidResult, ResultType

T = TypeVar("T")

TOOL = "submit_result"
SERVER = "dragoman"
"""The name of the MCP server that has the tool."""
RETRIES = 2
_FIELD = "result"


class WantedResult(Generic[T]):
    """`retries` is how often the agent may try again after something that was not valid. What the
    type accepted is in `found`, the newest last, and nothing else is."""

    def __init__(self, wanted: ResultType[T], retries: int = RETRIES) -> None:
        if retries < 0:
            raise ValueError(f"retries must not be negative, and is {retries}")
        self.type = wanted
        self.found: list[T] = []
        self.json = b""
        """Of the newest, as the agent wrote it."""
        self.problems: list[str] = []
        """What was wrong with each that was not valid."""
        self._retries = retries

    @property
    def is_given_up(self) -> bool:
        """Whether the agent may not try again."""
        return not self.found and len(self.problems) > self._retries

    # ── what the agent gives ──────────────────────────────────────────────────────────────────

    def submit(self, arguments: object) -> None:
        """Take what the tool was called with. Raises InvalidResult, after the last try in any
        case."""
        if self.is_given_up:
            raise InvalidResult(self.problems[-1])
        first: InvalidResult | None = None
        for data in _meant(arguments):
            try:
                self._take(data)
            except InvalidResult as error:
                first = first or error
            else:
                return
        self._refuse(first or InvalidResult(f"the argument {_FIELD!r} is missing"))

    def find(self, text: str) -> bool:
        """Take what a turn's answer has, unless something was submitted; whether there is a result
        now."""
        if self.found or self.is_given_up:
            return bool(self.found)
        data = json_in(text)
        try:
            if data is None:
                self._refuse(InvalidResult("the answer has no JSON in a fenced code block"))
            else:
                self._take_text(data)
        except InvalidResult:
            return False
        return True

    def _take_text(self, text: str) -> None:
        try:
            self._take(text.encode("utf-8", "replace"))
        except InvalidResult as error:
            self._refuse(error)

    def _take(self, data: bytes) -> None:
        self.found.append(self.type.read(data))
        self.json = data

    def _refuse(self, error: InvalidResult) -> None:
        self.problems.append(str(error))
        raise error

    # ── what the agent reads ─────────────────────────────────────────────────────────────────

    def instructions(self, *, by_tool: bool) -> str:
        """What is added to the prompt. It has no fenced block: an agent may repeat it."""
        schema = msgspec.json.encode(self.type.schema).decode()
        return f"\n\n{_BY_TOOL if by_tool else _BY_TEXT} It must fit this JSON schema: {schema}"

    def correction(self, *, by_tool: bool) -> str:
        """The prompt after a turn without a valid result."""
        how = _BY_TOOL if by_tool else _BY_TEXT
        return f"Your result was not valid: {self.problems[-1]}\n\n{how}"

    @property
    def failure(self) -> str:
        """Why there is no result, as a sentence."""
        tries = len(self.problems)
        if not tries:
            return "the agent gave no result"
        count = "1 try" if tries == 1 else f"{tries} tries"
        return f"the agent gave no valid result in {count}: {self.problems[-1]}"


_BY_TEXT = (
    "End your answer with the whole result, as JSON in one fenced code block with three backticks, "
    "and write nothing after it."
)
_BY_TOOL = (
    f"When you are done, call the tool {TOOL} of the MCP server {SERVER} with your result, and "
    "then end your turn. If you cannot call it, end your answer with the result, as JSON in one "
    "fenced code block."
)


def tool_of(schema: Schema) -> dict[str, Any]:
    """The tool as MCP lists it; the schema is that of the result."""
    return {
        "name": TOOL,
        "title": "Submit the result",
        "description": (
            "Submits the result that the prompt asks for. It is checked at once: if it is not "
            "valid, the reply says why, and you can submit it again."
        ),
        "inputSchema": as_property(_FIELD, schema),
    }


def _meant(arguments: object) -> Iterator[bytes]:
    """What a call of the tool may mean, as JSON: models leave the argument's name out, or write the
    result as a text."""
    if not isinstance(arguments, Mapping):
        return
    named = cast("Mapping[str, object]", arguments)
    result = named.get(_FIELD, named)
    if result or _FIELD in named:
        yield msgspec.json.encode(result)
    if isinstance(result, str):
        yield result.encode("utf-8", "replace")
    if result is not named:
        yield msgspec.json.encode(named)

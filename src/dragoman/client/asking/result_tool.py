"""The tool with which an agent submits a result: an MCP server of this process, one per session."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from dragoman.client.mcp import InProcessServer
from dragoman.errors import InvalidParams, MethodNotFound
from dragoman.results.result_type import InvalidResult, result_type
from dragoman.results.wanted_result import SERVER, TOOL, WantedResult, tool_of

if TYPE_CHECKING:
    from dragoman.client.dialects.dialect import Place
    from dragoman.client.sessions.turn import Turn

_ACCEPTED = "The result was accepted. End your turn now; nothing else is needed."
_UNWANTED = "Nobody waits for a result now."
_NO_MORE = "That was the last try."


class Submitting(Protocol):
    """The session whose agent submits."""

    @property
    def running(self) -> Turn | None: ...

    def stop_turn(self, turn: Turn) -> None: ...


class ResultDesk:
    """Takes what the agent of one session submits, for the turn that runs. `schema` is what the
    agent reads about all results of the session; an empty one says nothing."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema
        self._wanted: dict[str, tuple[Submitting, WantedResult[Any]]] = {}

    @contextmanager
    def taking(
        self, wanted: WantedResult[Any], session: Submitting
    ) -> Generator[Callable[[str], None]]:
        """While this lasts, what is submitted in the turns it is called with is for this."""
        turns: list[str] = []

        def in_turn(turn_id: str) -> None:
            turns.append(turn_id)
            self._wanted[turn_id] = session, wanted

        try:
            yield in_turn
        finally:
            for turn_id in turns:
                del self._wanted[turn_id]

    def suits(self, wanted: WantedResult[Any]) -> bool:
        """Whether the agent reads nothing else about results."""
        return self.schema in ({}, wanted.type.schema)

    async def answer(self, method: str, params: dict[str, Any] | None) -> dict[str, Any]:
        """Serve MCP. Raises MethodNotFound, InvalidParams."""
        given = params or {}
        match method:
            case "tools/list":
                return {"tools": [tool_of(self.schema)]}
            case "tools/call" if given.get("name") == TOOL:
                return self._called(given.get("arguments"))
            case "tools/call":
                raise InvalidParams(f"the only tool is {TOOL}")
            case _:
                raise MethodNotFound(method)

    def _called(self, arguments: object) -> dict[str, Any]:
        for turn_id, (session, wanted) in self._wanted.items():
            turn = session.running
            if turn is not None and turn.id == turn_id:
                return _submitted(arguments, wanted, session, turn)
        return _reply(_UNWANTED, failed=True)


def _submitted(
    arguments: object, wanted: WantedResult[Any], session: Submitting, turn: Turn
) -> dict[str, Any]:
    try:
        wanted.submit(arguments)
    except InvalidResult as error:
        words = f"The result is not valid: {error}"
        if not wanted.is_given_up:
            return _reply(words, failed=True)
        session.stop_turn(turn)
        return _reply(f"{words}\n{_NO_MORE}", failed=True)
    return _reply(_ACCEPTED)


def _reply(text: str, *, failed: bool = False) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": failed}


class ResultTool(InProcessServer, kw_only=True):
    """The MCP server with the tool."""

    desk: ResultDesk


def result_tool(results: bool | type[Any] | Mapping[str, Any]) -> ResultTool:
    """For sessions whose results are of this type; True for any. Raises TypeError and ValueError
    for what cannot be the type of a result."""
    desk = ResultDesk({} if isinstance(results, bool) else result_type(results).schema)
    server_id = f"{SERVER}-{os.urandom(8).hex()}"
    return ResultTool(name=SERVER, id=server_id, handle=desk.answer, desk=desk)


def desk_in(place: Place) -> ResultDesk | None:
    """That of a session there, if its agent has the tool."""
    tools = (each for each in place.mcp_servers if isinstance(each, ResultTool))
    return next((tool.desk for tool in tools), None)

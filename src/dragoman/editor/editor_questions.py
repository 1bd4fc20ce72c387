"""Asks an editor what its session waits for. The first answer of any window wins.

A question that was settled elsewhere, by a person or a rule, is withdrawn from the editor.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

import msgspec

from dragoman.editor.link import EditorLink
from dragoman.errors import DragomanError, InvalidMessage, RemoteError
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.session.state import Pending, PendingPermission, SessionState

logger = logging.getLogger("dragoman.editor")


class Wording(Protocol):
    """How questions and answers read in a version of the protocol."""

    def question(
        self, session_id: str, asked: Pending, state: SessionState
    ) -> tuple[str, Any] | None:
        """The method and its parameters; None for what the editor cannot ask."""
        ...

    def reply(self, asked: Pending, raw: msgspec.Raw) -> c.Command:
        """What the editor answers. Raises InvalidMessage."""
        ...


class EditorQuestions:
    """The questions of one session that are open in one editor."""

    def __init__(self, hub: Hub, session_id: str, link: EditorLink, wording: Wording) -> None:
        self.must_answer: Callable[[], bool] = bool
        """Whether the turn is the editor's: then a question that it cannot ask is refused."""
        self._hub = hub
        self._session_id = session_id
        self._link = link
        self._wording = wording
        self._asking: dict[str, asyncio.Task[None]] = {}

    def ask(self, state: SessionState) -> None:
        """Ask what is open, and withdraw what no longer is."""
        for settled in self._asking.keys() - state.pending.keys():
            self._asking.pop(settled).cancel()
        for key, asked in state.pending.items():
            is_another = isinstance(asked, PendingPermission) and asked.same_as in state.pending
            if key not in self._asking and not is_another:
                question = self._wording.question(self._session_id, asked, state)
                if question is not None:
                    self._asking[key] = asyncio.create_task(self._ask(asked, *question))

    def close(self) -> None:
        """Withdraw what is open."""
        for task in self._asking.values():
            task.cancel()
        self._asking.clear()

    async def _ask(self, asked: Pending, method: str, params: Any) -> None:
        """Other windows can still answer what the editor does not, unless it started the turn."""
        try:
            answer = self._wording.reply(asked, await self._link.call(method, params))
        except (RemoteError, InvalidMessage) as error:
            logger.warning("question %s was not answered in the editor: %s", asked.id, error)
            if not self.must_answer():
                return
            answer = _refusal(asked)
        except DragomanError:
            return  # the editor has gone
        with suppress(DragomanError):  # another window was quicker
            await self._hub.send(self._session_id, answer, opens=False)


def _refusal(asked: Pending) -> c.Command:
    if isinstance(asked, PendingPermission):
        return c.AnswerPermission(asked.id, None)
    return c.AnswerElicitation(asked.id, "cancel")

"""Permission requests: their words, who can answer, and the questions that are pending.

What needs asking is decided by the rules; that every request is settled exactly once is up to
`Consent`. A provider only puts the question to a person and returns the answer.

An answer by id, a provider that asked someone, a cancel, the end of the connection: each tries, the
first one counts, the rest find nothing to settle. What an answer leads to happens at once, not when
the one who asked is next awake: nothing can come between.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from dragoman.host.rules.policy import NO_RULE, PolicyDecision
from dragoman.session import facts
from dragoman.session.facts import Decision, PermissionQuestion
from dragoman.session.state_limits import MIB


# Structs may be frozen whatever their base is: this one is nobody's to change once it is asked.
class PermissionRequest(
    PermissionQuestion,
    kw_only=True,
    frozen=True,  # pyright: ignore[reportGeneralTypeIssues]
):
    """A question to put to someone: a frozen picture of what will happen if it is allowed.

    `argv` and `paths` are what we will run or touch ourselves, or what the agent claims when
    `claimed` is true; `title` is the agent's wording and proves nothing.
    """

    session_id: str
    agent: str
    meta: dict[str, Any] | None = None
    """The `_meta` of the agent's request; it proves nothing."""


class Earlier(msgspec.Struct, kw_only=True, frozen=True):
    """What the agent said of a tool call before it asked: the request may say less instead."""

    kind: str = "other"
    inputs: tuple[Any, ...] = ()
    diff_paths: tuple[str, ...] = ()
    title: str = ""


NOTHING_EARLIER = Earlier()


class Subject(msgspec.Struct, kw_only=True, frozen=True):
    """What a request of the agent says by itself, apart from the tool call it may be about.

    A `command` is what the agent wants to run itself, in `cwd`.
    """

    title: str = ""
    explanation: str | None = None
    command: str | None = None
    cwd: str | None = None
    tool_call_id: str | None = None
    meta: dict[str, Any] | None = None
    earlier: Earlier = NOTHING_EARLIER
    parent_call: str | None = None
    """The tool call whose subagent asks, if the agent says so in `_meta` alone."""


NO_SUBJECT = Subject()


class PermissionAnswer(msgspec.Struct, frozen=True):
    """How a request was settled; `option_id` is None if it was cancelled."""

    option_id: str | None
    decision: Decision


class PermissionsProvider(Protocol):
    """Asks someone. There is no time limit, unless `Timeouts.question` sets one."""

    async def request_permission(self, request: PermissionRequest) -> str | None:
        """The id of the chosen option; None to refuse."""
        ...


Answer = TypeVar("Answer")
Outcome = TypeVar("Outcome")

logger = logging.getLogger("dragoman.host")


MOST_OPEN = 64
"""Questions that wait at the same time: no person looks through more."""
MOST_WEIGHT = 16 * MIB
"""What they weigh together; a single one may weigh more."""
NO_ROOM = f"{MOST_OPEN} questions, or {MOST_WEIGHT // MIB} MiB of them, already wait for an answer"


class Room:
    """For the questions of one session that wait, whatever they are about."""

    def __init__(self) -> None:
        self._weights: dict[str, int] = {}

    def has(self, weight: int) -> bool:
        """Whether there is room for a question of this weight."""
        open_ = self._weights
        return len(open_) < MOST_OPEN and (not open_ or sum(open_.values()) + weight <= MOST_WEIGHT)

    def take(self, question_id: str, weight: int) -> bool:
        """Whether there is room for it; then it is taken until it is left."""
        if not self.has(weight):
            return False
        self._weights[question_id] = weight
        return True

    def leave(self, question_id: str) -> None:
        self._weights.pop(question_id, None)


class _Question(msgspec.Struct, Generic[Answer, Outcome]):
    settled: Callable[[Answer], Outcome]
    future: asyncio.Future[Outcome]


class Questions(Generic[Answer, Outcome]):
    """Open questions by id.

    `withdrawn` is the answer when the one who asked goes away; `failed` gives one when the provider
    fails. With a `limit` in seconds, `late` (else `withdrawn`) is the answer once it is over.
    """

    def __init__(
        self,
        prefix: str,
        *,
        withdrawn: Answer,
        failed: Callable[[BaseException], Answer],
        late: Answer | None = None,
        limit: float | None = None,
    ) -> None:
        self._prefix = prefix
        self._late = withdrawn if late is None else late
        self._limit = limit
        self._withdrawn = withdrawn
        self._failed = failed
        self._open: dict[str, _Question[Answer, Outcome]] = {}

    def __contains__(self, question_id: str) -> bool:
        return question_id in self._open

    def new_id(self) -> str:
        """Never used before: an answer that comes late must not fit another question."""
        return f"{self._prefix}{os.urandom(8).hex()}"

    async def ask(
        self,
        question_id: str,
        settled: Callable[[Answer], Outcome],
        asking: Coroutine[Any, Any, Answer] | None,
    ) -> Outcome:
        """Wait for the first answer: from `asking`, if there is someone to ask, or by `settle`.

        `settled` is called with it, once; what it returns is the outcome.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()
        self._open[question_id] = _Question(settled, future)
        limit = self._limit
        timer = (
            None if limit is None else loop.call_later(limit, self.settle, question_id, self._late)
        )
        asker = None if asking is None else asyncio.ensure_future(asking)
        if asker is not None:
            asker.add_done_callback(lambda task: self._asked(question_id, task))
        try:
            return await future
        finally:
            self.settle(question_id, self._withdrawn)
            if timer is not None:
                timer.cancel()
            if asker is not None:
                asker.cancel()

    async def until_settled(self, question_id: str) -> None:
        """Wait until it is no longer open."""
        if (question := self._open.get(question_id)) is not None:
            await asyncio.wait([question.future])

    def settle(self, question_id: str, answer: Answer) -> bool:
        """Whether this was the answer that counted."""
        question = self._open.pop(question_id, None)
        if question is None:
            return False
        try:
            outcome = question.settled(answer)
        except Exception as error:
            # Nobody can settle it: the asker must not wait forever.
            if question.future.done():
                raise
            question.future.set_exception(error)
        else:
            if not question.future.done():
                question.future.set_result(outcome)
        return True

    def settle_these(self, question_id: str | None, answer: Answer) -> None:
        """One of them, or all without an id."""
        for each in [question_id] if question_id is not None else list(self._open):
            self.settle(each, answer)

    def settle_all(self, answer: Answer) -> None:
        for question_id in list(self._open):
            self.settle(question_id, answer)

    def _asked(self, question_id: str, task: asyncio.Future[Answer]) -> None:
        if task.cancelled():
            self.settle(question_id, self._withdrawn)
        elif (error := task.exception()) is not None:
            logger.error("a provider failed while asking", exc_info=error)
            self.settle(question_id, self._failed(error))
        else:
            self.settle(question_id, task.result())


# ── how a question ends ─────────────────────────────────────────────────────────────────────────

# How a permission question ends: with an option, refused, or cancelled with its turn.


REFUSED, CHOSEN, CANCELLED, ALLOWED = "refused", "chosen", "cancelled", "allowed"


class Settlement(msgspec.Struct, frozen=True):
    """How a question ended: with an option, refused, or cancelled with its turn."""

    how: str
    by: facts.Decider
    reason: str
    option_id: str | None = None
    follows: bool = False
    """Whether it is the answer to an equal question, which has been remembered already."""


_NOBODY_TO_ASK = "there is nobody to ask"
NOBODY = Settlement(REFUSED, "nobody", _NOBODY_TO_ASK)
BY_REFUSAL = Settlement(REFUSED, "person", "refused")
BY_A_NEW_RULE = Settlement(ALLOWED, "rule", "another answer allows it from now on")


def without_anybody(decision: PolicyDecision) -> Settlement:
    """Why a person was needed, unless it is only that no rule allows it: what another flag or rule
    would not change is said."""
    if decision.effect == "allow":
        why = f"{decision.reason}, but no answer applies only once"
        return Settlement(REFUSED, "nobody", f"{why}, and {_NOBODY_TO_ASK}")
    if decision.unruled:
        more = "" if decision.reason == NO_RULE else f": {decision.reason}"
        return Settlement(REFUSED, "default", f"{_NOBODY_TO_ASK}{more}")
    return Settlement(REFUSED, "nobody", f"{decision.reason}, and {_NOBODY_TO_ASK}")


async def asked(asker: PermissionsProvider, request: PermissionRequest) -> Settlement:
    option_id = await asker.request_permission(request)
    if option_id is None:
        return BY_REFUSAL
    if not has_option(request, option_id):
        why = f"the answer {option_id!r} is not one of the options"
        return Settlement(REFUSED, "host", why)
    try:
        return chosen_option(request, option_id)
    except ValueError as error:
        return Settlement(REFUSED, "host", str(error))


def has_option(question: facts.PermissionQuestion, option_id: str) -> bool:
    return option_id in {each.id for each in (*question.options, *question.offers)}


def chosen_option(
    question: facts.PermissionQuestion, option_id: str, *, confirmed: bool = False
) -> Settlement:
    """Raises ValueError for what has to be confirmed."""
    to_confirm = {offer.id for offer in question.offers if offer.confirm}
    if option_id in to_confirm and not confirmed:
        raise ValueError(f"{question.danger}: to allow it from now on, confirm the answer")
    return Settlement(CHOSEN, "person", "answered", option_id)

"""Questions an agent asks other than permissions: a form to fill in, an address to visit.

Never answered automatically: without someone to ask, the answer is that it was declined. The values
of a form are checked: their types, lengths, ranges and patterns. Its schema is whatever the agent
sent; what is not understood demands nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from dragoman.errors import InvalidParams, UnknownQuestion
from dragoman.host.permissions.questions import NO_ROOM, Questions, Room
from dragoman.host.permissions.wording import blame
from dragoman.host.requester import asking_subagent
from dragoman.host.workspace.roots import Workspace
from dragoman.session import events as e
from dragoman.session.events import ElicitationRequested
from dragoman.session.facts import ElicitationQuestion
from dragoman.session.state import PendingElicitation, SessionState
from dragoman.session.state_limits import weigh_struct

if TYPE_CHECKING:
    from dragoman.host.forms.bounded_pattern import Work


# Structs may be frozen whatever their base is: this one is nobody's to change once it is asked.
class ElicitationRequest(
    ElicitationQuestion,
    kw_only=True,
    frozen=True,  # pyright: ignore[reportGeneralTypeIssues]
):
    """A form to fill in (`mode` is `form`, with a `schema`), or an address to visit (`url`)."""

    session_id: str | None = None
    """None if it is asked outside any session, for example while signing in."""
    meta: dict[str, Any] | None = None

    def as_event(self) -> ElicitationRequested:
        return self.as_kind(ElicitationRequested, meta=self.meta)


class ElicitationAnswer(msgspec.Struct, frozen=True):
    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None


def check(schema: dict[str, Any] | None, answer: ElicitationAnswer) -> None:
    """Raises FormError, which is a ValueError, for a yes that the form does not take."""
    if answer.action != "accept":
        return
    content = answer.content or {}
    wrong = {name: "an answer is needed" for name in _required(schema) if name not in content}
    if wrong := wrong | wrong_fields(schema, content):
        raise FormError(wrong)


def _required(schema: dict[str, Any] | None) -> list[str]:
    match schema:
        case {"required": [*names], "properties": {**fields}}:
            needed = {name for name in names if isinstance(name, str)}
            return [name for name in fields if name in needed]
        case _:
            return []


class ElicitationProvider(Protocol):
    """Asks the user. There is no time limit, unless `Timeouts.question` sets one; if the task is
    cancelled, the answer is not needed."""

    async def create_elicitation(self, request: ElicitationRequest) -> ElicitationAnswer: ...


_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "string": ((str,), "a text"),
    "integer": ((int,), "a whole number"),
    "number": ((int, float), "a number"),
    "boolean": ((bool,), "true or false"),
    "array": ((list,), "a list"),
}


class FormError(ValueError):
    """An answer that its form does not take; `fields` has a sentence for each that is wrong."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        wrong = "; ".join(f"{name}: {words}" for name, words in fields.items())
        super().__init__(f"invalid form values: {wrong}")
        self.fields = dict(fields)


def wrong_fields(schema: Mapping[str, Any] | None, content: Mapping[str, Any]) -> dict[str, str]:
    """What is wrong with each value that does not fit its field. All patterns are judged on one
    budget: an agent that spends it has its other patterns to judge itself."""
    match schema:
        case {"properties": {**properties}}:
            from dragoman.host.forms.bounded_pattern import Work  # few forms have a pattern

            work = Work()
            given = {name: field for name, field in properties.items() if name in content}
            found = ((name, unmet(field, content[name], work)) for name, field in given.items())
            return {name: words for name, words in found if words is not None}
        case _:
            return {}


def unmet(field: Any, value: Any, work: Work | None = None) -> str | None:
    """What is expected instead of the value, if that does not fit."""
    described = as_object(field)
    kind = described.get("type")
    types, words = _TYPES.get(kind, ((), "")) if isinstance(kind, str) else ((), "")
    if types and (not isinstance(value, types) or (isinstance(value, bool) and kind != "boolean")):
        return f"expected {words}"
    return next(_unmet(described, value, work), None)


def _unmet(field: dict[str, Any], value: Any, work: Work | None) -> Iterator[str]:
    choices = _choices(field)
    match value:
        case str() if choices and value not in choices:
            yield f"expected one of {', '.join(choices)}"
        case str():
            yield from _outside(len(value), field, ("minLength", "maxLength"), "character")
            if _misses(field.get("pattern"), value, work):
                yield f"expected to match {field['pattern']}"
        case bool():
            return
        case int() | float():
            yield from _outside(value, field, ("minimum", "maximum"), "")
        case [*items]:
            yield from _outside(len(items), field, ("minItems", "maxItems"), "item")
            among = dict.fromkeys(_choices(as_object(field.get("items"))))
            if among and not all(isinstance(item, str) and item in among for item in items):
                yield f"expected any of {', '.join(among)}"
        case _:
            return


def demands(field: Mapping[str, Any]) -> str:
    """What is expected in addition to the type, as a part of a sentence."""
    words = [
        _range(field, ("minLength", "maxLength"), "character"),
        _range(field, ("minimum", "maximum"), ""),
        _range(field, ("minItems", "maxItems"), "item"),
    ]
    if isinstance(pattern := field.get("pattern"), str):
        words.append(f"matching {pattern}")
    return ", ".join(filter(None, words))


def _outside(
    size: float, field: Mapping[str, Any], names: tuple[str, str], unit: str
) -> Iterator[str]:
    low, high = (_bound(field.get(name)) for name in names)
    if (low is not None and size < low) or (high is not None and size > high):
        yield f"expected {_range(field, names, unit)}"


def _range(field: Mapping[str, Any], names: tuple[str, str], unit: str) -> str:
    low, high = (_bound(field.get(name)) for name in names)
    if low is not None and high is not None:
        words = f"{low:g}" if low == high else f"{low:g} to {high:g}"
    elif low is not None or high is not None:
        words = f"at least {low:g}" if low is not None else f"at most {high:g}"
    else:
        return ""
    last = high if high is not None else low
    return f"{words} {unit}{'' if last == 1 else 's'}" if unit else words


def _bound(value: Any) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:  # an integer beyond all doubles, as the page reads it too
        return math.inf if value > 0 else -math.inf


def _misses(pattern: Any, text: str, work: Work | None) -> bool:
    from dragoman.host.forms.bounded_pattern import Work, fits

    return isinstance(pattern, str) and fits(pattern, text, work or Work()) is False


def _choices(field: Mapping[str, Any]) -> list[str]:
    match field:
        case {"enum": [*values]}:
            return [value for value in values if isinstance(value, str)]
        case {"oneOf": [*options]} | {"anyOf": [*options]}:
            consts = [as_object(option).get("const") for option in options]
            return [value for value in consts if isinstance(value, str)]
        case _:
            return []


def as_object(value: Any) -> dict[str, Any]:
    """An agent's value, if it is one; nothing of anything else."""
    match value:
        case {**entries}:
            return entries
        case _:
            return {}


# The forms and addresses of one session that wait for a person.
#
# Never answered automatically with anything but a decline.


class Attendance(Protocol):
    """Whether anyone is there to answer."""

    @property
    def is_cancelling(self) -> bool: ...

    def nobody_reads(self, asker: object) -> bool: ...

    def nobody_waits_for(self, asker: object) -> bool: ...

    def unfit(self, reason: str) -> InvalidParams: ...


class Elicitations:
    """Asks, and keeps what waits."""

    def __init__(
        self,
        attendance: Attendance,
        workspace: Workspace,
        provider: ElicitationProvider | None,
        room: Room,
        *,
        state: SessionState,
        record: Callable[[e.Event], None],
        limit: float | None,
    ) -> None:
        self._attendance = attendance
        self._workspace = workspace
        self._provider = provider
        self._open: Questions[ElicitationAnswer, ElicitationAnswer] = Questions(
            "elicitation-",
            withdrawn=ElicitationAnswer("cancel"),
            failed=self._failed,
            late=ElicitationAnswer("decline"),
            limit=limit,
        )
        self._room = room
        self._state = state
        self._record = record

    @property
    def has_nobody(self) -> bool:
        """Whether a question would be declined at once."""
        return self._attendance.nobody_reads(self._provider)

    async def create(self, request: ElicitationRequest) -> ElicitationAnswer:
        """Ask the user something.

        Raises InvalidParams where too many questions wait already.
        """
        asker = asking_subagent()
        request = msgspec.structs.replace(
            request,
            request_id=self._open.new_id(),
            session_id=self._workspace.session_id,
            subagent=asker,
            asked_by=None if asker is None else self._state.subagent_name(asker),
        )
        question = request.as_event()
        if not self._room.take(request.request_id, weigh_struct(question)):
            raise self._attendance.unfit(NO_ROOM)
        self._record(question)

        def settled(answer: ElicitationAnswer) -> ElicitationAnswer:
            self._room.leave(request.request_id)
            self._record(e.ElicitationSettled(request.request_id, answer.action))
            return answer

        if self._attendance.is_cancelling:
            return settled(ElicitationAnswer("cancel"))
        if self._attendance.nobody_reads(self._provider):
            return settled(ElicitationAnswer("decline"))
        asking = None if self._provider is None else _asked(self._provider, request)
        return await self._open.ask(request.request_id, settled, asking)

    def answer(self, request_id: str, answer: ElicitationAnswer) -> None:
        """Raises UnknownQuestion for one that is unknown or settled, FormError for one that is
        accepted with what its form does not take."""
        pending = self._state.pending.get(request_id)
        if isinstance(pending, PendingElicitation):
            check(pending.schema, answer)
        if not self._open.settle(request_id, answer):
            raise UnknownQuestion(request_id)

    def complete(self, elicitation_id: str) -> None:
        """The agent saw that the user did what an address asked for: that is the answer."""
        for pending in list(self._state.pending.values()):
            if not isinstance(pending, PendingElicitation) or pending.mode != "url":
                continue
            if pending.elicitation_id == elicitation_id:
                self._open.settle(pending.id, ElicitationAnswer("accept"))

    def refuse_unattended(self, request_id: str | None) -> None:
        """Decline what has nobody to answer it; None is everything."""
        if self._attendance.nobody_waits_for(self._provider):
            self._open.settle_these(request_id, ElicitationAnswer("decline"))

    def cancel(self, request_id: str) -> None:
        self._open.settle(request_id, ElicitationAnswer("cancel"))

    def cancel_all(self) -> None:
        self._open.settle_all(ElicitationAnswer("cancel"))

    def _failed(self, error: BaseException) -> ElicitationAnswer:
        self._record(e.Notice(blame("elicitation", error), "error", source="client"))
        return ElicitationAnswer("cancel")


async def _asked(provider: ElicitationProvider, request: ElicitationRequest) -> ElicitationAnswer:
    return await provider.create_elicitation(request)

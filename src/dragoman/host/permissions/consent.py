"""Decides about an access: by the rules, or if they leave it open, by asking someone.

Every request is settled exactly once and recorded with who or what settled it. Refusing picks a
reject option; `cancelled` is for turns that end, and for requests that offer no way to refuse.
"""

from __future__ import annotations

import asyncio
import functools
import os
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

import msgspec

from dragoman.errors import DragomanError, InvalidParams
from dragoman.host.forms.elicitation import (
    ElicitationAnswer,
    ElicitationProvider,
    ElicitationRequest,
    check,
)
from dragoman.host.permissions.always_rules import (
    Answer,
    NoRule,
    always_rule,
    choose_option,
)
from dragoman.host.permissions.claims import (
    NO_HABITS,
    ClaimReader,
    Habits,
    Places,
    diffs_in,
)
from dragoman.host.permissions.grants import Grants
from dragoman.host.permissions.losses import Look, with_losses
from dragoman.host.permissions.questions import (
    NO_ROOM,
    NO_SUBJECT,
    PermissionAnswer,
    PermissionRequest,
    PermissionsProvider,
    Questions,
    Room,
    Subject,
)
from dragoman.host.permissions.wording import (
    OUR_OPTIONS,
    answered,
    blame,
    decided,
    decision_words,
    effect_of,
    in_short,
    plain_options,
    refusal,
    requested,
    scope_of,
    shown_argv,
    shown_names,
    with_consequences,
)
from dragoman.host.rules.access import TOO_LONG, Access, is_too_long
from dragoman.host.rules.policy import Policy, PolicyDecision
from dragoman.host.rules.rule import Rule, Scope
from dragoman.host.workspace.roots import Workspace
from dragoman.session import events as e
from dragoman.session import facts
from dragoman.session.bounds import weigh_struct
from dragoman.session.content import ToolContent
from dragoman.session.facts import PermissionOption
from dragoman.session.state import (
    PendingElicitation,
    PendingPermission,
    SessionState,
)

Asked = TypeVar("Asked")
Granted: TypeAlias = Callable[[Grants], bool]

_Asking: TypeAlias = tuple[PermissionRequest, Access, PolicyDecision, int, Places]
"""What a person is asked, what it is about, and what it weighs."""

NOWHERE: Places = {}
MOST_OPTIONS = 32
_LONGEST_ANSWER = 4096


class Audience(Protocol):
    """Whether anyone reads the running turn."""

    @property
    def id(self) -> str: ...

    @property
    def unread(self) -> bool: ...

    @property
    def cancel_requested(self) -> bool: ...


class Settlement(msgspec.Struct, frozen=True):
    """How a question ended: with an option, refused, or cancelled with its turn."""

    how: str
    by: facts.Decider
    reason: str
    option_id: str | None = None


REFUSED, CHOSEN, CANCELLED = "refused", "chosen", "cancelled"


class Consent:
    """Decides for one session."""

    def __init__(
        self,
        workspace: Workspace,
        *,
        agent: str,
        policy: Policy,
        permissions: PermissionsProvider | None,
        elicitation: ElicitationProvider | None,
        state: SessionState,
        record: Callable[[e.Event], None],
        habits: Habits = NO_HABITS,
        attended: bool | None = None,
        limit: float | None = None,
    ) -> None:
        self.turn: Audience | None = None
        self.grants = Grants()
        self.attended = attended
        """Whether a program answers questions, so that they wait for it; None if it did not say."""
        self.look: Look | None = None
        """How a file is now; None where the agent's files are not ours to look at."""
        self._workspace = workspace
        self._agent = agent
        self._policy = policy
        self._asker = permissions
        self._elicitation = elicitation
        self._state = state
        self._record = record
        self._claims = ClaimReader(workspace, agent=agent, habits=habits, state=state)
        self._judging = asyncio.Lock()
        """One request at a time, so that many at once leave the others of this process a turn."""
        self._room = Room()
        self._permissions: Questions[Settlement, PermissionAnswer] = Questions(
            "permission-",
            withdrawn=Settlement(CANCELLED, "cancel", "the request was withdrawn"),
            failed=self._permission_failed,
            late=Settlement(REFUSED, "nobody", f"nobody answered within {limit} seconds"),
            limit=limit,
        )
        self._elicitations: Questions[ElicitationAnswer, ElicitationAnswer] = Questions(
            "elicitation-",
            withdrawn=ElicitationAnswer("cancel"),
            failed=self._elicitation_failed,
            late=ElicitationAnswer("decline"),
            limit=limit,
        )

    # ── what we are about to do ourselves ─────────────────────────────────────────────────────

    async def permit(
        self,
        access: Access,
        title: str,
        granted: Granted | None = None,
        content: tuple[ToolContent, ...] = (),
    ) -> bool:
        """Return if it may be done: True where someone has looked at just this, now or before,
        which `granted` tells; False where a rule allows it.

        `content` is shown to the person who is asked.

        Raises InvalidParams for a path outside the workspace, InternalError with the reason for
        anything else that is refused.
        """
        decision = self._policy.decide(access, self._workspace)
        seen = decision.effect == "ask"
        if seen and granted is not None and granted(self.grants):
            decision = PolicyDecision("allow", "it was allowed when the agent asked")
        elif seen:
            request = self._request(access, title, OUR_OPTIONS, decision, content=content)
            weight = weigh_struct(requested(request))
            answer = await self._ask(request, access, decision, weight)
            if not _allows(answer.option_id, OUR_OPTIONS):
                raise refusal(access, answer.decision.reason)
            return True
        if decision.effect == "deny" or not _is_free(access):
            self._record(decided(access, decision))
        if decision.effect == "deny":
            raise refusal(access, decision.reason)
        return seen

    # ── what the agent asks for ───────────────────────────────────────────────────────────────

    async def request_permission(
        self,
        tool_call: e.ToolCallUpdated | None,
        options: Sequence[PermissionOption],
        subject: Subject = NO_SUBJECT,
    ) -> PermissionAnswer:
        """Answer `session/request_permission`: the agent's claim can only make it stricter.

        Raises InvalidParams for a question with more answers than a person can weigh or with an
        answer too long to be read, and for a command too long to be run or judged.
        """
        if len(options) > MOST_OPTIONS:
            raise self._unfit(f"a question has at most {MOST_OPTIONS} options, not {len(options)}")
        if any(max(map(len, (o.id, o.name, o.kind))) > _LONGEST_ANSWER for o in options):
            raise self._unfit(
                f"the id, name and kind of an option may have at most {_LONGEST_ANSWER} characters "
                "each"
            )
        call_id = subject.tool_call_id
        if tool_call is not None:
            self._record(tool_call)
            call_id = tool_call.tool_call_id
        async with self._judging:
            judged = await self._judged(call_id, options, subject)
        return judged if isinstance(judged, PermissionAnswer) else await self._ask(*judged)

    async def _judged(
        self, call_id: str | None, options: Sequence[PermissionOption], subject: Subject
    ) -> PermissionAnswer | _Asking:
        """The answer that follows from the rules, or what is left to ask a person."""
        turn_id = None if self.turn is None else self.turn.id
        claim = await self._claims.read(call_id, options, subject, turn_id)
        access, content, weight = claim.access, claim.content, claim.weight
        if is_too_long(access.commands):
            raise self._unfit(TOO_LONG)
        decision = self._policy.decide(access, self._workspace)
        request = self._request(
            access, claim.title, tuple(options), decision, call_id, content, subject.explanation
        )
        request = msgspec.structs.replace(request, meta=subject.meta)
        if decision.effect != "ask":
            option_id = choose_option(
                plain_options(options), decision.effect, names_action=access.action
            )
            if option_id is not None or decision.effect == "deny":
                return self._decided(request, decision, option_id)
        weight += weigh_struct(requested(msgspec.structs.replace(request, content=[])))
        if self.look is not None and content and self._room.has(weight):
            places = claim.places.items()
            inside = {path: real for path, real in places if self._claims.is_inside(real)}
            seen = await with_losses(content, inside.get, self.look)
            request = msgspec.structs.replace(request, content=list(seen))
            weight += _characters(seen) - _characters(content)
        return request, access, decision, weight, claim.places

    def _unfit(self, reason: str) -> InvalidParams:
        """The error reply to a question that is not asked; that there was one is on the record."""
        self._record(
            e.Notice(f"a question from the agent was refused: {reason}", "warning", source="client")
        )
        return InvalidParams(reason)

    def _decided(
        self, request: PermissionRequest, decision: PolicyDecision, option_id: str | None
    ) -> PermissionAnswer:
        """By a rule, without asking anyone."""
        words = decision_words(decision)
        if option_id is None:
            words.reason = f"{words.reason}; {_NO_WAY_TO_REFUSE}"
        return self._at_once(request, option_id, words)

    def _at_once(
        self, request: PermissionRequest, option_id: str | None, decision: facts.Decision
    ) -> PermissionAnswer:
        """Record it, but not as a question: its reader could not answer."""
        self._record(answered(request, option_id, decision))
        return PermissionAnswer(option_id, decision)

    # ── asking ────────────────────────────────────────────────────────────────────────────────

    def _request(
        self,
        access: Access,
        title: str,
        options: tuple[PermissionOption, ...],
        decision: PolicyDecision,
        tool_call_id: str | None = None,
        content: tuple[ToolContent, ...] = (),
        explanation: str | None = None,
    ) -> PermissionRequest:
        @functools.cache
        def rule(answer: Answer, scope: Scope) -> Rule | NoRule:
            return self._rule(access, answer, decision, scope)

        lasting = [option for option in options if option.kind == "allow_always"]
        allowing = rule("allow", scope_of(lasting))
        return PermissionRequest(
            request_id=self._permissions.new_id(),
            session_id=self._workspace.session_id,
            agent=self._agent,
            operation=access.operation,
            options=with_consequences(
                options, rule, claimed=access.claimed, names_action=access.action
            ),
            title=title,
            paths=list(access.paths),
            argv=shown_argv(access),
            claimed=access.claimed,
            tool_call_id=tool_call_id,
            content=list(content),
            always=None if isinstance(allowing, NoRule) else in_short(allowing),
            explanation=explanation,
            cwd=self._folder(access),
            env=shown_names(access.variables),
        )

    def _folder(self, access: Access) -> str | None:
        """Where a command would run; the session's own folder by the name it goes by. Commands in
        several folders say so themselves."""
        if "execute" not in access.operations or (access.parts and access.cwd is None):
            return None
        own = self._workspace.cwd
        if len(access.folders) > 1:
            return " or ".join(access.folders)
        return own if access.cwd in (None, os.path.realpath(own)) else access.cwd

    async def _ask(
        self,
        request: PermissionRequest,
        access: Access,
        decision: PolicyDecision,
        weight: int,
        places: Places = NOWHERE,
    ) -> PermissionAnswer:
        if self._is_cancelling:
            cancelled = facts.Decision("cancelled", _CANCELLING, by="cancel")
            return self._at_once(request, None, cancelled)
        if not request.options and not self._nobody_reads(self._asker):
            cancelled = facts.Decision("cancelled", _NO_ANSWERS, by="host")
            return self._at_once(request, None, cancelled)
        if not self._room.take(request.request_id, weight):
            full = facts.Decision("deny", NO_ROOM, by="host")
            return self._at_once(request, _refusing(request), full)
        self._record(requested(request))

        def settled(settlement: Settlement) -> PermissionAnswer:
            self._room.leave(request.request_id)
            return self._answered(request, access, decision, settlement, places)

        if self._nobody_reads(self._asker):
            return settled(_NOBODY)
        asking = None if self._asker is None else _asked(self._asker, request)
        return await self._permissions.ask(request.request_id, settled, asking)

    @property
    def _is_cancelling(self) -> bool:
        return self.turn is not None and self.turn.cancel_requested

    def _nobody_reads(self, asker: object) -> bool:
        if asker is not None or self.attended:
            return False
        return self.turn is None or self.turn.unread

    def _answered(
        self,
        request: PermissionRequest,
        access: Access,
        decision: PolicyDecision,
        settlement: Settlement,
        places: Places,
    ) -> PermissionAnswer:
        settlement = _without_anybody(decision) if settlement is _NOBODY else settlement
        option_id, reason = settlement.option_id, settlement.reason
        if settlement.how == REFUSED:
            option_id = _refusing(request)
            if option_id is None:
                reason = f"{reason}; {_NO_WAY_TO_REFUSE}"
        chosen = [option for option in request.options if option.id == option_id]
        effect = effect_of({option.kind for option in chosen})
        if settlement.how == CHOSEN and not self._remember(chosen, access, decision):
            # The agent must not remember what we do not.
            plain = plain_options(request.options)
            option_id = choose_option(plain, "allow", names_action=access.action) or option_id
        if effect == "allow" and access.claimed:
            diffs = [diff for diff in diffs_in(request.content) if diff.path in places]
            self.grants.add(access, [(places[diff.path], diff) for diff in diffs])
        decided = facts.Decision(effect, reason, by=settlement.by)
        self._record(e.PermissionSettled(request.request_id, option_id, decided))
        return PermissionAnswer(option_id, decided)

    def _remember(
        self, chosen: Sequence[PermissionOption], access: Access, decision: PolicyDecision
    ) -> bool:
        """False for a yes that was meant for always, and counts once only."""
        kinds = {option.kind for option in chosen}
        if kinds not in ({"allow_always"}, {"reject_always"}):
            return True
        answer: Answer = "allow" if kinds == {"allow_always"} else "deny"
        rule = self._rule(access, answer, decision, scope_of(chosen))
        reason = self._why_not_remembered(rule)
        if reason is None:
            return True
        text = f"the answer counts once only: {reason}"
        self._record(e.Notice(text, "warning", source="client"))
        return answer == "deny"

    def _why_not_remembered(self, rule: Rule | NoRule) -> str | None:
        if isinstance(rule, NoRule):
            return rule.reason
        try:
            self._policy.remember(rule, self._workspace)
        except (OSError, DragomanError) as error:
            return f"it could not be stored: {error}"
        return None

    def _rule(
        self, access: Access, answer: Answer, decision: PolicyDecision, scope: Scope
    ) -> Rule | NoRule:
        return always_rule(
            access,
            answer,
            decision,
            rule_id=uuid.uuid4().hex[:12],
            scope=scope,
            session=self._workspace.session_id,
            project=self._workspace.cwd,
        )

    def _permission_failed(self, error: BaseException) -> Settlement:
        """The reason is sent to the agent, which must not read what the provider failed with."""
        self._record(e.Notice(blame("permissions", error), "error", source="client"))
        return Settlement(REFUSED, "host", "the permissions provider failed")

    # ── elicitation ───────────────────────────────────────────────────────────────────────────

    def _elicitation_failed(self, error: BaseException) -> ElicitationAnswer:
        self._record(e.Notice(blame("elicitation", error), "error", source="client"))
        return ElicitationAnswer("cancel")

    async def create_elicitation(self, request: ElicitationRequest) -> ElicitationAnswer:
        """Ask the user something; never answered automatically with anything but a decline.

        Raises InvalidParams where too many questions wait already.
        """
        request = msgspec.structs.replace(
            request,
            request_id=self._elicitations.new_id(),
            session_id=self._workspace.session_id,
        )
        question = request.as_event()
        if not self._room.take(request.request_id, weigh_struct(question)):
            raise self._unfit(NO_ROOM)
        self._record(question)

        def settled(answer: ElicitationAnswer) -> ElicitationAnswer:
            self._room.leave(request.request_id)
            self._record(e.ElicitationSettled(request.request_id, answer.action))
            return answer

        asker = self._elicitation
        if self._is_cancelling:
            return settled(ElicitationAnswer("cancel"))
        if self._nobody_reads(asker):
            return settled(ElicitationAnswer("decline"))
        asking = None if asker is None else _elicited(asker, request)
        return await self._elicitations.ask(request.request_id, settled, asking)

    # ── answers from outside ──────────────────────────────────────────────────────────────────

    def answer(self, request_id: str, option_id: str | None) -> None:
        """None refuses. Raises KeyError for a request that is unknown or settled, ValueError for an
        option it does not have."""
        pending = self._state.pending.get(request_id)
        if not isinstance(pending, PendingPermission) or request_id not in self._permissions:
            raise KeyError(request_id)
        if option_id is None:
            self._permissions.settle(request_id, _REFUSED)
            return
        if option_id not in {option.id for option in pending.options}:
            raise ValueError(f"the request {request_id} has no option {option_id!r}")
        self._permissions.settle(request_id, Settlement(CHOSEN, "person", "answered", option_id))

    def answer_elicitation(self, request_id: str, answer: ElicitationAnswer) -> None:
        """Raises KeyError for one that is unknown or settled, FormError for one that is accepted
        with what its form does not take."""
        pending = self._state.pending.get(request_id)
        if isinstance(pending, PendingElicitation):
            check(pending.schema, answer)
        if not self._elicitations.settle(request_id, answer):
            raise KeyError(request_id)

    def complete_elicitation(self, elicitation_id: str) -> None:
        """The agent saw that the user did what an address asked for: that is the answer."""
        for pending in list(self._state.pending.values()):
            if not isinstance(pending, PendingElicitation) or pending.mode != "url":
                continue
            if pending.elicitation_id == elicitation_id:
                self._elicitations.settle(pending.id, ElicitationAnswer("accept"))

    def refuse_unattended(self, request_id: str | None = None) -> None:
        """The reader of the turn moved on without answering this, or will not read at all."""
        if self._asker is None and not self.attended:
            _settle(self._permissions, request_id, _NOBODY)
        if self._elicitation is None and not self.attended:
            _settle(self._elicitations, request_id, ElicitationAnswer("decline"))

    def cancel_all(self, reason: str) -> None:
        """The turn ends, or the session does: nothing waits any longer."""
        self.grants.clear()
        self._permissions.settle_all(Settlement(CANCELLED, "cancel", reason))
        self._elicitations.settle_all(ElicitationAnswer("cancel"))

    def close(self, reason: str) -> None:
        """The session ends, and what was allowed for it."""
        self.cancel_all(reason)
        self._policy.forget(self._workspace)


_NOBODY_TO_ASK = "there is nobody to ask"
_NOBODY = Settlement(REFUSED, "nobody", _NOBODY_TO_ASK)
_REFUSED = Settlement(REFUSED, "person", "refused")


def _without_anybody(decision: PolicyDecision) -> Settlement:
    """Why a person was needed, unless it is only that no rule allows it: what another flag or rule
    would not change is said."""
    if decision.effect == "allow":
        why = f"{decision.reason}, but no answer applies only once"
        return Settlement(REFUSED, "nobody", f"{why}, and {_NOBODY_TO_ASK}")
    if decision.unruled:
        return Settlement(REFUSED, "default", _NOBODY_TO_ASK)
    return Settlement(REFUSED, "nobody", f"{decision.reason}, and {_NOBODY_TO_ASK}")


_NO_WAY_TO_REFUSE = "the request offers no way to refuse"
_CANCELLING = "the turn is being cancelled"
_NO_ANSWERS = "the question has no answer to choose"


def _settle(questions: Questions[Asked, Any], question_id: str | None, answer: Asked) -> None:
    if question_id is None:
        questions.settle_all(answer)
    else:
        questions.settle(question_id, answer)


async def _asked(asker: PermissionsProvider, request: PermissionRequest) -> Settlement:
    option_id = await asker.request_permission(request)
    if option_id is None:
        return _REFUSED
    if option_id not in {option.id for option in request.options}:
        why = f"the answer {option_id!r} is not one of the options"
        return Settlement(REFUSED, "host", why)
    return Settlement(CHOSEN, "person", "answered", option_id)


async def _elicited(asker: ElicitationProvider, request: ElicitationRequest) -> ElicitationAnswer:
    return await asker.create_elicitation(request)


def _refusing(request: PermissionRequest) -> str | None:
    return choose_option(plain_options(request.options), "deny")


def _allows(option_id: str | None, options: Sequence[PermissionOption]) -> bool:
    return any(o.id == option_id and o.kind.startswith("allow") for o in options)


def _characters(content: Sequence[ToolContent]) -> int:
    """How long the text is that the changes would replace."""
    return sum(len(diff.old_text or "") for diff in diffs_in(content))


def _is_free(access: Access) -> bool:
    """Reading inside the workspace needs no rule, and no record either."""
    return access.operation == "read" and access.place == "inside"

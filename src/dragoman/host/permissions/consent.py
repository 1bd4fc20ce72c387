"""Decides about an access: by the rules, or if they leave it open, by asking someone.

Every request is settled exactly once and recorded with who or what settled it. Refusing picks a
reject option; `cancelled` is for turns that end, and for requests that offer no way to refuse.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from dragoman.errors import InvalidParams, UnknownQuestion
from dragoman.host.claims.habits import NO_HABITS, Habits
from dragoman.host.forms.elicitation import ElicitationProvider, Elicitations
from dragoman.host.permissions.grants import Grants
from dragoman.host.permissions.hold import Audience, Hold
from dragoman.host.permissions.own_tool import SUBMITS, submits
from dragoman.host.permissions.questions import (
    ALLOWED,
    BY_A_NEW_RULE,
    BY_REFUSAL,
    CANCELLED,
    CHOSEN,
    NO_ROOM,
    NO_SUBJECT,
    NOBODY,
    REFUSED,
    PermissionAnswer,
    PermissionRequest,
    PermissionsProvider,
    Questions,
    Room,
    Settlement,
    Subject,
    asked,
    chosen_option,
    has_option,
    without_anybody,
)
from dragoman.host.permissions.wording import (
    OUR_OPTIONS,
    Look,
    all_in_short,
    answered,
    blame,
    decided,
    decision_words,
    effect_of,
    refusal,
    requested,
    scope_of,
    shown_argv,
    shown_names,
    with_consequences,
    with_losses,
)
from dragoman.host.requester import asking_subagent
from dragoman.host.rules.access import TOO_LONG, Access, is_too_long
from dragoman.host.rules.decision import Explanation
from dragoman.host.rules.policy import Policy, PolicyDecision, Rule
from dragoman.host.rules.rule import Answer, NoRule, RuleFields
from dragoman.host.workspace.roots import Workspace
from dragoman.session import events as e
from dragoman.session import facts
from dragoman.session.content import ToolContent, diffs_in
from dragoman.session.facts import PermissionOption
from dragoman.session.permission_options import choose_option
from dragoman.session.state import PendingPermission, SessionState
from dragoman.session.state_limits import weigh_struct

# What reads a claim and makes rules of an answer is imported with the first request: many sessions
# have none.
if TYPE_CHECKING:
    from dragoman.host.claims.claim_reader import ClaimReader, Places
    from dragoman.host.permissions.offers import Offers

Granted: TypeAlias = Callable[[Grants], bool]

NOWHERE: Places = {}
MOST_OPTIONS = 32
_LONGEST_ANSWER = 4096
_NOT_REMEMBERED = frozenset({"allow_once", "reject_once", "reject_always"})
"""Kinds of answers after which an agent has nothing that it may do without asking again."""


class _Asking(msgspec.Struct, frozen=True):
    """What a person is asked, what it is about, and what it weighs."""

    request: PermissionRequest
    access: Access
    decision: PolicyDecision
    offers: Offers
    weight: int = 0
    places: Places = {}
    raw_input: object = None
    """What the tool call is given, of which the question may not show all."""

    def same(self, other: _Asking) -> bool:
        """Whether a person would see the same question, about the same access. What is not shown
        whole may be about anything: only commands, and changes with their text, can be equal."""
        mine = self.access
        shown = mine.commands if mine.operation == "execute" else self.request.content
        same = mine == other.access and self.raw_input == other.raw_input
        return (
            bool(shown)
            and mine.complete
            and not mine.env
            and same
            and _bare(self.request) == _bare(other.request)
        )


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
        self.hold = Hold(lambda: self.turn)
        self.grants = Grants()
        self._has_told = False
        """Whether this session has looked at the rules that are kept with its project."""
        self.attended = attended
        """Whether a program answers questions, so that they wait for it; None if it did not say."""
        self.is_remembered_there = False
        """Whether the agent was given a yes for always, which it may keep to itself."""
        self.look: Look | None = None
        """How a file is now; None where the agent's files are not ours to look at."""
        self.own_tool: str | None = None
        """The tool with which the agent submits a result to this program, if it has one."""
        self._workspace = workspace
        self._agent = agent
        self._policy = policy
        self._asker = permissions
        self._habits = habits
        self._state = state
        self._record = record
        self._judging = asyncio.Lock()
        """One request at a time, so that many at once leave the others of this process a turn."""
        self._room = Room()
        self._waiting: dict[str, _Asking] = {}
        self._permissions: Questions[Settlement, PermissionAnswer] = Questions(
            "permission-",
            withdrawn=Settlement(CANCELLED, "cancel", "the request was withdrawn"),
            failed=self._permission_failed,
            late=Settlement(REFUSED, "nobody", f"nobody answered within {limit} seconds"),
            limit=limit,
        )
        self.elicitations = Elicitations(
            self, workspace, elicitation, self._room, state=state, record=record, limit=limit
        )

    @cached_property
    def _claims(self) -> ClaimReader:
        from dragoman.host.claims.claim_reader import ClaimReader

        return ClaimReader(
            self._workspace, agent=self._agent, habits=self._habits, state=self._state
        )

    def begin(self, turn: Audience | None) -> None:
        """This turn runs now, under the rules that came with its prompt; None when it has ended."""
        terms = None if turn is None else turn.terms
        self.turn = turn
        self._policy.lend([] if terms is None else rules_of(terms), self._workspace)
        if turn is not None and not self._has_told:
            self._has_told = True
            if (remark := self._policy.remark(self._workspace)) is not None:
                self._record(e.Notice(remark, "warning", source="client"))
        if terms is not None and terms.options:
            words = f"{terms.by} asked for {' '.join(terms.options)} in this turn"
            more = "the rules of the process that runs the session apply, too"
            self._record(e.Notice(f"{words}; {more}", source="client"))

    def explain(self, access: Access) -> Explanation:
        """What the rules say, if nobody is asked."""
        return self._policy.explain(access, self._workspace)

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
            asking = self._asking(access, title, OUR_OPTIONS, decision, content=content)
            weight = weigh_struct(requested(asking.request))
            answer = await self._ask(msgspec.structs.replace(asking, weight=weight))
            if not _allows(answer.option_id, OUR_OPTIONS):
                raise refusal(access, answer.decision.reason)
            return True
        if decision.effect == "deny" or not _is_free(access):
            event = decided(access, decision)
            event.subagent = asking_subagent()
            self._record(event)
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
            raise self.unfit(f"a question has at most {MOST_OPTIONS} options, not {len(options)}")
        if any(max(map(len, (o.id, o.name, o.kind))) > _LONGEST_ANSWER for o in options):
            raise self.unfit(
                f"the id, name and kind of an option may have at most {_LONGEST_ANSWER} characters "
                "each"
            )
        call_id = subject.tool_call_id
        if tool_call is not None:
            call_id = tool_call.tool_call_id
            subject = self._claims.with_earlier(subject, call_id)
            asker = asking_subagent()
            self._record(tool_call if asker is None else e.SubagentEvent(asker, tool_call))
        if not await self.hold.admits():
            return _STOPPED
        async with self._judging:
            judged = await self._judged(call_id, options, subject)
        answer = judged if isinstance(judged, PermissionAnswer) else await self._ask(judged)
        return answer if await self.hold.admits() else _STOPPED

    async def _judged(
        self, call_id: str | None, options: Sequence[PermissionOption], subject: Subject
    ) -> PermissionAnswer | _Asking:
        """The answer that follows from the rules, or what is left to ask a person."""
        asker = asking_subagent()
        turn_id = None if self.turn is None or asker is not None else self.turn.id
        claim = await self._claims.read(call_id, options, subject, turn_id)
        access, content, weight = claim.access, claim.content, claim.weight
        if is_too_long(access.commands):
            raise self.unfit(TOO_LONG)
        decision = self._policy.decide(access, self._workspace)
        if self.own_tool and submits(self.own_tool, claim, decision, options):
            decision, access = SUBMITS, msgspec.structs.replace(access, action=True)
        asking = self._asking(
            access, claim.title, tuple(options), decision, call_id, content, subject.explanation
        )
        request = msgspec.structs.replace(asking.request, meta=subject.meta)
        if decision.effect != "ask":
            option_id = choose_option(options, decision.effect, names_action=access.action)
            if option_id is not None or decision.effect == "deny":
                if decision.effect == "allow":
                    # Agents run it with variables of their own, which no rule covers.
                    self.grants.add(access, [])
                return self._decided(request, decision, option_id)
        weight += weigh_struct(requested(msgspec.structs.replace(request, content=[])))
        if self.look is not None and content and self._room.has(weight):
            places = claim.places.items()
            inside = {path: real for path, real in places if self._claims.is_inside(real)}
            seen = await with_losses(content, inside.get, self.look)
            request = msgspec.structs.replace(request, content=list(seen))
            weight += _characters(seen) - _characters(content)
        call = self._state.thread_of(asker).tool_call(call_id or "")
        return msgspec.structs.replace(
            asking,
            request=request,
            weight=weight,
            places=claim.places,
            raw_input=None if call is None else call.raw_input,
        )

    def unfit(self, reason: str) -> InvalidParams:
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

    def _asking(
        self,
        access: Access,
        title: str,
        options: tuple[PermissionOption, ...],
        decision: PolicyDecision,
        tool_call_id: str | None = None,
        content: tuple[ToolContent, ...] = (),
        explanation: str | None = None,
    ) -> _Asking:
        from dragoman.host.permissions.offers import Offers

        offers = Offers(access, decision, self._policy, self._workspace)
        asker = asking_subagent()
        lasting = [option for option in options if option.kind == "allow_always"]
        allowing = offers.rules("allow", scope_of(lasting))
        request = PermissionRequest(
            request_id=self._permissions.new_id(),
            session_id=self._workspace.session_id,
            agent=self._agent,
            operation=access.operation,
            options=with_consequences(
                options, offers.rules, claimed=access.claimed, names_action=access.action
            ),
            title=title,
            paths=list(access.paths),
            argv=shown_argv(access),
            claimed=access.claimed,
            tool_call_id=tool_call_id,
            content=list(content),
            always=None if isinstance(allowing, NoRule) else all_in_short(allowing),
            explanation=explanation,
            cwd=self._folder(access),
            env=shown_names(access.variables),
            offers=offers.offer(options) if decision.effect == "ask" else [],
            danger=offers.danger,
            subagent=asker,
            asked_by=None if asker is None else self._state.subagent_name(asker),
        )
        return _Asking(request, access, decision, offers)

    def _folder(self, access: Access) -> str | None:
        """Where a command would run; the session's own folder by the name it goes by. Commands in
        several folders say so themselves."""
        if "execute" not in access.operations or (access.parts and access.cwd is None):
            return None
        own = self._workspace.cwd
        if access.unread_cwd is not None:
            return f"a folder that cannot be read: {access.unread_cwd[:_LONGEST_ANSWER]}"
        if len(access.folders) > 1:
            return " or ".join(access.folders)
        return own if access.cwd in (None, os.path.realpath(own)) else access.cwd

    async def _ask(self, asking: _Asking) -> PermissionAnswer:
        request = asking.request
        if self.is_cancelling:
            cancelled = facts.Decision("cancelled", _CANCELLING, by="cancel")
            return self._at_once(request, None, cancelled)
        if not request.options and not self.nobody_reads(self._asker):
            cancelled = facts.Decision("cancelled", _NO_ANSWERS, by="host")
            return self._at_once(request, None, cancelled)
        if not self._room.take(request.request_id, asking.weight):
            full = facts.Decision("deny", NO_ROOM, by="host")
            return self._at_once(request, _refusing(request), full)
        first = next((i for i, each in self._waiting.items() if each.same(asking)), None)
        request = msgspec.structs.replace(request, same_as=first)
        asking = msgspec.structs.replace(asking, request=request)
        self._record(requested(request))

        def settled(settlement: Settlement) -> PermissionAnswer:
            self._room.leave(request.request_id)
            self._waiting.pop(request.request_id, None)
            answer = self._answered(asking, settlement)
            self._answer_others(request.request_id, first, settlement)
            return answer

        if self.nobody_reads(self._asker):
            return settled(NOBODY)
        self._waiting[request.request_id] = asking
        asker = None if self._asker is None else self._put_to(self._asker, request)
        return await self._permissions.ask(request.request_id, settled, asker)

    async def _put_to(self, asker: PermissionsProvider, request: PermissionRequest) -> Settlement:
        """An equal question that waits is asked first; its answer counts for this one as well."""
        if request.same_as is not None:
            await self._permissions.until_settled(request.same_as)
        return await asked(asker, request)

    def _answer_others(self, request_id: str, first: str | None, settlement: Settlement) -> None:
        """What a person answered also answers equal questions, and what the rules allow now needs
        no answer."""
        if settlement.by != "person" or settlement.follows:
            return
        followed = msgspec.structs.replace(settlement, follows=True)
        group = first or request_id
        for other_id, other in list(self._waiting.items()):
            if group in (other_id, other.request.same_as):
                self._permissions.settle(other_id, followed)
            elif self._is_allowed_now(other):
                self._permissions.settle(other_id, BY_A_NEW_RULE)

    def _is_allowed_now(self, asking: _Asking) -> bool:
        decision = self._policy.decide(asking.access, self._workspace)
        return decision.effect == "allow" and _once(asking) is not None

    @property
    def is_cancelling(self) -> bool:
        """Whether the running turn is being cancelled."""
        return self.turn is not None and self.turn.cancel_requested

    def nobody_reads(self, asker: object) -> bool:
        """Whether a question would wait for an answer that cannot come."""
        if self.turn is not None and self.turn.terms is not None and self.turn.terms.on_ask:
            return self.turn.terms.on_ask == "reject"
        if not self.nobody_waits_for(asker):
            return False
        return self.turn is None or self.turn.unread

    def nobody_waits_for(self, asker: object) -> bool:
        """Whether only the reader of the turn could answer."""
        return asker is None and not self.attended

    def _answered(self, asking: _Asking, settlement: Settlement) -> PermissionAnswer:
        request, access = asking.request, asking.access
        settlement = without_anybody(asking.decision) if settlement is NOBODY else settlement
        option_id, reason = settlement.option_id, settlement.reason
        if settlement.how == REFUSED:
            option_id = _refusing(request)
            if option_id is None:
                reason = f"{reason}; {_NO_WAY_TO_REFUSE}"
        once = _once(asking)
        if settlement.how == ALLOWED:
            option_id = once
        elif settlement.how == CHOSEN and (offered := asking.offers.chosen(option_id)):
            offer, rules = offered
            reason = offer.words[:1].lower() + offer.words[1:]
            self._remember(asking.offers, None if settlement.follows else rules)
            option_id = once
        chosen = [option for option in request.options if option.id == option_id]
        if settlement.how == CHOSEN and not self._remember_option(asking, chosen, settlement):
            option_id = once or option_id  # the agent must not remember what we do not
        kinds = {option.kind for option in request.options if option.id == option_id}
        self.is_remembered_there |= bool(kinds - _NOT_REMEMBERED)
        effect = effect_of({option.kind for option in chosen})
        if effect == "allow" and access.claimed:
            places = asking.places
            diffs = [diff for diff in diffs_in(request.content) if diff.path in places]
            self.grants.add(access, [(places[diff.path], diff) for diff in diffs])
        decided = facts.Decision(effect, reason, by=settlement.by)
        self._record(e.PermissionSettled(request.request_id, option_id, decided))
        return PermissionAnswer(option_id, decided)

    def _remember_option(
        self, asking: _Asking, chosen: Sequence[PermissionOption], settlement: Settlement
    ) -> bool:
        """False for a yes that was meant for always, and counts once only."""
        kinds = {option.kind for option in chosen}
        if kinds not in ({"allow_always"}, {"reject_always"}):
            return True
        answer: Answer = "allow" if kinds == {"allow_always"} else "deny"
        rules = asking.offers.rules(answer, scope_of(chosen))
        kept = self._remember(asking.offers, None if settlement.follows else rules)
        return kept or answer == "deny"

    def _remember(self, offers: Offers, rules: tuple[Rule, ...] | NoRule | None) -> bool:
        reason = None if rules is None else offers.remember(rules)
        if reason is not None:
            text = f"the answer counts once only: {reason}"
            self._record(e.Notice(text, "warning", source="client"))
        return reason is None

    def _permission_failed(self, error: BaseException) -> Settlement:
        """The reason is sent to the agent, which must not read what the provider failed with."""
        self._record(e.Notice(blame("permissions", error), "error", source="client"))
        return Settlement(REFUSED, "host", "the permissions provider failed")

    # ── answers from outside ──────────────────────────────────────────────────────────────────

    def answer(self, request_id: str, option_id: str | None, *, confirmed: bool = False) -> None:
        """None refuses. Raises UnknownQuestion for a request that is unknown or settled,
        ValueError for an option it does not have, and for one to be confirmed that is not."""
        pending = self._state.pending.get(request_id)
        if not isinstance(pending, PendingPermission) or request_id not in self._permissions:
            raise UnknownQuestion(request_id)
        if option_id is None:
            self._permissions.settle(request_id, BY_REFUSAL)
            return
        if not has_option(pending, option_id):
            raise ValueError(f"the request {request_id} has no option {option_id!r}")
        self._permissions.settle(request_id, chosen_option(pending, option_id, confirmed=confirmed))

    def refuse_unattended(self, request_id: str | None = None) -> None:
        """The reader of the turn moved on without answering this, or will not read at all."""
        if self.nobody_waits_for(self._asker):
            self._permissions.settle_these(request_id, NOBODY)
        self.elicitations.refuse_unattended(request_id)

    def cancel_all(self, reason: str) -> None:
        """The turn ends, or the session does: nothing waits any longer."""
        self.grants.clear()
        self._permissions.settle_all(Settlement(CANCELLED, "cancel", reason))
        self.elicitations.cancel_all()

    def turn_ended(self, reason: str) -> None:
        """What the session's own agent asked is over with its turn; a subagent may run on."""
        self.grants.clear()
        running_on = {key for key, each in self._state.subagents.items() if each.is_at_work}
        for pending in list(self._state.pending.values()):
            if pending.subagent not in running_on:
                self._cancel(pending.id, reason)

    def cancel_of(self, subagent_id: str, reason: str) -> None:
        """One subagent is stopped, and those that it started."""
        for pending in list(self._state.pending.values()):
            path = self._state.subagent_path(pending.subagent or "")
            if any(each.session_id == subagent_id for each in path):
                self._cancel(pending.id, reason)

    def _cancel(self, request_id: str, reason: str) -> None:
        self._permissions.settle(request_id, Settlement(CANCELLED, "cancel", reason))
        self.elicitations.cancel(request_id)

    def close(self, reason: str) -> None:
        """The session ends, and what was allowed for it."""
        self.cancel_all(reason)
        self._policy.forget(self._workspace)


_STOPPED = PermissionAnswer(None, facts.Decision("cancelled", "the turn was stopped", by="cancel"))
_NO_WAY_TO_REFUSE = "the request offers no way to refuse"
_CANCELLING = "the turn is being cancelled"
_NO_ANSWERS = "the question has no answer to choose"


def _bare(request: PermissionRequest) -> PermissionRequest:
    """Without what tells two equal questions apart."""
    return msgspec.structs.replace(
        request, request_id="", tool_call_id=None, same_as=None, meta=None
    )


def _once(asking: _Asking) -> str | None:
    options = asking.request.options
    return choose_option(options, "allow", names_action=asking.access.action)


def _refusing(request: PermissionRequest) -> str | None:
    return choose_option(request.options, "deny")


class _KnownFields(RuleFields, frozen=True, forbid_unknown_fields=True):
    """A condition that is not known here must not be lost: the rule would allow more."""


def rules_of(terms: facts.TurnTerms) -> list[Rule]:
    """Raises ValueError for what is not a rule."""
    return [msgspec.convert(fields, _KnownFields).plain() for fields in terms.rules]


def _allows(option_id: str | None, options: Sequence[PermissionOption]) -> bool:
    return any(o.id == option_id and o.kind.startswith("allow") for o in options)


def _characters(content: Sequence[ToolContent]) -> int:
    """How long the text is that the changes would replace."""
    return sum(len(diff.old_text or "") for diff in diffs_in(content))


def _is_free(access: Access) -> bool:
    """Reading inside the workspace needs no rule, and no record either."""
    return access.operation == "read" and access.place == "inside"

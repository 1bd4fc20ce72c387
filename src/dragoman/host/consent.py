"""Who allows it: the rules, and where they leave it open, someone who can be asked.

Every request is settled exactly once and recorded with who or what settled it. Refusing picks a
reject option; `cancelled` is for turns that end, and for requests that offer no way to refuse.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

import msgspec

from dragoman.errors import DragomanError
from dragoman.host.access import Access
from dragoman.host.answers import NoRule, always_rule, choose_option, describe, is_question
from dragoman.host.claims import read_claim
from dragoman.host.elicitation import ElicitationAnswer, ElicitationProvider, ElicitationRequest
from dragoman.host.grants import Grants
from dragoman.host.matching import Rule
from dragoman.host.permissions import PermissionAnswer, PermissionRequest, PermissionsProvider
from dragoman.host.policy import Decision
from dragoman.host.questions import Questions
from dragoman.host.raw_input import whole_file
from dragoman.host.rulebook import Policy
from dragoman.host.wording import (
    OUR_OPTIONS,
    decided,
    decision_words,
    effect_of,
    plain_options,
    refusal,
    requested,
    shown_argv,
)
from dragoman.host.workspace import Workspace
from dragoman.session import events as e
from dragoman.session import facts
from dragoman.session.content import Diff, ToolContent
from dragoman.session.facts import PermissionOption
from dragoman.session.state import PendingElicitation, PendingPermission, SessionState, ToolCall

Asked = TypeVar("Asked")
Granted: TypeAlias = Callable[[Grants], bool]


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
    ) -> None:
        self.turn: Audience | None = None
        self.grants = Grants()
        self.attended = False
        """A program has shown that it answers questions, so they wait for it."""
        self._workspace = workspace
        self._agent = agent
        self._policy = policy
        self._asker = permissions
        self._elicitation = elicitation
        self._state = state
        self._record = record
        self._permissions: Questions[Settlement, PermissionAnswer] = Questions(
            "permission-",
            withdrawn=Settlement(CANCELLED, "the request was withdrawn"),
            failed=Settlement(REFUSED, "the permissions provider failed"),
        )
        self._elicitations: Questions[ElicitationAnswer, ElicitationAnswer] = Questions(
            "elicitation-",
            withdrawn=ElicitationAnswer("cancel"),
            failed=ElicitationAnswer("cancel"),
        )

    # ── what we are about to do ourselves ─────────────────────────────────────────────────────

    async def permit(
        self,
        access: Access,
        title: str,
        granted: Granted | None = None,
        content: tuple[ToolContent, ...] = (),
    ) -> None:
        """Return if it may be done; `granted` tells whether someone allowed just this already.

        `content` is shown to whoever is asked.

        Raises InvalidParams for a path outside the workspace, InternalError with the reason for
        anything else that is refused.
        """
        decision = self._policy.decide(access, self._workspace)
        if decision.effect == "ask" and granted is not None and granted(self.grants):
            decision = Decision("allow", "it was allowed when the agent asked")
        elif decision.effect == "ask":
            request = self._request(access, title, OUR_OPTIONS, decision, content=content)
            answer = await self._ask(request, access, decision)
            if not _allows(answer.option_id, OUR_OPTIONS):
                raise refusal(access, answer.decision.reason)
            return
        if decision.effect == "deny" or not _is_free(access):
            self._record(decided(access, decision))
        if decision.effect == "deny":
            raise refusal(access, decision.reason)

    # ── what the agent asks for ───────────────────────────────────────────────────────────────

    async def request_permission(
        self, tool_call: e.ToolCallUpdated, options: Sequence[PermissionOption]
    ) -> PermissionAnswer:
        """Answer `session/request_permission`: the agent's claim can only make it stricter."""
        self._record(tool_call)
        known = self._state.tool_call(tool_call.tool_call_id)
        access = self._claim(known, options)
        decision = self._policy.decide(access, self._workspace)
        title = "" if known is None else known.title
        content = () if known is None else _shown(known)
        request = self._request(
            access, title, tuple(options), decision, tool_call.tool_call_id, content
        )
        if decision.effect != "ask":
            option_id = choose_option(plain_options(options), decision.effect)
            if option_id is not None or decision.effect == "deny":
                return self._decided(request, decision, option_id)
        return await self._ask(request, access, decision)

    def _claim(self, call: ToolCall | None, options: Sequence[PermissionOption]) -> Access:
        access = read_claim(
            None if call is None else call.kind,
            None if call is None else call.raw_input,
            agent=self._agent,
            cwd=self._workspace.cwd,
            roots=[os.path.realpath(root) for root in self._workspace.roots],
            home=os.path.expanduser("~"),
            diff_paths=[] if call is None else [diff.path for diff in call.diffs],
            locations=[] if call is None else [place.path for place in call.locations],
            resolve=os.path.realpath,
        )
        if not is_question(plain_options(options)):
            return access
        return msgspec.structs.replace(access, question=True)

    def _decided(
        self, request: PermissionRequest, decision: Decision, option_id: str | None
    ) -> PermissionAnswer:
        """By a rule, without asking anyone; still on the record as a request and its answer."""
        self._record(requested(request))
        words = decision_words(decision)
        if option_id is None:
            words.reason = f"{words.reason}; {_NO_WAY_TO_REFUSE}"
        return self._settled(request.request_id, option_id, words)

    # ── asking ────────────────────────────────────────────────────────────────────────────────

    def _request(
        self,
        access: Access,
        title: str,
        options: tuple[PermissionOption, ...],
        decision: Decision,
        tool_call_id: str | None = None,
        content: tuple[ToolContent, ...] = (),
    ) -> PermissionRequest:
        rule = self._rule(access, "allow", decision)
        argv = shown_argv(access)
        return PermissionRequest(
            request_id=self._permissions.new_id(),
            session_id=self._workspace.session_id,
            agent=self._agent,
            operation=access.operation,
            options=options,
            title=title,
            paths=access.paths,
            argv=None if argv is None else tuple(argv),
            claimed=access.claimed,
            tool_call_id=tool_call_id,
            content=content,
            always=None if isinstance(rule, NoRule) else describe(rule),
        )

    async def _ask(
        self, request: PermissionRequest, access: Access, decision: Decision
    ) -> PermissionAnswer:
        self._record(requested(request))

        def settled(settlement: Settlement) -> PermissionAnswer:
            return self._answered(request, access, decision, settlement)

        if self._is_cancelling:
            return settled(Settlement(CANCELLED, "the turn is being cancelled"))
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
        decision: Decision,
        settlement: Settlement,
    ) -> PermissionAnswer:
        option_id, reason = settlement.option_id, settlement.reason
        if settlement.how == REFUSED:
            option_id = choose_option(plain_options(request.options), "deny")
            if option_id is None:
                reason = f"{reason}; {_NO_WAY_TO_REFUSE}"
        kinds = {option.kind for option in request.options if option.id == option_id}
        effect = effect_of(kinds)
        if settlement.how == CHOSEN:
            self._remember(kinds, access, decision)
        if effect == "allow" and access.claimed:
            self.grants.add(access, self._diffs(request))
        return self._settled(request.request_id, option_id, facts.Decision(effect, reason))

    def _diffs(self, request: PermissionRequest) -> list[tuple[str, Diff]]:
        """With their real paths: what a relative one means is the session's folder, not ours."""
        diffs = (item for item in request.content if isinstance(item, Diff))
        return [(os.path.realpath(os.path.join(self._workspace.cwd, d.path)), d) for d in diffs]

    def _settled(
        self, request_id: str, option_id: str | None, decision: facts.Decision
    ) -> PermissionAnswer:
        self._record(e.PermissionSettled(request_id, option_id, decision))
        return PermissionAnswer(option_id, decision)

    def _remember(self, kinds: set[str], access: Access, decision: Decision) -> None:
        if kinds not in ({"allow_always"}, {"reject_always"}):
            return
        answer = "allow" if kinds == {"allow_always"} else "deny"
        rule = self._rule(access, answer, decision)
        if isinstance(rule, NoRule):
            self._counts_once(rule.reason)
            return
        try:
            self._policy.remember(rule)
        except (OSError, DragomanError) as error:
            self._counts_once(f"it could not be stored: {error}")

    def _counts_once(self, reason: str) -> None:
        text = f"the answer counts once only: {reason}"
        self._record(e.Notice(text, "warning", source="client"))

    def _rule(self, access: Access, answer: str, decision: Decision) -> Rule | NoRule:
        return always_rule(
            access,
            "allow" if answer == "allow" else "deny",
            decision,
            rule_id=uuid.uuid4().hex[:12],
            scope="project",
            session=self._workspace.session_id,
            project=self._workspace.cwd,
        )

    # ── elicitation ───────────────────────────────────────────────────────────────────────────

    async def create_elicitation(self, request: ElicitationRequest) -> ElicitationAnswer:
        """Ask the user something; never answered automatically with anything but a decline."""
        request = msgspec.structs.replace(request, request_id=self._elicitations.new_id())
        self._record(
            e.ElicitationRequested(
                request.request_id,
                request.message,
                request.mode,
                request.schema,
                request.url,
                request.elicitation_id,
                request.tool_call_id,
            )
        )

        def settled(answer: ElicitationAnswer) -> ElicitationAnswer:
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

    def answer(self, request_id: str, option_id: str) -> None:
        """Raises KeyError for a request that is unknown or settled, ValueError for an option it
        does not have."""
        pending = self._state.pending.get(request_id)
        if not isinstance(pending, PendingPermission) or request_id not in self._permissions:
            raise KeyError(request_id)
        if option_id not in {option.id for option in pending.options}:
            raise ValueError(f"the request {request_id} has no option {option_id!r}")
        self._permissions.settle(request_id, Settlement(CHOSEN, "answered", option_id))

    def answer_elicitation(self, request_id: str, answer: ElicitationAnswer) -> None:
        """Raises KeyError for one that is unknown or settled."""
        if not self._elicitations.settle(request_id, answer):
            raise KeyError(request_id)

    def complete_elicitation(self, elicitation_id: str) -> None:
        """The agent saw that the user did what an address asked for: that is the answer."""
        for pending in list(self._state.pending.values()):
            is_url = isinstance(pending, PendingElicitation)
            if is_url and pending.elicitation_id == elicitation_id:
                self._elicitations.settle(pending.id, ElicitationAnswer("accept"))

    def refuse_unattended(self, request_id: str | None = None) -> None:
        """Whoever reads the turn went on without answering this, or will not read at all."""
        if self._asker is None and not self.attended:
            _settle(self._permissions, request_id, _NOBODY)
        if self._elicitation is None and not self.attended:
            _settle(self._elicitations, request_id, ElicitationAnswer("decline"))

    def cancel_all(self, reason: str) -> None:
        """The turn ends, or the session does: nothing waits any longer."""
        self.grants.clear()
        self._permissions.settle_all(Settlement(CANCELLED, reason))
        self._elicitations.settle_all(ElicitationAnswer("cancel"))


_NOBODY = Settlement(REFUSED, "there is nobody to ask")
_NO_WAY_TO_REFUSE = "the request offers no way to refuse"


def _settle(questions: Questions[Asked, Any], question_id: str | None, answer: Asked) -> None:
    if question_id is None:
        questions.settle_all(answer)
    else:
        questions.settle(question_id, answer)


async def _asked(asker: PermissionsProvider, request: PermissionRequest) -> Settlement:
    option_id = await asker.request_permission(request)
    if option_id is None:
        return Settlement(REFUSED, "refused")
    if option_id not in {option.id for option in request.options}:
        return Settlement(REFUSED, f"the answer {option_id!r} is not one of the options")
    return Settlement(CHOSEN, "answered", option_id)


async def _elicited(asker: ElicitationProvider, request: ElicitationRequest) -> ElicitationAnswer:
    return await asker.create_elicitation(request)


def _allows(option_id: str | None, options: Sequence[PermissionOption]) -> bool:
    return any(o.id == option_id and o.kind.startswith("allow") for o in options)


def _shown(call: ToolCall) -> tuple[ToolContent, ...]:
    """What the call shows. Some agents tell a whole file in their raw input alone: as a diff it can
    be read by whoever is asked, and a yes covers it."""
    told = None if call.diffs else whole_file(call.raw_input)
    return tuple(call.content) if told is None else (*call.content, Diff(*told))


def _is_free(access: Access) -> bool:
    """Reading inside the workspace needs no rule, and no record either."""
    return access.operation == "read" and access.place == "inside"

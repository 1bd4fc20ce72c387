"""One session on its way through: its record, and what the rules say of what its agent asks."""

from __future__ import annotations

import time

import msgspec

from dragoman.agents.extensions import quirks_for
from dragoman.errors import CommandRefused
from dragoman.host.permissions.consent import Consent
from dragoman.host.permissions.wording import decided, refusal
from dragoman.host.requester import asked_by
from dragoman.host.rules.access import Access
from dragoman.host.rules.policy import Policy
from dragoman.host.workspace.jail import found
from dragoman.host.workspace.roots import Workspace
from dragoman.hub.cluster import commands as c
from dragoman.proxy.client_question import ClientAsker, ClientQuestion
from dragoman.proxy.session_book import Page, write
from dragoman.session import events as e
from dragoman.session.facts import TurnTerms
from dragoman.session.retelling import Retelling
from dragoman.testing.recordings.asked_requests import AskedPermission
from dragoman.wire.messages import Failure, Reply

_EVENT_BYTES = 512
"""What an event weighs that waits for what follows it: about that."""


class _Turn(msgspec.Struct):
    """A turn of the client, which reads it."""

    id: str
    cancel_requested: bool = False
    unread: bool = False
    terms: TurnTerms | None = None


class ProxiedSession:
    """A session of the client, which the agent works on; `page` is where it is recorded."""

    def __init__(self, page: Page, agent: str, policy: Policy) -> None:
        self.page = page
        self.state = page.state
        self._policy = policy
        self._agent = agent
        self._turn: _Turn | None = None
        self._retelling: Retelling | None = None
        record = page.recording.record
        more = tuple(record.additional_directories)
        self._workspace = found(Workspace(page.state.session_id, record.cwd, more))
        self._consent = Consent(
            self._workspace,
            agent=agent,
            policy=policy,
            permissions=ClientAsker(),
            elicitation=None,
            state=page.state,
            record=self.record,
            habits=quirks_for(agent),
            attended=True,
        )

    @property
    def id(self) -> str:
        """Ours; `state.session_id` is what the agent calls it."""
        return self.page.recording.record.id

    def close(self) -> None:
        """The client has closed it, or has gone: nothing is asked any longer."""
        self._consent.close("the session was closed")

    # ── what is recorded ──────────────────────────────────────────────────────────────────────

    def record(self, event: e.Event) -> None:
        """What happened, whatever caused it."""
        event.at = time.time()
        write(self.page, event)
        match event:
            case e.TurnStarted(turn_id=turn_id):
                self._turn = _Turn(turn_id)
                self._consent.begin(self._turn)
            case e.TurnCancelling() if self._turn is not None:
                self._turn.cancel_requested = True
            case e.TurnEnded():
                self._turn = None
                self._consent.turn_ended("the turn has ended")
                self._consent.begin(None)
            case _:
                pass

    def reopening(self) -> None:
        """The agent is asked to tell its history, which is on record."""
        self._retelling = Retelling(self.state)

    def reopened(self) -> None:
        """It has done so; some agents continue after that."""
        if self._retelling is not None:
            self._retelling.answered("load")

    def prompted(self, prompt: str) -> None:
        """A prompt is about to go to the agent."""
        if self._retelling is not None:
            self._record_news(self._retelling.prompted(prompt))

    def news_in(self, event: e.Event) -> list[e.Event]:
        """What of it is not on record yet."""
        if self._retelling is None or not event.is_history:
            return [event]
        news = [each for each, _ in self._retelling.hear(event, _EVENT_BYTES)]
        if self._retelling.over:
            self._retelling = None
        return news

    def works(self) -> None:
        """The agent wants something, or its turn ends: what was held back is new."""
        if self._retelling is not None:
            self._record_news(self._retelling.ended())

    def _record_news(self, news: list[tuple[e.Event, int]]) -> None:
        if self._retelling is not None and self._retelling.over:
            self._retelling = None
        for event, _ in news:
            self.record(event)

    # ── what the rules decide ─────────────────────────────────────────────────────────────────

    async def permission(
        self, asked: AskedPermission, question: ClientQuestion, subagent: str | None
    ) -> Reply | Failure:
        """The answer for the agent: of a rule, of the client, or of another window. Raises
        RemoteError."""
        self.works()
        with asked_by(subagent):
            answer = await self._consent.request_permission(
                asked.call, asked.options, asked.subject
            )
        return question.answer(answer)

    def check(self, access: Access) -> None:
        """What the client is about to do for the agent. Raises RemoteError where a rule forbids it;
        all else the client decides."""
        decision = self._policy.decide(access, self._workspace)
        if decision.effect == "deny":
            self.record(decided(access, decision))
            raise refusal(access, decision.reason)

    @property
    def workspace(self) -> Workspace:
        return self._workspace

    # ── what other windows ask for ────────────────────────────────────────────────────────────

    def answer(self, command: c.AnswerPermission) -> None:
        """Raises CommandRefused."""
        try:
            self._consent.answer(command.request_id, command.option_id, confirmed=command.confirmed)
        except KeyError:
            sentence = f"{command.request_id} is unknown or already settled"
            raise CommandRefused(self.id, "settled", sentence) from None
        except ValueError as error:
            raise CommandRefused(self.id, "invalid", str(error)) from error

    @property
    def is_prompting(self) -> bool:
        return self._turn is not None

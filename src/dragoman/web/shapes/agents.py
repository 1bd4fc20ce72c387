"""Agents, and the rules about them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from dragoman.agents.doctor.report import Grade, Report
from dragoman.agents.listing import ListedAgent
from dragoman.host.rules.rule import Rule
from dragoman.web.shapes.base import Count, Shape


class AgentList(Shape):
    agents: list[ListedAgent]


class AgentSessionsQuery(Shape):
    cwd: str | None = None
    limit: Count = 100


class AgentSession(Shape):
    """A session as the agent lists it; `known_as` is its id here, once it was imported."""

    id: str
    cwd: str
    title: str | None
    updated_at: str | None
    known_as: str | None


class AgentSessions(Shape):
    sessions: list[AgentSession]


class ImportBody(Shape):
    session_id: str
    cwd: str | None = None


class AuthBody(Shape):
    """Without a method, only the list of them."""

    method_id: str | None = None


class SignIn(Shape):
    """A way to sign in. One of the kind `agent` is gone with its id; one of the kind `terminal` is
    a `command` that a person runs, in which the variables of `env` are set."""

    id: str
    name: str
    kind: str
    description: str | None
    command: list[str] | None = None
    env: list[str] = msgspec.field(default_factory=list[str])


class SignIns(Shape):
    """`can_logout` says that the agent also signs out."""

    methods: list[SignIn]
    signed_in: bool
    can_logout: bool


class Question(Shape):
    """What an agent asks outside any session: a form (`schema`), or an address to visit (`url`)."""

    id: str
    message: str
    mode: str
    schema: dict[str, Any] | None
    url: str | None


class QuestionList(Shape):
    questions: list[Question]


class DoctorReport(Report):
    """What the doctor found, and what it comes to."""

    outcome: Grade = "pass"
    counts: dict[str, int] = msgspec.field(default_factory=dict[str, int])


class RuleShape(Shape):
    id: str
    rule: Rule
    created_at: datetime
    used_at: datetime | None


class RuleList(Shape, omit_defaults=True):
    """`given` is what the server was started with; each says so in its `source`: a flag, or the
    file of rules. They hold until it ends."""

    policies: list[RuleShape]
    given: tuple[Rule, ...] = ()

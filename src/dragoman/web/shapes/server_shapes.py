"""Types for everything over HTTP that is not one session: agents, hosts, chats, health."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from dragoman.agents.listing import ListedAgent
from dragoman.client.client_options import Archived
from dragoman.conformance.doctor.doctor_report import Grade, Report
from dragoman.ui_stream import UIMessage

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=500)]
LARGEST_CURSOR = 2**63 - 1
"""That a store can tell from another."""
Cursor: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_CURSOR)]


class Shape(msgspec.Struct, rename="camel"):
    """A type of a request or a response."""


class IdQuery(Shape):
    """The id in a query."""

    id: str


class AgentList(Shape):
    agents: list[ListedAgent]


class AgentSessionsQuery(Shape):
    """`archived`: whether those that the agent has archived are listed, if it archives any."""

    cwd: str | None = None
    archived: Archived | None = None
    limit: Count = 100


class AgentSessionShape(Shape):
    """A session as the agent lists it; `known_as` is its id here, once it was imported."""

    id: str
    cwd: str
    title: str | None
    updated_at: str | None
    known_as: str | None
    archived: bool | None
    status: str | None
    """The agent's word for whether it is loaded, from agents that offer `session/status`."""


class AgentSessions(Shape):
    sessions: list[AgentSessionShape]


class ImportBody(Shape):
    session_id: str
    cwd: str | None = None


class CurrentProvider(Shape):
    api_type: str
    base_url: str


class ProviderShape(Shape):
    """A model provider of an agent; `current` is null for one that is switched off. Its headers are
    not told: they may hold keys."""

    provider_id: str
    supported: list[str]
    required: bool
    current: CurrentProvider | None = None


class ProviderList(Shape):
    providers: list[ProviderShape]


class ProviderBody(Shape):
    """Where the agent is to send its requests to the model, and in which protocol."""

    api_type: Annotated[str, msgspec.Meta(min_length=1)]
    base_url: Annotated[str, msgspec.Meta(min_length=1)]
    headers: dict[str, str] = msgspec.field(default_factory=dict[str, str])


class AuthBody(Shape):
    """The method to sign in with; without one, the methods are only listed."""

    method_id: str | None = None


class SignIn(Shape):
    """A sign-in method. One of kind `agent` is used by its id; one of kind `terminal` is a
    `command` for a person to run, with the variables in `env` set."""

    id: str
    name: str
    kind: str
    description: str | None
    command: list[str] | None = None
    env: list[str] = msgspec.field(default_factory=list[str])


class SignIns(Shape):
    """`signed_in` is false too for an agent that does not say whether it is; `can_logout` says that
    it also signs out."""

    methods: list[SignIn]
    signed_in: bool
    can_logout: bool


class Question(Shape):
    """What an agent asks outside any session: a form (`schema`), or an address to visit (`url`)."""

    agent: str
    id: str
    message: str
    mode: str
    schema: dict[str, Any] | None
    url: str | None


class QuestionList(Shape):
    questions: list[Question]


class DoctorReport(Report):
    """What the doctor found, and its verdict."""

    outcome: Grade = "pass"
    counts: dict[str, int] = msgspec.field(default_factory=dict[str, int])


class ChatQuery(Shape):
    """The release of the AI SDK that reads the stream; without it, what 6 and 7 both accept."""

    sdk: Literal[5, 6, 7] | None = None


class MessagesQuery(ChatQuery):
    """`active` includes the answer of a running turn, which a resumed stream sends again."""

    active: bool = False


class Messages(Shape):
    """The newest messages; `dropped` counts those before them."""

    messages: list[UIMessage]
    dropped: int = 0


class Health(Shape):
    version: str
    status: Literal["ok"] = "ok"


class Readiness(Shape):
    status: Literal["ready"] = "ready"


class HostShape(Shape):
    """A host; `alive` if it has announced itself recently, `here` if it is this server.

    `id` differs after each start. `address` is where its page is, null when other machines
    do not reach one. `sessions` are those it runs, `turns` how many of them are at work.
    """

    id: str
    name: str
    alive: bool
    here: bool
    address: str | None
    cwd: str
    agents: list[str]
    sessions: int
    turns: int
    version: str
    seen_at: datetime


class HostList(Shape):
    hosts: list[HostShape]


class SessionHost(Shape):
    """Where a session runs, or if it does not run, where its workspace is."""

    name: str
    alive: bool
    here: bool


class MoveBody(Shape):
    """Without a host, the least busy one with the agent; `cwd` when the folder is another there.
    With `reset` the session continues even if its agent does not remember it there."""

    host: str | None = None
    cwd: str | None = None
    reset: bool = False

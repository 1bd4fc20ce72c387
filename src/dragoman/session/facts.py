"""Facts about a session other than its messages: offers, modes, options, commands, usage.

The names are kept where ACP's own are good; the shapes are neutral between its versions.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Protocol, TypeAlias, TypeVar, cast

import msgspec

from dragoman.session.content import Content, Meta, ToolContent

Continuity: TypeAlias = Literal["new", "continued", "replayed", "reset"]
"""How a session relates to the one that was asked for."""

_MOST_MONEY = 1e12
_CURRENCY = 16
"""Characters of what money is called."""


FenceMode: TypeAlias = Literal["off", "on", "ask", "require"]
"""`on`: fenced if the system can do it; `ask`: the same, and a write outside becomes a question;
`require`: nothing is started without."""
FENCE_MODES: tuple[FenceMode, ...] = ("off", "on", "ask", "require")


def stricter(one: FenceMode, other: FenceMode) -> FenceMode:
    """The later of the two, in the order above."""
    return FENCE_MODES[max(map(FENCE_MODES.index, (one, other)))]


class Offer(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """What an agent is offered on this machine. What is off is neither advertised nor served."""

    files: bool = True
    terminals: bool = True
    fence: FenceMode = "off"
    """Around the programs of its session, where the settings say nothing stricter."""

    def within(self, other: Offer) -> Offer:
        """What both offer."""
        return Offer(
            files=self.files and other.files,
            terminals=self.terminals and other.terminals,
            fence=stricter(self.fence, other.fence),
        )


EVERYTHING = Offer()

MOST_SYSTEM_PROMPT = 64 * 1024
"""Bytes: it is part of the record of a session, and of every list of records."""


class SystemPrompt(msgspec.Struct, frozen=True, omit_defaults=True):
    """An instruction that an agent gets before everything else in a session. It is added to the
    agent's own instructions; with `override`, it replaces them. Raises ValueError for a text that
    cannot be one."""

    text: str
    mode: Literal["append", "override"] = "append"

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise ValueError("the system prompt is empty")
        if "\0" in self.text:
            raise ValueError("the system prompt must not contain NUL characters")
        try:
            size = len(self.text.encode())
        except UnicodeEncodeError:
            raise ValueError("the system prompt is not valid Unicode") from None
        if size > MOST_SYSTEM_PROMPT:
            most = MOST_SYSTEM_PROMPT >> 10
            raise ValueError(f"the system prompt has more than {most} KiB, the most it may have")


class Fact(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel"):
    meta: Meta = None


class Mode(Fact):
    """A mode that the agent offers."""

    id: str
    name: str
    description: str | None = None


class Modes(Fact):
    """The current mode, and all that the agent offers."""

    current: str
    available: list[Mode]


class ConfigChoice(Fact):
    """One possible value of a `ConfigOption`."""

    value: str
    name: str
    description: str | None = None
    group: str | None = None


class ConfigOption(Fact):
    """A setting of the session: a choice if it has `choices`, else on or off. One of another `kind`
    is shown with the agent's own value, and cannot be set from here."""

    id: str
    name: str
    value: str | bool
    choices: list[ConfigChoice] | None = None
    description: str | None = None
    category: str | None = None
    kind: str | None = None


class Command(Fact):
    """A slash command; `hint` says what may be typed after it."""

    name: str
    description: str = ""
    hint: str | None = None


class PlanStep(Fact):
    """One step of a plan."""

    content: str
    priority: str = "medium"
    status: str = "pending"


class Cost(Fact):
    """A sum of money, as reported by the agent."""

    amount: float
    currency: str

    @property
    def is_credible(self) -> bool:
        """Whether this can be a sum of money; other costs are neither recorded nor counted."""
        return 0 <= self.amount <= _MOST_MONEY and 0 < len(self.currency) <= _CURRENCY


class ContextUsage(Fact):
    """How full the context is, and what the session has cost so far, if known."""

    used: int
    size: int
    cost: Cost | None = None


TokensOf: TypeAlias = Literal["turn", "session", "request"]
"""What an agent counts when a turn ends: the turn, the session so far, or only the last request to
the model."""


class ModelTokens(Fact):
    """Tokens of one model, as the agent counts them."""

    model: str
    total: int
    input: int
    output: int
    thought: int | None = None
    cached_read: int | None = None
    cached_write: int | None = None


class TokenUsage(Fact):
    """Tokens at the end of a turn, as the agent counts them; `counted` says what it counts.
    `models` has the same by model, if the agent says so."""

    total: int
    input: int
    output: int
    thought: int | None = None
    cached_read: int | None = None
    cached_write: int | None = None
    counted: TokensOf = "turn"
    models: list[ModelTokens] | None = None


class BackgroundWork(Fact):
    """Work that continues outside turns, as the agent reports it: a `terminal`, a `tool_call` or a
    `subagent`, with its id, or something else by its `type` alone."""

    type: str = ""
    terminal_id: str | None = None
    tool_call_id: str | None = None
    session_id: str | None = None


class SubagentState(Fact):
    """What a subagent does: `running`, `requires_action` or `idle`, or another value that the agent
    uses. `usage` and `error` are as the agent sends them."""

    state: str = ""
    stop_reason: str | None = None
    background: list[BackgroundWork] | None = None
    usage: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


class PermissionOption(Fact):
    """One possible answer; `kind` is a hint, `id` is what counts."""

    id: str
    name: str
    kind: str
    consequence: str | None = None
    """What an "always" answer leads to, in Dragoman's words: the rule it writes, or why it writes
    none."""
    words: str | None = None
    """What the answer does, in Dragoman's words; `name` is the agent's label and proves nothing."""
    warning: str | None = None
    """Set if `name` contradicts `kind`, or the answer is unclear."""
    counts_once: bool = False
    """Whether an "always" answer applies only once: neither Dragoman nor the agent can remember
    it."""


class PermissionOffer(Fact):
    """A way to allow more than this once, which Dragoman offers next to the agent's options: answer
    with its `id`. The agent gets a one-time yes; Dragoman's rules decide the next time."""

    id: str
    breadth: str
    """What is allowed: `this` alone, files of its `folder`, any of the `files`, its `program` with
    other arguments, or any of the `commands`."""
    scope: str
    """How long: `session`, `project`, or `user` for everywhere."""
    subject: str
    words: str
    """The whole answer in words."""
    consequence: str = ""
    """The rules that it makes."""
    confirm: bool = False
    """Whether the answer must be confirmed, because the command is dangerous."""


Asking = TypeVar("Asking", bound="PermissionQuestion")


class PermissionQuestion(msgspec.Struct, omit_defaults=True, rename="camel"):
    """What a person is asked to allow: the same in the call of a provider, in its event, and in the
    state while it waits."""

    request_id: str
    options: list[PermissionOption]
    title: str = ""
    tool_call_id: str | None = None
    operation: str = "other"
    paths: list[str] = []
    argv: list[str] | None = None
    content: list[ToolContent] = []
    """What an allow would cover, as it was when the request came; the tool call may change."""
    always: str | None = None
    """What an "always" answer would remember, in a sentence; None if nothing can safely be
    remembered."""
    explanation: str | None = None
    """The agent's explanation; like the title, it is only a claim."""
    claimed: bool = False
    """Whether the agent would do it itself, so that the request is only its claim."""
    cwd: str | None = None
    """The folder a command would run in; None where there is no command."""
    env: list[str] = []
    """The names of the variables that are set for a command; their values may be secret."""
    offers: list[PermissionOffer] = []
    danger: str | None = None
    """Why the command counts as dangerous; None if it does not."""
    same_as: str | None = None
    """An identical request that is already waiting; its answer answers this one too."""
    subagent: str | None = None
    """The id of the subagent that asks; None for the session's own agent."""
    asked_by: str | None = None
    """The subagent's name, preceded by the names of those that started it."""

    def as_kind(self, kind: type[Asking], **changes: Any) -> Asking:
        """The same question as a struct of another kind, with its own fields in `changes`."""
        return kind(**fields_of(self, PermissionQuestion) | changes)


Form = TypeVar("Form", bound="ElicitationQuestion")


class ElicitationQuestion(msgspec.Struct, omit_defaults=True, rename="camel"):
    """What an agent asks a person other than a permission: the same in the call of a provider, in
    its event, and in the state while it waits.

    A form to fill in (`mode` is `form`, with a `schema`), or an address to visit (`url`).
    """

    request_id: str
    message: str
    mode: str
    schema: dict[str, Any] | None = None
    url: str | None = None
    elicitation_id: str | None = None
    tool_call_id: str | None = None
    subagent: str | None = None
    asked_by: str | None = None
    limit: ReachedLimit | None = None
    """For a question that Dragoman itself asks: the limit that it is about."""

    def as_kind(self, kind: type[Form], **changes: Any) -> Form:
        """The same question as a struct of another kind, with its own fields in `changes`."""
        return kind(**fields_of(self, ElicitationQuestion) | changes)


def fields_of(found: object, base: type[msgspec.Struct]) -> dict[str, Any]:
    """Its values for the fields that `base` has, to make another struct of them."""
    return {name: getattr(found, name) for name in base.__struct_fields__}


Decider: TypeAlias = Literal[
    "person", "rule", "default", "nobody", "cancel", "offer", "host", "fence"
]
"""Who or what decides: a `person`, or a provider that asks one; a `rule`, a flag or what the policy
says without them; the `default`, which refuses what no rule speaks of when there is nobody to ask,
and which another rule or flag can change; `nobody`, where a person has to decide and is not there;
the `cancel` of the turn or the request; the `offer`, which does not include it; the `host`, for
which it is too much, or whose provider failed; or the `fence`, which does not let it through."""


SteerStage: TypeAlias = Literal["waiting", "sent"]
"""Of a steer in the queue: it waits, or the agent has it and has not said what became of it."""
SteerOutcome: TypeAlias = Literal["delivered", "queued", "started", "refused", "unsure"]
"""`delivered` into the running turn; `queued` as the next prompt; no turn ran, so it `started` one;
`refused` by the agent; `unsure`: the agent may have taken it."""
SteerWay: TypeAlias = Literal["steering", "run", "pull", "prompt", "queue"]
"""How a steer went: by the request `_session/steering`, to the run that the agent named, in answer
to the agent's own request, as a prompt in flight, or no further than our queue."""


Measure: TypeAlias = Literal["cost", "tokens", "time", "tool_calls", "turns"]
"""What a limit is about; time is in seconds."""
LimitScope: TypeAlias = Literal["turn", "session", "day", "agent", "project"]
"""What a limit is a limit of: each turn, the session, or all sessions of a day, an agent or a
project together."""
LimitOutcome: TypeAlias = Literal["warned", "asked", "raised", "stopped", "not_sent", "late"]
"""What was done about a limit: a warning was given, a person is asked, has raised it, the turn was
cancelled, the prompt was not sent, or nothing, since the turn was over when the agent reported what
it used."""


class ReachedLimit(Fact):
    """A limit that was reached: how much may be used, how much was, and what was done. `most` is
    the limit as it was set; `raised_to` is what a person has raised it to. `source` says where it
    was set."""

    measure: Measure
    per: LimitScope
    most: float
    value: float
    outcome: LimitOutcome
    turn_id: str
    currency: str = ""
    source: str = ""
    raised_to: float | None = None

    @property
    def ends_turn(self) -> bool:
        return self.outcome in ("stopped", "not_sent")


class TurnTerms(Fact):
    """What came with the prompt of a turn from another process, and holds for that turn alone, in
    addition to the rules of the process that runs the session.

    `by` is the sending process, `options` its command-line options, `home` its machine if several
    share the store. `on_ask` says what happens to requests that no rule decides: `reject` refuses
    them, `wait` lets them wait for an answer from any window.
    """

    by: str
    options: list[str] = msgspec.field(default_factory=list[str])
    rules: list[dict[str, Any]] = msgspec.field(default_factory=list[dict[str, Any]])
    on_ask: Literal["reject", "wait"] | None = None
    home: str | None = None


OnLimit: TypeAlias = Literal["park", "ask", "fail"]
"""What becomes of a prompt whose turn ends because the agent's provider takes no more: it waits and
is sent again, it waits until a person says what to do, or the turn fails."""
LimitKind: TypeAlias = Literal["rate", "overloaded", "plan"]
"""Too many requests for now, a provider without capacity, or a plan that is used up."""
ParkingOutcome: TypeAlias = Literal["waiting", "continued", "dropped", "handed_over", "taken_over"]


class Parking(Fact):
    """A prompt that waits until a limit of the agent's provider has ended; its id is that of the
    turn that was cut short. Without `resumes_at` it waits for a person.

    `repeats` says that the agent had done nothing yet, so that the same prompt is sent again;
    otherwise the agent is asked to continue. `attempt` counts how often the prompt was parked;
    `ends_at` is the end of the limit as the agent reports it. `is_doubted`: the process that sent
    the prompt was killed, and nobody has found out yet whether the agent got it.
    """

    id: str
    content: list[Content]
    kind: LimitKind
    resumes_at: float | None = None
    ends_at: float | None = None
    attempt: int = 1
    repeats: bool = True
    terms: TurnTerms | None = None
    is_doubted: bool = False


class ProgramRun(Fact):
    """A program that was started inside a fence, by the agent or by what it started.

    `id` names it within its session. `parents` are the programs above it, the outermost first.
    `count` says how often the same program was started in a row. `refused` is why it was not
    started. `cut` says that `argv` is incomplete.
    """

    id: str
    argv: list[str]
    cwd: str = ""
    parents: list[str] = []
    count: int = 1
    exit_code: int | None = None
    signal: str | None = None
    refused: str | None = None
    cut: bool = False


class ProgramEnd(Fact):
    """How a program of an earlier event ended."""

    id: str
    exit_code: int | None = None
    signal: str | None = None


class Decision(Fact):
    """What was decided, why, and by whom; `by` is None if that is not known."""

    effect: str
    reason: str
    rule: dict[str, Any] | None = None
    by: Decider | None = None

    def __post_init__(self) -> None:
        if self.by is None:
            self.by = _decider_of_old(self)


def _decider_of_old(decision: Decision) -> Decider | None:
    """Events that were stored before there was the field say it in their reason alone."""
    reason = decision.reason
    if reason in ("answered", "refused"):
        return "person"
    if reason.startswith("there is nobody to ask"):
        return "default"
    if "there is nobody to ask" in reason:
        return "nobody"
    if reason.endswith("is switched off here"):
        return "offer"
    if decision.effect == "cancelled":
        return "cancel"
    return None if decision.rule is None else "rule"


Json: TypeAlias = dict[str, Any]


class Kind:
    """What a kind of event says of itself, and the words of one."""

    __slots__ = ()

    from_agent: ClassVar[bool] = False
    """Only an agent causes it: when it follows a prompt, the agent has begun to answer."""
    is_history: ClassVar[bool] = False
    """A loaded session sends it again; other kinds are news even then."""
    is_answer: ClassVar[bool] = False
    """Part of the work on a prompt, and not of what runs in the background."""

    @property
    def text(self) -> str:
        return ""


class Spoken(Kind):
    """A kind of event whose words are those of its content."""

    __slots__ = ()

    @property
    def text(self) -> str:
        return cast("_HasContent", self).content.text


class _HasContent(Protocol):
    content: Content


Author: TypeAlias = Literal["host", "agent", "other", "unknown", "restore", "imported"]
"""Who changed something: Dragoman for the agent, the agent itself, someone else between turns,
someone during the turn, a restore of ours, or nobody knows: an imported file says so."""

FileStatus: TypeAlias = Literal["added", "deleted", "modified", "renamed"]

Moment: TypeAlias = Literal["turn_start", "turn_end", "restore_start", "restore_end"]


class LeftOut(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel", frozen=True):
    """A file that was left out of a snapshot, and why."""

    path: str
    size: int = 0
    reason: str = ""


class RootSnapshot(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel", frozen=True):
    """One folder of the session: the git tree with its files, or the `problem` that kept it from
    being read. `left_out` lists up to 100 files that were left out, and `left_out_count` counts all
    of them."""

    root: str
    tree: str | None = None
    problem: str = ""
    left_out: list[LeftOut] = []
    left_out_count: int = 0
    empty_folders: list[str] = []


class FileSummary(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel", frozen=True):
    """A file that a turn or a restore changed, in brief."""

    path: str
    status: FileStatus
    old_path: str | None = None
    added: int = 0
    removed: int = 0
    by: list[Author] = []

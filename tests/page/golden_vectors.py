"""Event sequences and the states they fold to, written for the page's own fold to agree with.

Run as a program it writes `web/test/golden.json`; `test_golden_vectors.py` says when that is stale.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET

from dragoman.session import events as e
from dragoman.session.content import (
    UNREAD,
    Content,
    ContentItem,
    Diff,
    Image,
    Location,
    Resource,
    ResourceLink,
    TerminalItem,
    Text,
    ToolContent,
    UnknownContent,
    UnknownItem,
)
from dragoman.session.facts import (
    BackgroundWork,
    Command,
    ConfigChoice,
    ConfigOption,
    Cost,
    Decision,
    FileSummary,
    Mode,
    Parking,
    PermissionOption,
    PlanStep,
    ProgramEnd,
    ProgramRun,
    ReachedLimit,
    RootSnapshot,
    SubagentState,
    TokenUsage,
    TurnTerms,
)
from dragoman.session.reduce import reduce
from dragoman.session.state import (
    AgentEntry,
    SessionState,
    Terminal,
    ThoughtEntry,
    UserEntry,
)
from dragoman.session.state_limits import LIMITS, Limits

GOLDEN = Path(__file__).parents[2] / "web" / "test" / "golden.json"

_SEQUENCES = 40
_LENGTH = 50


def vectors() -> bytes:
    """Every sequence with its events and its final state, as JSON."""
    cases = [_case(f"random {seed}", _random_events(seed)) for seed in range(_SEQUENCES)]
    cases += [_case(f"a tree {seed}", _tree_events(seed)) for seed in range(_SEQUENCES // 2)]
    cases.append(_case("a whole turn", _whole_turn()))
    cases += [
        _case(f"little room {seed}", _long_events(seed), _LITTLE) for seed in range(_SEQUENCES // 2)
    ]
    cases += [_case(f"cut short: {how}", _cut_short(end)) for how, end in _ENDINGS.items()]
    return msgspec.json.encode(cases) + b"\n"


_LITTLE = Limits(
    entry=500,
    thread=4_000,
    entries=8,
    turns=3,
    facts=200,
    fact=600,
    others=2,
    line=4,
)
"""Terminals have their usual room: how much of their output is held is each fold's own affair."""


def _case(name: str, events: list[e.Event], limits: Limits | None = None) -> dict[str, Any]:
    state = SessionState()
    for event in events:
        reduce(state, event, limits or LIMITS)
    case = {"name": name, "events": events, "state": _whole_state(state)}
    return case if limits is None else {**case, "limits": limits}


def _whole_state(state: SessionState) -> dict[str, Any]:
    """With the defaults of its rows spelled out, without what only the fold itself looks at."""
    whole = _row(state)
    del whole["places"], whole["printed"]
    for name in ("entries", "turns", "queue"):
        whole[name] = [_row(row) for row in getattr(state, name)]
    for name in ("terminals", "pending"):
        whole[name] = {key: _row(row) for key, row in getattr(state, name).items()}
    whole["subagents"] = {
        key: _row(child) | {"thread": _whole_state(child.thread)}
        for key, child in state.subagents.items()
    }
    return whole


def _row(row: msgspec.Struct) -> dict[str, Any]:
    config = row.__struct_config__
    tag = {} if config.tag_field is None else {config.tag_field: config.tag}
    names = zip(row.__struct_fields__, row.__struct_encode_fields__, strict=True)
    fields = {told: getattr(row, name) for name, told in names if name not in _PIECES}
    if isinstance(row, Terminal):
        fields["output"] = row.output
    if isinstance(row, UserEntry | AgentEntry | ThoughtEntry):
        fields["content"] = row.content
    return {**tag, **fields}


_PIECES = ("pieces", "size")
"""How a text is held, which is each fold's own affair."""


# ── random events ─────────────────────────────────────────────────────────────────────────────


def _long_events(seed: int) -> list[e.Event]:
    """With much in each of them, and ids that are seldom used again."""
    dice = random.Random(1_000 + seed)
    makers: list[Maker] = [
        *_MAKERS,
        *_COMMON * 2,
        lambda d: e.AgentMessage(Text("x𝄞" * d.randrange(300)), _message_id(d)),
        lambda d: e.UserMessage(Text("y" * d.randrange(300)), f"u{d.randrange(40)}", replay=True),
        lambda d: e.TurnStarted(_id(d, "turn"), [Text("wörd " * d.randrange(200))]),
        lambda d: e.ToolCallUpdated(
            f"call{d.randrange(40)}",
            title="t" * d.randrange(200),
            raw_input={"a": "𝄞" * d.randrange(400), "b": [1, "z" * d.randrange(400)], "c": {}},
            content=[ContentItem(Text("w" * d.randrange(300))) for _ in range(d.randrange(4))],
            more=[ContentItem(Text("v" * d.randrange(300)))],
            meta={f"k{d.randrange(4)}": "m" * d.randrange(200)},
        ),
        lambda d: e.PlanUpdated([PlanStep("s" * d.randrange(200)) for _ in range(4)]),
        lambda d: e.CompactionSummary(f"comp{d.randrange(9)}", Text("c" * d.randrange(300))),
        lambda d: e.PeerMessageChunk(f"peer{d.randrange(9)}", Text("p" * d.randrange(300))),
        lambda d: e.SubagentUpdated(f"sub{d.randrange(9)}", title="n" * d.randrange(200)),
        lambda d: e.SubagentEvent(f"sub{d.randrange(4)}", d.choice(makers)(d)),
        lambda d: e.SubagentEvent(f"sub{d.randrange(4)}", d.choice(makers)(d)),
        lambda d: e.Notice("t" * d.randrange(300), description="d" * d.randrange(300)),
        lambda d: e.CommandsChanged([Command("c" * d.randrange(90)) for _ in range(4)]),
        lambda d: e.TerminalStarted(f"term{d.randrange(5)}", ["a" * d.randrange(900)], "/w"),
    ]
    return _drawn(dice, makers)


def _random_events(seed: int) -> list[e.Event]:
    return _drawn(random.Random(seed), _MAKERS + _COMMON * 4)


def _tree_events(seed: int) -> list[e.Event]:
    """Several subagents that speak at once, some of them for others."""
    dice = random.Random(2_000 + seed)
    makers: list[Maker] = [*_MAKERS, *_COMMON * 4]
    tree: list[Maker] = [
        lambda d: e.SubagentEvent(_id(d, "sub"), d.choice(makers)(d)),
        lambda d: e.SubagentUpdated(
            _id(d, "sub"), state=_doing(d), parent=d.choice([None, "sub1"]), tool_call_id="c1"
        ),
    ]
    return _drawn(dice, makers + tree * 20)


def _drawn(dice: random.Random, makers: list[Maker]) -> list[e.Event]:
    events: list[e.Event] = []
    for seq in range(1, _LENGTH + 1):
        event = dice.choice(makers)(dice)
        event.seq, event.at = seq, 1000.0 + seq / 4
        event.replay = dice.random() < 0.15
        events.append(event)
    return events


def _words(dice: random.Random) -> str:
    return dice.choice(["", "Hello ", "wörld", "\n\n", "`code`", "𝄞", "same", "same"])


def _content(dice: random.Random) -> Content:
    kinds: list[Content] = [
        Text(_words(dice)),
        Text(_words(dice)),
        Text(_words(dice)),
        Text("noted", annotations={"audience": ["user"]}),
        Image("aGk=", "image/png"),
        ResourceLink("file:///a.py", "a.py"),
        Resource("file:///b.txt", content="same"),
        UnknownContent("hologram", "{}"),
    ]
    return dice.choice(kinds)


def _tool_content(dice: random.Random) -> ToolContent:
    kinds: list[ToolContent] = [
        ContentItem(_content(dice)),
        Diff("a.py", "new", old_text=dice.choice([None, "old"])),
        Diff("b.py", "", operation="move", old_path="a.py", patch="@@ -1 +1 @@"),
        TerminalItem(f"term{dice.randrange(2)}"),
    ]
    return dice.choice(kinds)


def _id(dice: random.Random, word: str) -> str:
    return f"{word}{dice.randrange(3)}"


def _message_id(dice: random.Random) -> str | None:
    return dice.choice([None, None, "m1", "m2"])


def _patch(dice: random.Random, **fields: Any) -> dict[str, Any]:
    """Some of the fields, some of those cleared."""
    chosen = {name: value for name, value in fields.items() if dice.random() < 0.5}
    return {name: None if dice.random() < 0.2 else value for name, value in chosen.items()}


def _tool_call(dice: random.Random) -> e.Event:
    return e.ToolCallUpdated(
        _id(dice, "call"),
        meta=dice.choice([None, None, {"a": dice.randrange(3)}, {"b": [1]}, {"a": None}]),
        more=_more(dice),
        cancellable=dice.choice([UNSET, UNSET, True, False]),
        forgets_meta=dice.random() < 0.1,
        **_patch(
            dice,
            title=_words(dice),
            name="edit",
            kind=dice.choice(["edit", "execute", ""]),
            status=dice.choice(["pending", "in_progress", "completed", "failed", "odd"]),
            content=[_tool_content(dice) for _ in range(dice.randrange(3))],
            locations=[Location("a.py", line=dice.randrange(9))],
            raw_input={"path": "a.py", "n": [1, 2]},
            raw_output="out",
        ),
    )


def _more(dice: random.Random) -> list[ToolContent]:
    unread = UnknownItem(UNREAD, str(dice.randrange(99)))
    return dice.choice([[], [], [], [_tool_content(dice)], [unread], [unread, _tool_content(dice)]])


def _plan(dice: random.Random) -> e.Event:
    steps = [PlanStep(_words(dice), status=dice.choice(["pending", "completed"]))]
    return e.PlanUpdated(steps=steps * dice.randrange(3), plan_id=dice.choice(["", "", "p1", "p2"]))


def _compaction(dice: random.Random) -> e.Event:
    fields = _patch(dice, summary=[_content(dice)], error="broke")
    return e.CompactionUpdated(
        _id(dice, "comp"), dice.choice(["in_progress", "completed"]), **fields
    )


def _subagent(dice: random.Random) -> e.Event:
    fields = _patch(dice, title="child", description="d", state=_doing(dice), cwd="/w")
    return e.SubagentUpdated(_id(dice, "sub"), **fields)


def _doing(dice: random.Random) -> SubagentState:
    states = [SubagentState(error={"k": 1}), *map(SubagentState, ("running", "requires_action"))]
    return dice.choice([*states, SubagentState("idle")])


def _peer_message(dice: random.Random) -> e.Event:
    fields = _patch(dice, sender_session_id="x", recipient_session_id="y", content=[_content(dice)])
    return e.PeerMessageUpdated(_id(dice, "peer"), **fields)


def _permission(dice: random.Random) -> e.Event:
    return e.PermissionRequested(
        _id(dice, "ask"),
        [
            PermissionOption("ok", "Allow", "allow_once"),
            PermissionOption("no", "Reject", "reject_once"),
        ],
        title=_words(dice),
        operation=dice.choice(["write", "execute", "other"]),
        paths=["a.py"],
        argv=dice.choice([None, ["rm", "-rf", "x y"]]),
        content=[_tool_content(dice)],
        always=dice.choice([None, "rm in this folder"]),
        explanation=dice.choice([None, "to make room"]),
        claimed=dice.random() < 0.5,
        cwd=dice.choice([None, "/w/sub"]),
        env=["LD_PRELOAD"],
    )


def _turn_ended(dice: random.Random) -> e.Event:
    return e.TurnEnded(
        _id(dice, "turn"),
        stop_reason=dice.choice([None, "end_turn", "cancelled"]),
        usage=dice.choice([None, TokenUsage(3, 2, 1)]),
        error=dice.choice([None, None, "lost"]),
    )


def _config(dice: random.Random) -> e.Event:
    choices = [ConfigChoice("a", "A"), ConfigChoice("b", "B", group="more")]
    return e.ConfigChanged([ConfigOption("model", "Model", dice.choice("ab"), choices=choices)])


def _mode(dice: random.Random) -> e.Event:
    return e.ModeChanged(_id(dice, "mode"), dice.choice([None, [Mode("mode1", "One")]]))


def _activity(dice: random.Random) -> e.Event:
    return e.ActivityChanged(
        activity=dice.choice([UNSET, "running", "idle"]),
        background=dice.choice(
            [
                UNSET,
                [],
                [BackgroundWork("terminal")],
                [BackgroundWork("subagent", session_id="sub0")],
            ]
        ),
    )


def _terminal_started(dice: random.Random) -> e.Event:
    argv, command = dice.choice([(["ls", "-l"], ""), ([], "ls -l")])
    return e.TerminalStarted(
        _id(dice, "term"), argv, "/w", command=command, cancellable=dice.random() < 0.5
    )


def _opened(dice: random.Random) -> e.Event:
    return e.SessionOpened("s", "/w", dice.choice(["new", "continued", "reset"]), agent="demo")


Maker = Callable[[random.Random], e.Event]

_TERMS = TurnTerms(by="process 7", options=["--write"], rules=[{"effect": "allow"}], on_ask="wait")

_COMMON: list[Maker] = [
    lambda d: e.AgentMessage(_content(d), _message_id(d)),
    lambda d: e.AgentThought(_content(d), _message_id(d)),
    lambda d: e.UserMessage(_content(d), _message_id(d)),
    _tool_call,
    lambda d: e.TurnStarted(_id(d, "turn"), [_content(d) for _ in range(1 + d.randrange(2))]),
    lambda d: e.TerminalOutput(_id(d, "term"), _words(d)),
]

_MAKERS: list[Maker] = [
    _opened,
    lambda d: e.SessionClosed("done"),
    lambda d: e.TurnCancelling(_id(d, "turn")),
    _turn_ended,
    _plan,
    lambda d: e.PlanRemoved(d.choice(["p1", "p2"])),
    lambda d: e.CommandsChanged([Command("test", "Run the tests", hint="which")]),
    _mode,
    _config,
    lambda d: e.InfoChanged(**_patch(d, title="A title", updated_at="2026-01-01")),
    lambda d: e.UsageChanged(d.randrange(9), 10, d.choice([None, Cost(0.25, "USD")])),
    lambda d: e.LimitReached(
        _words(d),
        d.choice(["warning", "error"]),
        source="client",
        limit=ReachedLimit(
            measure="cost", per="turn", most=1, value=2, outcome="stopped", turn_id="turn-1"
        ),
    ),
    lambda d: e.Notice("Careful", severity=d.choice(["info", "warning"]), description=_words(d)),
    _compaction,
    lambda d: e.CompactionSummary(_id(d, "comp"), _content(d)),
    _subagent,
    _peer_message,
    lambda d: e.PeerMessageChunk(_id(d, "peer"), _content(d)),
    lambda d: e.UnknownUpdate("novelty", "{}"),
    _permission,
    lambda d: e.PermissionSettled(_id(d, "ask"), "ok", Decision("allow", "a person said so")),
    lambda d: e.AccessDecided("read", Decision("allow", "inside"), paths=["a.py"]),
    lambda d: e.ElicitationRequested(_id(d, "ask"), "Name?", "form", schema={"type": "object"}),
    lambda d: e.ElicitationSettled(_id(d, "ask"), "accept"),
    _terminal_started,
    _activity,
    lambda d: e.AgentMessage(_content(d), _message_id(d), replaces=True),
    lambda d: e.UserMessage(_content(d), _message_id(d), replaces=True),
    lambda d: e.TerminalOutput(_id(d, "term"), _words(d), replaces=True),
    lambda d: e.FileReverted("a.py"),
    lambda d: e.TerminalExited(
        _id(d, "term"), exit_code=d.choice([None, 0, 2]), signal=d.choice([None, "KILL"])
    ),
    lambda d: e.TerminalReleased(_id(d, "term")),
    lambda d: e.FileWritten("a.py", "new", before="old"),
    lambda d: e.WorkspaceSnapshot(
        d.choice(("turn_start", "turn_end", "restore_end")),
        _id(d, "turn"),
        [RootSnapshot(root="/work", tree=d.choice((None, "4b825d")), problem=_words(d))],
        [FileSummary(path="/work/a.py", status="modified", added=1, by=["agent"])],
        1,
        d.choice(("", "another session worked in the same folder")),
    ),
    lambda d: e.ProgramsRan(
        [
            ProgramRun(
                id=_id(d, "p"),
                argv=["git", _words(d)],
                cwd="/work",
                parents=d.choice(([], ["sh", "make"])),
                count=d.choice((1, 3)),
                refused=d.choice((None, "a rule denies it")),
            )
            for _ in range(d.choice((1, 90)))
        ],
        [ProgramEnd(id=_id(d, "p"), exit_code=d.choice((None, 0, 2)), signal="SIGTERM")],
        d.choice((0, 4)),
    ),
    lambda d: e.PromptQueued(_id(d, "q"), [_content(d)], d.choice((None, _TERMS))),
    lambda d: e.TurnLimited(
        _words(d),
        "warning",
        source="client",
        turn_id="turn-1",
        kind=d.choice(["rate", "plan"]),
        parked=d.choice([None, _parked(d.choice([None, 5.0])), _parked(5.0, is_doubted=True)]),
    ),
    lambda d: e.ParkingChanged(
        _words(d),
        source="client",
        parking_id="turn-1",
        outcome=d.choice(["waiting", "continued", "dropped"]),
        resumes_at=d.choice([None, 7.0]),
    ),
    lambda d: e.PromptUnqueued(_id(d, "q")),
    lambda d: e.PromptQueued(_id(d, "q"), [_content(d)], steer=d.choice((None, "waiting", "sent"))),
    lambda d: e.Steered(
        _id(d, "q"),
        d.choice(("delivered", "queued", "started", "refused", "unsure")),
        "steering",
        d.choice(([], [_content(d)])),
        d.choice(("", "not now")),
    ),
]


def _parked(resumes_at: float | None, *, is_doubted: bool = False) -> Parking:
    content: list[Content] = [Text("again")]
    return Parking("turn-1", content, "rate", resumes_at=resumes_at, is_doubted=is_doubted)


def _whole_turn() -> list[e.Event]:
    diff = Diff("a.py", "x = 2\n", old_text="x = 1\n")
    events: list[e.Event] = [
        e.SessionOpened(
            "agent-1", "/w", "new", agent="demo", fence="namespaces", network=["a.org:443"]
        ),
        e.CommandsChanged([Command("plan"), Command("review", "Look again", hint="path")]),
        e.TurnStarted("t1", [Text("Change x, "), Text("please")]),
        e.UserMessage(Text("Change x, please")),
        e.AgentThought(Text("Let me ")),
        e.AgentThought(Text("see")),
        e.PlanUpdated(steps=[PlanStep("Edit", status="in_progress"), PlanStep("Test", "low")]),
        e.ToolCallUpdated("c1", title="Edit a.py", kind="edit", content=[diff]),
        _permission(random.Random(7)),
        e.PermissionSettled("ask0", None, Decision("cancelled", "nobody answered")),
        e.PermissionSettled("ask1", "ok", Decision("allow", "a person said so")),
        e.PermissionSettled("ask2", "ok", Decision("allow", "a person said so")),
        e.ToolCallUpdated("c1", status="completed"),
        e.TerminalStarted("term1", ["pytest", "-q"], "/w"),
        e.TerminalOutput("term1", "1 passed\r\n"),
        e.TerminalExited("term1", exit_code=0),
        e.PlanUpdated(steps=[PlanStep("Edit", status="completed"), PlanStep("Test", "low")]),
        e.AgentMessage(Text("Done: ")),
        e.AgentMessage(Text("**x** is 2.")),
        e.TurnEnded("t1", "end_turn", TokenUsage(30, 20, 10)),
        e.AgentMessage(Text("A word after the end.")),
    ]
    return _numbered(events)


_ENDINGS: dict[str, e.Event] = {
    "cancelled": e.TurnEnded("t1", "cancelled"),
    "failed": e.TurnEnded("t1", error="the agent died"),
    "interrupted": e.TurnEnded("t1", error="the process ended", interrupted=True),
    "interrupted long ago": e.TurnEnded(
        "t1", error="interrupted: the process that ran the session ended"
    ),
    "opened again": e.SessionOpened("agent-1", "/w", "continued", agent="demo"),
    "not at all": e.TurnEnded("t1", "end_turn"),
}


def _cut_short(end: e.Event) -> list[e.Event]:
    """With all that can be at work when a turn ends, and an agent that repeats itself."""
    running_on = [BackgroundWork("subagent", session_id="on")]
    events: list[e.Event] = [
        e.TurnStarted("t1", [Text("Go")]),
        e.CompactionUpdated("k1", "in_progress"),
        e.CompactionUpdated("k2", "completed"),
        *(e.SubagentUpdated(name, state=SubagentState("running")) for name in ("one", "on")),
        e.SubagentUpdated("asks", state=SubagentState("requires_action")),
        e.SubagentUpdated("done", state=SubagentState("idle", stop_reason="end_turn")),
        e.SubagentUpdated("untold"),
        e.ActivityChanged("running", background=running_on),
        e.ToolCallUpdated("c", content=[ContentItem(Text("kept"))], status="in_progress"),
        *(e.ToolCallUpdated("c", more=[UnknownItem(UNREAD, str(n))]) for n in range(3)),
        msgspec.structs.replace(end),
    ]
    return _numbered(events)


def _numbered(events: list[e.Event]) -> list[e.Event]:
    for seq, event in enumerate(events, 1):
        event.seq, event.at = seq, 5.0 + seq
    return events


if __name__ == "__main__":
    GOLDEN.write_bytes(vectors())

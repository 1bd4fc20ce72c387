"""Sessions with something of everything: for screenshots and for tests of the layout."""

from __future__ import annotations

import base64
import struct
import zlib
from pathlib import Path

from page.seeding import told_session
from support.folders import Watched

from dragoman.session import events as e
from dragoman.session.content import (
    Audio,
    ContentItem,
    Diff,
    Image,
    Location,
    ResourceLink,
    TerminalItem,
    Text,
)
from dragoman.session.facts import (
    Command,
    ConfigChoice,
    ConfigOption,
    Cost,
    Decision,
    Mode,
    PermissionOffer,
    PermissionOption,
    PlanStep,
    SubagentState,
    TokenUsage,
)

_OLD = """def parse(text):
    parts = text.split(",")
    return [int(part) for part in parts]


def total(text):
    return sum(parse(text))
"""
_NEW = """def parse(text):
    \"\"\"Numbers between commas; blanks do not count.\"\"\"
    parts = [part.strip() for part in text.split(",")]
    return [int(part) for part in parts if part]


def total(text):
    return sum(parse(text))
"""
_ANSWER = """The parser failed on **empty parts**: `"1,,2"` reached `int("")`.

### What I changed

1. Blank parts are skipped.
2. Spaces around a number are allowed.

```python
>>> parse("1, ,2")
[1, 2]
```

| input | before | now |
|---|---|---|
| `"1,2"` | `[1, 2]` | `[1, 2]` |
| `"1,,2"` | error | `[1, 2]` |

See the [language reference](https://docs.python.org/3/reference/) for `str.split`.
"""
_OUTPUT = (
    "\x1b[1mtests/test_parse.py\x1b[0m \x1b[32m....\x1b[0m\r\n"
    "tests/test_total.py \x1b[32m..\x1b[0m\r\n\r\n\x1b[32m6 passed\x1b[0m in 0.12s\r\n"
)


def _picture(width: int = 300, height: int = 120) -> str:
    """A small landscape of colours, as a PNG in base64."""
    rows = b"".join(
        b"\0" + b"".join(bytes((40 + y, 110 + x // 4, 160 - y)) for x in range(width))
        for y in range(height)
    )
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    )
    chunks = (
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in parts
    )
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(chunks)).decode()


def _sound(seconds: int = 3, rate: int = 8000) -> str:
    """Silence, as a WAV in base64."""
    size = seconds * rate
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, rate, rate, 1, 8)
    data = struct.pack("<4sI", b"data", size) + b"\x80" * size
    whole = struct.pack("<4sI4s", b"RIFF", 4 + len(form) + len(data), b"WAVE") + form + data
    return base64.b64encode(whole).decode()


async def fill(home: Path, folder: Path) -> None:
    """The sessions, each in a folder of its own name, whether that is there or not."""
    app, docs = folder / "parser", folder / "handbook"
    async with told_session(home, "fix", app, title="Fix the parser for empty parts") as teller:
        await teller.tell([*_opening(app), *_finished_turn(app)], status="idle")
    async with told_session(home, "chapter", docs, title="Write the chapter on cancelling") as it:
        await it.tell([*_opening(docs), *_lost_memory(docs)], status="idle")
    async with told_session(home, "release", app, title="Prepare release 2.1", agent="demo") as it:
        await it.tell([*_opening(app), *_asking(app)], status="waiting")


_PRICES = """from dataclasses import dataclass


@dataclass
class Item:
    name: str
    price: float
    count: int = 1


def found(items, name):
    for item in items:
        if item.name == name:
            return item
    raise KeyError(name)


def total(items):
    result = 0
    for item in items:
        result += item.price * item.count
    return result


def receipt(items):
    lines = [f"{item.name}: {item.price}" for item in items]
    lines.append(f"total: {total(items)}")
    return "\\n".join(lines)
"""
_IN_CENTS = (
    ("    price: float\n", "    cents: int\n"),
    (
        """    result = 0
    for item in items:
        result += item.price * item.count
    return result
""",
        "    return sum(item.cents * item.count for item in items)\n",
    ),
    (
        """    lines = [f"{item.name}: {item.price}" for item in items]
    lines.append(f"total: {total(items)}")
""",
        """    lines = [f"{item.name}: {shown(item.cents)}" for item in items]
    lines.append(f"total: {shown(total(items))}")
""",
    ),
)
_SHOWN = """def shown(cents):
    return f"{cents // 100}.{cents % 100:02}"
"""


async def fill_review(home: Path, folder: Path) -> None:
    """A session in a folder that is there, with snapshots of what its agent did."""
    (folder / "shop").mkdir(parents=True)
    (folder / "shop/prices.py").write_text(_PRICES)
    (folder / "NOTES.md").write_text("Prices are floats. Round them when they are shown.\n")
    watched = Watched(folder, home / "snapshots")
    await watched.turn("t1", _count_in_cents)
    begun, ended = watched.events
    async with told_session(home, "prices", folder, title="Count prices in cents") as teller:
        told: list[e.Event] = [
            e.TurnStarted("t1", [Text("Count prices in cents, so that nothing is rounded.")]),
            begun,
            e.ToolCallUpdated("c1", title="Edit 4 files", kind="edit", status="completed"),
            e.AgentMessage(Text("Prices are whole cents now, and shown with two digits.")),
            e.TurnEnded("t1", "end_turn"),
            ended,
        ]
        await teller.tell([*_opening(folder), *told], status="idle")


def _count_in_cents(folder: Path) -> None:
    text = _PRICES
    for old, new in _IN_CENTS:
        text = text.replace(old, new)
    (folder / "shop/prices.py").write_text(text)
    (folder / "shop/money.py").write_text(_SHOWN)
    (folder / "NOTES.md").unlink()
    (folder / ".envrc").write_text("export SHOP_CURRENCY=EUR\n")


def _opening(folder: Path) -> list[e.Event]:
    models = [ConfigChoice("small", "Small"), ConfigChoice("large", "Large")]
    return [
        e.SessionOpened("agent-1", str(folder), "new", agent="demo"),
        e.CommandsChanged([Command("plan", "Make a plan"), Command("review", "Look again")]),
        e.ModeChanged("ask", [Mode("ask", "Ask"), Mode("code", "Code")]),
        e.ConfigChanged([ConfigOption("model", "Model", "large", choices=models)]),
    ]


def _finished_turn(folder: Path) -> list[e.Event]:
    path = str(folder / "parse.py")
    steps = ("Find the cause", "Mend `parse.py`", "Run the tests")
    return [
        e.TurnStarted("t1", [Text("`total('1,,2')` fails. Please mend it and run the tests.")]),
        e.AgentThought(Text("An empty part reaches int(). I look at the file first.")),
        e.PlanUpdated(steps=[PlanStep(step, status="completed") for step in steps]),
        e.ToolCallUpdated(
            "c1",
            title="Read parse.py",
            kind="read",
            status="completed",
            locations=[Location(path, line=1)],
            content=[ContentItem(Text(f"```python\n{_OLD}```"))],
        ),
        e.UsageChanged(42_000, 200_000, Cost(0.19, "USD")),
        e.ToolCallUpdated(
            "c2",
            title="Edit parse.py",
            kind="edit",
            status="completed",
            content=[Diff(path, _NEW, old_text=_OLD)],
        ),
        e.AccessDecided("write", Decision("allow", "a rule of yours"), paths=[path]),
        e.TerminalStarted("x1", ["pytest", "-q"], str(folder)),
        e.TerminalOutput("x1", _OUTPUT),
        e.TerminalExited("x1", exit_code=0),
        e.ToolCallUpdated(
            "c3",
            title="Run pytest -q",
            kind="execute",
            status="completed",
            content=[TerminalItem("x1")],
            raw_input={"command": "pytest", "args": ["-q"]},
        ),
        e.UsageChanged(124_000, 200_000, Cost(0.41, "USD")),
        e.AgentMessage(Text(_ANSWER)),
        e.TurnEnded("t1", "end_turn", TokenUsage(5200, 4300, 900)),
    ]


def _lost_memory(folder: Path) -> list[e.Event]:
    return [
        e.TurnStarted("t1", [Text("Draft the chapter."), ResourceLink("file:///w/o.md", "o.md")]),
        e.AgentMessage(Text("Here is a first picture of it.")),
        e.AgentMessage(Image(_picture(), "image/png")),
        e.AgentMessage(Audio(_sound(), "audio/wav")),
        e.Notice("Rate limit", severity="warning", description="The next request waits 20 s."),
        e.CompactionUpdated("k1", "completed", summary=[Text("The chapter has three parts.")]),
        e.SubagentUpdated(
            "s2",
            title="Check the spelling",
            description="Reads what was written, with the dictionary of the house.",
            state=SubagentState("running"),
        ),
        e.PeerMessageUpdated(
            "pm1",
            sender_session_id="agent-1",
            recipient_session_id="s2",
            content=[Text("Look at part one first.")],
        ),
        *_task(folder),
        e.TurnEnded("t1", "max_tokens"),
        e.SessionOpened("agent-2", str(folder), "reset", agent="demo"),
        e.TurnStarted("t2", [Text("Go on with part two.")]),
        e.ToolCallUpdated("c9", title="Read outline.md", kind="read", status="in_progress"),
        e.TurnEnded("t2", error="the agent ended with exit code 1: model is overloaded"),
        e.UsageChanged(172_000, 200_000, Cost(1.2, "USD")),
    ]


def _task(folder: Path) -> list[e.Event]:
    """A task that the agent gave away, and what was done for it."""
    beneath = {"claudeCode": {"parentToolUseId": "task"}}
    place = Location(str(folder / "outline.md"), line=4)
    return [
        e.ToolCallUpdated("task", title="Task: gather sources", kind="think", status="completed"),
        e.ToolCallUpdated(
            "task1",
            title="Search for “cancel”",
            kind="search",
            status="completed",
            locations=[place],
            meta=beneath,
        ),
    ]


def _asking(folder: Path) -> list[e.Event]:
    words = "exactly this command in this folder for demo in this project"
    always, never = f"from now on: allow {words}", f"from now on: refuse {words}"
    offers = [
        PermissionOffer(f"{breadth}:{scope}", breadth, scope, subject, f"Allow {subject} {where}")
        for breadth, subject in (("this", "this command"), ("program", "“git tag …”"))
        for scope, where in (("session", "in this session"), ("project", "in this project"))
    ]
    options = [
        PermissionOption("allow", "Allow once", "allow_once"),
        PermissionOption("allow_always", "Always allow", "allow_always", always),
        PermissionOption("reject", "Reject", "reject_once"),
        PermissionOption("reject_always", "Always reject", "reject_always", never),
    ]
    schema = {
        "type": "object",
        "required": ["version"],
        "properties": {
            "version": {"type": "string", "title": "Version", "description": "Such as 2.1.0"},
            "channel": {"type": "string", "title": "Channel", "enum": ["stable", "beta"]},
            "announce": {"type": "boolean", "title": "Announce it", "default": True},
        },
    }
    return [
        e.TurnStarted("t1", [Text("Prepare release 2.1: changelog, tag, build.")]),
        e.PlanUpdated(
            steps=[
                PlanStep("Write the changelog", status="completed"),
                PlanStep("Tag and build", "high", "in_progress"),
                PlanStep("Report", "low"),
            ]
        ),
        e.AgentMessage(Text("The changelog is written. Now I tag the release.")),
        e.UsageChanged(61_000, 200_000, Cost(0.22, "USD")),
        e.PermissionRequested(
            "p1",
            options,
            title="Tag the release",
            operation="execute",
            argv=["git", "tag", "-a", "v2.1.0", "-m", "Release 2.1"],
            offers=offers,
        ),
        e.ElicitationRequested("q1", "What shall be released?", "form", schema=schema),
        e.PromptQueued("w1", [Text("Then write the announcement.")]),
    ]

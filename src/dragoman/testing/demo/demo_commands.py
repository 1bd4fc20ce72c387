"""The demo agent's slash commands, each a function of the turn and its argument."""

from __future__ import annotations

import asyncio
import base64
import os
import shlex
import struct
import sys
import zlib
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final, Literal, TypeAlias

from dragoman.errors import InternalError
from dragoman.schema import v1
from dragoman.testing.demo.demo_agent import COMMANDS as ADVERTISED
from dragoman.testing.demo.demo_turn import DemoTurn, Ran

Command: TypeAlias = Callable[[DemoTurn, str], Awaitable[None]]

_PIECES_A_SECOND = 4
_SHELL_CHARACTERS = frozenset("|&;<>()$`\\\"'*?[]#~=%{}!\n")


async def _help(demo: DemoTurn, rest: str) -> None:
    rows = "".join(f"- `/{command.name}`: {command.description}\n" for command in ADVERTISED)
    await demo.say(f"{rows}\nAnything else is a task. Modes: ask, plan, auto.\n")


async def _plan(demo: DemoTurn, rest: str) -> None:
    goal = rest or "something worth doing"
    steps = [f"Understand {goal}", "Find what has to change", "Change it", "See that it works"]
    for done in range(len(steps) + 1):
        demo.plan(steps, done)
        await asyncio.sleep(0.05)
    await demo.say(f"That is how I would go about {goal}.\n")


async def _diff(demo: DemoTurn, rest: str) -> None:
    path = os.path.join(demo.cwd, "example.py")
    before, after = "def greet():\n    print('hi')\n", "def greet(name):\n    print('hi', name)\n"
    diff = v1.Diff(path=path, old_text=before, new_text=after)
    with demo.tool("Show a change", "edit", status="in_progress", content=[diff]) as call:
        demo.turn.tool_call_update(call, status="completed")
    await demo.say("That is what a change looks like. Nothing was written.\n")


async def _run(demo: DemoTurn, rest: str) -> None:
    if not rest:
        await demo.say("What should I run? For example `/run ls -la`.\n")
    elif demo.turn.mode == "plan":
        await demo.say("I run nothing in plan mode. Switch to ask or auto.\n")
    else:
        ran = await demo.run(_argv(rest))
        await demo.say(ran.report if isinstance(ran, Ran) else f"{ran}\n")


def _argv(line: str) -> list[str]:
    """Words where the line is nothing more, else a line for a shell."""
    return ["sh", "-c", line] if set(line) & _SHELL_CHARACTERS else shlex.split(line)


async def _think(demo: DemoTurn, rest: str) -> None:
    subject = rest or "nothing in particular"
    always = ("off", "short", "long")
    for thought in ("Let me think about", "On the one hand there is", "On the other hand, it is"):
        await demo.think(f"{thought} {subject}. ", at=always)
    await demo.say(f"I have thought about {subject}.\n")


async def _image(demo: DemoTurn, rest: str) -> None:
    picture = v1.ImageContent(data=base64.b64encode(_picture()).decode(), mime_type="image/png")
    demo.turn.update(v1.AgentMessageChunk(content=picture))
    await demo.say("A picture of 64 by 64 points.\n")


def _picture() -> bytes:
    """A PNG, from blue to red."""
    size = 64
    rows = b"".join(
        b"\0" + b"".join(bytes((x * 4, 64, y * 4)) for x in range(size)) for y in range(size)
    )
    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


FORM: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name", "minLength": 1},
        "colour": {
            "type": "string",
            "title": "Colour",
            "enum": ["red", "green", "blue"],
            "default": "green",
        },
        "count": {"type": "integer", "title": "How many", "minimum": 1, "maximum": 10},
        "gift": {"type": "boolean", "title": "It is a gift", "default": False},
    },
    "required": ["name", "colour"],
}


async def _ask(demo: DemoTurn, rest: str) -> None:
    offered = demo.turn.client.elicitation
    if offered is None or offered.form is None:
        await demo.say("The client offers no forms, so I cannot ask.\n")
        return
    answer = await demo.turn.elicit(rest or "A few questions, to show a form", FORM)
    if answer["action"] == "accept":
        content: dict[str, Any] = answer.get("content") or {}
        rows = "".join(f"- {name}: {value}\n" for name, value in content.items())
        await demo.say(f"You answered:\n\n{rows}")
    else:
        await demo.say(f"You did not answer ({answer['action']}).\n")


async def _slow(demo: DemoTurn, rest: str) -> None:
    count = _number(rest, 10, 3600) * _PIECES_A_SECOND
    demo.said_chars += await demo.stream(_counting(count), 1 / _PIECES_A_SECOND)


async def _long(demo: DemoTurn, rest: str) -> None:
    demo.said_chars += await demo.stream(_counting(_number(rest, 1000, 100_000)), 0)


def _counting(count: int) -> Iterator[str]:
    return (f"{n} " for n in range(1, count + 1))


def _number(text: str, default: int, most: int) -> int:
    return min(max(int(text), 1), most) if text.isascii() and text.isdigit() else default


async def _fail(demo: DemoTurn, rest: str) -> None:
    raise InternalError(rest or "the demo agent failed, as requested", {"demo": True})


async def _crash(demo: DemoTurn, rest: str) -> None:
    sys.stderr.write("the demo agent crashes, as requested\n")
    await demo.turn.vanish(3)


async def _unknown(demo: DemoTurn, rest: str) -> None:
    demo.turn.update({"sessionUpdate": "demo_weather", "sky": "clear", "degrees": 21})
    await demo.say("I sent an update of a kind that no client knows.\n")


def _client_takes(demo: DemoTurn, kind: Literal["notices", "compaction"]) -> bool:
    return getattr(demo.turn.client.session, kind, None) is not None


async def _notice(demo: DemoTurn, rest: str) -> None:
    if not _client_takes(demo, "notices"):
        await demo.say("The client takes no notices.\n")
        return
    text = rest or "This is a notice"
    demo.turn.update(v1.Notice(severity="info", title=text, description="Nothing to worry about"))
    await demo.say("I sent a notice.\n")


async def _compact(demo: DemoTurn, rest: str) -> None:
    if not _client_takes(demo, "compaction"):
        await demo.say("The client wants to know nothing of compactions.\n")
        return
    key = f"compaction-{demo.turn.request_id.decode()}"
    demo.turn.update(v1.CompactionUpdate(compaction_id=key, status="in_progress"))
    for words in ("We spoke ", "of this and that."):
        await asyncio.sleep(0.05)
        piece = v1.TextContent(text=words)
        demo.turn.update(v1.CompactionSummaryChunk(compaction_id=key, content=piece))
    demo.turn.update(v1.CompactionUpdate(compaction_id=key, status="completed"))
    demo.turn.session.used //= 10
    await demo.say("The context is shorter now.\n")


COMMANDS: Final[dict[str, Command]] = {
    "help": _help,
    "plan": _plan,
    "diff": _diff,
    "run": _run,
    "think": _think,
    "image": _image,
    "ask": _ask,
    "slow": _slow,
    "long": _long,
    "fail": _fail,
    "crash": _crash,
    "unknown": _unknown,
    "notice": _notice,
    "compact": _compact,
}

"""What the demo agent does with a prompt: a command, a look at something, or the whole tour."""

from __future__ import annotations

import asyncio
import base64
import os
import re
import shlex
import struct
import sys
import zlib
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import unquote, urlsplit

import msgspec

from dragoman.errors import InternalError
from dragoman.schema import v1
from dragoman.testing.demo.demo_agent import COMMANDS as ADVERTISED
from dragoman.testing.demo.demo_turn import DemoTurn, Ran
from dragoman.testing.scripted_turn import AgentTurn

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


OWN_FILE = "dragoman-demo.txt"
"""The only file it ever writes."""

INTRODUCTION = (
    "I am Dragoman's demo agent: a script, with no model behind it. "
    "To add a real agent, see `dragoman agents list`, then run `dragoman -a NAME`.\n\n"
)

_reads = re.compile(
    r"(?i)\s*(?:please\s+|can you\s+|could you\s+)?"
    r"(?:summari[sz]e|explain|describe|what|why|how|who|where|when|which|read|show|list|tell|"
    r"review|look|find|search|is|are|does)\b"
)
_and_edits = re.compile(
    r"(?i)(?:\band\b|\bthen\b|[,;.])\s*(?:then\s+)?"
    r"(?:add|append|build|change|commit|convert|correct|create|delete|edit|execute|extend|fix|"
    r"format|generate|implement|improve|insert|install|make|migrate|modify|move|put|refactor|"
    r"remove|rename|replace|rewrite|run|save|set|test|update|write)\b"
)
_TEXT_FILES = (".md", ".txt", ".rst", ".py", ".toml", ".json", ".js", ".ts", ".c", ".go", ".rs")


class Material(msgspec.Struct, frozen=True):
    """Something to read: its name, its text if it could be had, else what can be said of it."""

    name: str
    text: str | None
    note: str = "I could not read it"


async def perform(turn: AgentTurn) -> None:
    """Do what the prompt asks for, as far as a script can."""
    demo = DemoTurn(turn)
    _give_title(turn)
    if turn.text.lstrip().startswith("/"):
        name, rest, *_ = (*turn.text.strip().removeprefix("/").split(maxsplit=1), "", "")
        await _command(demo, name, rest)
    elif asks_to_read(turn.text):
        await _look(demo)
    else:
        await _tour(demo)
    if demo.option("verbose"):
        await demo.say(_details(turn))
    demo.report_usage()


def asks_to_read(text: str) -> bool:
    """Whether a prompt wants something read, and nothing changed."""
    return bool(_reads.match(text)) and not _and_edits.search(text)


def _give_title(turn: AgentTurn) -> None:
    session = turn.session
    if session.title is None:
        session.title = " ".join(turn.text.split())[:60] or "Untitled"
    turn.update(v1.SessionInfoUpdate(title=session.title, updated_at=session.updated_at))


async def _command(demo: DemoTurn, name: str, rest: str) -> None:
    command = COMMANDS.get(name)
    if command is None:
        known = ", ".join(f"`/{each}`" for each in COMMANDS)
        await demo.say(f"There is no command `/{name}`. There are: {known}.")
        return
    await command(demo, rest)


# ── looking ───────────────────────────────────────────────────────────────────────────────────


async def _look(demo: DemoTurn) -> None:
    """Read what was mentioned, else what there is, and say what it is about."""
    await demo.think("This only asks for a look, so I read and change nothing. ")
    found = await _materials(demo)
    if not found:
        await demo.say("I found nothing to read here.\n\n")
    for material in found:
        if material.text is None:
            await demo.say(f"`{material.name}`: {material.note}.\n\n")
        else:
            await demo.say(summarise(material.name, material.text) + "\n")
    await demo.say(INTRODUCTION)


async def _materials(demo: DemoTurn) -> list[Material]:
    mentioned = [await _mentioned(demo, part) for part in demo.turn.prompt]
    found = [material for material in mentioned if material is not None]
    return found or await _something(demo)


async def _mentioned(demo: DemoTurn, part: v1.ContentBlock) -> Material | None:
    match part:
        case v1.ResourceLink(uri=uri) if (path := _path(uri)) is not None:
            return Material(demo.name(path), await demo.read(path))
        case v1.ResourceLink(name=name):
            return Material(name, None, "I read files only")
        case v1.EmbeddedResource(resource=v1.TextResourceContents(uri=uri, text=text)):
            demo.read_chars += len(text)
            return Material(os.path.basename(uri) or uri, text)
        case v1.EmbeddedResource(resource=v1.BlobResourceContents(uri=uri, blob=blob)):
            return Material(os.path.basename(uri) or uri, None, f"{len(blob) * 3 // 4} bytes")
        case (
            v1.ImageContent(mime_type=kind, data=data) | v1.AudioContent(mime_type=kind, data=data)
        ):
            return Material("attachment", None, f"{len(data) * 3 // 4} bytes of {kind}")
        case _:
            return None


def _path(uri: str) -> str | None:
    """The file that a link names, if it names one."""
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" else None


async def _something(demo: DemoTurn) -> list[Material]:
    """README.md, else the first file that looks like text."""
    name = _first_text_file(demo.cwd)
    return [] if name is None else [Material(name, await demo.read(os.path.join(demo.cwd, name)))]


def _first_text_file(folder: str) -> str | None:
    try:
        names = sorted(os.listdir(folder), key=lambda name: (name != "README.md", name))
    except OSError:
        return None
    for name in names:
        if name.lower().endswith(_TEXT_FILES) and os.path.isfile(os.path.join(folder, name)):
            return name
    return None


# ── the tour ──────────────────────────────────────────────────────────────────────────────────


async def _tour(demo: DemoTurn) -> None:
    """Plan, read, propose a change, ask, write, run a command, report."""
    steps = [
        "Look around",
        f"Propose to change `{OWN_FILE}`",
        "Check it with a command",
        "Report",
    ]
    await demo.say(INTRODUCTION)
    await demo.think("There is a task, so I show each thing an agent can do, one by one. ")
    demo.plan(steps, 0)
    found = await _materials(demo)
    report = [f"Read `{m.name}` ({_lines(m)})." for m in found if m.text is not None]
    demo.plan(steps, 1, working=demo.turn.mode != "plan")
    if demo.turn.mode == "plan":
        report.append("Changed nothing and ran nothing: this is plan mode. Switch to ask or auto.")
    else:
        await demo.think("Now a change, small and harmless. ", at=("long",))
        report.append(await _change(demo))
        demo.plan(steps, 2)
        await demo.think("Let me see what came of it. ", at=("long",))
        ran = await demo.run(_check(demo.cwd))
        report.append(ran.report if isinstance(ran, Ran) else ran)
        demo.plan(steps, 3)
    await demo.say("### What I did\n\n" + "".join(f"{n}. {s}\n" for n, s in enumerate(report, 1)))
    if demo.turn.mode != "plan":
        demo.plan(steps, 4)


def _lines(material: Material) -> str:
    lines = len((material.text or "").splitlines())
    return "1 line" if lines == 1 else f"{lines} lines"


async def _change(demo: DemoTurn) -> str:
    """One more line in our own file: what was asked for."""
    path = os.path.join(demo.cwd, OWN_FILE)
    before = await demo.current(path)
    asked = " ".join(demo.turn.text.split())[:200]
    return await demo.edit(path, before, f"{_ended(before or '')}You asked: {asked}\n")


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _check(folder: str) -> list[str]:
    is_there = os.path.exists(os.path.join(folder, OWN_FILE))
    return ["wc", "-l", OWN_FILE] if is_there else ["ls", "-la"]


def _details(turn: AgentTurn) -> str:
    session = turn.session
    options = ", ".join(f"{name} {value}" for name, value in session.options.items())
    return (
        f"\n---\nSession `{session.id}` in `{session.cwd}`, mode {session.mode}; {options}; "
        f"{session.used} tokens in context.\n"
    )


_HEADINGS = 8
_SENTENCES = 2
_fence = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.MULTILINE | re.DOTALL)
_heading = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)
_definition = re.compile(r"^(?:async def|def|class|fn|func|function|struct)\s+(\w+)", re.MULTILINE)
_sentence = re.compile(r".+?[.!?](?=\s|$)|.+$", re.DOTALL)
_markup = re.compile(r"^\s*(?:[#>|*+-]+\s*|\d+\.\s+|/[/*]+\s*|\"{3})|\"{3}", re.MULTILINE)


def summarise(name: str, text: str) -> str:
    """A short extract: the first sentences, the headings or definitions, and the size."""
    parts = [f"{_title(name, text)}: {_size(text)}."]
    if opening := _opening(text):
        parts.append(opening)
    if names := _contents(name, text):
        parts.append("It has:\n" + "\n".join(f"- {item}" for item in names))
    return "\n\n".join(parts) + "\n"


def _title(name: str, text: str) -> str:
    heading = _heading.search(text) if name.lower().endswith((".md", ".markdown")) else None
    return f"**{heading.group(1)}** (`{name}`)" if heading else f"`{name}`"


def _size(text: str) -> str:
    lines, words = text.count("\n") + (not text.endswith("\n")), len(text.split())
    return "empty" if not text.strip() else f"{_count(lines, 'line')}, {_count(words, 'word')}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _opening(text: str) -> str:
    """The first sentences of the first paragraph that is prose."""
    for paragraph in re.split(r"\n\s*\n", _fence.sub("", text)):
        prose = " ".join(_markup.sub("", paragraph).split())
        if len(prose.split()) >= 5 and not paragraph.lstrip().startswith("#!"):
            sentences = [s.strip() for s in _sentence.findall(prose)[:_SENTENCES]]
            return " ".join(sentences)[:400]
    return ""


def _contents(name: str, text: str) -> list[str]:
    if name.lower().endswith((".md", ".markdown", ".txt", ".rst")):
        return _heading.findall(_fence.sub("", text))[1 : _HEADINGS + 1]
    return [f"`{found}`" for found in _definition.findall(text)[:_HEADINGS]]

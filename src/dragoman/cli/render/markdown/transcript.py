"""A session as a Markdown document, for people."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator

from dragoman.cli.render.event_text import called, diff_lines, tool_output
from dragoman.safe_text import reveal, sanitise
from dragoman.session.state import (
    AgentEntry,
    AnyEntry,
    CompactionEntry,
    ErrorEntry,
    NoticeEntry,
    PlanEntry,
    ToolCall,
    UserEntry,
)
from dragoman.store.records import SessionRecord


async def transcript(record: SessionRecord, entries: AsyncIterable[AnyEntry]) -> AsyncIterator[str]:
    """Its prompts as headings, with the answers, the plan and the tool calls; without thoughts."""
    title = sanitise(called(record.name, record.title), newlines=False) or record.id
    yield f"# {title}\n\nSession {record.id} of {reveal(record.agent)} in `{reveal(record.cwd)}`\n"
    async for entry in entries:
        if text := _entry(entry):
            yield f"\n{sanitise(text).rstrip()}\n"


def _entry(entry: AnyEntry) -> str:
    match entry:
        case UserEntry():
            first, *more = entry.text.strip().split("\n")
            return f"## › {first}\n\n" + "\n".join(more)
        case AgentEntry():
            return entry.text
        case ToolCall():
            return _call(entry)
        case PlanEntry():
            if not entry.steps:
                return entry.text
            marks = {True: "x", False: " "}
            return "\n".join(
                f"- [{marks[step.status == 'completed']}] {step.content}" for step in entry.steps
            )
        case ErrorEntry() | NoticeEntry() | CompactionEntry():
            return f"> {entry.text}" if entry.text else ""
        case _:
            return ""


def _call(call: ToolCall) -> str:
    parts = [f"**{call.title or call.name or call.id}** ({call.status})"]
    if output := tool_output(call).strip("\n"):
        parts.append(_fenced(output))
    parts += [_fenced("\n".join(diff_lines(diff, whole=True)), "diff") for diff in call.diffs]
    return "\n\n".join(parts)


def _fenced(text: str, kind: str = "") -> str:
    """In a fence longer than any in the text."""
    marks = "```"
    while marks in text:
        marks += "`"
    return f"{marks}{kind}\n{text}\n{marks}"

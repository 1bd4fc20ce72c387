"""Slash commands about other sessions, and about what goes into this one or is taken out of it."""

from __future__ import annotations

import os
import sys
import time
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from dragoman.cli.commands.sessions.session_list import ago
from dragoman.cli.exit_codes import UsageError
from dragoman.cli.render.event_text import called
from dragoman.cli.render.markdown.transcript import transcript
from dragoman.cli.render.style import DIM
from dragoman.cli.run.job import attachment
from dragoman.cli.standard_streams import terminal_width
from dragoman.safe_text import single_line
from dragoman.session.state import AgentEntry
from dragoman.store.archive import exported
from dragoman.store.records import SessionFilter

if TYPE_CHECKING:
    from dragoman.cli.commands.chat.conversation import Conversation

_MOST_LISTED = 15
_MOST_COPIED = 74_994
"""Bytes: many terminals take no more than 100,000 characters of base64 at once."""


async def list_sessions(talk: Conversation, text: str) -> None:
    """Those of this agent and folder: the ones that `/resume` can open."""
    job, hub = talk.job, talk.hub
    wanted = SessionFilter(agent=job.agent.name, cwd=job.cwd, limit=_MOST_LISTED)
    records = [each for each in await hub.store.sessions(wanted) if each.status != "closed"]
    if not records:
        talk.say("no sessions in this folder")
    for record in records:
        mark = "*" if record.id == talk.session.id else " "
        when = ago(time.time() - record.updated_at)
        indent = f"  {mark} {record.id[:10]}  {record.status:<11} {when:>4}  "
        if len(indent) > terminal_width() // 2:  # then the title has a line of its own
            talk.say(indent.rstrip())
            indent = "    "
        talk.say(single_line(called(record.name, record.title), 120) or "-", indent=indent)


async def resume(talk: Conversation, text: str) -> None:
    if not text:
        raise ValueError("usage: /resume SESSION; /sessions lists them")
    await talk.resume(text)


async def export(talk: Conversation, text: str) -> None:
    """As Markdown, or where the name ends in .jsonl as a file that can be imported."""
    session, hub = talk.session, talk.hub
    path = place(talk, text or f"{session.id}.md")
    if talk.job.options.no_store:
        raise UsageError("this chat is not recorded (--no-store)")
    if session.live is not None:
        await session.live.recording.shown()
    try:
        with _new_file(path) as file:
            if path.suffix == ".jsonl":
                async for line in exported(hub.store, session.id):
                    file.write(line)
            else:
                async for piece in transcript(session.record, hub.thread(session.id)):
                    file.write(piece.encode("utf-8", "replace"))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"{path} cannot be written: {reason}") from error
    talk.say(f"written to {single_line(str(path), 200)}")


def _new_file(path: Path) -> BinaryIO:
    """For its owner alone: it has what was said."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "wb")


def place(talk: Conversation, name: str) -> Path:
    """The file that a person means, from the folder of the session."""
    return Path(talk.session.cwd, os.path.expanduser(name))


async def attach(talk: Conversation, text: str) -> None:
    if text == "clear":
        talk.attached.clear()
    elif text:
        path = place(talk, text.strip("\"'"))
        talk.attached.append((path.name, attachment(str(path))))
    names = ", ".join(single_line(name, 60) for name, _ in talk.attached)
    talk.say(f"with the next prompt: {names}" if names else "nothing is attached")


async def copy(talk: Conversation, text: str) -> None:
    """By a sequence that terminals understand, also over ssh."""
    if text and not text.isdecimal():
        raise ValueError("usage: /copy [N]")
    said = [entry.text for entry in talk.session.state.entries if isinstance(entry, AgentEntry)]
    back = int(text or 0)
    if back >= len(said):
        raise ValueError("there is no such answer")
    data = said[-1 - back].strip().encode()
    if len(data) > _MOST_COPIED:
        raise ValueError("the answer is too long for the clipboard of a terminal; see /export")
    if (out := sys.__stdout__) is not None:
        out.write(f"\x1b]52;c;{b64encode(data).decode()}\x1b\\")
        out.flush()
    talk.say(f"copied {len(data)} bytes, if this terminal allows it", DIM)


async def editor(talk: Conversation, text: str) -> None:
    """The text that is then in the prompt, to be sent or changed."""
    await talk.edit(text)

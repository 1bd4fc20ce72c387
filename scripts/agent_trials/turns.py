"""A turn with someone who answers, as a program of the library would run it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from agent_trials.learned import form_content
from dragoman import Session, Turn
from dragoman.host.forms.elicitation import ElicitationAnswer
from dragoman.session import events as e
from dragoman.session.content import Diff
from dragoman.session.facts import PermissionOption


async def a_moment() -> None:
    await asyncio.sleep(0.1)


# ── a turn with someone who answers ───────────────────────────────────────────────────────────


async def run(session: Session, prompt: str, *, allow: bool = True) -> list[e.Event]:
    """All that happened in the turn, with a person who allows, or refuses, whatever is asked."""
    return await answered(session, session.prompt(prompt), allow=allow)


async def answered(session: Session, turn: Turn, *, allow: bool = True) -> list[e.Event]:
    """The same, of a turn that was begun."""
    events: list[e.Event] = []
    async for event in turn:
        events.append(event)
        match event:
            case e.PermissionRequested() if event.request_id in session.state.pending:
                await session.answer(event.request_id, choose(event.options, allow=allow))
            case e.ElicitationRequested():
                answer = ElicitationAnswer("accept", form_content(event.schema))
                await session.answer_elicitation(event.request_id, answer)
            case _:
                pass
    return events


def choose(options: list[PermissionOption], *, allow: bool) -> str:
    wanted = ("allow_once", "allow_always") if allow else ("reject_once", "reject_always")
    for kind in wanted:
        for option in options:
            if option.kind == kind:
                return option.id
    raise AssertionError(f"none of the options is {wanted[0]}")


def contents(folder: Path) -> dict[str, object]:
    """Every file beneath a folder: where a link leads, or its bytes and whether it is a program."""
    return {
        str(path): path.readlink()
        if path.is_symlink()
        else (path.read_bytes(), bool(path.stat().st_mode & 0o100))
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    }


async def said(session: Session, prompt: str, words: str) -> None:
    events = await run(session, prompt)
    answer = texts(events, e.AgentMessage)
    assert answer, "there was no answer"
    assert words in answer, f"{words!r} is not in {answer[:200]!r}"


def texts(events: list[e.Event], kind: type[e.Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, kind))


def end_of(events: list[e.Event]) -> e.TurnEnded:
    return next(event for event in events if isinstance(event, e.TurnEnded))


def is_for_more(request: e.PermissionRequested) -> bool:
    """It names neither a path nor a command nor a change, or variables that no other named: no
    answer before it could cover it."""
    shown = any(isinstance(item, Diff) for item in request.content)
    return bool(request.env) or not (request.paths or request.argv or shown)

"""`dragoman sessions show`: one session as it appeared when it ran."""

from __future__ import annotations

import argparse
import asyncio
import shlex
import sys
from collections.abc import Generator

import msgspec

from dragoman.cli.commands.sessions.session_list import print_json
from dragoman.cli.render.status_line import Status
from dragoman.cli.run.follower import Follower
from dragoman.cli.run.hub_access import opened_session
from dragoman.cli.run.playback import Playback
from dragoman.hub.stored.stored_sessions import stored_state, whole_thread
from dragoman.safe_text import reveal
from dragoman.session import events as e
from dragoman.session.facts import ProgramEnd, ProgramRun
from dragoman.store.base import Store, event_pages
from dragoman.store.records import SessionRecord, decode_events

_REMARKS = {"agent": " (as reported by the agent)", "imported": " (as the imported file says)"}


def run(options: argparse.Namespace) -> int:
    asyncio.run(_ACTS[options.action](options))
    return 0


async def _show(options: argparse.Namespace) -> None:
    async with opened_session(options) as (hub, record):
        if options.programs or options.refused:
            lines = _programs if options.programs else _refusals
            await _print_lines(hub.store, record, lines(), as_json=options.json)
        elif options.json:
            await _print_state(hub.store, record)
        else:
            await _play(hub.store, record, full=options.full)


async def _print_state(store: Store, record: SessionRecord) -> None:
    """With all of its entries: those that the state has let go are read again, one at a time."""
    state = await stored_state(store, record.id)
    if not state.entries_before:
        print_json(msgspec.to_builtins(state))
        return
    rest = msgspec.structs.replace(state, entries=[], entries_before=0)
    head = msgspec.json.format(msgspec.json.encode(rest), indent=2).decode()
    print(head.removesuffix("\n}") + ',\n  "entries": [')
    line = ""
    async for entry in whole_thread(store, record.id):
        if line:
            print(line + ",")
        line = "    " + msgspec.json.encode(entry).decode()
    print(line + "\n  ]\n}")


async def _play(store: Store, record: SessionRecord, *, full: bool) -> None:
    with Status(sys.stdout, visible=False) as status:
        stage = Playback(status, full=full)
        stage.introduce(record, await stored_state(store, record.id))
        # History that an agent told us is all there is of it here.
        follower = Follower(stage, retells=True)
        async for events in event_pages(store, record.id):
            for event in decode_events(events):
                follower.take(event)
        stage.close()


Lines = Generator[list[tuple[str, object]], e.Event, None]
"""Takes events, gives what to print of each: a line, and the same as JSON."""


async def _print_lines(store: Store, record: SessionRecord, lines: Lines, *, as_json: bool) -> None:
    found: list[tuple[str, object]] = []
    next(lines)
    async for events in event_pages(store, record.id):
        for event in decode_events(events):
            found += lines.send(event)
    if as_json:
        print_json([msgspec.to_builtins(each) for _, each in found])
    else:
        print("\n".join(line for line, _ in found) or "nothing")


def _programs() -> Lines:
    """What really ran. How a long one ended comes later, on a line of its own."""
    known: dict[str, str] = {}
    shown: list[tuple[str, object]] = []
    while True:
        event = yield shown
        shown = []
        if isinstance(event, e.ProgramsRan):
            for end in event.ended:
                words = known.pop(end.id, None)
                if words is not None:
                    shown.append((f"  ended {_ending(end)}: {words}", end))
            for program in event.programs:
                known[program.id] = _words(program)
                shown.append((_line(program), program))
            if event.left_out:
                shown.append((f"… and {event.left_out} more", {"leftOut": event.left_out}))


def _line(program: ProgramRun) -> str:
    above = "".join(f"{reveal(name)} › " for name in program.parents)
    often = f" ×{program.count}" if program.count > 1 else ""
    end = f"refused: {reveal(program.refused)}" if program.refused else _ending(program)
    return f"{above}{_words(program)}{often}  ({end})  in {reveal(program.cwd)}"


def _words(program: ProgramRun) -> str:
    return reveal(shlex.join(program.argv)) + (" …" if program.cut else "")


def _ending(program: ProgramRun | ProgramEnd) -> str:
    if program.signal is not None:
        return program.signal
    return "exit code unknown" if program.exit_code is None else f"exit {program.exit_code}"


def _refusals() -> Lines:
    asked: dict[str, e.PermissionRequested] = {}
    shown: list[tuple[str, object]] = []
    while True:
        event = yield shown
        shown = []
        match event:
            case e.PermissionRequested():
                asked[event.request_id] = event
            case e.PermissionSettled(decision=decision):
                request = asked.pop(event.request_id, None)
                if request is not None and decision.effect in ("deny", "cancelled"):
                    shown.append((_refusal(request.title, decision.reason), event))
            case e.AccessDecided(decision=decision) if decision.effect in ("deny", "cancelled"):
                what = event.title or shlex.join(event.argv or event.paths)
                shown.append((_refusal(f"{event.operation} {what}", decision.reason), event))
            case _:
                pass


def _refusal(what: str, reason: str) -> str:
    return f"{reveal(what)}: {reveal(reason)}"


_ACTS = {"show": _show}

"""`dragoman sessions show`: one session as it appeared when it ran."""

from __future__ import annotations

import argparse
import asyncio
import shlex
import sys
from collections.abc import AsyncGenerator

import msgspec

from dragoman.cli.commands.sessions.session_list import print_json
from dragoman.cli.render.printed_json import indented_json
from dragoman.cli.render.status_line import Status
from dragoman.cli.run.follower import Follower
from dragoman.cli.run.hub_access import opened_session
from dragoman.cli.run.playback import Playback
from dragoman.hub.stored.stored_sessions import stored_state, whole_thread
from dragoman.safe_text import escaped_json, reveal
from dragoman.session import events as e
from dragoman.session.facts import ProgramRun
from dragoman.store.base import Store, event_pages
from dragoman.store.records import SessionRecord, decode_events

_REMARKS = {"agent": " (as reported by the agent)", "imported": " (as the imported file says)"}


def run(options: argparse.Namespace) -> int:
    asyncio.run(_ACTS[options.action](options))
    return 0


async def _show(options: argparse.Namespace) -> None:
    async with opened_session(options) as (hub, record):
        if options.programs:
            await _print_programs(hub.store, record, as_json=options.json)
        elif options.refused:
            await _print_refusals(hub.store, record, as_json=options.json)
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
    head = indented_json(rest)
    print(head.removesuffix("\n}") + ',\n  "entries": [')
    line = ""
    async for entry in whole_thread(store, record.id):
        if line:
            print(line + ",")
        line = "    " + escaped_json(msgspec.json.encode(entry).decode())
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


async def _print_programs(store: Store, record: SessionRecord, *, as_json: bool) -> None:
    programs: dict[str, ProgramRun] = {}
    left_out = 0
    async for event in _events(store, record):
        if isinstance(event, e.ProgramsRan):
            programs |= {program.id: program for program in event.programs}
            left_out += event.left_out
            for end in event.ended:
                if (program := programs.get(end.id)) is not None:
                    program.exit_code, program.signal = end.exit_code, end.signal
    if as_json:
        print_json({"programs": msgspec.to_builtins(list(programs.values())), "leftOut": left_out})
        return
    for program in programs.values():
        print(_program(program))
    if left_out or not programs:
        print(f"… and {left_out} more" if left_out else "no programs are on record")


def _program(program: ProgramRun) -> str:
    above = "".join(f"{reveal(name)} › " for name in program.parents)
    words = reveal(shlex.join(program.argv)) + (" …" if program.cut else "")
    often = f" ×{program.count}" if program.count > 1 else ""
    return f"{above}{words}{often}  ({_ending(program)})  in {reveal(program.cwd)}"


def _ending(program: ProgramRun) -> str:
    if program.refused is not None:
        return f"refused: {reveal(program.refused)}"
    if program.signal is not None:
        return reveal(program.signal)
    return "started" if program.exit_code is None else f"exit {program.exit_code}"


async def _print_refusals(store: Store, record: SessionRecord, *, as_json: bool) -> None:
    asked: dict[str, str] = {}
    found: list[tuple[str, str, e.Event]] = []
    async for event in _events(store, record):
        match event:
            case e.PermissionRequested():
                asked[event.request_id] = event.title
            case e.PermissionSettled(decision=decision) if decision.effect in _NO:
                found.append((asked.get(event.request_id, "?"), decision.reason, event))
            case e.AccessDecided(decision=decision) if decision.effect in _NO:
                what = event.title or f"{event.operation} {shlex.join(event.argv or event.paths)}"
                found.append((what, decision.reason, event))
            case _:
                pass
    if as_json:
        print_json([msgspec.to_builtins(event) for _, _, event in found])
        return
    for what, reason, _ in found:
        print(f"{reveal(what)}: {reveal(reason)}")
    if not found:
        print("nothing was refused")


_NO = ("deny", "cancelled")


async def _events(store: Store, record: SessionRecord) -> AsyncGenerator[e.Event]:
    async for page in event_pages(store, record.id):
        for event in decode_events(page):
            yield event


_ACTS = {"show": _show}

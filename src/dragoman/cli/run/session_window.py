"""Follows a session by its stored events, from the turn that runs or from the beginning."""

from __future__ import annotations

import argparse
import asyncio
import sys

from dragoman.cli.ask.asker import asker_on
from dragoman.cli.ask.session_questions import SessionQuestions
from dragoman.cli.exit_codes import Exit, tell
from dragoman.cli.render.console import Console
from dragoman.cli.render.event_text import called
from dragoman.cli.run.command_hub import meant, opened_hub
from dragoman.cli.run.follower import Follower
from dragoman.hub.hub import Hub
from dragoman.hub.outage_notices import told_of_outages
from dragoman.hub.session_state import stored_state
from dragoman.session.reduce import reduce
from dragoman.session.state import SessionState
from dragoman.store.records import SessionRecord, StoredEvent


def watch(options: argparse.Namespace) -> int:
    try:
        asyncio.run(_watch(options))
    except KeyboardInterrupt:
        if sys.stdout.isatty():
            print()  # below the ^C
        return Exit.CANCELLED
    return Exit.DONE


async def _watch(options: argparse.Namespace) -> None:
    async with opened_hub() as hub, told_of_outages(hub.store, tell):
        record = await meant(hub.store, options)
        if options.json:
            await _print(hub, record, options)
        else:
            await Window(hub, record, options).follow()


async def _print(hub: Hub, record: SessionRecord, options: argparse.Namespace) -> None:
    state = await stored_state(hub.store, record.id)
    after = 0 if options.all else _beginning(state)
    if options.until_idle and state.turn is None and not options.all:
        return
    async for page in hub.watch(record.id, after):
        sys.stdout.buffer.write(b"".join(event.body + b"\n" for event in page))
        sys.stdout.buffer.flush()
        if options.until_idle and _is_idle(state, page):
            return


def _is_idle(state: SessionState, page: list[StoredEvent]) -> bool:
    for stored in page:
        if stored.seq > state.last_seq:
            reduce(state, stored.decode())
    return state.turn is None and state.last_seq <= page[-1].seq


def _beginning(state: SessionState) -> int:
    """Just before the turn that runs, else at the end."""
    return state.last_seq if state.turn is None else state.turn.seq - 1


class Window:
    """One session on this terminal."""

    def __init__(self, hub: Hub, record: SessionRecord, options: argparse.Namespace) -> None:
        self._hub = hub
        self._record = record
        self._options = options
        self._console = Console("text")
        self._questions = self._find_questions()

    def _find_questions(self) -> SessionQuestions | None:
        on_ask, terminal = self._options.on_ask, sys.stdin.isatty() and sys.stdout.isatty()
        if on_ask == "ignore" or (on_ask is None and not terminal):
            return None
        asker, record, say = asker_on(self._console), self._record, self._console.tell
        return SessionQuestions(self._hub, record.id, record.agent, asker, say, must_answer=False)

    async def follow(self) -> None:
        now = await stored_state(self._hub.store, self._record.id)
        called_ = called(self._record.name, self._record.title)
        self._console.tell(f"watching {self._record.id} {called_} (Ctrl-C to stop)")
        follower = Follower(
            self._console,
            retells=True,
            questions=self._questions,
            since=0 if self._options.all else _beginning(now) + 1,
            asks_from=now.last_seq,
        )
        follower.listen(self._hub, self._record.id)
        with self._console.status:
            if not await follower.follow(lambda: self._is_over(follower.state, now)):
                self._console.tell("the session was deleted")
        self._console.view.close()
        if self._questions is not None:
            self._questions.close()

    def _is_over(self, shown: SessionState, now: SessionState) -> bool:
        is_idle = self._options.until_idle and shown.turn is None
        return is_idle and shown.last_seq >= now.last_seq

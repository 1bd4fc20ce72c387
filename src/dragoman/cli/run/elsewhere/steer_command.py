"""`dragoman --session NAME --steer "…"`: says something into a turn, wherever it is running."""

from __future__ import annotations

import argparse
import os

from dragoman.cli.exit_codes import Exit, UsageError
from dragoman.cli.run.agent_setup import typed_rules
from dragoman.cli.run.hub_access import last_used, opened_hub
from dragoman.cli.run.job import attachment
from dragoman.client.sessions.prompts import find_mentions
from dragoman.errors import CommandRefused
from dragoman.hub.cluster import commands as c
from dragoman.hub.stored.stored_sessions import find_session
from dragoman.safe_text import single_line
from dragoman.session.content import Content, Text
from dragoman.store.base import Store
from dragoman.store.records import SessionRecord

WORDS = {
    "delivered": "delivered to the running turn",
    "sent": "sent: the agent takes it up at its next step",
    "queued": "queued: it is the next prompt, unless the agent asks for it before the turn ends",
    "started": "no turn was running: it started one",
    "refused": "the agent did not take it",
    "unsure": "no answer came: the agent may have taken it, and it is not sent again",
}
"""What became of a steer, for the person who typed it."""
_FAILED = ("refused", "unsure")


async def steer(options: argparse.Namespace) -> int:
    """Print what became of it; the exit code. Raises UsageError, UnknownSession, CommandRefused."""
    _check(options)
    async with opened_hub(options.settings) as hub:
        record = await _meant(hub.store, options)
        content = _content(options, record.cwd)
        try:
            reply = await hub.send(record.id, c.SteerTurn(content), opens=False)
        except CommandRefused as error:
            if error.code != "owner_gone":
                raise
            sentence = f"session {record.id} is not running, so there is no turn to steer"
            raise CommandRefused(record.id, error.code, f"{sentence}; prompt it instead") from error
    print(steer_sentence(reply["outcome"], reply["reason"]))
    return Exit.FAILED if reply["outcome"] in _FAILED else Exit.DONE


def steer_sentence(outcome: str, reason: str) -> str:
    why = f" ({single_line(reason, 200)})" if reason and outcome in _FAILED else ""
    return f"{WORDS[outcome]}{why}"


async def _meant(store: Store, options: argparse.Namespace) -> SessionRecord:
    if options.continues:
        return await last_used(store, os.getcwd(), options.agent)
    return await find_session(store, options.session or options.resume, os.getcwd())


def _check(options: argparse.Namespace) -> None:
    if not (options.session or options.resume or options.continues):
        raise UsageError("--steer needs the session: add --session NAME, --resume ID or --continue")
    if options.prompt is not None or options.file is not None:
        raise UsageError("--steer has the words itself; remove the prompt")
    if options.no_wait:
        raise UsageError("--steer does not wait for the turn anyway; remove --no-wait")
    if not options.steer.strip():
        raise UsageError("--steer is empty")
    if rules := typed_rules(options):
        sentence = "a steer brings no rules: those of the running turn apply"
        raise UsageError(f"{sentence}; remove {', '.join(rules)}")


def _content(options: argparse.Namespace, cwd: str) -> list[Content]:
    # What the shell passed on may hold bytes that are not text; the wire carries text only.
    text = os.fsencode(options.steer).decode("utf-8", "replace")
    links = find_mentions(text, cwd).links
    return [Text(text), *links, *map(attachment, options.attach)]

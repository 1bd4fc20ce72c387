"""`dragoman sessions answer`: lists a session's pending questions, or answers one."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator
from typing import Any

import msgspec

from dragoman.cli.ask.asker import answer_lines, asked, request_of
from dragoman.cli.ask.form_input import Field, as_typed, form_fields
from dragoman.cli.commands.sessions.session_list import print_json
from dragoman.cli.exit_codes import UsageError
from dragoman.cli.options import assignment
from dragoman.cli.render.style import Style, wants_colour
from dragoman.cli.run.hub_access import opened_session
from dragoman.hub.cluster import commands as c
from dragoman.safe_text import reveal
from dragoman.session.permission_options import Shown, as_shown, contradiction
from dragoman.session.state import Pending, PendingElicitation, PendingPermission
from dragoman.store.records import SessionRecord


def run(options: argparse.Namespace) -> int:
    asyncio.run(_answer(options))
    return 0


async def _answer(options: argparse.Namespace) -> None:
    async with opened_session(options) as (hub, record):
        waiting = (await hub.state(record.id)).pending
        if options.option is None:
            _print_waiting(record, list(waiting.values()), as_json=options.json)
            return
        if not waiting:
            raise UsageError(f"session {record.id} has no pending questions")
        request = options.request or next(iter(waiting))
        if request not in waiting:
            raise UsageError(f"session {record.id} has no pending question {request}")
        command = _answered(waiting[request], options.option, options.values, options.confirm)
        await hub.send(record.id, command)


# ── what it waits for ─────────────────────────────────────────────────────────────────────────


def _print_waiting(record: SessionRecord, waiting: list[Pending], *, as_json: bool) -> None:
    if as_json:
        print_json([msgspec.to_builtins(pending) for pending in waiting])
    elif not waiting:
        print("no pending questions")
    for pending in () if as_json else waiting:
        if isinstance(pending, PendingPermission):
            _print_permission(record, pending)
        else:
            print("\n".join(reveal(line) for line in _form(pending)))


def _print_permission(record: SessionRecord, pending: PendingPermission) -> None:
    """All that is asked, whole: what is printed can be paged, and nothing more is shown later."""
    style = Style(colour=wants_colour(sys.stdout))
    request = request_of(pending, pending.id, session_id=record.id, agent=record.agent)
    lines = [f"{reveal(pending.id)}:", *asked(request, style, whole=True)]
    for option in as_shown(pending.options):
        lines += answer_lines(option, f"{reveal(_word_for(option, pending))}  ", style)
    for offer in pending.offers:
        confirm = " (with --confirm)" if offer.confirm else ""
        lines.append(f"  {reveal(offer.id)}  {reveal(offer.words)}{confirm}")
    print("\n".join(lines))


def _form(pending: PendingElicitation) -> Iterator[str]:
    yield f"{pending.id}: {pending.message}"
    if pending.asked_by is not None:
        yield f"    asked by {pending.asked_by} (a subagent)"
    if pending.mode == "url":
        yield f"    open {pending.url or ''}"
        yield "    accept (when done), decline or cancel"
        return
    fields = form_fields(pending.schema)
    for field in fields:
        yield f"    {field.name}  {field.title} ({_wanted(field)})"
        yield from (f"        {line}" for line in filter(None, (field.description, *field.told)))
    yield f"    {' '.join(['accept', *map(_place, fields)])}, decline, or cancel"


def _wanted(field: Field) -> str:
    if field.default is not None:
        return f"{field.expected}; else {as_typed(field.default)}"
    return f"{field.expected}{'' if field.required else '; optional'}"


def _place(field: Field) -> str:
    needed = field.required and field.default is None
    return f"{field.name}=…" if needed else f"[{field.name}=…]"


# ── the answer ────────────────────────────────────────────────────────────────────────────────


def _answered(pending: Pending, word: str, values: list[str], confirmed: bool) -> c.Command:
    """Raises UsageError."""
    if isinstance(pending, PendingPermission):
        return _chosen(pending, word, values, confirmed)
    match word:
        case "accept":
            return c.AnswerElicitation(pending.id, "accept", _filled_in(pending, values))
        case "decline" | "cancel" if not values:
            return c.AnswerElicitation(pending.id, word)
        case "decline" | "cancel":
            raise UsageError(f"{word} takes no fields")
        case _:
            raise UsageError(f"a form is answered with accept, decline or cancel, not {word!r}")


def _chosen(pending: PendingPermission, word: str, values: list[str], confirmed: bool) -> c.Command:
    if values:
        raise UsageError(f"unexpected {values[0]!r}: a permission takes one option")
    offer = next((each for each in pending.offers if each.id == word), None)
    if offer is not None:
        if offer.confirm and not confirmed:
            raise UsageError(f"{pending.danger}: to allow it from now on, add --confirm")
        return c.AnswerPermission(pending.id, offer.id, confirmed)
    fitting = [option for option in pending.options if word in (option.id, option.kind)]
    if len(fitting) != 1:
        known = ", ".join(_word_for(option, pending) for option in as_shown(pending.options))
        raise UsageError(f"{word!r} does not name one option; available: {known}")
    (option,) = fitting
    meaning = None if word == option.kind else contradiction(word, option.kind)
    if meaning is not None:
        raise UsageError(
            f"{word!r} is what the agent calls an answer, but {meaning}: "
            f"to choose it, answer {option.kind}"
        )
    return c.AnswerPermission(pending.id, option.id)


def _word_for(option: Shown, pending: PendingPermission) -> str:
    """What to type for it: its kind, or the agent's own id where that is not enough."""
    fitting = [each for each in pending.options if option.kind in (each.id, each.kind)]
    return option.kind if len(fitting) == 1 else option.id


def _filled_in(pending: PendingElicitation, values: list[str]) -> dict[str, Any]:
    fields = {field.name: field for field in form_fields(pending.schema)}
    content = {name: field.default for name, field in fields.items() if field.default is not None}
    for name, text in map(assignment, values):
        if name not in fields:
            raise UsageError(f"the form has no field {name!r}; it has: {', '.join(fields)}")
        content[name] = _parsed(fields[name], text)
    if missing := [
        name for name, field in fields.items() if field.required and name not in content
    ]:
        raise UsageError(f"the form needs {', '.join(f'{name}=…' for name in missing)}")
    return content


def _parsed(field: Field, text: str) -> Any:
    value = field.parsed(text)
    if value is None:
        raise UsageError(f"{field.name}: expected {field.expected}, not {text!r}")
    return value

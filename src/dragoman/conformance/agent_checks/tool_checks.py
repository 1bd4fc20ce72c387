"""Tools: how calls are reported, and what an agent asks of its client in a turn.

That is permissions, files, terminals and forms.
"""

from __future__ import annotations

from typing import Any

from dragoman.conformance.check import Checks, expect, not_applicable, page
from dragoman.conformance.examination.examinee import Examinee, WorkTurn, ended
from dragoman.conformance.loose_json import Wire, at, is_text, obj, objects
from dragoman.conformance.pretend_host import AgentRequest
from dragoman.conformance.probe import error_text, is_error

checks: Checks[Examinee] = Checks("agent", page("tool-calls"))
_PERMISSIONS = page("tool-calls#requesting-permission")
_FILES = page("file-system")
_TERMINALS = page("terminals")
_FORMS = page("elicitation")
_OFFERED = page("initialization#client-capabilities")
_WORKS = "has the agent use its tools, and allows it everything"

_STATUSES = ("pending", "in_progress", "completed", "failed", "cancelled")
_OPTION_KINDS = ("allow_once", "allow_always", "reject_once", "reject_always")
_PERMISSION = "session/request_permission"


# ── how tool calls are reported ───────────────────────────────────────────────────────────────


async def _calls(examinee: Examinee) -> tuple[WorkTurn, list[tuple[Wire, bytes]]]:
    turn = await examinee.turn("allow")
    told = turn.of("tool_call", "tool_call_update")
    if not told:
        not_applicable("the agent reported no tool call")
    return turn, told


@checks.must(
    "tools.ids",
    "Every report of a tool call says which one it is of.",
    page=page("tool-calls#creating"),
    does=_WORKS,
    expects="`toolCallId`, a text, in every report",
)
async def names_its_calls(examinee: Examinee) -> None:
    for told, frame in (await _calls(examinee))[1]:
        key = told.get("toolCallId")
        expect(is_text(key), f"toolCallId is {key!r}", frame)


@checks.must(
    "tools.title",
    "A new tool call has a title that says what it does.",
    page=page("tool-calls#creating"),
    does=_WORKS,
    expects="`title`, a text, in every `tool_call`",
)
async def titles_its_calls(examinee: Examinee) -> None:
    for told, frame in (await _calls(examinee))[0].of("tool_call"):
        expect(isinstance(told.get("title"), str), f"the title is {told.get('title')!r}", frame)


@checks.should(
    "tools.once",
    "A tool call is announced once, and changed by updates.",
    page=page("tool-calls#updating"),
    does=_WORKS,
    expects="one `tool_call` for each id",
)
async def announces_once(examinee: Examinee) -> None:
    seen: set[Any] = set()
    for told, frame in (await _calls(examinee))[0].of("tool_call"):
        expect(told.get("toolCallId") not in seen, "a tool call was announced twice", frame)
        seen.add(told.get("toolCallId"))


@checks.must(
    "tools.status",
    "The status of a tool call is one of the defined ones.",
    page=page("tool-calls#status"),
    does=_WORKS,
    expects=", ".join(f"`{each}`" for each in _STATUSES[:4]) + " or `cancelled`",
)
async def has_known_statuses(examinee: Examinee) -> None:
    for told, frame in (await _calls(examinee))[1]:
        status = told.get("status")
        expect(status is None or status in _STATUSES, f"there is no status {status!r}", frame)


@checks.should(
    "tools.finished",
    "At the end of a turn none of its tool calls is open.",
    page=page("tool-calls#status"),
    does=_WORKS,
    expects="the last status of each is `completed`, `failed` or `cancelled`",
)
async def finishes_its_calls(examinee: Examinee) -> None:
    last: dict[Any, Any] = {}
    for told, _ in (await _calls(examinee))[1]:
        if told.get("status") is not None or told.get("toolCallId") not in last:
            last[told.get("toolCallId")] = told.get("status")
    open_ = [status for status in last.values() if status not in _STATUSES[2:]]
    expect(not open_, f"{len(open_)} tool calls were left {open_[0] if open_ else ''}")


@checks.must(
    "tools.paths",
    "Paths are absolute, those of files that were changed and those of places to look at.",
    page=page("tool-calls#content"),
    does=_WORKS,
    expects="every `path` in a diff or a location begins with the root",
)
async def names_absolute_paths(examinee: Examinee) -> None:
    for told, frame in (await _calls(examinee))[1]:
        for place in [*objects(told.get("locations")), *objects(told.get("content"))]:
            path = place.get("path")
            absolute = path is None or str(path).startswith("/")
            expect(absolute, f"{path!r} is not an absolute path", frame)


@checks.must(
    "plan.entries",
    "Every entry of a plan has a text, a priority and a status.",
    page=page("agent-plan#plan-entries"),
    does=_WORKS,
    expects="known priorities and statuses in every `plan`",
)
async def plans_in_known_words(examinee: Examinee) -> None:
    plans = (await examinee.turn("allow")).of("plan")
    if not plans:
        not_applicable("the agent made no plan")
    for told, frame in plans:
        for entry in objects(told.get("entries")):
            expect(isinstance(entry.get("content"), str), "an entry has no text", frame)
            expect(entry.get("priority") in ("high", "medium", "low"), "its priority", frame)
            known = entry.get("status") in ("pending", "in_progress", "completed", "cancelled")
            expect(known, f"there is no status {entry.get('status')!r}", frame)


@checks.must(
    "commands.names",
    "The commands that an agent offers have names that differ, without the slash people type.",
    page=page("slash-commands"),
    does="looks at `available_commands_update`",
    expects="different names, and a description for each",
)
async def names_its_commands(examinee: Examinee) -> None:
    told = [told for told, _ in (await examinee.turn("allow")).of("available_commands_update")]
    probe = await examinee.probe()
    await examinee.first_turn(probe)
    every = [obj(at(each.message, "params", "update")) for each in probe.received]
    told += [each for each in every if each.get("sessionUpdate") == "available_commands_update"]
    if not told:
        not_applicable("the agent offers no commands")
    names = [each.get("name") for each in objects(told[-1].get("availableCommands"))]
    expect(len(set(names)) == len(names), "two commands have one name")
    for each in names:
        expect(isinstance(each, str) and not each.startswith("/"), f"a command is named {each!r}")


# ── permissions ───────────────────────────────────────────────────────────────────────────────


@checks.must(
    "permission.options",
    "A permission request has options to choose from, each with an id of its own.",
    page=_PERMISSIONS,
    does=_WORKS,
    expects="different `optionId`s, a `name` for each, and a known `kind`",
)
async def offers_options(examinee: Examinee) -> None:
    for asked in (await examinee.turn("allow")).asked(_PERMISSION):
        options = objects(asked.params.get("options"))
        expect(bool(options), "there is nothing to choose from", asked.frame)
        ids = [each.get("optionId") for each in options]
        expect(len(set(ids)) == len(ids), "two options have one id", asked.frame)
        for each in options:
            expect(isinstance(each.get("name"), str), "an option has no name", asked.frame)
            known = each.get("kind") in _OPTION_KINDS
            expect(known, f"there is no kind {each.get('kind')!r}", asked.frame)


@checks.must(
    "permission.tool-call",
    "A permission request says for which tool call it is.",
    page=_PERMISSIONS,
    does=_WORKS,
    expects="`toolCall.toolCallId`, a text",
)
async def asks_about_a_call(examinee: Examinee) -> None:
    for asked in (await examinee.turn("allow")).asked(_PERMISSION):
        named = is_text(at(asked.params, "toolCall", "toolCallId"))
        expect(named, "the request names no tool call", asked.frame)


@checks.must(
    "permission.refused",
    "What was refused is not done.",
    page=_PERMISSIONS,
    does="has the agent use its tools, and refuses whatever it asks",
    expects="the tool calls it asked about do not end as `completed`",
)
async def respects_a_refusal(examinee: Examinee) -> None:
    turn = await examinee.turn("reject")
    refused = _asked_about(turn)
    for told, frame in turn.of("tool_call", "tool_call_update"):
        done = told.get("status") == "completed" and told.get("toolCallId") in refused
        expect(not done, "a tool call that was refused was completed", frame)


def _asked_about(turn: WorkTurn) -> list[Any]:
    """The ids of the tool calls that permission was asked for."""
    return [at(asked.params, "toolCall", "toolCallId") for asked in turn.asked(_PERMISSION)]


@checks.must(
    "permission.refused-ends",
    "A refusal is an answer like any other: the turn continues to an end of its own.",
    page=_PERMISSIONS,
    does="has the agent use its tools, and refuses whatever it asks",
    expects="a turn that does not end with an error there",
)
async def goes_on_after_a_refusal(examinee: Examinee) -> None:
    _expect_more_than(await examinee.turn("reject"), _PERMISSION)


@checks.should(
    "permission.error",
    "A question that the client answers with an error is a question that was not allowed.",
    page=_PERMISSIONS,
    does="has the agent use its tools, and answers what it asks with an error",
    expects="an answer to the prompt, and no tool call that it asked about completed",
)
async def survives_an_error(examinee: Examinee) -> None:
    turn = await examinee.turn("fail")
    asked = _asked_about(turn)
    for told, frame in turn.of("tool_call", "tool_call_update"):
        done = told.get("status") == "completed" and told.get("toolCallId") in asked
        expect(not done, "a tool call was completed though the question failed", frame)


@checks.must(
    "permission.cancelled",
    "A turn that is cancelled while a question is open ends with the stop reason `cancelled`.",
    page=page("prompt-turn#cancellation"),
    does="cancels the turn when the agent asks, and answers its question with `cancelled`",
    expects="`cancelled`",
)
async def ends_at_a_question(examinee: Examinee) -> None:
    why = ended((await examinee.turn("cancel")).reply)
    expect(why == "cancelled", f"the cancelled turn ended with {why!r}")


# ── what a client offers ──────────────────────────────────────────────────────────────────────


def _offered(key: str, prefix: str, what: str, page_: str) -> None:
    @checks.must(
        f"offered.{key}",
        f"An agent leaves {what} alone unless the client offers it.",
        page=page_,
        does="has the agent use its tools, as a client that offers nothing",
        expects=f"no `{prefix}…` request",
    )
    async def leaves_it_alone(examinee: Examinee) -> None:
        for asked in (await examinee.turn("bare")).host.of(prefix):
            expect(False, f"{asked.method} was called, and was not offered", asked.frame)


_offered("files", "fs/", "the client's files", _FILES)
_offered("terminals", "terminal/", "the client's terminals", _TERMINALS)
_offered("forms", "elicitation/", "the client's forms", _OFFERED)


def _in_its_session(key: str, prefix: str, page_: str) -> None:
    @checks.must(
        f"{key}.session",
        "A request to the client names the session that it is made for.",
        page=page_,
        does=_WORKS,
        expects=f"the `sessionId` of the turn in every `{prefix}…` request",
    )
    async def names_the_session(examinee: Examinee) -> None:
        turn = await examinee.turn("allow")
        for asked in turn.asked(prefix):
            named = asked.params.get("sessionId")
            expect(named == turn.session_id, f"the request names {named!r}", asked.frame)


_in_its_session("permission", _PERMISSION, _PERMISSIONS)
_in_its_session("files", "fs/", _FILES)
_in_its_session("terminals", "terminal/", _TERMINALS)


@checks.must(
    "files.absolute",
    "Paths of files are absolute.",
    page=_FILES,
    does=_WORKS,
    expects="every `path` in an `fs/…` request begins with the root",
)
async def reads_absolute_paths(examinee: Examinee) -> None:
    for asked in (await examinee.turn("allow")).asked("fs/"):
        path = str(asked.params.get("path"))
        expect(path.startswith("/"), f"{path!r} is not an absolute path", asked.frame)


@checks.must(
    "files.lines",
    "Lines are counted from 1.",
    page=_FILES,
    does=_WORKS,
    expects="a `line`, if there is one, of at least 1",
)
async def counts_lines_from_one(examinee: Examinee) -> None:
    for asked in (await examinee.turn("allow")).asked("fs/read_text_file"):
        line = asked.params.get("line")
        right = line is None or (type(line) is int and line >= 1)
        expect(right, f"the line is {line!r}", asked.frame)


@checks.must(
    "files.missing",
    "A file that is not there is an error to an agent, and not the end of the turn.",
    page=_FILES,
    does="has the agent use its tools; there is no file that it did not write",
    expects="a turn that does not end with an error there",
)
async def survives_a_missing_file(examinee: Examinee) -> None:
    _expect_more_than(await examinee.turn("allow"), "fs/read_text_file")


def _expect_more_than(turn: WorkTurn, method: str) -> None:
    """Raises CheckFailed if the answer to this was the end of the turn."""
    turn.asked(method)
    last = turn.host.asked[-1].method
    over = is_error(turn.reply) and last == method
    expect(not over, f"the turn ended with an error: {error_text(turn.reply)}")


@checks.must(
    "terminals.released",
    "An agent releases every terminal that it has made.",
    page=_TERMINALS,
    does=_WORKS,
    expects="`terminal/release` for each of them before the turn ends",
)
async def releases_its_terminals(examinee: Examinee) -> None:
    turn = await examinee.turn("allow")
    turn.asked("terminal/create")
    left = sum(not released for released in turn.host.terminals.values())
    expect(left == 0, f"{left} terminals were not released")


@checks.must(
    "terminals.after-release",
    "A terminal is not used after it was released.",
    page=_TERMINALS,
    does=_WORKS,
    expects="no request about it behind its `terminal/release`",
)
async def leaves_released_terminals(examinee: Examinee) -> None:
    released: set[Any] = set()
    for asked in (await examinee.turn("allow")).asked("terminal/"):
        key = asked.params.get("terminalId")
        expect(key not in released, "it was used after it was released", asked.frame)
        if asked.method == "terminal/release":
            released.add(key)


@checks.must(
    "terminals.folder",
    "The folder in which a command runs is an absolute path.",
    page=_TERMINALS,
    does=_WORKS,
    expects="`cwd`, if there is one, begins with the root",
)
async def runs_in_absolute_folders(examinee: Examinee) -> None:
    for asked in (await examinee.turn("allow")).asked("terminal/create"):
        folder = asked.params.get("cwd")
        absolute = folder is None or str(folder).startswith("/")
        expect(absolute, f"{folder!r} is not an absolute path", asked.frame)


def _forms(turn: WorkTurn) -> list[AgentRequest]:
    found = [a for a in turn.asked("elicitation/create") if a.params.get("mode") == "form"]
    if not found:
        not_applicable("the agent asked with no form")
    return found


@checks.must(
    "forms.schema",
    "A form is described by an object of fields, each with a type of its own.",
    page=_FORMS,
    does=_WORKS,
    expects="`requestedSchema` with the type `object` and its properties",
)
async def describes_its_forms(examinee: Examinee) -> None:
    for asked in _forms(await examinee.turn("allow")):
        fields = at(asked.params, "requestedSchema", "properties")
        expect(isinstance(fields, dict), "the form has no properties", asked.frame)
        for name, field in obj(fields).items():
            expect(is_text(at(field, "type")), f"the field {name!r} has no type", asked.frame)


@checks.must(
    "forms.message",
    "A form says what it is about.",
    page=_FORMS,
    does=_WORKS,
    expects="`message`, a text that is not empty",
)
async def says_what_it_wants(examinee: Examinee) -> None:
    for asked in _forms(await examinee.turn("allow")):
        message = asked.params.get("message")
        expect(is_text(message), f"it is {message!r}", asked.frame)


@checks.must(
    "forms.declined",
    "A form that is declined is an answer like any other.",
    page=_FORMS,
    does="has the agent use its tools, and declines every form",
    expects="a turn that does not end with an error there",
)
async def survives_a_declined_form(examinee: Examinee) -> None:
    _expect_more_than(await examinee.turn("allow"), "elicitation/create")


@checks.should(
    "usage.numbers",
    "What is used of the context is a number of tokens, and so is its size.",
    page=page("prompt-turn#3-agent-reports-output"),
    does=_WORKS,
    expects="`used` and `size` in every `usage_update`, neither below zero",
)
async def counts_its_tokens(examinee: Examinee) -> None:
    told = (await examinee.turn("allow")).of("usage_update")
    if not told:
        not_applicable("the agent reports no usage")
    for each, frame in told:
        for name in ("used", "size"):
            count = each.get(name)
            expect(type(count) is int and count >= 0, f"{name} is {count!r}", frame)

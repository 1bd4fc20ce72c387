"""Tools: how calls are reported, and what an agent requests of its client during a turn.

That is permissions, files, terminals and forms. Most checks look at everything of one kind in the
same turn, so a row has a function that says what is wrong with a single one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from dragoman.conformance.check import Checks, Level, expect, not_applicable, page
from dragoman.conformance.examination.agent_words import ended
from dragoman.conformance.examination.examinee import Examinee
from dragoman.conformance.examination.observations import TurnKind, WorkTurn
from dragoman.conformance.probing.loose_json import Wire, at, is_text, obj, objects
from dragoman.conformance.probing.pretend_host import AgentRequest
from dragoman.conformance.probing.probe import error_text, is_error

checks: Checks[Examinee] = Checks("agent", page("tool-calls"))
_CREATING = page("tool-calls#creating")
_STATUS = page("tool-calls#status")
_REPORTS = page("prompt-turn#3-agent-reports-output")
_PERMISSIONS = page("tool-calls#requesting-permission")
_FILES = page("file-system")
_TERMINALS = page("terminals")
_FORMS = page("elicitation")
_OFFERED = page("initialization#client-capabilities")
_WORKS = "has the agent use its tools, and allows everything"

_STATUSES = ("pending", "in_progress", "completed", "failed", "cancelled")
_OPTION_KINDS = ("allow_once", "allow_always", "reject_once", "reject_always")
_PERMISSION = "session/request_permission"

Fault: TypeAlias = str | None
"""What is wrong with an update or a request; None for nothing."""
RequestFault: TypeAlias = Callable[[WorkTurn, AgentRequest], Fault]


def _updates(
    key: str,
    says: str,
    fault: Callable[[Wire], Fault],
    *kinds: str,
    expects: str,
    page_: str = "",
    level: Level = "must",
    none: str = "the agent reported no tool call",
) -> None:
    """Every update of these kinds has to be right."""
    add = checks.must if level == "must" else checks.should

    @add(key, says, page=page_, does=_WORKS, expects=expects)
    async def reports_rightly(examinee: Examinee) -> None:
        found = (await examinee.turn("allow")).of(*kinds)
        if not found:
            not_applicable(none)
        for told, frame in found:
            wrong = fault(told)
            expect(wrong is None, wrong or "", frame)


def _requests(
    key: str,
    says: str,
    fault: RequestFault,
    prefix: str,
    *,
    expects: str,
    page_: str,
) -> None:
    """Every request of the agent whose method begins like that has to be right."""

    @checks.must(key, says, page=page_, does=_WORKS, expects=expects)
    async def asks_rightly(examinee: Examinee) -> None:
        turn = await examinee.turn("allow")
        for asked in turn.asked(prefix):
            wrong = fault(turn, asked)
            expect(wrong is None, wrong or "", asked.frame)


# ── how tool calls are reported ───────────────────────────────────────────────────────────────


def _id_fault(told: Wire) -> Fault:
    key = told.get("toolCallId")
    return None if is_text(key) else f"toolCallId is {key!r}"


def _title_fault(told: Wire) -> Fault:
    title = told.get("title")
    return None if isinstance(title, str) else f"the title is {title!r}"


def _status_fault(told: Wire) -> Fault:
    status = told.get("status")
    return None if status is None or status in _STATUSES else f"the status is {status!r}"


def _path_fault(told: Wire) -> Fault:
    for place in [*objects(told.get("locations")), *objects(told.get("content"))]:
        path = place.get("path")
        if path is not None and not str(path).startswith("/"):
            return f"{path!r} is not an absolute path"
    return None


_updates(
    "tools.ids",
    "Every report about a tool call has the id of the call.",
    _id_fault,
    "tool_call",
    "tool_call_update",
    page_=_CREATING,
    expects="`toolCallId`, a non-empty string, in every report",
)
_updates(
    "tools.title",
    "A new tool call has a title that describes what it does.",
    _title_fault,
    "tool_call",
    page_=_CREATING,
    expects="`title`, a string, in every `tool_call`",
)


@checks.should(
    "tools.once",
    "A tool call is announced once; changes are reported as updates.",
    page=page("tool-calls#updating"),
    does=_WORKS,
    expects="one `tool_call` for each id",
)
async def announces_once(examinee: Examinee) -> None:
    seen: set[Any] = set()
    turn = await _with_calls(examinee)
    for told, frame in turn.of("tool_call"):
        expect(told.get("toolCallId") not in seen, "a tool call was announced twice", frame)
        seen.add(told.get("toolCallId"))


async def _with_calls(examinee: Examinee) -> WorkTurn:
    """The turn. Raises NotApplicable if it has no tool call."""
    turn = await examinee.turn("allow")
    if not turn.of("tool_call", "tool_call_update"):
        not_applicable("the agent reported no tool call")
    return turn


_updates(
    "tools.status",
    "The status of a tool call has a defined value.",
    _status_fault,
    "tool_call",
    "tool_call_update",
    page_=_STATUS,
    expects=", ".join(f"`{each}`" for each in _STATUSES[:4]) + " or `cancelled`",
)


@checks.should(
    "tools.finished",
    "All tool calls of a turn are finished when the turn ends.",
    page=_STATUS,
    does=_WORKS,
    expects="the last status of each is `completed`, `failed` or `cancelled`",
)
async def finishes_its_calls(examinee: Examinee) -> None:
    last: dict[Any, Any] = {}
    for told, _ in (await _with_calls(examinee)).of("tool_call", "tool_call_update"):
        if told.get("status") is not None or told.get("toolCallId") not in last:
            last[told.get("toolCallId")] = told.get("status")
    open_ = [status for status in last.values() if status not in _STATUSES[2:]]
    expect(not open_, f"{len(open_)} tool calls were left with the status {[*open_, ''][0]}")


_updates(
    "tools.paths",
    "The paths of diffs and locations are absolute.",
    _path_fault,
    "tool_call",
    "tool_call_update",
    page_=page("tool-calls#content"),
    expects="every `path` of a diff or a location is absolute",
)


def _plan_fault(told: Wire) -> Fault:
    for entry in objects(told.get("entries")):
        if not isinstance(entry.get("content"), str):
            return "an entry has no content"
        if entry.get("priority") not in ("high", "medium", "low"):
            return f"the priority of an entry is {entry.get('priority')!r}"
        if entry.get("status") not in ("pending", "in_progress", "completed", "cancelled"):
            return f"the status of an entry is {entry.get('status')!r}"
    return None


_updates(
    "plan.entries",
    "Every plan entry has content, a priority and a status.",
    _plan_fault,
    "plan",
    page_=page("agent-plan#plan-entries"),
    expects="defined priorities and statuses in every `plan`",
    none="the agent made no plan",
)


@checks.must(
    "commands.names",
    "Slash commands have unique names, which do not include the slash.",
    page=page("slash-commands"),
    does="reads `available_commands_update`",
    expects="unique names without a leading slash",
)
async def names_its_commands(examinee: Examinee) -> None:
    kind = "available_commands_update"
    told = [told for told, _ in (await examinee.turn("allow")).of(kind)]
    short = (await examinee.short_turn()).updates
    told += [each for each in short if each.get("sessionUpdate") == kind]
    if not told:
        not_applicable("the agent offers no commands")
    names = [each.get("name") for each in objects(told[-1].get("availableCommands"))]
    expect(len(set(names)) == len(names), "two commands have the same name")
    for each in names:
        expect(isinstance(each, str) and not each.startswith("/"), f"a command is named {each!r}")


# ── permissions ───────────────────────────────────────────────────────────────────────────────


def _options_fault(turn: WorkTurn, asked: AgentRequest) -> Fault:
    options = objects(asked.params.get("options"))
    ids = [each.get("optionId") for each in options]
    if not options or len(set(ids)) != len(ids):
        return "two options have the same id" if options else "there are no options"
    for each in options:
        if not isinstance(each.get("name"), str):
            return "an option has no name"
        if each.get("kind") not in _OPTION_KINDS:
            return f"the kind of an option is {each.get('kind')!r}"
    return None


def _call_fault(turn: WorkTurn, asked: AgentRequest) -> Fault:
    named = is_text(at(asked.params, "toolCall", "toolCallId"))
    return None if named else "the request names no tool call"


_requests(
    "permission.options",
    "A permission request has options, each with a unique id.",
    _options_fault,
    _PERMISSION,
    page_=_PERMISSIONS,
    expects="unique `optionId`s, each with a `name` and a defined `kind`",
)
_requests(
    "permission.tool-call",
    "A permission request names its tool call.",
    _call_fault,
    _PERMISSION,
    page_=_PERMISSIONS,
    expects="`toolCall.toolCallId`, a non-empty string",
)


def _not_done(
    key: str, says: str, kind: TurnKind, does: str, expects: str, level: Level = "must"
) -> None:
    add = checks.must if level == "must" else checks.should

    @add(key, says, page=_PERMISSIONS, does=does, expects=expects)
    async def does_not_do_it(examinee: Examinee) -> None:
        turn = await examinee.turn(kind)
        asked = [at(each.params, "toolCall", "toolCallId") for each in turn.asked(_PERMISSION)]
        for told, frame in turn.of("tool_call", "tool_call_update"):
            done = told.get("status") == "completed" and told.get("toolCallId") in asked
            expect(not done, "a tool call was completed without permission", frame)


_REJECTS = "has the agent use its tools, and rejects every permission request"
_not_done(
    "permission.refused",
    "A rejected tool call is not carried out.",
    "reject",
    _REJECTS,
    "the rejected tool calls are not reported as `completed`",
)


def _goes_on(key: str, says: str, kind: TurnKind, method: str, does: str, page_: str) -> None:
    @checks.must(
        key,
        says,
        page=page_,
        does=does,
        expects="no error that ends the turn",
    )
    async def continues(examinee: Examinee) -> None:
        turn = await examinee.turn(kind)
        turn.asked(method)
        over = is_error(turn.reply) and turn.host.asked[-1].method == method
        expect(not over, f"the turn ended with an error: {error_text(turn.reply)}")


_goes_on(
    "permission.refused-ends",
    "A rejection is a normal response; the turn continues.",
    "reject",
    _PERMISSION,
    _REJECTS,
    _PERMISSIONS,
)
_not_done(
    "permission.error",
    "A permission request that fails grants nothing.",
    "fail",
    "has the agent use its tools, and responds to each permission request with an error",
    "a response to the prompt, and none of these tool calls is reported as `completed`",
    "should",
)


@checks.must(
    "permission.cancelled",
    "A turn that is cancelled during a permission request ends with the stop reason `cancelled`.",
    page=page("prompt-turn#cancellation"),
    does="cancels the turn when the agent requests permission, and responds with `cancelled`",
    expects="the stop reason `cancelled`",
)
async def ends_at_a_question(examinee: Examinee) -> None:
    why = ended((await examinee.turn("cancel")).reply)
    expect(why == "cancelled", f"the cancelled turn ended with {why!r}")


# ── what a client offers ──────────────────────────────────────────────────────────────────────


def _offered(key: str, prefix: str, what: str, page_: str) -> None:
    @checks.must(
        f"offered.{key}",
        f"An agent does not use {what} of a client that does not offer them.",
        page=page_,
        does="has the agent use its tools, with a client that offers no capabilities",
        expects=f"no `{prefix}…` request",
    )
    async def does_without(examinee: Examinee) -> None:
        for asked in (await examinee.turn("bare")).host.of(prefix):
            expect(False, f"{asked.method} was called, but is not offered", asked.frame)


_offered("files", "fs/", "the files", _FILES)
_offered("terminals", "terminal/", "the terminals", _TERMINALS)
_offered("forms", "elicitation/", "the forms", _OFFERED)


def _session_fault(turn: WorkTurn, asked: AgentRequest) -> Fault:
    named = asked.params.get("sessionId")
    return None if named == turn.session_id else f"the request names the session {named!r}"


for _subject, _prefix, _page in (
    ("permission", _PERMISSION, _PERMISSIONS),
    ("files", "fs/", _FILES),
    ("terminals", "terminal/", _TERMINALS),
):
    _requests(
        f"{_subject}.session",
        "A request to the client has the id of its session.",
        _session_fault,
        _prefix,
        page_=_page,
        expects=f"the `sessionId` of the turn in every `{_prefix}…` request",
    )


def _file_fault(turn: WorkTurn, asked: AgentRequest) -> Fault:
    path = str(asked.params.get("path"))
    return None if path.startswith("/") else f"{path!r} is not an absolute path"


def _line_fault(turn: WorkTurn, asked: AgentRequest) -> Fault:
    line = asked.params.get("line")
    right = line is None or (type(line) is int and line >= 1)
    return None if right else f"the line is {line!r}"


_requests(
    "files.absolute",
    "File paths are absolute.",
    _file_fault,
    "fs/",
    page_=_FILES,
    expects="every `path` in an `fs/…` request is absolute",
)
_requests(
    "files.lines",
    "Line numbers start at 1.",
    _line_fault,
    "fs/read_text_file",
    page_=_FILES,
    expects="`line` is at least 1, or omitted",
)
_goes_on(
    "files.missing",
    "A file that does not exist is an error for the tool, not for the turn.",
    "allow",
    "fs/read_text_file",
    "has the agent use its tools; the only files are those that it writes",
    _FILES,
)


@checks.must(
    "terminals.released",
    "An agent releases every terminal that it creates.",
    page=_TERMINALS,
    does=_WORKS,
    expects="`terminal/release` for each terminal before the turn ends",
)
async def releases_its_terminals(examinee: Examinee) -> None:
    turn = await examinee.turn("allow")
    turn.asked("terminal/create")
    left = sum(not released for released in turn.host.terminals.values())
    expect(left == 0, f"{left} terminals were not released")


@checks.must(
    "terminals.after-release",
    "A released terminal is not used again.",
    page=_TERMINALS,
    does=_WORKS,
    expects="no request that names the terminal after its `terminal/release`",
)
async def leaves_released_terminals(examinee: Examinee) -> None:
    released: set[Any] = set()
    for asked in (await examinee.turn("allow")).asked("terminal/"):
        key = asked.params.get("terminalId")
        expect(key not in released, "the terminal was used after its release", asked.frame)
        if asked.method == "terminal/release":
            released.add(key)


def _folder_fault(turn: WorkTurn, asked: AgentRequest) -> Fault:
    folder = asked.params.get("cwd")
    absolute = folder is None or str(folder).startswith("/")
    return None if absolute else f"{folder!r} is not an absolute path"


def _schema_fault(turn: WorkTurn, asked: AgentRequest) -> Fault:
    fields: Any = at(asked.params, "requestedSchema", "properties")
    if not isinstance(fields, dict):
        return "the form has no properties"
    fields = obj(at(asked.params, "requestedSchema", "properties"))
    untyped = [name for name, field in fields.items() if not is_text(at(field, "type"))]
    return f"the field {untyped[0]!r} has no type" if untyped else None


def _message_fault(turn: WorkTurn, asked: AgentRequest) -> Fault:
    message = asked.params.get("message")
    return None if is_text(message) else f"the message is {message!r}"


def _of_forms(fault: RequestFault) -> RequestFault:
    """What is asked in another mode has no form."""

    def of_form(turn: WorkTurn, asked: AgentRequest) -> Fault:
        is_form = asked.params.get("mode", "form") == "form"
        return fault(turn, asked) if is_form else None

    return of_form


_requests(
    "terminals.folder",
    "The working directory of a terminal is an absolute path.",
    _folder_fault,
    "terminal/create",
    page_=_TERMINALS,
    expects="`cwd` is absolute, or omitted",
)
_requests(
    "forms.schema",
    "A form is described by a JSON schema of an object, whose properties have types.",
    _of_forms(_schema_fault),
    "elicitation/create",
    page_=_FORMS,
    expects="`requestedSchema` has `properties`, each with a `type`",
)
_requests(
    "forms.message",
    "A form has a message that says what it is about.",
    _of_forms(_message_fault),
    "elicitation/create",
    page_=_FORMS,
    expects="`message`, a non-empty string",
)
_goes_on(
    "forms.declined",
    "Declining a form is a normal response; the turn continues.",
    "allow",
    "elicitation/create",
    "has the agent use its tools, and declines every form",
    _FORMS,
)


def _usage_fault(told: Wire) -> Fault:
    for name in ("used", "size"):
        count = told.get(name)
        if type(count) is not int or count < 0:
            return f"{name} is {count!r}"
    return None


_updates(
    "usage.numbers",
    "Context use and context size are numbers of tokens.",
    _usage_fault,
    "usage_update",
    page_=_REPORTS,
    expects="`used` and `size` are non-negative integers in every `usage_update`",
    level="should",
    none="the agent reports no usage",
)

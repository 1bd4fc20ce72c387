"""For each check of agents, an agent that fails it and no other: the model agent, with one thing
wrong."""

from __future__ import annotations

from collections.abc import Callable

from support.agent_faults import (
    NOBODYS,
    SAID,
    AfterAnswer,
    AsksUnoffered,
    CancelsAll,
    CancelsTwice,
    ClosedTakesPrompts,
    ClosedTurnHangs,
    EarlyCancel,
    FailsAfter,
    KeepsTerminals,
    MakeMutation,
    OfBytes,
    OfMessage,
    OfReply,
    OfSent,
    OneAtATime,
    PromptsAgain,
    RepeatsPages,
    Replays,
    ResumedTakesNone,
    SameId,
    StaysCancelled,
    WithdrawnWrong,
    adds,
    always,
    answer,
    answers,
    answers_notification,
    asks,
    block,
    changes_reply,
    chunk,
    completes,
    counts_long,
    dies,
    dies_of,
    drops,
    drops_reply,
    fails,
    has,
    is_short,
    lacks,
    params_of,
    puts,
    renames_id,
    succeeds,
    tells,
    update,
    uses_released,
    was_refused,
    works,
)
from support.mutant_link import Change, Frames, MutantLink, Mutation

from dragoman.conformance.probing.loose_json import Wire, at, is_text, obj, objects

# ── the mutants ───────────────────────────────────────────────────────────────────────────────


class Second(Mutation):
    """Does something with what an agent of version 2 reports."""

    def __init__(self, act: Callable[[Wire], Frames | None]) -> None:
        self._act = act
        self._long = False

    def received(self, link: MutantLink, message: Wire) -> Frames | None:
        told = obj(at(message, "params", "update"))
        return self._act(message) if told.get("sessionUpdate") == "state_update" else None


def idle_without_reason(message: Wire) -> Frames:
    if at(message, "params", "update", "stopReason") == "end_turn":
        message["params"]["update"].pop("stopReason")
    return [message]


def idle_as_usual(message: Wire) -> Frames:
    if at(message, "params", "update", "stopReason") == "cancelled":
        message["params"]["update"]["stopReason"] = "end_turn"
    return [message]


def without_running(message: Wire) -> Frames | None:
    return [] if at(message, "params", "update", "state") == "running" else None


def is_second(params: Wire) -> bool:
    return params.get("protocolVersion") == 2


class AcceptsWithReason(Mutation):
    """Answers a prompt of version 2 as if it were over."""

    def __init__(self) -> None:
        self._second = False

    def received(self, link: MutantLink, message: Wire) -> Frames | None:
        request = link.request(message)
        if request.get("method") == "initialize":
            self._second = is_second(params_of(request))
        if self._second and request.get("method") == "session/prompt":
            message["result"]["stopReason"] = "end_turn"
        return [message]


_first_version = has(protocolVersion=1)
_double = [{"id": "a", "name": "A"}, {"id": "a", "name": "B"}]
_call = {"sessionUpdate": "tool_call", "title": "Odd", "status": "completed"}


def _prompts_say(text: str) -> MakeMutation:
    """Without the text that the agent says."""

    def act(link: MutantLink, message: Wire) -> Frames | None:
        return [] if at(message, "params", "update", "content", "text") == text else None

    return lambda: OfMessage("session/update", act)


def _changes_update(kind: str, change: Change) -> MakeMutation:
    def act(link: MutantLink, message: Wire) -> Frames:
        told = obj(at(message, "params", "update"))
        if told.get("sessionUpdate") == kind:
            change(told)
        return [message]

    return lambda: OfMessage("session/update", act)


def _forgets_folder() -> Mutation:
    def act(link: MutantLink, message: Wire) -> Frames:
        if str(at(message, "params", "cwd")).endswith("/nowhere"):
            message["params"].pop("cwd")
        return [message]

    return OfSent(act)


def _does_not_delete() -> Mutation:
    def act(link: MutantLink, message: Wire) -> Frames | None:
        session_id = str(at(message, "params", "sessionId"))
        if message.get("method") != "session/delete" or session_id.startswith(NOBODYS):
            return None
        link.inject(answer(message["id"], {}))
        return []

    return OfSent(act)


def _forks_itself() -> Mutation:
    def act(link: MutantLink, reply: Wire) -> Frames:
        session_id = at(link.request(reply), "params", "sessionId")
        return [answer(reply["id"], {"sessionId": session_id})]

    return OfReply("session/fork", act, lambda p: not str(at(p, "sessionId")).startswith(NOBODYS))


def _drops_parts(link: MutantLink, data: bytes) -> bytes:
    return data if data.endswith(b"\n") else b""


def _cuts_lines(link: MutantLink, data: bytes) -> bytes:
    return data.replace("\u2028".encode(), b"\n")


def _tells_again() -> Mutation:
    def act(link: MutantLink, reply: Wire) -> Frames:
        session_id = at(link.request(reply), "params", "sessionId")
        return [update(session_id, chunk(SAID)), reply]

    return OfReply("session/resume", act, always)


def _speaks_late() -> Mutation:
    def act(link: MutantLink, reply: Wire) -> Frames:
        session_id = at(link.request(reply), "params", "sessionId")
        return [reply, update(session_id, chunk(SAID))]

    return OfReply("session/prompt", act, works)


def _doubles_options(params: Wire) -> None:
    params["options"] = [params["options"][0], *params["options"]]


def _missing(method: str) -> MakeMutation:
    """Has not got what it advertises."""
    return fails(method, has(sessionId=f"{NOBODYS}-either"), code=-32601)


MUTANTS: dict[str, MakeMutation] = {
    "initialize.answer": answers("initialize", drops("protocolVersion"), _first_version),
    "initialize.same-version": answers(
        "initialize", puts("protocolVersion", value=2), _first_version
    ),
    "initialize.newer-version": answers(
        "initialize", puts("protocolVersion", value=65535), has(protocolVersion=65535)
    ),
    "initialize.older-version": fails("initialize", has(protocolVersion=0)),
    "initialize.agent-info": answers("initialize", drops("agentInfo")),
    "initialize.flags": answers(
        "initialize", puts("agentCapabilities", "loadSession", value="yes")
    ),
    "initialize.session-capabilities": answers(
        "initialize", puts("agentCapabilities", "sessionCapabilities", "list", value=True)
    ),
    "initialize.auth-methods": answers("initialize", puts("authMethods", value=_double)),
    "initialize.unknown-fields": fails("initialize", lambda params: "_meta" in params),
    "initialize.no-capabilities": fails(
        "initialize", lambda p: p.get("protocolVersion") == 1 and "clientCapabilities" not in p
    ),
    "authenticate.unknown-method": succeeds("authenticate"),
    "advertised.logout": fails("logout", code=-32601),
    "rpc.id-string": renames_id("a-1", "a-2"),
    "rpc.id-zero": renames_id(0, None),
    "rpc.id-large": renames_id(2**53 - 1, 2**53),
    "rpc.id-negative": renames_id(-7, 7),
    "rpc.concurrent": drops_reply("second"),
    "rpc.one-answer": lambda: OfReply("session/new", lambda _, reply: [reply, reply], always),
    "rpc.result-or-error": changes_reply(
        "session/new", puts("error", value=None), lambda p: is_text(at(p, "cwd"))
    ),
    "rpc.version-member": changes_reply("session/new", drops("jsonrpc")),
    "rpc.unknown-method": succeeds("conformance/no_such_method"),
    "rpc.unknown-extension": fails("_conformance.example/no_such_method"),
    "rpc.unknown-notification": answers_notification("conformance/no_such_notification"),
    "rpc.unknown-extension-notification": answers_notification(
        "_conformance.example/no_such_notification"
    ),
    "rpc.cancel-unanswered": answers_notification("session/cancel"),
    "rpc.cancel-request-unknown": answers_notification(
        "$/cancel_request", has(requestId="never-used")
    ),
    "rpc.params-type": succeeds("session/new", has(cwd=42), sessionId="odd"),
    "rpc.params-missing": succeeds(
        "session/new", lambda p: obj(p) != {} and lacks("cwd")(p), sessionId="odd"
    ),
    "rpc.params-array": succeeds(
        "session/new", lambda params: isinstance(params, list), sessionId="odd"
    ),
    "rpc.params-code": fails("session/prompt", has(prompt="a text")),
    "rpc.error-shape": changes_reply("conformance/show_an_error", puts("error", value="no")),
    "frames.not-json": dies_of(b"this is not JSON\n"),
    "frames.not-an-object": dies_of(b"42\n"),
    "frames.empty-list": dies_of(b"[]\n"),
    "frames.blank-line": dies_of(b"\n"),
    "frames.stray-answer": dies(lambda m: m.get("id") == "nobody asked" and "result" in m),
    "frames.stray-error": dies(lambda m: m.get("id") == "nobody asked" and "error" in m),
    "frames.no-method": dies(lambda m: m.get("id") == "no method"),
    "frames.split": lambda: OfBytes(_drops_parts),
    "frames.big": dies(lambda m: len(str(at(m, "params", "text"))) > 1_000_000),
    "frames.line-separators": lambda: OfBytes(_cuts_lines),
    "frames.only-messages": adds("initialize", [b"Welcome!"]),
    "frames.utf-8": adds("session/prompt", [b'{"jsonrpc":"2.0","method":"\xff"}']),
    "session.new": answers(
        "session/new", drops("sessionId"), lambda p: str(at(p, "cwd")).endswith("/project")
    ),
    "session.own-id": SameId,
    "session.unknown-prompt": succeeds(
        "session/prompt", has(sessionId=NOBODYS), stopReason="end_turn"
    ),
    "session.unknown-code": fails("session/prompt", has(sessionId=NOBODYS), code=-32603),
    "session.unknown-cancel": dies(
        lambda m: m.get("method") == "session/cancel" and at(m, "params", "sessionId") == NOBODYS
    ),
    "load.replays": lambda: Replays("agent_message_chunk"),
    "load.replays-prompts": lambda: Replays("user_message_chunk"),
    "load.answers-last": lambda: Replays(late=True),
    "load.unknown": succeeds("session/load", has(sessionId=NOBODYS)),
    "resume.no-replay": _tells_again,
    "resume.continues": ResumedTakesNone,
    "list.has-it": answers("session/list", puts("sessions", value=[])),
    "list.fields": answers(
        "session/list", lambda r: [s.update(cwd="here") for s in objects(r.get("sessions"))]
    ),
    "list.pages": RepeatsPages,
    "list.folder": _forgets_folder,
    "list.bad-cursor": succeeds(
        "session/list", lambda p: "no such cursor" in str(at(p, "cursor")), sessions=[]
    ),
    "close.ends": ClosedTakesPrompts,
    "close.cancels": ClosedTurnHangs,
    "delete.unlists": _does_not_delete,
    "fork.own-id": _forks_itself,
    "advertised.load": _missing("session/load"),
    "advertised.resume": _missing("session/resume"),
    "advertised.close": _missing("session/close"),
    "advertised.delete": _missing("session/delete"),
    "advertised.fork": _missing("session/fork"),
    "advertised.list": _missing("session/list"),
    "modes.current": answers(
        "session/new",
        lambda r: (
            [m.update(id="auto") for m in objects(at(r, "modes", "availableModes"))[1:]]
            and r["modes"]["availableModes"].append({"id": "auto", "name": "again"})
        ),
    ),
    "modes.set": fails("session/set_mode", has(modeId="auto")),
    "modes.unknown": succeeds("session/set_mode", has(modeId="conformance-no-such-mode")),
    "options.current": answers(
        "session/new",
        lambda r: [o.update(currentValue="odd") for o in objects(r.get("configOptions"))],
    ),
    "options.set": answers(
        "session/set_config_option",
        lambda r: [o.update(currentValue="odd") for o in objects(r.get("configOptions"))],
    ),
    "options.unknown": succeeds(
        "session/set_config_option", has(configId="conformance-no-such-option")
    ),
    "options.bad-value": succeeds(
        "session/set_config_option", has(value="conformance-no-such-value")
    ),
    "prompt.stop-reason": answers(
        "session/prompt",
        lambda r: r.get("stopReason") == "end_turn" and r.update(stopReason="finished"),
    ),
    "prompt.says-something": _prompts_say("ready"),
    "prompt.own-session": adds("session/prompt", [update("another", chunk(SAID))], is_short),
    "prompt.answer-last": _speaks_late,
    "prompt.known-updates": tells({"sessionUpdate": "gossip"}),
    "prompt.chunks": tells(chunk("and more")),
    "content.resource-link": fails("session/prompt", block("resource_link")),
    "content.image": fails("session/prompt", block("image")),
    "content.audio": fails("session/prompt", block("audio")),
    "content.embedded": fails("session/prompt", block("resource")),
    "content.unknown": dies(lambda m: block("_conformance.example/odd")(params_of(m))),
    "prompt.again": PromptsAgain,
    "prompt.two-sessions": OneAtATime,
    "cancel.stop-reason": answers(
        "session/prompt",
        lambda r: r.get("stopReason") == "cancelled" and r.update(stopReason="end_turn"),
        counts_long,
    ),
    "cancel.early": EarlyCancel,
    "cancel.twice": CancelsTwice,
    "cancel.continues": StaysCancelled,
    "cancel.own-session": CancelsAll,
    "cancel.request": WithdrawnWrong,
    "tools.ids": tells({"sessionUpdate": "tool_call_update", "status": "completed"}),
    "tools.title": tells(
        {"sessionUpdate": "tool_call", "toolCallId": "odd", "status": "completed"}
    ),
    "tools.once": tells({**_call, "toolCallId": "odd"}, {**_call, "toolCallId": "odd"}),
    "tools.status": tells(
        {**_call, "toolCallId": "odd", "status": "busy"},
        {"sessionUpdate": "tool_call_update", "toolCallId": "odd", "status": "completed"},
    ),
    "tools.finished": tells({**_call, "toolCallId": "odd", "status": "pending"}),
    "tools.paths": tells({**_call, "toolCallId": "odd", "locations": [{"path": "here.txt"}]}),
    "plan.entries": _changes_update("plan", lambda u: u["entries"][0].update(status="odd")),
    "commands.names": _changes_update(
        "available_commands_update", lambda u: u["availableCommands"][0].update(name="/help")
    ),
    "permission.options": asks("session/request_permission", _doubles_options),
    "permission.tool-call": asks(
        "session/request_permission", lambda p: obj(p.get("toolCall")).pop("toolCallId", None)
    ),
    "permission.refused": completes(was_refused),
    "permission.refused-ends": lambda: FailsAfter("session/request_permission", was_refused),
    "permission.error": completes(lambda reply: "error" in reply),
    "permission.cancelled": answers(
        "session/prompt",
        lambda r: r.get("stopReason") == "cancelled" and r.update(stopReason="end_turn"),
        works,
    ),
    "offered.files": lambda: AsksUnoffered("fs/read_text_file"),
    "offered.terminals": lambda: AsksUnoffered("terminal/create"),
    "offered.forms": lambda: AsksUnoffered("elicitation/create"),
    "permission.session": asks("session/request_permission", puts("sessionId", value="another")),
    "files.session": asks("fs/write_text_file", puts("sessionId", value="another")),
    "terminals.session": asks("terminal/output", puts("sessionId", value="another")),
    "files.absolute": asks("fs/read_text_file", puts("path", value="here.txt")),
    "files.lines": asks("fs/read_text_file", puts("line", value=0)),
    "files.missing": lambda: FailsAfter("fs/read_text_file", lambda reply: "error" in reply),
    "terminals.released": KeepsTerminals,
    "terminals.after-release": lambda: AfterAnswer("terminal/release", uses_released),
    "terminals.folder": asks("terminal/create", puts("cwd", value="here")),
    "forms.schema": asks("elicitation/create", drops("requestedSchema", "properties")),
    "forms.message": asks("elicitation/create", puts("message", value="")),
    "forms.declined": lambda: FailsAfter("elicitation/create", lambda reply: "result" in reply),
    "usage.numbers": _changes_update("usage_update", puts("used", value=-1)),
    "v2.info": answers("initialize", drops("info", "version"), is_second),
    "v2.accepts-first": AcceptsWithReason,
    "v2.idle": lambda: Second(idle_without_reason),
    "v2.running": lambda: Second(without_running),
    "v2.cancelled": lambda: Second(idle_as_usual),
    "v2.own-tools": lambda: AsksUnoffered("fs/read_text_file", version=2),
}
"""Those that need no process of their own."""

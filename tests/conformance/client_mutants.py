"""For each check of clients, a client that fails it and no other: the reference client, with one
thing wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from support.agent_faults import (
    MakeMutation,
    OfBytes,
    OfMessage,
    OfReply,
    OfSent,
    answer,
    answers,
    answers_notification,
    asks,
    changes_reply,
    dies,
    dies_of,
    drops,
    drops_reply,
    error,
    fails,
    has,
    puts,
    renames_id,
    succeeds,
)
from support.mutant_link import Frames, MutantLink, Mutation
from support.reference_client import ClientMutation

from dragoman.conformance.probing.loose_json import Wire, at, obj, objects


class Theirs(ClientMutation):
    """Knows the requests of the client, by their ids."""

    def __init__(self) -> None:
        self.asked: dict[str, Wire] = {}

    def received(self, link: MutantLink, message: Wire) -> Frames | None:
        if "method" in message and "id" in message:
            self.asked[repr(message["id"])] = message
            return self.requested(link, message)
        return None

    def sent(self, link: MutantLink, message: Wire) -> Frames | None:
        if "method" in message:
            return self.other(link, message)
        if str(message.get("id")).startswith("mutant"):
            return []
        return self.replied(link, self.asked.get(repr(message.get("id")), {}), message)

    def requested(self, link: MutantLink, message: Wire) -> Frames | None:
        """What the stage gets instead of a request of the client."""
        return None

    def replied(self, link: MutantLink, request: Wire, reply: Wire) -> Frames | None:
        """What the client gets instead of an answer of the stage."""
        return None

    def other(self, link: MutantLink, message: Wire) -> Frames | None:
        """What the client gets instead of a request or a notification."""
        return None


def _asks_also(method: str, also: Wire, *, before: bool = False) -> MakeMutation:
    """Sends one more message when it sends a request of this method."""

    class AsksAlso(Theirs):
        def requested(self, link: MutantLink, message: Wire) -> Frames | None:
            if message["method"] != method:
                return None
            return [also, message] if before else [message, also]

    return AsksAlso


def _ignores(method: str, when: Callable[[Wire], bool]) -> MakeMutation:
    """Waits forever for the reply to a request."""

    class Ignores(Theirs):
        def replied(self, link: MutantLink, request: Wire, reply: Wire) -> Frames | None:
            return [] if request.get("method") == method and when(reply) else None

    return Ignores


def _gets(
    method: str, change: Callable[[Wire], object], when: Callable[[Wire], bool]
) -> MakeMutation:
    """Takes an answer for another one."""

    class Gets(Theirs):
        def replied(self, link: MutantLink, request: Wire, reply: Wire) -> Frames | None:
            if request.get("method") == method and when(reply):
                change(reply)
            return [reply]

    return Gets


def _dies_at_reply(method: str, when: Callable[[Wire], bool]) -> MakeMutation:
    class DiesAtReply(Theirs):
        def replied(self, link: MutantLink, request: Wire, reply: Wire) -> Frames | None:
            if request.get("method") == method and when(reply):
                link.die()
            return None

    return DiesAtReply


class DiesEarly(Theirs):
    """Does not survive an update before its session has an id."""

    def other(self, link: MutantLink, message: Wire) -> Frames | None:
        opened = any(each["method"] == "session/prompt" for each in self.asked.values())
        if not opened and at(message, "params", "update", "content", "text") == "early":
            link.die()
        return None


class SameIds(Theirs):
    """Gives its prompt the id of its first request."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: Any = None

    def requested(self, link: MutantLink, message: Wire) -> Frames | None:
        if message["method"] != "session/prompt":
            return None
        self.kept = message["id"]
        return [{**message, "id": next(iter(self.asked.values()))["id"]}]

    def replied(self, link: MutantLink, request: Wire, reply: Wire) -> Frames | None:
        return [{**reply, "id": self.kept}] if self.kept and request else None


class TakesOneAnswer(Theirs):
    """Does not survive a second answer to a request."""

    def __init__(self) -> None:
        super().__init__()
        self.settled: list[str] = []

    def replied(self, link: MutantLink, request: Wire, reply: Wire) -> Frames | None:
        if repr(reply.get("id")) in self.settled and request:
            link.die()
        self.settled.append(repr(reply.get("id")))
        return None


class DiesLate(Theirs):
    """Does not survive an update after its turn."""

    def __init__(self) -> None:
        super().__init__()
        self.over = False

    def replied(self, link: MutantLink, request: Wire, reply: Wire) -> Frames | None:
        self.over = request.get("method") == "session/prompt"
        return None

    def other(self, link: MutantLink, message: Wire) -> Frames | None:
        if self.over and message["method"] == "session/update":
            link.die()
        return None


class HangsWhenTired(Theirs):
    """Does nothing any longer after a stop reason it does not know."""

    def __init__(self) -> None:
        super().__init__()
        self.hangs = False

    def sent(self, link: MutantLink, message: Wire) -> Frames | None:
        if at(message, "result", "stopReason") == "conformance_tired":
            self.hangs = True
        return [] if self.hangs else super().sent(link, message)


class SwapsWords(ClientMutation):
    """Shows two words the wrong way round."""

    def __init__(self) -> None:
        self.held: Wire | None = None

    def sent(self, link: MutantLink, message: Wire) -> Frames | None:
        text = str(at(message, "params", "update", "content", "text"))
        if text.startswith("[w10]"):
            self.held = message
            return []
        if self.held is not None:
            held, self.held = self.held, None
            return [message, held]
        return None


def _update(text: str, act: Callable[[Wire], Frames]) -> MakeMutation:
    """Does something with the update that has this text."""

    def change(link: MutantLink, message: Wire) -> Frames | None:
        told = str(at(message, "params", "update", "content", "text"))
        return act(message) if told.startswith(text) else None

    return lambda: OfSent(change)


def _dies_of_update(**fields: Any) -> MakeMutation:
    def wrong(message: Wire) -> bool:
        told = obj(at(message, "params", "update"))
        return message.get("method") == "session/update" and all(
            told.get(name) == value for name, value in fields.items()
        )

    return dies(wrong)


def _to_own_session(message: Wire) -> Frames:
    message["params"]["sessionId"] = "conformance-session"
    return [message]


def _answers_call(key: str, outcome: Wire | None) -> MakeMutation:
    """Answers the question about a tool call like that; with an error for None."""

    def act(link: MutantLink, reply: Wire) -> Frames:
        wrong = error(reply["id"]) if outcome is None else answer(reply["id"], {"outcome": outcome})
        return [wrong]

    def about(params: Any) -> bool:
        return at(params, "toolCall", "toolCallId") == key

    return lambda: OfReply("session/request_permission", act, about)


def _selects(option_id: str) -> Wire:
    return {"outcome": "selected", "optionId": option_id}


def _drops_call(key: str) -> MakeMutation:
    return lambda: OfReply(
        "session/request_permission",
        lambda link, reply: [],
        lambda params: at(params, "toolCall", "toolCallId") == key,
    )


def _reads(text: str, when: Callable[[Any], bool]) -> MakeMutation:
    return succeeds("fs/read_text_file", when, content=text)


def _path(end: str, *, dots: bool = False) -> Callable[[Any], bool]:
    def fits(params: Any) -> bool:
        path = str(at(params, "path"))
        return path.endswith(end) and (".." in path) == dots

    return fits


def _does_not_write() -> Mutation:
    def act(link: MutantLink, message: Wire) -> Frames | None:
        if message.get("method") != "fs/write_text_file":
            return None
        link.inject(answer(message["id"], {}))
        return []

    return OfSent(act)


def _without(name: str) -> MakeMutation:
    """Leaves out a param of `terminal/create`."""

    def act(link: MutantLink, message: Wire) -> Frames:
        if message.get("method") == "terminal/create":
            obj(message.get("params")).pop(name, None)
        return [message]

    return lambda: OfSent(act)


class ForgetsKilled(ClientMutation):
    """Has no output of a command that was killed."""

    def __init__(self) -> None:
        self.killed = False

    def sent(self, link: MutantLink, message: Wire) -> Frames | None:
        self.killed = self.killed or message.get("method") == "terminal/kill"
        return None

    def received(self, link: MutantLink, message: Wire) -> Frames | None:
        if self.killed and link.request(message).get("method") == "terminal/output":
            message["result"]["output"] = ""
        return [message]


class WaitsAlone(ClientMutation):
    """Never says that a command has ended that was killed while it was waited for."""

    def __init__(self) -> None:
        self.waits = False
        self.killed = False

    def sent(self, link: MutantLink, message: Wire) -> Frames | None:
        self.waits = self.waits or message.get("method") == "terminal/wait_for_exit"
        self.killed = self.killed or (self.waits and message.get("method") == "terminal/kill")
        return None

    def received(self, link: MutantLink, message: Wire) -> Frames | None:
        waited = link.request(message).get("method") == "terminal/wait_for_exit"
        return [] if waited and self.killed else None


def _keeps_released() -> Mutation:
    def act(link: MutantLink, message: Wire) -> Frames | None:
        if message.get("method") != "terminal/release":
            return None
        link.inject(answer(message["id"], {}))
        return []

    return OfSent(act)


class RunsNothing(ClientMutation):
    """Takes a program that is not there for one that has done its work."""

    def sent(self, link: MutantLink, message: Wire) -> Frames | None:
        if at(message, "params", "terminalId") == "ghost":
            link.inject(answer(message["id"], {"exitCode": 0}))
            return []
        return None

    def received(self, link: MutantLink, message: Wire) -> Frames | None:
        asked = str(at(link.request(message), "params", "command"))
        if asked.startswith("/conformance/"):
            return [answer(message["id"], {"terminalId": "ghost"})]
        return None


class ExitsWith(ClientMutation):
    """Exits with another code, depending on what the stage has written."""

    def __init__(self, code: int, when: Callable[[bytes], bool]) -> None:
        self.code = code
        self.when = when
        self.all = b""

    def written(self, link: MutantLink, data: bytes) -> bytes:
        self.all += data
        return data

    def exit_code(self, code: int) -> int:
        return self.code if self.when(self.all) else code


def _is_half(written: bytes) -> bool:
    return written.endswith(b'"id":')


class Stays(ClientMutation):
    """Keeps the agent's input open."""

    def sent(self, link: MutantLink, message: Wire) -> Frames | None:
        if at(message, "params", "update", "content", "text") == "[bye]":
            link.stays = True
        return None


def _without_lines(link: MutantLink, data: bytes) -> bytes:
    return data.partition(b"\n")[0] + b"\n" if data.count(b"\n") > 100 else data


def _in_lines(link: MutantLink, data: bytes) -> bytes:
    return data.replace("\u2028".encode(), b"\n")


def _in_whole(link: MutantLink, data: bytes) -> bytes:
    return data if data.endswith(b"\n") or data[-5:] == b'"id":' else b""


_EXTRA: Wire = {"jsonrpc": "2.0", "id": "mutant-1", "params": {}}


def _cancel_with_id(link: MutantLink, message: Wire) -> Frames:
    return [{**message, "id": "mutant-1"}]


MUTANTS: dict[str, MakeMutation] = {
    "initialize.first": _asks_also(
        "initialize", {"jsonrpc": "2.0", "method": "_mutant/hello"}, before=True
    ),
    "initialize.once": _asks_also(
        "session/prompt", {**_EXTRA, "method": "initialize"}, before=True
    ),
    "initialize.version": asks("initialize", puts("protocolVersion", value="1")),
    "initialize.client-info": asks("initialize", drops("clientInfo")),
    "initialize.flags": asks("initialize", puts("clientCapabilities", "terminal", value="yes")),
    "initialize.waits": _asks_also("initialize", {**_EXTRA, "method": "_mutant/early"}),
    "initialize.unsupported": _gets(
        "initialize",
        puts("result", "protocolVersion", value=1),
        lambda reply: at(reply, "result", "protocolVersion") == 4242,
    ),
    "initialize.minimal": _dies_at_reply(
        "initialize", lambda r: "result" in r and "agentCapabilities" not in r["result"]
    ),
    "initialize.unknown-fields": _dies_at_reply(
        "initialize", lambda r: at(r, "result", "_other") == 1
    ),
    "initialize.error": _ignores("initialize", lambda reply: "error" in reply),
    "session.error": _ignores("session/new", lambda r: at(r, "error", "code") == -32603),
    "session.sign-in": _ignores("session/new", lambda r: at(r, "error", "code") == -32000),
    "session.folder": asks("session/new", puts("cwd", value="here")),
    "session.mcp-servers": asks("session/new", drops("mcpServers")),
    "session.id": asks(
        "session/prompt", lambda p: p.update(sessionId=str(p["sessionId"]).replace("☃", "?"))
    ),
    "session.advertised": _asks_also("session/prompt", {**_EXTRA, "method": "session/list"}),
    "session.early-update": DiesEarly,
    "prompt.blocks": asks("session/prompt", lambda p: p["prompt"][0].pop("type")),
    "prompt.baseline": asks("session/prompt", lambda p: p["prompt"].append({"type": "image"})),
    "rpc.version-member": lambda: OfMessage(
        "session/prompt", lambda _, m: [{k: v for k, v in m.items() if k != "jsonrpc"}]
    ),
    "rpc.ids": SameIds,
    "frames.only-messages": lambda: OfMessage("session/prompt", lambda _, m: [b"hello", m]),
    "rpc.id-string": renames_id("a-1", "a-2"),
    "rpc.id-zero": renames_id(0, None),
    "rpc.id-large": renames_id(2**53 - 1, 2**53),
    "rpc.id-negative": renames_id(-7, 7),
    "rpc.unknown-method": succeeds("conformance/no_such_method"),
    "rpc.unknown-extension": fails("_conformance.example/no_such_method"),
    "rpc.unknown-notification": answers_notification("conformance/no_such_notification"),
    "rpc.unknown-extension-notification": answers_notification(
        "_conformance.example/no_such_notification"
    ),
    "rpc.error-shape": changes_reply("conformance/show_an_error", puts("error", value="no")),
    "rpc.params": succeeds("session/request_permission", has(options="none")),
    "rpc.many": drops_reply("many-7"),
    "rpc.amid-updates": drops_reply("amid"),
    "frames.not-json": dies_of(b"Welcome to the agent!\n"),
    "frames.number": dies_of(b"42\n"),
    "frames.empty-list": dies_of(b"[]\n"),
    "frames.text": dies_of(b'"x"\n'),
    "frames.null": dies_of(b"null\n"),
    "frames.blank-line": dies_of(b"\n"),
    "frames.not-utf-8": dies_of(b"\xff\xfe\n"),
    "frames.stray-answer": dies(lambda m: m.get("id") == "nobody asked" and "result" in m),
    "frames.stray-error": dies(lambda m: m.get("id") == "nobody asked" and "error" in m),
    "frames.split": lambda: OfBytes(_in_whole),
    "frames.joined": lambda: OfBytes(_without_lines),
    "frames.big": dies(
        lambda m: len(str(at(m, "params", "update", "content", "text"))) > 1_000_000
    ),
    "frames.line-separators": lambda: OfBytes(_in_lines),
    "frames.text-as-error": _ignores("session/prompt", lambda r: isinstance(r.get("error"), str)),
    "frames.odd-code": _ignores("session/prompt", lambda r: at(r, "error", "code") == 400),
    "frames.answer-twice": TakesOneAnswer,
    "updates.unknown-kind": _dies_of_update(sessionUpdate="conformance_gossip"),
    "updates.unknown-field": _dies_of_update(conformanceField={"a": [1]}),
    "updates.unknown-content": _dies_of_update(content={"type": "conformance_hologram"}),
    "updates.unknown-tool-kind": _dies_of_update(kind="conformance_magic"),
    "updates.unannounced-call": _dies_of_update(toolCallId="never seen"),
    "updates.bad-shape": _dies_of_update(toolCallId=7),
    "updates.other-session": dies(
        lambda m: at(m, "params", "update", "content", "text") == "elsewhere"
    ),
    "updates.late": DiesLate,
    "updates.stop-reason": HangsWhenTired,
    "shown.order": SwapsWords,
    "shown.complete": _update("[end]", lambda m: []),
    "shown.once": _update("[two]", lambda m: [m, m]),
    "shown.own-session": _update("[foreign]", _to_own_session),
    "permission.offered": _answers_call("offered", _selects("invented")),
    "permission.not-cancelled": _answers_call("not-cancelled", {"outcome": "cancelled"}),
    "permission.unannounced": _answers_call("never seen", None),
    "permission.unknown-kind": lambda: OfReply(
        "session/request_permission",
        lambda _, reply: [answer(reply["id"], {"outcome": _selects("odd")})],
        lambda p: any(o.get("optionId") == "odd" for o in objects(at(p, "options"))),
    ),
    "permission.allowed": _answers_call("allow", _selects("no")),
    "permission.refused": _answers_call("reject", _selects("yes")),
    "permission.both-open": _drops_call("second"),
    "cancel.notifies": lambda: OfMessage("session/cancel", _cancel_with_id),
    "cancel.question": _answers_call("open", _selects("no")),
    "cancel.late-question": _answers_call("late", _selects("no")),
    "cancel.waits": dies(lambda m: at(m, "params", "update", "content", "text") == "winding up"),
    "load.waits": asks("session/load", puts("sessionId", value="another")),
    "load.shown-once": _update("[now]", lambda m: [m, m]),
    "files.not-offered": succeeds("fs/read_text_file", content=""),
    "terminals.not-offered": succeeds("terminal/create", terminalId="x"),
    "forms.not-offered": succeeds("elicitation/create", action="decline"),
    "files.read": answers(
        "fs/read_text_file", lambda r: r.update(content=r["content"].replace("\r\n", "\n"))
    ),
    "files.lines": _reads("3\n4\n", lambda p: at(p, "line") == 2),
    "files.missing": _reads("", _path("/nowhere.txt")),
    "files.relative": _reads("ready", has(path="read.txt")),
    "files.outside": _reads("secret", _path("-secret.txt")),
    "files.dots": _reads("secret", _path("-secret.txt", dots=True)),
    "files.link": _reads("secret", _path("/link.txt")),
    "files.session": _reads("ready", has(sessionId="conformance-other-session")),
    "files.write": _does_not_write,
    "terminals.run": answers(
        "terminal/wait_for_exit", lambda r: r.get("exitCode") == 3 and r.update(exitCode=0)
    ),
    "terminals.at-once": answers(
        "terminal/output", lambda r: r.setdefault("exitStatus", {"exitCode": None})
    ),
    "terminals.folder": _without("cwd"),
    "terminals.environment": _without("env"),
    "terminals.limit": _without("outputByteLimit"),
    "terminals.kill": ForgetsKilled,
    "terminals.meanwhile": WaitsAlone,
    "terminals.release": _keeps_released,
    "terminals.unknown": succeeds("terminal/output", has(terminalId="conformance-none"), output=""),
    "terminals.no-command": RunsNothing,
    "forms.answer": answers("elicitation/create", puts("action", value="perhaps")),
    "ending.exit-code": lambda: ExitsWith(1, lambda written: b'"text":"ready"' in written),
    "ending.closes-input": Stays,
    "ending.crash": lambda: ExitsWith(0, lambda written: not _is_half(written)),
    "ending.half-frame": lambda: ExitsWith(0, _is_half),
}
"""Those that need no process of their own."""

"""JSON-RPC and its frames, from the side of the client."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from dragoman.conformance.check import JSON_RPC, Checks, expect, page
from dragoman.conformance.client_stage.stage import ClientStage, chunk, told
from dragoman.conformance.loose_json import Wire, at
from dragoman.conformance.probe import PING, error_code, frame_of, is_error

checks: Checks[ClientStage] = Checks("client", JSON_RPC)
_TRANSPORT = page("transports")
_EXTENSIONS = page("extensibility")
_BIG = 10 * 1024 * 1024


# ── what a client writes ──────────────────────────────────────────────────────────────────────


@checks.must(
    "rpc.version-member",
    'Every message says `"jsonrpc": "2.0"`.',
    does="plays a turn with a question, and looks at every message",
    expects="the member `jsonrpc` with this text",
)
async def says_its_version(stage: ClientStage) -> None:
    await stage.prompted()
    await stage.settle("a prompt")
    for each in stage.probe.received:
        expect(each.message.get("jsonrpc") == "2.0", 'it lacks "jsonrpc": "2.0"', each.frame)


@checks.must(
    "rpc.ids",
    "Every request has an id of its own.",
    does="looks at the ids of all requests up to the prompt",
    expects="different texts or integers",
)
async def has_ids(stage: ClientStage) -> None:
    await stage.prompted()
    seen: set[str] = set()
    for asked in stage.agent.asked:
        key = repr(asked.id)
        expect(type(asked.id) in (int, str), f"an id is {key}", asked.frame)
        expect(key not in seen, f"the id {key} was used twice", asked.frame)
        seen.add(key)


@checks.must(
    "frames.only-messages",
    "A client writes nothing to the agent that is not a message of ACP.",
    page=_TRANSPORT,
    does="plays a turn, and looks at every line",
    expects="JSON-RPC messages alone",
)
async def writes_only_messages(stage: ClientStage) -> None:
    await stage.prompted()
    await stage.settle("a prompt")
    expect(not stage.probe.noise, "a line is not a message", *stage.probe.noise[:3])


# ── what a client answers ─────────────────────────────────────────────────────────────────────


def _id_scene(name: str, key: Any) -> None:
    @checks.must(
        f"rpc.id-{name}",
        "An answer carries the id of its request, the same value of the same type.",
        does=f"sends a request with the id `{msgspec.json.encode(key).decode()}`",
        expects="an answer with exactly this id",
    )
    async def answers_the_id(stage: ClientStage) -> None:
        await stage.prompted()
        stage.probe.begin(PING, {}, key)
        await stage.settle("a request")
        expect(bool(stage.probe.replies(key)), "no answer has this id")


_id_scene("string", "a-1")
_id_scene("zero", 0)
_id_scene("large", 2**53 - 1)
_id_scene("negative", -7)


def _unknown_method(key: str, method: str, page_: str, says: str) -> None:
    @checks.must(
        key, says, page=page_, does=f"calls `{method}` in a turn", expects="the error −32601"
    )
    async def refuses_the_method(stage: ClientStage) -> None:
        await stage.prompted()
        reply = await stage.ask(method, {"sessionId": stage.session_id})
        expect(is_error(reply), "an unknown method was answered with a result")
        code = error_code(reply)
        expect(code == -32601, f"an unknown method was answered with the error {code!r}")


_unknown_method(
    "rpc.unknown-method",
    "conformance/no_such_method",
    JSON_RPC,
    "A method that does not exist is answered with the error −32601.",
)
_unknown_method(
    "rpc.unknown-extension",
    "_conformance.example/no_such_method",
    _EXTENSIONS,
    "An extension method that a client does not know is answered with the error −32601.",
)


def _unknown_notification(key: str, method: str, page_: str, says: str) -> None:
    @checks.must(
        key,
        says,
        page=page_,
        does=f"sends the notification `{method}`",
        expects="no answer, and a client that continues",
    )
    async def ignores_the_notification(stage: ClientStage) -> None:
        await stage.prompted()
        mark = len(stage.probe.received)
        stage.probe.notify(method, {"sessionId": stage.session_id})
        await stage.settle("an unknown notification")
        answers = [each for each in stage.probe.received[mark:] if "method" not in each.message]
        for each in answers[:-1]:
            expect(False, "a notification was answered", each.frame)


_unknown_notification(
    "rpc.unknown-notification",
    "conformance/no_such_notification",
    JSON_RPC,
    "A notification is never answered, not even one that nobody knows.",
)
_unknown_notification(
    "rpc.unknown-extension-notification",
    "_conformance.example/no_such_notification",
    _EXTENSIONS,
    "An extension notification that a client does not know is ignored.",
)


@checks.must(
    "rpc.error-shape",
    "An error has an integer `code` and a text `message`.",
    does="calls `conformance/show_an_error`",
    expects="an error object with both",
)
async def shapes_its_errors(stage: ClientStage) -> None:
    await stage.prompted()
    reply = await stage.ask("conformance/show_an_error", {})
    expect(is_error(reply), f"the error is {reply.get('error')!r}, not an object")
    expect(type(error_code(reply)) is int, f"the code is {error_code(reply)!r}")
    expect(isinstance(at(reply, "error", "message"), str), "the message is not a text")


@checks.must(
    "rpc.params",
    "Params that do not fit a method are answered with an error.",
    does="asks for permission with a text as the list of options",
    expects="an error, and a client that continues",
)
async def refuses_wrong_params(stage: ClientStage) -> None:
    await stage.prompted()
    params = {"sessionId": stage.session_id, "options": "none", "toolCall": 7}
    reply = await stage.ask("session/request_permission", params)
    expect(is_error(reply), "params of the wrong shape were answered with a result")
    await stage.settle("params of the wrong shape")


@checks.must(
    "rpc.many",
    "Requests may be sent before earlier ones are answered; each is answered once.",
    does="sends twenty requests in one piece",
    expects="twenty answers",
)
async def answers_many(stage: ClientStage) -> None:
    await stage.prompted()
    keys = [f"many-{number}" for number in range(20)]
    asked = {"jsonrpc": "2.0", "method": PING, "params": {"a": 1}}
    stage.together(*({**asked, "id": key} for key in keys))
    for key in keys:
        await stage.probe.reply_to(key, f"the request {key}")
    await stage.settle("twenty requests")
    for key in keys:
        count = len(stage.probe.replies(key))
        expect(count == 1, f"the request {key} was answered {count} times")


@checks.must(
    "rpc.amid-updates",
    "A request is answered while updates of its turn come in.",
    does="sends a request amid a thousand updates",
    expects="an answer, while the turn continues",
)
async def answers_amid_updates(stage: ClientStage) -> None:
    await stage.prompted()
    for number in range(1000):
        stage.say(f"{number} ")
        if number == 500:
            stage.probe.begin(PING, {}, "amid")
    await stage.probe.transport.drain()
    await stage.probe.reply_to("amid", "the request amid updates")


# ── frames ────────────────────────────────────────────────────────────────────────────────────


def _odd_line(name: str, line: bytes, what: str) -> None:
    @checks.should(
        f"frames.{name}",
        "One line that cannot be used does not end the conversation.",
        does=f"sends {what} in a turn",
        expects="a client that still answers",
    )
    async def survives_the_line(stage: ClientStage) -> None:
        await stage.prompted()
        stage.probe.write(line + b"\n")
        await stage.settle(what)


_odd_line("not-json", b"Welcome to the agent!", "a line of plain text")
_odd_line("number", b"42", "a line that is a number")
_odd_line("empty-list", b"[]", "a line that is an empty list")
_odd_line("text", b'"x"', "a line that is a JSON text")
_odd_line("null", b"null", "a line that is `null`")
_odd_line("blank-line", b"", "an empty line")
_odd_line("not-utf-8", b"\xff\xfe", "a line that is not UTF-8")
_odd_line(
    "stray-answer",
    b'{"jsonrpc":"2.0","id":"nobody asked","result":{}}',
    "an answer nobody waits for",
)
_odd_line(
    "stray-error",
    b'{"jsonrpc":"2.0","id":"nobody asked","error":{"code":-32603,"message":"no"}}',
    "an error nobody waits for",
)


@checks.must(
    "frames.split",
    "A message ends with a newline, however many pieces it arrives in.",
    page=_TRANSPORT,
    does="sends a request in three pieces",
    expects="an answer",
)
async def joins_pieces(stage: ClientStage) -> None:
    await stage.prompted()
    frame = frame_of({"jsonrpc": "2.0", "id": "in pieces", "method": PING, "params": {"a": 1}})
    for part in (frame[:9], frame[9:30], frame[30:]):
        stage.probe.transport.send(part)
        await stage.probe.transport.drain()
        await asyncio.sleep(0.05)
    await stage.probe.reply_to("in pieces", "a request in three pieces")


@checks.must(
    "frames.joined",
    "One piece of bytes may have many messages.",
    page=_TRANSPORT,
    does="sends two hundred updates and a request in one piece",
    expects="an answer",
)
async def cuts_pieces(stage: ClientStage) -> None:
    await stage.prompted()
    updates = [told(chunk("x"), stage.session_id)] * 200
    asked: Wire = {"jsonrpc": "2.0", "id": "at last", "method": PING, "params": {"a": 1}}
    stage.together(*updates, asked)
    await stage.probe.reply_to("at last", "a request behind two hundred updates")


@checks.should(
    "frames.big",
    "A message may be of any length.",
    page=_TRANSPORT,
    does="sends an update with a text of 10 MB",
    expects="a client that still answers",
)
async def takes_big_frames(stage: ClientStage) -> None:
    await stage.prompted()
    stage.say("x" * _BIG)
    await stage.probe.transport.drain()
    await stage.settle("an update of 10 MB")


@checks.must(
    "frames.line-separators",
    "Only a newline ends a message: other line ends are characters like any other.",
    page=_TRANSPORT,
    does="sends a request with U+2028, U+2029 and U+0085 in a text, unescaped",
    expects="an answer",
)
async def keeps_line_separators(stage: ClientStage) -> None:
    await stage.prompted()
    text = "\u2028\u2029\x85"
    stage.probe.write(
        f'{{"jsonrpc":"2.0","method":"{PING}","params":{{"text":"{text}"}},"id":"lines"}}\n'.encode()
    )
    await stage.probe.reply_to("lines", "a request with line separators")


@checks.should(
    "frames.text-as-error",
    "An answer settles its request, whatever its error looks like.",
    does="answers the prompt with a text as its error",
    expects="the end of the connection",
)
async def takes_a_text_as_error(stage: ClientStage) -> None:
    asked = await stage.prompted()
    stage.probe.send({"jsonrpc": "2.0", "id": asked.id, "error": "something went wrong"})
    await stage.over("an error that is a text")


@checks.must(
    "frames.odd-code",
    "The code of an error is any integer.",
    does="answers the prompt with the error 400",
    expects="the end of the connection",
)
async def takes_any_code(stage: ClientStage) -> None:
    asked = await stage.prompted()
    error = {"code": 400, "message": "the model said no"}
    stage.probe.send({"jsonrpc": "2.0", "id": asked.id, "error": error})
    await stage.over("the error 400")


@checks.should(
    "frames.answer-twice",
    "A second answer to a request is one nobody waits for.",
    does="answers `initialize` twice",
    expects="a prompt, and a client that still answers",
)
async def takes_one_answer(stage: ClientStage) -> None:
    await stage.connect()
    asked = await stage.asked("initialize")
    stage.probe.grant(asked, {"protocolVersion": 1, "agentCapabilities": {}})
    await stage.asked("session/prompt")
    await stage.settle("a second answer")

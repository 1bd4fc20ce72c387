"""JSON-RPC and its frames: ids, errors, notifications, lines that no one should stumble over."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from dragoman.conformance.check import JSON_RPC, Checks, expect, not_applicable, page
from dragoman.conformance.examination.examinee import Examinee, prompt
from dragoman.conformance.loose_json import at
from dragoman.conformance.probe import (
    PING,
    Received,
    error_code,
    error_text,
    frame_of,
    is_error,
)

checks: Checks[Examinee] = Checks("agent", JSON_RPC)
_TRANSPORT = page("transports")
_EXTENSIONS = page("extensibility")
_BIG = 2 * 1024 * 1024


# ── ids ───────────────────────────────────────────────────────────────────────────────────────


def _id_check(name: str, key: Any) -> None:
    @checks.must(
        f"rpc.id-{name}",
        "An answer carries the id of its request, the same value of the same type.",
        does=f"sends a request with the id `{msgspec.json.encode(key).decode()}`",
        expects="an answer with exactly this id",
    )
    async def answers_the_id(examinee: Examinee) -> None:
        probe = await examinee.probe()
        mark = len(probe.received)
        probe.begin(PING, {}, key)
        await probe.settle("a request")
        told = [each for each in probe.received[mark:] if "method" not in each.message]
        others = [str(each.message.get("id")) for each in told[:-1]]
        expect(bool(probe.replies(key, mark)), f"no answer has this id; there are {others}")


_id_check("string", "a-1")
_id_check("zero", 0)
_id_check("large", 2**53 - 1)
_id_check("negative", -7)


@checks.must(
    "rpc.concurrent",
    "Requests may be sent before earlier ones are answered; each gets its own answer.",
    does="sends three requests in one piece",
    expects="three answers",
)
async def answers_all_of_a_piece(examinee: Examinee) -> None:
    probe = await examinee.probe()
    keys = ["first", "second", "third"]
    ask = {"jsonrpc": "2.0", "method": PING, "params": {"a": 1}}
    probe.write(b"".join(frame_of({**ask, "id": key}) for key in keys))
    for key in keys:
        await probe.reply_to(key, f"the {key} request")


@checks.must(
    "rpc.one-answer",
    "A request is answered exactly once.",
    does="opens a session, and waits a moment",
    expects="one answer to each request",
)
async def answers_once(examinee: Examinee) -> None:
    seen: set[str] = set()
    for each in (await examinee.greeting()).received:
        if "method" not in each.message:
            key = repr(each.message.get("id"))
            expect(key not in seen, f"the request {key} was answered twice", each.frame)
            seen.add(key)


@checks.must(
    "rpc.result-or-error",
    "An answer has either a result or an error.",
    does="looks at every answer of a handshake, a new session and an unknown method",
    expects="one of them, never both or none",
)
async def has_result_or_error(examinee: Examinee) -> None:
    for each in (await examinee.greeting()).received:
        if "method" not in each.message:
            both = {"result", "error"} & set(each.message)
            expect(len(both) == 1, "an answer needs a result or an error, one of them", each.frame)


@checks.must(
    "rpc.version-member",
    'Every message says `"jsonrpc": "2.0"`.',
    does="looks at every message of a handshake, a new session and an unknown method",
    expects="the member `jsonrpc` with this text",
)
async def says_its_version(examinee: Examinee) -> None:
    for each in (await examinee.greeting()).received:
        expect(each.message.get("jsonrpc") == "2.0", 'it lacks "jsonrpc": "2.0"', each.frame)


# ── methods and params ────────────────────────────────────────────────────────────────────────


def _unknown_method(key: str, method: str, page_: str, says: str) -> None:
    @checks.must(
        key,
        says,
        page=page_,
        does=f"calls `{method}`",
        expects="the error −32601",
    )
    async def refuses_the_method(examinee: Examinee) -> None:
        probe = await examinee.probe()
        reply = await probe.call(method, {})
        code = error_code(reply)
        expect(is_error(reply), "an unknown method was answered with a result")
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
    "An extension method that an agent does not know is answered with the error −32601.",
)


def _unknown_notification(key: str, method: str, page_: str, says: str) -> None:
    @checks.must(
        key,
        says,
        page=page_,
        does=f"sends the notification `{method}`",
        expects="no answer, and an agent that continues",
    )
    async def ignores_the_notification(examinee: Examinee) -> None:
        probe = await examinee.probe()
        mark = len(probe.received)
        probe.notify(method, {})
        await probe.settle("an unknown notification")
        _expect_no_answer(probe.received[mark:])


def _expect_no_answer(received: list[Received]) -> None:
    """The last answer is that to the ping."""
    answers = [each for each in received if "method" not in each.message]
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
    "An extension notification that an agent does not know is ignored.",
)


@checks.must(
    "rpc.cancel-unanswered",
    "`session/cancel` is a notification, which is never answered.",
    does="sends `session/cancel` for a session that is idle",
    expects="no answer, and an agent that continues",
)
async def does_not_answer_cancel(examinee: Examinee) -> None:
    probe = await examinee.probe()
    session_id = await examinee.session(probe)
    mark = len(probe.received)
    probe.notify("session/cancel", {"sessionId": session_id})
    await probe.settle("a cancel of an idle session")
    _expect_no_answer(probe.received[mark:])


@checks.should(
    "rpc.cancel-request-unknown",
    "Withdrawing a request that is not open has no effect.",
    page=page("cancellation"),
    does="sends `$/cancel_request` with an id that was never used",
    expects="no answer, and an agent that continues",
)
async def ignores_stray_cancel_request(examinee: Examinee) -> None:
    probe = await examinee.probe()
    mark = len(probe.received)
    probe.notify("$/cancel_request", {"requestId": "never-used"})
    await probe.settle("a cancelled request that never was")
    _expect_no_answer(probe.received[mark:])


def _wrong_params(key: str, params: Any, does: str) -> None:
    @checks.must(
        key,
        "Params that do not fit a method are answered with an error, −32602 if it is only that.",
        does=does,
        expects="an error, and an agent that continues",
    )
    async def refuses_the_params(examinee: Examinee) -> None:
        probe = await examinee.probe()
        reply = await probe.call("session/new", params)
        expect(is_error(reply), "params of the wrong shape were answered with a result")
        await probe.settle("params of the wrong shape")


_wrong_params(
    "rpc.params-type", {"cwd": 42, "mcpServers": []}, "sends `session/new` with a number as `cwd`"
)
_wrong_params("rpc.params-missing", {"mcpServers": []}, "sends `session/new` without `cwd`")
_wrong_params("rpc.params-array", ["conformance"], "sends `session/new` with a list as params")


@checks.should(
    "rpc.params-code",
    "The error for params that do not fit is −32602.",
    does="sends `session/prompt` with a text where the list of blocks should be",
    expects="the error −32602",
)
async def names_wrong_params(examinee: Examinee) -> None:
    probe = await examinee.probe()
    session_id = await examinee.session(probe)
    reply = await probe.call("session/prompt", {"sessionId": session_id, "prompt": "a text"})
    code = error_code(reply)
    expect(code == -32602, f"wrong params were answered with {code!r}, not with −32602")


@checks.must(
    "rpc.error-shape",
    "An error has an integer `code` and a text `message`.",
    does="calls `conformance/show_an_error`",
    expects="an error object with both",
)
async def shapes_its_errors(examinee: Examinee) -> None:
    probe = await examinee.probe()
    reply = await probe.call("conformance/show_an_error", {})
    if "result" in reply:
        not_applicable("the agent answered an unknown method with a result")
    expect(is_error(reply), f"the error is {reply.get('error')!r}, not an object")
    code, message = error_code(reply), at(reply, "error", "message")
    expect(type(code) is int, f"the code is {code!r}, not an integer")
    expect(isinstance(message, str), "the message is not a text")


# ── frames ────────────────────────────────────────────────────────────────────────────────────


def _odd_line(name: str, line: bytes, what: str) -> None:
    @checks.should(
        f"frames.{name}",
        "One message that cannot be used does not end the conversation.",
        does=f"sends {what}",
        expects="an agent that still answers",
    )
    async def survives_the_line(examinee: Examinee) -> None:
        probe = await examinee.probe()
        probe.write(line + b"\n")
        await probe.settle(what)


_odd_line("not-json", b"this is not JSON", "a line that is not JSON")
_odd_line("not-an-object", b"42", "a line that is a number")
_odd_line("empty-list", b"[]", "a line that is an empty list")
_odd_line("blank-line", b"", "an empty line")
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
_odd_line(
    "no-method", b'{"jsonrpc":"2.0","id":"no method","params":{}}', "a request without a method"
)


@checks.must(
    "frames.split",
    "A message ends with a newline, however many pieces it arrives in.",
    page=_TRANSPORT,
    does="sends a request in three pieces",
    expects="an answer",
)
async def joins_pieces(examinee: Examinee) -> None:
    probe = await examinee.probe()
    frame = frame_of({"jsonrpc": "2.0", "id": "in pieces", "method": PING, "params": {}})
    for part in (frame[:9], frame[9:30], frame[30:]):
        probe.transport.send(part)
        await probe.transport.drain()
        await asyncio.sleep(0.02)
    await probe.reply_to("in pieces", "a request in three pieces")


@checks.should(
    "frames.big",
    "A message may be of any length.",
    page=_TRANSPORT,
    does="sends a request of 2 MiB",
    expects="an answer",
)
async def takes_big_frames(examinee: Examinee) -> None:
    probe = await examinee.probe()
    await probe.call(PING, {"text": "x" * _BIG}, "big")
    await probe.settle("a request of 2 MiB")


@checks.must(
    "frames.line-separators",
    "Only a newline ends a message: other line ends are characters like any other.",
    page=_TRANSPORT,
    does="sends a request with U+2028, U+2029 and U+0085 in a text, unescaped",
    expects="an answer",
)
async def keeps_line_separators(examinee: Examinee) -> None:
    probe = await examinee.probe()
    text = "\u2028\u2029\x85"
    probe.write(
        f'{{"jsonrpc":"2.0","method":"{PING}","params":{{"text":"{text}"}},"id":"lines"}}\n'.encode()
    )
    await probe.reply_to("lines", "a request with line separators")


@checks.must(
    "frames.only-messages",
    "An agent writes nothing to its standard output that is not a message of ACP.",
    page=_TRANSPORT,
    does="looks at every line the agent wrote in a handshake, a new session and an unknown method",
    expects="JSON-RPC messages alone",
)
async def writes_only_messages(examinee: Examinee) -> None:
    odd = [line for line in (await examinee.greeting()).noise if _is_text(line)]
    expect(not odd, "a line is not a message", *odd[:3])


@checks.must(
    "frames.utf-8",
    "Messages are UTF-8.",
    page=_TRANSPORT,
    does="prompts with letters of several scripts, and looks at every line of the turn",
    expects="valid UTF-8",
)
async def writes_utf8(examinee: Examinee) -> None:
    async with examinee.own() as probe:
        session_id = await examinee.session(probe)
        text = f"{examinee.prompts.short} Ää 中文 עברית 🙂"
        reply = await probe.call("session/prompt", prompt(session_id, text))
        expect(not is_error(reply), f"the prompt ended with an error: {error_text(reply)}")
        odd = [line for line in probe.noise if not _is_text(line)]
        expect(not odd, "a line is not UTF-8", *odd[:3])


def _is_text(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True

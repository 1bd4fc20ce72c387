"""JSON-RPC and its frames: ids, errors, notifications, and lines that are not messages."""

from __future__ import annotations

from typing import Any

from dragoman.conformance.check import JSON_RPC, Checks, expect, not_applicable, page
from dragoman.conformance.examination.agent_words import prompt
from dragoman.conformance.examination.examinee import AgentProbe, Examinee
from dragoman.conformance.peer_checks import STRAY_FRAMES, PeerChecks, expect_silence
from dragoman.conformance.probing.probe import (
    PING,
    error_code,
    error_text,
    frame_of,
    is_error,
)

checks: Checks[Examinee] = Checks("agent", JSON_RPC)
_TRANSPORT = page("transports")
_BIG = 2 * 1024 * 1024


async def _on_lines(examinee: Examinee) -> AgentProbe:
    """A connection on which any line can be sent. Raises NotApplicable."""
    if not examinee.by_line:
        not_applicable("messages are HTTP requests here, not lines")
    return await examinee.probe()


_peers = PeerChecks(checks, "agent", lambda examinee: examinee.probe())
_on_streams = PeerChecks(checks, "agent", _on_lines)

# ── requests and responses ────────────────────────────────────────────────────────────────────

_peers.ids()


@checks.must(
    "rpc.concurrent",
    "Several requests may be pending at once, and each gets its own response.",
    does="sends three requests in one write",
    expects="three responses",
)
async def answers_concurrent_requests(examinee: Examinee) -> None:
    probe = await examinee.probe()
    keys = ["first", "second", "third"]
    ask = {"jsonrpc": "2.0", "method": PING, "params": {"a": 1}}
    probe.write(b"".join(frame_of({**ask, "id": key}) for key in keys))
    for key in keys:
        await probe.reply_to(key, f"the {key} request")


_GREETING = "initializes, creates a session and calls an unknown method"


@checks.must(
    "rpc.one-answer",
    "A request gets exactly one response.",
    does=_GREETING,
    expects="one response to each request",
)
async def answers_once(examinee: Examinee) -> None:
    seen: set[str] = set()
    for each in (await examinee.greeting()).received:
        if "method" not in each.message:
            key = repr(each.message.get("id"))
            expect(key not in seen, f"the request {key} got two responses", each.frame)
            seen.add(key)


@checks.must(
    "rpc.result-or-error",
    "A response has either a result or an error.",
    does=_GREETING,
    expects="each response has one of them, not both",
)
async def has_result_or_error(examinee: Examinee) -> None:
    for each in (await examinee.greeting()).received:
        if "method" not in each.message:
            found = {"result", "error"} & set(each.message)
            expect(len(found) == 1, f"the response has {sorted(found) or 'neither'}", each.frame)


@checks.must(
    "rpc.version-member",
    'Every message has the member `"jsonrpc": "2.0"`.',
    does=_GREETING,
    expects="this member in every message",
)
async def states_the_rpc_version(examinee: Examinee) -> None:
    for each in (await examinee.greeting()).received:
        right = each.message.get("jsonrpc") == "2.0"
        expect(right, 'the message does not have "jsonrpc": "2.0"', each.frame)


# ── methods and params ────────────────────────────────────────────────────────────────────────

_peers.unknown_methods()
_peers.unknown_notifications()


@checks.must(
    "rpc.cancel-unanswered",
    "`session/cancel` is a notification, so it gets no response.",
    does="sends `session/cancel` for an idle session",
    expects="no response, and the agent still responds to requests",
)
async def does_not_answer_cancel(examinee: Examinee) -> None:
    probe = await examinee.probe()
    params = {"sessionId": await examinee.session(probe)}
    await expect_silence(probe, "session/cancel", params)


@checks.should(
    "rpc.cancel-request-unknown",
    "Cancelling a request that is not pending has no effect.",
    page=page("cancellation"),
    does="sends `$/cancel_request` with an id that was never used",
    expects="no response, and the agent still responds to requests",
)
async def ignores_stray_cancel_request(examinee: Examinee) -> None:
    await expect_silence(await examinee.probe(), "$/cancel_request", {"requestId": "never-used"})


def _wrong_params(key: str, params: Any, does: str) -> None:
    @checks.must(
        f"rpc.params-{key}",
        "A request with invalid params gets an error.",
        does=does,
        expects="an error, and the agent still responds to requests",
    )
    async def rejects_the_params(examinee: Examinee) -> None:
        probe = await examinee.probe()
        reply = await probe.call("session/new", params)
        expect(is_error(reply), "the invalid params got a result")
        await probe.settle("invalid params")


_wrong_params("type", {"cwd": 42, "mcpServers": []}, "calls `session/new` with a number as `cwd`")
_wrong_params("missing", {"mcpServers": []}, "calls `session/new` without `cwd`")
_wrong_params("array", ["conformance"], "calls `session/new` with an array as params")


@checks.should(
    "rpc.params-code",
    "The error for invalid params is -32602.",
    does="calls `session/prompt` with a string instead of a list of content blocks",
    expects="the error -32602",
)
async def names_wrong_params(examinee: Examinee) -> None:
    probe = await examinee.probe()
    session_id = await examinee.session(probe)
    reply = await probe.call("session/prompt", {"sessionId": session_id, "prompt": "a text"})
    code = error_code(reply)
    expect(code == -32602, f"the invalid params got {code!r} instead of -32602")


_peers.error_shape()

# ── frames ────────────────────────────────────────────────────────────────────────────────────

_on_streams.odd_frames(
    ("not-json", b"this is not JSON", "a line that is not JSON"),
    ("not-an-object", b"42", "a line that contains only a number"),
    ("empty-list", b"[]", "a line that contains only an empty list"),
    ("blank-line", b"", "an empty line"),
)
_peers.odd_frames(*STRAY_FRAMES)
_on_streams.odd_frames(
    ("no-method", b'{"jsonrpc":"2.0","id":"no method","params":{}}', "a request without a method")
)
_on_streams.split_frame()


@checks.should(
    "frames.big",
    "A message may have any length.",
    page=_TRANSPORT,
    does="sends a request of 2 MiB",
    expects="a response",
)
async def takes_big_frames(examinee: Examinee) -> None:
    probe = await examinee.probe()
    await probe.call(PING, {"text": "x" * _BIG}, "big")
    await probe.settle("a request of 2 MiB")


_peers.line_separators()


@checks.must(
    "frames.only-messages",
    "An agent writes only ACP messages to its standard output.",
    page=_TRANSPORT,
    does=_GREETING,
    expects="every line that the agent writes is a JSON-RPC message",
)
async def writes_only_messages(examinee: Examinee) -> None:
    odd = [line for line in (await examinee.greeting()).noise if _is_text(line)]
    sample = odd[0].decode() if odd else ""
    expect(not odd, f"a line is not a message: {sample}", *odd[:3])


@checks.must(
    "frames.utf-8",
    "Messages are encoded as UTF-8.",
    page=_TRANSPORT,
    does="prompts with letters of several scripts",
    expects="every line of the turn is valid UTF-8",
)
async def writes_utf8(examinee: Examinee) -> None:
    async with examinee.own() as probe:
        session_id = await examinee.session(probe)
        text = f"{examinee.prompts.short} Ää 中文 עברית 🙂"
        reply = await probe.call("session/prompt", prompt(session_id, text))
        expect(not is_error(reply), f"the prompt failed: {error_text(reply)}")
        odd = [line for line in probe.noise if not _is_text(line)]
        expect(not odd, "a line is not valid UTF-8", *odd[:3])


def _is_text(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True

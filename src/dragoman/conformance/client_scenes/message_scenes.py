"""JSON-RPC and its frames, from the side of the client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dragoman.conformance.check import JSON_RPC, Checks, expect, page
from dragoman.conformance.client_stage.stage import ClientStage, chunk, told
from dragoman.conformance.peer_checks import STRAY_FRAMES, PeerChecks
from dragoman.conformance.probing.loose_json import Wire
from dragoman.conformance.probing.pretend_host import AgentRequest
from dragoman.conformance.probing.probe import PING, Probe, is_error

checks: Checks[ClientStage] = Checks("client", JSON_RPC)
_TRANSPORT = page("transports")
_BIG = 10 * 1024 * 1024


async def _in_turn(stage: ClientStage) -> Probe[Any]:
    await stage.prompted()
    return stage.probe


_peers = PeerChecks(checks, "client", _in_turn, " during a turn")


# ── what a client writes ──────────────────────────────────────────────────────────────────────


@checks.must(
    "rpc.version-member",
    'Every message has the member `"jsonrpc": "2.0"`.',
    does="starts a turn, and calls an unknown method",
    expects="this member in every message",
)
async def states_the_rpc_version(stage: ClientStage) -> None:
    await stage.prompted()
    await stage.settle("a prompt")
    for each in stage.probe.received:
        right = each.message.get("jsonrpc") == "2.0"
        expect(right, 'the message does not have "jsonrpc": "2.0"', each.frame)


@checks.must(
    "rpc.ids",
    "Every request has a unique id.",
    does="reads the ids of all requests up to the prompt",
    expects="different strings or integers",
)
async def has_ids(stage: ClientStage) -> None:
    await stage.prompted()
    seen: set[str] = set()
    for asked in stage.agent.asked:
        key = repr(asked.id)
        expect(type(asked.id) in (int, str), f"the id is {key}", asked.frame)
        expect(key not in seen, f"the id {key} was used twice", asked.frame)
        seen.add(key)


@checks.must(
    "frames.only-messages",
    "A client writes only ACP messages to the agent's standard input.",
    page=_TRANSPORT,
    does="starts a turn, and calls an unknown method",
    expects="every line that the client writes is a JSON-RPC message",
)
async def writes_only_messages(stage: ClientStage) -> None:
    await stage.prompted()
    await stage.settle("a prompt")
    expect(not stage.probe.noise, "a line is not a message", *stage.probe.noise[:3])


# ── what a client responds ────────────────────────────────────────────────────────────────────

_peers.ids()
_peers.unknown_methods()
_peers.unknown_notifications()
_peers.error_shape()


@checks.must(
    "rpc.params",
    "A request with invalid params gets an error.",
    does="requests permission with a string instead of a list of options",
    expects="an error, and the client still responds to requests",
)
async def rejects_wrong_params(stage: ClientStage) -> None:
    await stage.prompted()
    params = {"sessionId": stage.session_id, "options": "none", "toolCall": 7}
    reply = await stage.ask("session/request_permission", params)
    expect(is_error(reply), "the invalid params got a result")
    await stage.settle("invalid params")


@checks.must(
    "rpc.many",
    "Several requests may be pending at once, and each gets one response.",
    does="sends twenty requests in one write",
    expects="twenty responses",
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
        expect(count == 1, f"the request {key} got {count} responses")


@checks.must(
    "rpc.amid-updates",
    "A client responds to requests while it receives updates.",
    does="sends a request in the middle of a thousand updates",
    expects="a response before the turn ends",
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

_peers.odd_frames(
    ("not-json", b"Welcome to the agent!", "a line of plain text"),
    ("number", b"42", "a line that contains only a number"),
    ("empty-list", b"[]", "a line that contains only an empty list"),
    ("text", b'"x"', "a line that contains only a JSON string"),
    ("null", b"null", "a line that contains only `null`"),
    ("blank-line", b"", "an empty line"),
    ("not-utf-8", b"\xff\xfe", "a line that is not valid UTF-8"),
    *STRAY_FRAMES,
)
_peers.split_frame()


@checks.must(
    "frames.joined",
    "A single read may contain many messages.",
    page=_TRANSPORT,
    does="sends two hundred updates and a request in one write",
    expects="a response",
)
async def separates_messages(stage: ClientStage) -> None:
    await stage.prompted()
    updates = [told(chunk("x"), stage.session_id)] * 200
    asked: Wire = {"jsonrpc": "2.0", "id": "at last", "method": PING, "params": {"a": 1}}
    stage.together(*updates, asked)
    await stage.probe.reply_to("at last", "a request after two hundred updates")


@checks.should(
    "frames.big",
    "A message may have any length.",
    page=_TRANSPORT,
    does="sends an update with a text of 10 MB",
    expects="the client still responds to requests",
)
async def takes_big_frames(stage: ClientStage) -> None:
    await stage.prompted()
    stage.say("x" * _BIG)
    await stage.probe.transport.drain()
    await stage.settle("an update of 10 MB")


_peers.line_separators()


def _odd_error(add: Callable[..., Any], name: str, says: str, error: Any, what: str) -> None:
    @add(
        f"frames.{name}",
        says,
        does=f"responds to the prompt with {what}",
        expects="the client closes the connection",
    )
    async def takes_the_error(stage: ClientStage) -> None:
        asked: AgentRequest = await stage.prompted()
        stage.probe.send({"jsonrpc": "2.0", "id": asked.id, "error": error})
        await stage.over(what)


_odd_error(
    checks.should,
    "text-as-error",
    "A malformed error still settles its request.",
    "something went wrong",
    "an error that is a string",
)
_odd_error(
    checks.must,
    "odd-code",
    "An error code may be any integer.",
    {"code": 400, "message": "the model said no"},
    "the error 400",
)


@checks.should(
    "frames.answer-twice",
    "A second response to the same request is ignored.",
    does="responds to `initialize` twice",
    expects="a prompt, and the client still responds to requests",
)
async def takes_one_answer(stage: ClientStage) -> None:
    await stage.connect()
    asked = await stage.asked("initialize")
    stage.probe.grant(asked, {"protocolVersion": 1, "agentCapabilities": {}})
    await stage.asked("session/prompt")
    await stage.settle("a second response")

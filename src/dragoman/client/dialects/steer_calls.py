"""How agents take a steer: the requests that put it into a running turn, and what they answer.

ACP has none yet. The shapes are those that agents serve; ADR 20 says where each comes from.
`dialect.py` sends them; the request of an agent that asks for steers is served in `v1/inbound.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from dragoman.errors import InvalidParams, MethodNotFound, RemoteError, RequestCancelled
from dragoman.schema import codec

STEERING = "_session/steering"
RUN = "_goose/unstable/session/steer"
PULL = "craft/drainMidTurnQueue"

MOST_PULLED = 10
"""What an agent takes of the answer to its request; it ignores the rest."""


class SteerReply(msgspec.Struct, frozen=True):
    """What the agent says of a steer. `accepted`: it is going to take it up in this run, or tells
    nothing of it; `idle`: it was not taken, since no turn runs."""

    outcome: Literal["delivered", "accepted", "idle", "started", "refused", "unsure"]
    reason: str = ""
    message_id: str | None = None


OnSteerReply: TypeAlias = Callable[[SteerReply], None]
"""Runs in wire order."""


def steering_params(
    session_id: str, blocks: Sequence[msgspec.Struct], meta: dict[str, Any] | None
) -> bytes:
    said = (meta or {}) | {"steering": {"idleBehavior": "promptRequired"}}
    return codec.encode({"sessionId": session_id, "prompt": blocks, "_meta": said})


def run_params(
    session_id: str, blocks: Sequence[msgspec.Struct], meta: dict[str, Any] | None, run_id: str
) -> bytes:
    params = {"sessionId": session_id, "prompt": blocks, "expectedRunId": run_id}
    return codec.encode(params | ({"_meta": meta} if meta else {}))


class _SteeringResult(msgspec.Struct):
    outcome: Any = None
    reason: Any = None


class _RunResult(msgspec.Struct, rename="camel"):
    message_id: Any = None


def steering_reply(raw: msgspec.Raw) -> SteerReply:
    try:
        result = msgspec.json.decode(codec.object_of(raw), type=_SteeringResult)
    except msgspec.DecodeError:
        result = _SteeringResult()
    reason = result.reason if isinstance(result.reason, str) else ""
    match result.outcome:
        case "injected":
            return SteerReply("delivered")
        case "promptRequired":
            return SteerReply("idle", reason)
        case "startedNewTurn":
            return SteerReply("started")
        case "failed":
            return SteerReply("refused", reason or "the agent says that it failed")
        case _:
            return SteerReply("unsure", "the agent did not say what became of it")


def run_reply(raw: msgspec.Raw) -> SteerReply:
    """The steer is shown later as a message of the user with this id, once it is taken up."""
    try:
        found = msgspec.json.decode(codec.object_of(raw), type=_RunResult).message_id
    except msgspec.DecodeError:
        found = None
    return SteerReply("accepted", message_id=found if isinstance(found, str) else None)


def steer_refusal(error: RemoteError) -> SteerReply:
    """Of an agent that answers with an error: it has not taken it."""
    if isinstance(error, MethodNotFound | RequestCancelled) or _names_no_run(error):
        return SteerReply("idle", error.message)
    return SteerReply("refused", str(error))


def _names_no_run(error: RemoteError) -> bool:
    """The run that was meant is over, or another one is active."""
    match error.data:
        case str(sentence):
            return isinstance(error, InvalidParams) and "no active run" in sentence
        case {"actualRunId": _}:
            return True
        case _:
            return False


def pulled_result(steers: list[tuple[str, str, list[msgspec.Struct]]], more: bool) -> bytes:
    """The answer to an agent that asks: the id, the text and the content of each; `more` is
    whether other prompts wait."""
    items = [
        {"messageId": steer_id, "displayText": text, "content": blocks}
        for steer_id, text, blocks in steers
    ]
    texts = [text for _, text, _ in steers]
    return codec.encode({"messages": texts, "items": items, "hasQueuedPrompt": more})

"""What an agent can do wrong, as steps of a script: `ScriptedAgent([say("hi"), half_frame()])`.

Those that speak of a process need an agent that runs as one. What an agent answers wrongly to other
methods than the prompt is a matter of `ScriptedAgent(answers=…)`, with `NEVER` for no answer.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any, Final

from dragoman.errors import DragomanError
from dragoman.testing.scripted_connection import NEVER
from dragoman.testing.scripted_turn import AgentTurn, Step

__all__ = [
    "NEVER",
    "ODD_LINES",
    "answer_twice",
    "answer_with_text",
    "ask_after_cancel",
    "ask_and_crash",
    "crash",
    "flood",
    "flood_stderr",
    "half_frame",
    "huge_frame",
    "ignore_cancel",
    "ignore_term",
    "lines",
    "linger",
    "never_answer",
    "raw",
    "reply_to_nothing",
    "stop_reading",
    "unknown_notification",
    "unknown_request",
    "update_after_reply",
    "update_elsewhere",
    "update_unannounced",
]

ODD_LINES: Final = (
    b"[]",
    b"42",
    b"null",
    b'"x"',
    b"{}",
    b"",
    b"Welcome to the agent!",
    b"[INFO] ready",
    b"\xff\xfe invalid UTF-8",
    b'{"jsonrpc":"2.0","method":"session/update","params":NaN}',
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"\\ud83d"}}',
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%d}}' % 2**70,
    '{"jsonrpc":"2.0","method":"_x/lines","params":["\u2028\u2029\x85"]}'.encode(),
)
"""Lines no client may stumble over."""


# ── bytes ─────────────────────────────────────────────────────────────────────────────────────


def raw(data: bytes) -> Step:
    """Bytes as they are."""
    return lambda turn: turn.raw(data)


def lines(*lines: bytes) -> Step:
    """Banners, log lines, `ODD_LINES`: whatever gets printed among the frames."""
    return raw(b"".join(line + b"\n" for line in lines))


def half_frame(code: int = 1) -> Step:
    """Die in the middle of a frame."""

    async def step(turn: AgentTurn) -> None:
        turn.raw(b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"')
        await turn.vanish(code)

    return step


def huge_frame(size: int) -> Step:
    """An update whose text alone is `size` bytes."""

    async def step(turn: AgentTurn) -> None:
        turn.say("x" * size)
        await turn.drain()

    return step


def flood(updates: int, size: int = 1000) -> Step:
    """Send updates as fast as possible, whether or not they are read."""

    async def step(turn: AgentTurn) -> None:
        for _ in range(updates):
            turn.say("x" * size)
            await turn.drain()

    return step


# ── replies ───────────────────────────────────────────────────────────────────────────────────


def answer_twice() -> Step:
    """Answer the prompt now, and again at the end of the script."""
    return _reply(b'"result":{"stopReason":"end_turn"}')


def answer_with_text() -> Step:
    """Answer the prompt with an error that is a text, and again at the end of the script."""
    return _reply(b'"error":"something went wrong"')


def _reply(member: bytes) -> Step:
    return lambda turn: turn.raw(b'{"jsonrpc":"2.0","id":%b,%b}\n' % (turn.request_id, member))


def reply_to_nothing() -> Step:
    """Replies to requests nobody made."""
    ids = (b"987654321", b'"0"', b"null", b"true", b"1e999")
    return lines(*(b'{"jsonrpc":"2.0","id":%b,"result":{}}' % key for key in ids))


def never_answer() -> Step:
    """The prompt is never answered, cancelled or not."""

    async def step(turn: AgentTurn) -> None:
        await asyncio.Event().wait()

    return step


# ── requests and updates ──────────────────────────────────────────────────────────────────────


def unknown_request(method: str = "_vendor/unheard_of") -> Step:
    """Ask for something no client has, and say what came back."""

    async def step(turn: AgentTurn) -> None:
        try:
            turn.say(str(await turn.call(method, {"sessionId": turn.session_id})))
        except DragomanError as error:
            turn.say(str(error))

    return step


def unknown_notification(method: str = "_vendor/unheard_of") -> Step:
    return lambda turn: turn.notify(method, {"sessionId": turn.session_id})


def update_unannounced(tool_call_id: str = "never announced") -> Step:
    """An update for a tool call that was never announced."""
    return lambda turn: turn.tool_call_update(tool_call_id, status="completed")


def update_elsewhere(session_id: str = "never opened") -> Step:
    """An update for a session the client does not have."""

    def step(turn: AgentTurn) -> None:
        wire = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "lost"}}
        turn.notify("session/update", {"sessionId": session_id, "update": wire})

    return step


def update_after_reply(text: str = "one more thing") -> Step:
    """Continue speaking when the turn is over."""

    return lambda turn: turn.afterwards.append(lambda: turn.say(text))


def ask_after_cancel(**fields: Any) -> Step:
    """Wait for the cancel, then ask for permission anyway."""

    async def step(turn: AgentTurn) -> None:
        await turn.cancelled.wait()
        turn.say(str(await turn.request_permission("after cancel", **fields)))

    return step


def ask_and_crash(code: int = 1, **fields: Any) -> Step:
    """Be gone before the question is answered."""

    async def step(turn: AgentTurn) -> None:
        turn.spawn(turn.request_permission("asked and gone", **fields))
        await asyncio.sleep(0)  # the question is on the wire when it was once its turn
        await turn.vanish(code)

    return step


def ignore_cancel(seconds: float) -> Step:
    """Continue for a while whatever the client says, and end as if nothing had been said."""

    async def step(turn: AgentTurn) -> None:
        turn.ignores_cancel = True
        await asyncio.sleep(seconds)

    return step


# ── the process ───────────────────────────────────────────────────────────────────────────────


def crash(code: int = 1) -> Step:
    """Be gone in the middle of the turn; a process exits with this code."""

    async def step(turn: AgentTurn) -> None:
        await turn.vanish(code)

    return step


def flood_stderr(size: int) -> Step:
    """Complain at length, and wait until someone takes it."""

    async def step(turn: AgentTurn) -> None:
        await asyncio.to_thread(_write_all, b"complaint\n" * (size // 10))

    return step


def _write_all(data: bytes) -> None:
    while data:
        data = data[os.write(2, data) :]


def stop_reading() -> Step:
    """Take nothing more from standard input."""
    return lambda turn: turn.streams.stop_reading()


def ignore_term() -> Step:
    """Do not end on SIGTERM."""

    def step(turn: AgentTurn) -> None:
        turn.streams.ignore_term()

    return step


def linger() -> Step:
    """Do not end when standard input does."""

    def step(turn: AgentTurn) -> None:
        turn.streams.lingers = True

    return step

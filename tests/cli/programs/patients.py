"""Agents for the doctor, run as processes: one that is well, and some that are not."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from typing import Any

from dragoman.errors import AuthRequired, InternalError, MethodNotFound
from dragoman.schema import v1
from dragoman.testing import AgentTurn, ScriptedAgent

MODES = [v1.SessionMode(id="code", name="Code"), v1.SessionMode(id="ask", name="Ask")]


def is_long(turn: AgentTurn) -> bool:
    return "Count" in turn.text


async def count(turn: AgentTurn) -> None:
    for number in range(500):
        turn.say(f"{number}\n")
        await asyncio.sleep(0.05)


async def behave(turn: AgentTurn) -> None:
    if not is_long(turn):
        turn.say("ready")
        return
    await turn.until_cancelled(count(turn))


FOR_NOW = v1.AgentCapabilities(
    session_capabilities=v1.SessionCapabilities(
        list=v1.SessionListCapabilities(),
        fork=v1.SessionForkCapabilities(),
        close=v1.SessionCloseCapabilities(),
    )
)
"""All that an agent can do without a memory."""
well = ScriptedAgent(
    behave, name="well", title="The Well One", version="3", modes=MODES, capabilities=FOR_NOW
)


# ── rude in every way at once ─────────────────────────────────────────────────────────────────


async def misbehave(turn: AgentTurn) -> None:
    if is_long(turn):
        await turn.until_cancelled(count(turn))
        turn.ignores_cancel = True  # it ends as if nothing had happened
        return
    turn.spawn(turn.read_text_file(f"{turn.cwd}/x"))
    turn.raw(b"a line that is no message\n")
    turn.say("ready")
    turn.afterwards.append(lambda: turn.say("and one more thing"))


def rude() -> ScriptedAgent:
    # Outside our process group and session, as a daemon would be.
    subprocess.Popen(
        ["sleep", "30"],
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    sys.stderr.write("rude agent: warming up\n")
    return ScriptedAgent(
        misbehave,
        answers={
            "initialize": {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}},
            "session/load": MethodNotFound("nobody loads here"),
            "conformance/no_such_method": {},
        },
    )


# ── one thing wrong ───────────────────────────────────────────────────────────────────────────

signed_out = ScriptedAgent(
    behave,
    auth_methods=[v1.AuthMethodAgent(id="browser", name="Log in")],
    answers={"session/new": AuthRequired("log in first")},
)
from_the_future = ScriptedAgent(behave, answers={"initialize": {"protocolVersion": 7}})


MODE_OPTION = v1.SessionConfigSelect(
    id="how",
    name="How",
    category="mode",
    current_value="build",
    options=[
        v1.SessionConfigSelectOption(value="build", name="Build"),
        v1.SessionConfigSelectOption(value="plan", name="Plan"),
    ],
)
with_modes_as_an_option = ScriptedAgent(behave, capabilities=FOR_NOW, config_options=[MODE_OPTION])


def answer_friends(params: Any) -> dict[str, str]:
    if params["sessionId"] == "conformance-no-such-session":
        raise InternalError("who?")
    return {"stopReason": "end_turn"}


crashing_at_strangers = ScriptedAgent(
    behave, capabilities=FOR_NOW, answers={"session/prompt": answer_friends}
)


async def never_stop(turn: AgentTurn) -> None:
    if is_long(turn):
        await asyncio.sleep(600)
    turn.say("ready")


stubborn = ScriptedAgent(never_stop, capabilities=v1.AgentCapabilities())


class _Lingering(ScriptedAgent):
    """Does not end when its input does."""

    def serve_stdio(self) -> None:
        super().serve_stdio()
        time.sleep(60)


lingering = _Lingering(behave, capabilities=v1.AgentCapabilities())

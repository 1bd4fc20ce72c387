"""An agent to chat with: it does what the prompt says."""

from __future__ import annotations

import asyncio
import os

from dragoman.schema import v1
from dragoman.testing import AgentTurn, ScriptedAgent

MODES = [v1.SessionMode(id="code", name="Code"), v1.SessionMode(id="ask", name="Ask")]

SIZES = [
    {"const": "A", "title": "Alpha", "description": "first"},
    {"const": "B", "title": "B", "description": "the other"},
]
FORM = {
    "type": "object",
    "properties": {"size": {"type": "string", "title": "Size", "oneOf": SIZES}},
    "required": ["size"],
}


async def converse(turn: AgentTurn) -> None:
    match turn.text:
        case "wait":
            await turn.cancelled.wait()
        case "begin a line":
            turn.say("half a line")
            await turn.cancelled.wait()
        case "never stop":
            turn.say("whatever is said\n")
            await asyncio.sleep(600)
        case "stream":
            await stream(turn)
        case "form":
            turn.say(f"filled in: {await turn.elicit('Which one?', FORM)}\n")
        case "ask":
            await ask(turn)
        case "a long line":
            turn.say("a line that is as long as a wide window and is not over before ")
            await told(turn)
            turn.say("somebody says so\n")
        case "plan":
            await plan(turn)
        case "call":
            call(turn, "First")
            call(turn, "Second")
            turn.say("called\n")
        case "what came":
            turn.say(f"came: {', '.join(type(block).__name__ for block in turn.prompt)}\n")
        case "ask when told":
            turn.say("half a line, then ")
            await told(turn)
            await ask(turn)
        case _:
            turn.say(f"heard {turn.text!r} in {turn.mode}\n")


async def plan(turn: AgentTurn) -> None:
    turn.plan(("look", "in_progress"), ("leap", "pending"))
    turn.say("planned\n")
    await told(turn)
    turn.plan(("look", "completed"), ("leap", "in_progress"))


def call(turn: AgentTurn, name: str) -> None:
    text = "\n".join(f"{name} {number}." for number in range(30))
    content = [v1.Content(content=v1.TextContent(text=text))]
    turn.tool_call(name, f"{name} call", status="completed", content=content)


async def ask(turn: AgentTurn) -> None:
    chosen = await turn.request_permission("c", title="Do it", raw_input={"command": "make"})
    turn.say(f"a question: {chosen}\n")


async def stream(turn: AgentTurn) -> None:
    """Say something all the time."""
    while not turn.cancelled.is_set():
        turn.say("and so on\n")
        await asyncio.sleep(0.1)


async def told(turn: AgentTurn) -> None:
    """Wait for a file of that name."""
    while not os.path.exists(f"{turn.cwd}/told"):  # noqa: ASYNC110, ASYNC240 (nobody can tell us)
        await asyncio.sleep(0.01)


partner = ScriptedAgent(
    converse,
    name="partner",
    title="A Partner",
    modes=MODES,
    config_options=[v1.SessionConfigBoolean(id="loud", name="Loud", current_value=False)],
    capabilities=v1.AgentCapabilities(),
    commands=[
        v1.AvailableCommand(name="new", description="the agent's own way to begin anew"),
        v1.AvailableCommand(name="review", description="look at it"),
        v1.AvailableCommand(name="help", description="the agent's own help"),
        v1.AvailableCommand(name="look-at-it-closely", description="take some time"),
    ],
)

steered = ScriptedAgent(
    converse,
    name="steered",
    title="A Steered Partner",
    capabilities=v1.AgentCapabilities(meta={"steering": {"supported": True}}),
    answers={"_session/steering": {"outcome": "injected"}},
)

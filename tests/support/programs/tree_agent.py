"""An agent with a tree of subagents: three at once, each of which has one of its own.

Every one of them speaks, plans, uses a tool, reports its usage and asks for a permission; one fills
in a form, one writes a file and one runs a command here.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from dragoman.errors import DragomanError
from dragoman.schema import v1
from dragoman.testing import AgentTurn, ScriptedAgent

NAMES = {
    "reader": "Reader",
    "reader-1": "Reader › Indexer",
    "writer": "Writer",
    "writer-1": "Writer › Speller",
    "tester": "Tester",
    "tester-1": "Tester › Runner",
}
PIECES = 20
"""In which each says its sentence."""
ANSWERED = {"answer": {"type": "string", "title": "Which folder?"}}


def sentence(subagent_id: str) -> str:
    return " ".join(f"{subagent_id}:{number}" for number in range(PIECES))


async def _work(turn: AgentTurn, subagent_id: str) -> None:
    """The ids of tool calls, plans and messages are the same in all of them."""
    turn.plan((f"Look at {subagent_id}", "in_progress"))
    turn.think(f"I am {subagent_id}.")
    for number in range(PIECES):
        word = sentence(subagent_id).split(" ")[number]
        turn.say(word if number == 0 else f" {word}", "said")
        await asyncio.sleep(0)
    turn.tool_call("call", f"make {subagent_id}", kind="execute", status="pending")
    command = {"command": f"make {subagent_id}"}
    answer = await turn.request_permission("call", title=f"make {subagent_id}", raw_input=command)
    turn.tool_call_update("call", status="completed" if answer == "allow" else "failed")
    turn.report_usage(100, 1000)


async def _tree(turn: AgentTurn, subagent_id: str) -> None:
    child = turn.subagent(
        subagent_id,
        title=NAMES[subagent_id],
        description=f"Does what {subagent_id} does",
        capabilities={"cancel": {}},
    )
    inner_id = f"{subagent_id}-1"
    inner = child.subagent(inner_id, title=NAMES[inner_id].partition(" › ")[2])
    await asyncio.gather(_work(child, subagent_id), _work(inner, inner_id))
    if child.cancelled.is_set():
        inner.done("cancelled")
        child.done("cancelled")
        return
    if subagent_id == "reader":
        await inner.elicit("Where?", {"type": "object", "properties": ANSWERED})
    if subagent_id == "writer":
        with suppress(DragomanError):
            await inner.write_text_file(f"{turn.cwd}/written.txt", "by the speller\n")
    if subagent_id == "tester" and turn.client.terminal:
        with suppress(DragomanError):
            await _run(inner)
    inner.done()
    child.done()


async def _run(turn: AgentTurn) -> None:
    terminal = await turn.create_terminal("echo", "tested")
    await turn.terminal("wait_for_exit", terminal)
    shown = v1.Terminal(terminal_id=terminal)
    turn.tool_call("run", "echo tested", status="completed", content=[shown])


async def script(turn: AgentTurn) -> None:
    if "alone" in turn.text:
        turn.say("Alone.")
        return
    turn.say("I have three helpers. ")
    roots = [key for key in NAMES if "-" not in key]
    await turn.until_cancelled(_all(turn, roots))
    turn.say("They are done.")


async def _all(turn: AgentTurn, roots: list[str]) -> None:
    await asyncio.gather(*(_tree(turn, each) for each in roots))


ROWS = 450
"""Of the subagent that does much."""


async def much(turn: AgentTurn) -> None:
    """Two subagents with the same name, of which the second has a nested one that does much."""
    turn.subagent("first", title="Worker", description="Looks around").done()
    child = turn.subagent("second", title="Worker", description="Digs")
    inner = child.subagent("inner", title="Digger")
    for number in range(ROWS):
        inner.tool_call(f"call-{number}", f"step {number}.", status="completed")
    inner.say("I have found the quicksilver.")
    inner.done()
    child.done()
    turn.say("Done.")


def busy_agent() -> ScriptedAgent:
    return ScriptedAgent(much, name="busy")


def agent() -> ScriptedAgent:
    return ScriptedAgent(script, name="tree")

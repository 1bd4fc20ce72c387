"""The agent of the golden flow: in one turn it does everything an agent can ask for."""

from __future__ import annotations

from dragoman.schema import v1
from dragoman.testing import AgentTurn, ScriptedAgent

OLD, NEW = "old notes\n", "new notes\n"


async def script(turn: AgentTurn) -> None:
    notes = f"{turn.cwd}/notes.txt"
    turn.plan(("Read the notes", "in_progress"), ("Change them", "pending"))
    turn.think("Let me look.")
    turn.say(f"They say {await turn.read_text_file(notes)!r}. ")
    diff = v1.Diff(path=notes, new_text=NEW, old_text=OLD)
    turn.tool_call("edit", "Change the notes", kind="edit", status="pending", content=[diff])
    if await turn.request_permission("edit") == "allow":
        await turn.write_text_file(notes, NEW)
        turn.tool_call_update("edit", status="completed")
    else:
        turn.tool_call_update("edit", status="failed")
    await _run(turn)
    turn.plan(("Read the notes", "completed"), ("Change them", "completed"))
    turn.report_usage(1200, 200_000, 0.01)
    turn.usage = v1.Usage(total_tokens=30, input_tokens=20, output_tokens=10)
    turn.say("Done.")


async def _run(turn: AgentTurn) -> None:
    terminal = await turn.create_terminal("cat", "notes.txt")
    shown = v1.Terminal(terminal_id=terminal)
    turn.tool_call("run", "cat notes.txt", kind="execute", status="in_progress", content=[shown])
    ended = await turn.terminal("wait_for_exit", terminal)
    output = (await turn.terminal("output", terminal))["output"]
    await turn.terminal("release", terminal)
    turn.tool_call_update("run", status="completed", raw_output={"output": output, **ended})


def agent() -> ScriptedAgent:
    return ScriptedAgent(
        script,
        name="golden",
        modes=[v1.SessionMode(id="ask", name="Ask"), v1.SessionMode(id="code", name="Code")],
        config_options=[v1.SessionConfigBoolean(id="fast", name="Fast", current_value=False)],
        commands=[v1.AvailableCommand(name="help", description="Says what it can do")],
    )

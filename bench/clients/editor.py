"""An editor of `dragoman acp`: what that adds to each update, and to the wait for the first one.

python editor.py AGENT UPDATES PROMPTS [direct]

The same client prompts the agent itself with `direct`. Prints the CPU that `dragoman acp` took for
so many updates, and the median wait for the first update of a prompt.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from dragoman import AgentCommand, Client, Session
from dragoman.events import AgentMessage

_TICKS = os.sysconf("SC_CLK_TCK")
_WARM_UP = 5


def settings(folder: Path, agent: AgentCommand, snapshots: bool) -> Path:
    entry = {"command": agent.command, "args": list(agent.args)}
    path = folder / "settings.json"
    kept = {"snapshots": {"enabled": snapshots}}
    path.write_text(json.dumps({"agent_servers": {"bench": entry}, **kept}))
    return path


def through_dragoman(folder: Path, agent: AgentCommand, *, snapshots: bool) -> AgentCommand:
    """`dragoman acp` with this agent, and a store of its own."""
    own = {
        "DRAGOMAN_HOME": str(folder / "home"),
        "DRAGOMAN_SETTINGS": str(settings(folder, agent, snapshots)),
    }
    program = (sys.executable, "-m", "dragoman", "acp", "-a", "bench")
    return AgentCommand(program[0], program[1:], own)


def cpu_of(pid: int) -> float:
    """Of one process, without those that it started."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


async def first_update(session: Session) -> float:
    """How long it takes; the turn is run to its end."""
    begun, waited = time.perf_counter(), 0.0
    async for event in session.prompt("go"):
        if isinstance(event, AgentMessage) and not waited:
            waited = time.perf_counter() - begun
    return waited


async def waits(start: AgentCommand, folder: Path, prompts: int) -> list[float]:
    async with Client.start(start) as client:
        session = await client.new_session(folder)
        taken = [await first_update(session) for _ in range(_WARM_UP + prompts)]
    return taken[_WARM_UP:]


async def cpu_of_updates(start: AgentCommand, folder: Path, updates: int) -> float:
    async with Client.start(start) as client:
        session = await client.new_session(folder)
        before = cpu_of(client.pids[0])
        seen = 0
        async for event in session.prompt("go"):
            seen += isinstance(event, AgentMessage)
        assert seen, "nothing was said"
        return cpu_of(client.pids[0]) - before


async def main(agent: str, updates: int, prompts: int, way: str) -> None:
    one = AgentCommand(agent, ("updates", "1"))
    many = AgentCommand(agent, ("updates", str(updates)))
    with tempfile.TemporaryDirectory(prefix="bench-") as place:
        folder = Path(place)
        (work := folder / "work").mkdir()
        (work / "README.md").write_text("hello\n")
        if way == "direct":
            print(json.dumps({"first_ms": 1000 * median(await waits(one, work, prompts))}))
            return
        snapshots = way == "snapshots"
        there = through_dragoman(folder, one, snapshots=snapshots)
        first = 1000 * median(await waits(there, work, prompts))
        there = through_dragoman(folder, many, snapshots=False)
        cpu = 0.0 if snapshots else await cpu_of_updates(there, work, updates)
        print(json.dumps({"first_ms": first, "update_us": cpu / updates * 1e6}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))

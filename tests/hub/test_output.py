"""A terminal that prints without end fills neither the record nor its mirror; the agent still reads
the end of it."""

from __future__ import annotations

from pathlib import Path

from support.hubs import TestLauncher, seen_until, stored

from dragoman import Policy
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.session import events as e
from dragoman.session.limits.output_quota import OutputLimits
from dragoman.testing import AgentTurn, ScriptedAgent

KIB = 1024


async def test_what_a_terminal_prints_beyond_the_limit_is_on_no_disk(tmp_path: Path) -> None:
    seen: list[str] = []

    async def prints(turn: AgentTurn) -> None:
        script = "head -c 20000000 /dev/zero | tr '\\0' x; echo; echo the end"
        terminal = await turn.create_terminal("sh", "-c", script)
        await turn.terminal("wait_for_exit", terminal)
        seen.append((await turn.terminal("output", terminal))["output"])
        turn.say("done")

    launcher = TestLauncher({"it": ScriptedAgent(prints)}, policy=Policy(execute=True))
    limits = OutputLimits(terminal=256 * KIB, session=512 * KIB)
    async with stored(tmp_path) as store, Hub(store, launcher, output_limits=limits) as hub:
        live = await hub.create("it", str(tmp_path))
        await hub.send(live.id, c.Prompt("go"))
        events = await seen_until(hub.watch(live.id), e.TurnEnded)
    outputs = [event for event in events if isinstance(event, e.TerminalOutput)]
    text = "".join(event.text for event in outputs)
    assert len(text) < 400 * KIB
    assert "[more output is not recorded: the limit is 0.25 MiB for a terminal" in text
    assert " MiB of output not recorded]" in text
    assert text.rstrip().endswith("the end")
    assert seen[0].rstrip().endswith("the end"), "the agent reads what the terminal has"
    [exited] = [event for event in events if isinstance(event, e.TerminalExited)]
    assert exited.exit_code == 0
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    files = [path for path in (tmp_path / "store").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 6 * 400 * KIB
    [mirror] = [path for path in files if path.suffix == ".jsonl"]
    assert mirror.stat().st_size < 500 * KIB

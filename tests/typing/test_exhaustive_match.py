"""A user's `match` over all events is checked for completeness by pyright, strictly."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.raw_agent import RawAgent, notification, text_block

from dragoman import Client

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PROGRAM = HERE / "exhaustive_match.py"
CASE = "        case events.Notice():\n            return event.text\n"


def checked(folder: Path) -> dict[str, list[str]]:
    """What pyright finds wrong in each file of a folder, in strict mode."""
    config = {
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "extraPaths": [str(ROOT / "src")],
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(config))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run(
        [*command, "-p", str(folder)], capture_output=True, timeout=100, check=False
    )
    report: dict[str, Any] = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == 2
    found: dict[str, list[str]] = {}
    for diagnostic in report["generalDiagnostics"]:
        found.setdefault(Path(diagnostic["file"]).name, []).append(diagnostic["message"])
    return found


def test_a_match_over_all_events_passes_and_one_that_misses_a_case_does_not(
    tmp_path: Path,
) -> None:
    program = PROGRAM.read_text()
    assert program.count(CASE) == 1
    (tmp_path / "complete.py").write_text(program)
    (tmp_path / "incomplete.py").write_text(program.replace(CASE, ""))
    found = checked(tmp_path)
    assert list(found) == ["incomplete.py"]
    (message,) = found["incomplete.py"]
    assert 'Type "Notice" is not assignable to type "Never"' in message


async def test_the_program_runs() -> None:
    namespace: dict[str, Any] = {"__name__": "program"}
    exec(compile(PROGRAM.read_text(), str(PROGRAM), "exec"), namespace)
    agent = RawAgent()

    def answer(params: Any) -> Any:
        agent.send(notification("agent_message_chunk", content=text_block("hello")))
        usage = {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}
        return {"stopReason": "end_turn", "usage": usage}

    agent.answers["session/prompt"] = answer
    async with Client.start(agent.connect()) as client:
        lines = await namespace["converse"](client, "hi")
    assert lines == ["hi", "hello", "end_turn", "3 tokens"]

"""Records a conversation with each real agent of the lab, for the tests: tests/recordings.

python scripts/record_agents.py [NAME …]

The lab is found by $DRAGOMAN_LAB. What is kept names no folder of this machine.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from agent_trials import replayed
from agent_trials.anonymous import anonymous
from agent_trials.lab import inside

FOLDER = Path(__file__).parent.parent / "tests" / "recordings"
AGENTS = ("goose", "gemini", "kimicode", "opencode", "hermes", "claude", "codex", "qwen")
WORKSPACE = Path("/tmp/project")
"""The same for all and everywhere: agents tell it in pieces, in which it could not be replaced."""
_SECONDS = 300.0


def main() -> None:
    parser = argparse.ArgumentParser(description="Recordings of real agents, for the tests.")
    parser.add_argument("names", metavar="NAME", nargs="*", default=AGENTS)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not (place := os.environ.get("DRAGOMAN_LAB")):
        sys.exit("DRAGOMAN_LAB is not set; it names the folder of the lab of real agents")
    for name in options.names:
        if options.inside:
            _record(Path(place), name)
        else:
            command = [sys.executable, __file__, "--inside", name]
            lab = [Path(place, "lab"), "run", name, "--", *command]
            subprocess.run(lab, check=True, timeout=_SECONDS)


def _record(lab: Path, name: str) -> None:
    WORKSPACE.mkdir()
    try:
        agent = inside(lab, name, WORKSPACE)
        with tempfile.TemporaryDirectory(prefix="recording-") as folder:
            path = Path(folder, "recording.jsonl")
            asyncio.run(replayed.record(agent, {}, WORKSPACE, path))
            recorded = path.read_bytes()
    finally:
        shutil.rmtree(WORKSPACE)
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.jsonl").write_bytes(anonymous(recorded, places(agent.env)))


def places(env: dict[str, str]) -> dict[str, str]:
    """Every other folder that may be in a frame, and its replacement."""
    homes = {value for name, value in env.items() if name == "HOME" or name.endswith("_HOME")}
    return dict.fromkeys([*homes, str(Path.home())], "/home/user")


if __name__ == "__main__":
    main()

"""Tries real agents on every face of Dragoman, and prints a table: `make test-agents`.

python scripts/test_agents.py [--only NAME …] [--face FACE …] [--feature FEATURE …]
    [--fence all|hosts] [--debug]

The agents live in a lab outside this project, found by $DRAGOMAN_LAB, which runs them without a
network against a stand-in for the model; without it there is nothing to try. They run one after the
other, within bounds. Exit code 1: something failed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import get_args

import msgspec
from agent_trials.command import CommandFace
from agent_trials.features import FACES, FEATURES, Outcome, Result, Trial, summary, table, try_all
from agent_trials.lab import FenceChoice, inside, installed
from agent_trials.learned import Learned
from agent_trials.library import LibraryFace
from agent_trials.marked import Mark
from agent_trials.server import ServerFace

_FACES = {"library": LibraryFace, "command": CommandFace, "server": ServerFace}
_SECONDS = 180.0
"""For one trial: long, because the machine may be busy and only a failure takes that long."""
_AGENT_SECONDS = 1800.0
_ORDINARY_USER = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
"""In the lab we may be root, for whom an agent's own sandbox does not start in a fence."""


def main() -> None:
    options = _options()
    place = os.environ.get("DRAGOMAN_LAB")
    if not place:
        print("skipped: DRAGOMAN_LAB is not set; it names the folder of the lab of real agents")
        return
    if options.inside:
        asyncio.run(_inside(Path(place), options))
        return
    results = [
        result
        for name in options.only or installed(Path(place))
        for result in _outside(Path(place), name, options)
    ]
    print(table(results))
    sys.exit(any(result.outcome.word == "failed" for result in results))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Real agents on every face of Dragoman.")
    parser.add_argument("--only", metavar="NAME", nargs="+", help="these agents alone")
    parser.add_argument("--face", choices=FACES, nargs="+", default=list(FACES))
    parser.add_argument("--feature", choices=FEATURES, nargs="+", default=list(FEATURES))
    parser.add_argument(
        "--fence",
        choices=get_args(FenceChoice),
        default="none",
        help="keep the agents in a fence: with the whole network, or with the model alone",
    )
    parser.add_argument("--debug", action="store_true", help="tracebacks to standard error")
    parser.add_argument("--inside", metavar="NAME", help=argparse.SUPPRESS)
    parser.add_argument("--results", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def _outside(lab: Path, name: str, options: argparse.Namespace) -> list[Result]:
    """The trials of one agent, in the lab."""
    print(f"trying {name} …", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="trials-") as folder:
        results = Path(folder, "results")
        command = [*_ORDINARY_USER] if options.fence != "none" else []
        command += [sys.executable, __file__, "--inside", name, "--results", str(results)]
        command += ["--face", *options.face, "--feature", *options.feature]
        command += ["--fence", options.fence]
        command += ["--debug"] if options.debug else []
        subprocess.run(
            [lab / "lab", "run", name, "--", *command], check=False, timeout=_AGENT_SECONDS
        )
        if not results.exists():
            return [Result(name, "library", "start", Outcome("failed", "the lab did not run it"))]
        found = msgspec.json.decode(results.read_bytes(), type=list[Result])
    print(f"{name}: {summary(found)}", file=sys.stderr, flush=True)
    return found


async def _inside(lab: Path, options: argparse.Namespace) -> None:
    name, learned = options.inside, Learned()
    results: list[Result] = []
    # What the library learns about the agent, the other faces are judged by.
    for face in FACES:
        with tempfile.TemporaryDirectory(prefix="trial-", ignore_cleanup_errors=True) as folder:
            trials = _trials(lab, options, face, Path(folder), learned)
            outcomes = await try_all(trials, options.feature, seconds=_SECONDS, debug=options.debug)
        if face in options.face:
            results += [Result(name, face, feature, told) for feature, told in outcomes.items()]
        if face == options.face[-1]:
            break
    options.results.write_bytes(msgspec.json.encode(results))


def _trials(
    lab: Path, options: argparse.Namespace, face: str, folder: Path, learned: Learned
) -> dict[str, Trial]:
    name, workspace, home = options.inside, folder / "work", folder / "home"
    workspace.mkdir()
    home.mkdir()
    agent = inside(lab, name, workspace, options.fence)
    mark = Mark(f"{name}-{face}")
    return _FACES[face](agent, workspace, home, mark, learned).trials()


if __name__ == "__main__":
    main()

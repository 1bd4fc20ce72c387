"""The trials of real agents: skipped with a word where there is no lab, honest in their table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

SCRIPTS = Path(__file__).parents[2] / "scripts"
SCRIPT = SCRIPTS / "test_agents.py"


def ran(*words: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "DRAGOMAN_LAB"}
    env["PYTHONPATH"] = str(SCRIPTS)
    return subprocess.run(
        [sys.executable, *words], env=env, capture_output=True, text=True, timeout=60, check=False
    )


def test_without_a_lab_the_trials_are_skipped_with_a_word() -> None:
    done = ran(str(SCRIPT))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("skipped: DRAGOMAN_LAB is not set")


PROGRAM = """
import asyncio
from agent_trials.features import FEATURES, NotOffered, Result, table, try_all

async def good(): return "a remark"
async def missing(): raise NotOffered("it has none")
async def wrong(): raise AssertionError("it did not")
async def slow(): await asyncio.sleep(9)

trials = {"exit": slow, "plan": missing, "text": good, "load": wrong, "write": wrong}
wanted = set(FEATURES) - {"write"}
told = asyncio.run(try_all(trials, wanted, seconds=0.05, debug=False))
print(table([Result("it", "library", feature, outcome) for feature, outcome in told.items()]))
"""


def test_the_table_says_what_went_well_what_is_not_offered_and_what_failed() -> None:
    lines = ran("-c", PROGRAM).stdout.splitlines()
    assert [line.split() for line in lines[1:5]] == [
        ["it", "text", "ok"],
        ["it", "plan", "-"],
        ["it", "load", "FAILED"],
        ["it", "exit", "FAILED"],
    ]
    assert lines[6:] == [
        "it text [library] ok: a remark",
        "it plan [library] -: it has none",
        "it load [library] FAILED: AssertionError: it did not",
        "it exit [library] FAILED: nothing came of it in 0 s",
    ]


ANONYMOUS = """
import json
from agent_trials.anonymous import anonymous

line = {
    "t": 1.5,
    "dir": "<-",
    "msg": {
        "path": "/home/ada/project/a.txt",
        "note": "in /home/ada",
        "pid": 4711,
        "output": "Process Group PGID: 4711",
        "updatedAt": "2026-05-04T03:02:01.000Z",
        "description": "prose of somebody",
        "_meta": {"secret": 1},
        "update": {"_meta": {"claudeCode": {"toolName": "Write"}, "secret": 1}},
        "availableCommands": [{"name": str(n), "description": "x"} for n in range(9)],
    },
}
note = {"t": 2, "dir": "stderr", "text": "a log"}
recorded = "".join(json.dumps(each) + chr(10) for each in (line, note)).encode()
places = {"/home/ada": "/home/user", "/home/ada/project": "/project"}
print(anonymous(recorded, places).decode(), end="")
"""


def test_a_recording_that_is_kept_names_no_place_process_or_date_and_quotes_nobody() -> None:
    (line,) = ran("-c", ANONYMOUS).stdout.splitlines()
    told = json.loads(line)
    assert (told["t"], told["dir"]) == (0.0, "<-")
    assert told["msg"]["path"] == "/project/a.txt"
    assert told["msg"]["note"] == "in /home/user"
    assert told["msg"]["description"] == "…"
    assert (told["msg"]["pid"], told["msg"]["output"]) == (1, "Process Group PGID: 1")
    assert told["msg"]["updatedAt"] == "2026-01-01T00:00:00.000Z"
    assert "_meta" not in told["msg"]
    # What our own table of extensions reads stays.
    assert told["msg"]["update"]["_meta"] == {"claudeCode": {"toolName": "Write"}}
    assert [each["name"] for each in told["msg"]["availableCommands"]] == list("01234")


UNASKED = """
from agent_trials import unasked
from dragoman.agents.known import known_agents

agents = [agent for agent in known_agents() if agent.tried]
assert len(agents) >= 8
writes = {agent.writes_unasked for agent in agents} - {""}
runs = {agent.runs_unasked for agent in agents} - {""}
print(writes == set(unasked.WRITES), runs == set(unasked.RUNS))
print(unasked.only_looking('tool:Bash {"command": "echo SHELL && pwd && touch b.md", "x": 1}'))
"""


def test_whatever_the_table_says_of_acting_without_asking_is_tried() -> None:
    assert ran("-c", UNASKED).stdout.splitlines() == [
        "True True",
        'tool:Bash {"command": "ls", "x": 1}',
    ]

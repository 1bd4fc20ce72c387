"""Agents that stay, killed and raced for: no prompt is lost or sent twice, and nothing is left."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

import pytest
from support.command import Done, Dragoman
from support.staying import Staying, staying

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks around in /proc")

LATEST_SECONDS = 1.5
"""How long after two runs have begun an owner is killed at most: before, amid or after them."""


@pytest.fixture
def stays(user: Dragoman) -> Generator[Staying]:
    with staying(user) as it:
        yield it


def run(stays: Staying, name: str, text: str) -> Done:
    return stays("-a", "memo", "--session", name, "-o", "simple", text)


def asked(stays: Staying, name: str) -> Counter[str]:
    entries = json.loads(stays("sessions", "show", name, "--json").out)["entries"]
    return Counter("".join(each["pieces"]) for each in entries if each["type"] == "user")


def owner_of(stays: Staying, name: str) -> int:
    [pid] = [each["pid"] for each in stays.kept() if each["name"] == name]
    return pid


def killed_amid_a_race(stays: Staying, name: str, chance: random.Random) -> None:
    """Two runs begin together on a warm session, whose owner is killed about then."""
    assert run(stays, name, "first").code == 0
    owner, delay = owner_of(stays, name), chance.uniform(0, LATEST_SECONDS)
    with ThreadPoolExecutor(2) as pool:
        racing = {text: pool.submit(run, stays, name, text) for text in ("second", "third")}
        time.sleep(delay)
        with suppress(ProcessLookupError):
            os.kill(owner, signal.SIGKILL)
        done = {text: each.result() for text, each in racing.items()}
    last = run(stays, name, "last")
    assert last.code == 0, (delay, last)
    count = asked(stays, name)
    assert (count["first"], count["last"]) == (1, 1), (delay, count)
    for text, each in done.items():
        # A turn that was cut short is reported as such, and is not sent again.
        times = (1,) if each.code == 0 else (0, 1)
        assert count[text] in times, (delay, each, count)
        assert each.code == 0 or "interrupted" in each.err or "ended" in each.err, (delay, each)
    assert len([each for each in stays.kept() if each["name"] == name]) == 1


@pytest.mark.parametrize(
    ("rounds", "at_once"), [(1, 2), pytest.param(20, 10, marks=pytest.mark.soak)]
)
def test_owners_are_killed_while_runs_race_for_their_sessions(
    stays: Staying, rounds: int, at_once: int
) -> None:
    for number in range(rounds):
        names = [f"s{number}-{each}" for each in range(at_once)]
        with ThreadPoolExecutor(at_once) as pool:
            trials = [
                pool.submit(killed_amid_a_race, stays, name, random.Random(name)) for name in names
            ]
            for each in trials:
                each.result()
        assert stays("stop").out.count("stopped ") == at_once
        assert stays.processes() == []


@pytest.mark.parametrize(
    ("rounds", "at_once"),
    [(2, 5), *(pytest.param(50, count, marks=pytest.mark.soak) for count in (5, 20))],
)
def test_many_runs_on_one_session_each_send_their_prompt_once(
    stays: Staying, rounds: int, at_once: int
) -> None:
    """In every other round the session is new, and its agent is not there yet."""
    for number in range(rounds):
        name = f"s{number // 2}"
        texts = [f"{number}-{each}" for each in range(at_once)]
        with ThreadPoolExecutor(at_once) as pool:
            runs: list[Future[Done]] = [pool.submit(run, stays, name, text) for text in texts]
            for text, each in zip(texts, runs, strict=True):
                done = each.result()
                assert done.code == 0, done
                assert done.out.count("\n") == 1, done
                assert done.out.endswith(f". {text}\n"), done
        count = asked(stays, name)
        assert all(count[text] == 1 for text in texts), count
        assert len([each for each in stays.kept() if each["name"] == name]) == 1

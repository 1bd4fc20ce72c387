"""One session floods, another works on: no step of the event loop may be long.

Decided by the CPU time that the loop's own thread spends in its longest step, whatever else the
machine has to do; a step that reads or looks up what an agent has chosen belongs elsewhere.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from support.peers import tidy_loop
from support.permission_scene import question
from support.raw_agent import ENDED, Json, RawAgent

from dragoman import Client, Policy, Rule, Session
from dragoman.host.permissions.consent import OUR_OPTIONS
from dragoman.host.permissions.offers import Offers
from dragoman.host.permissions.questions import PermissionRequest
from dragoman.host.rules.access import Sighting, terminal_access
from dragoman.host.rules.policy import MOST_LOOKS
from dragoman.host.rules.rule import YOUR_ANSWER
from dragoman.host.workspace.reach import Reach
from dragoman.host.workspace.roots import Workspace

LONGEST = 0.25
"""Seconds of CPU in one step. The worst that is left is a large frame, read at once."""
DEEP = "/x" * 2_000
PIECE = 64 << 10
"""What a pipe brings at once."""

Messages: TypeAlias = list[tuple[str, Json]]
Flood: TypeAlias = Callable[[Path, int], Messages]


@contextmanager
def steps(monkeypatch: pytest.MonkeyPatch) -> Generator[list[float]]:
    """The CPU time of each step that the loop takes meanwhile."""
    taken: list[float] = []
    run = asyncio.Handle._run  # pyright: ignore[reportPrivateUsage]

    def measured(handle: asyncio.Handle) -> None:
        start = time.thread_time()
        run(handle)
        taken.append(time.thread_time() - start)

    with monkeypatch.context() as patch:
        patch.setattr(asyncio.Handle, "_run", measured)
        yield taken


def permission(**fields: Any) -> tuple[str, Json]:
    return "session/request_permission", question(kind="edit", **fields)


def terminal(command: str, *args: str) -> tuple[str, Json]:
    return "terminal/create", {"sessionId": "s1", "command": command, "args": list(args)}


def deep_paths(_: Path, size: int) -> Messages:
    return [permission(rawInput={"paths": [f"/a{n}{DEEP}" for n in range(20 * size)]})]


def as_many_paths_as_are_read(cwd: Path, size: int) -> Messages:
    paths = [f"{cwd}/{n}" + "/.a" * 40 for n in range(256)]
    return [permission(rawInput={"paths": paths})] * size


def deep_writes(cwd: Path, size: int) -> Messages:
    params = {"sessionId": "s1", "path": f"{cwd}{DEEP}", "content": "x"}
    return [("fs/write_text_file", params)] * 60 * size


def many_reads(cwd: Path, size: int) -> Messages:
    params = {"sessionId": "s1", "path": str(cwd / "missing")}
    return [("fs/read_text_file", params)] * 2_000 * size


def many_updates(_: Path, size: int) -> Messages:
    chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}}
    return [("session/update", {"sessionId": "s1", "update": chunk})] * 5_000 * size


def loud_terminal(_: Path, size: int) -> Messages:
    return [terminal("sh", "-c", f"yes | head -c {size * 20_000_000}")]


def huge_input(_: Path, size: int) -> Messages:
    # One step reads it all: the long test alone has the largest, since other work slows a CPU down.
    count = 20_000 if size == 1 else 50_000
    values = [{"x": [str(number), number]} for number in range(count)]
    # More at a time are millions of objects, and what takes long then is Python's own collector.
    return [permission(rawInput={"values": values, "text": "x" * 1_000_000})] * min(size, 4)


def deep_input(cwd: Path, size: int) -> Messages:
    deep: Any = {"path": str(cwd)}
    for _ in range(300):
        deep = {"input": [deep]}
    folded: Any = {"path": str(cwd)}
    for _ in range(12):  # a document in a text in a document
        folded = {"input": json.dumps(folded)}
    return [permission(rawInput={"deep": deep, "folded": folded})] * 20 * size


def many_questions(cwd: Path, size: int) -> Messages:
    return [permission(rawInput={"path": str(cwd / f"{n}")}) for n in range(300 * size)]


def many_terminals(_: Path, size: int) -> Messages:
    return [terminal("sleep", "60")] * 60 * size


FLOODS: list[Flood] = [
    deep_paths,
    as_many_paths_as_are_read,
    deep_writes,
    many_reads,
    many_updates,
    loud_terminal,
    huge_input,
    deep_input,
    many_questions,
    many_terminals,
]
RULES = [Rule(effect="ask", operation="write", path=f"**/a{n}/**/*.sql") for n in range(20)]


class Nobody:
    """Refuses whatever is left to ask."""

    async def request_permission(self, request: PermissionRequest) -> str | None:
        return None


def sent(messages: Messages) -> bytes:
    """A request each, with its number as the id; an update has none."""
    frames = [
        {"jsonrpc": "2.0", "method": method, "params": params}
        | ({} if method == "session/update" else {"id": number})
        for number, (method, params) in enumerate(messages)
    ]
    return b"".join(json.dumps(frame).encode() + b"\n" for frame in frames)


async def longest_step(
    messages: Messages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> float:
    """Until one agent has had its answers, and another a turn of a hundred words."""
    loud, quiet, flood = RawAgent(), RawAgent(), sent(messages)
    policy = Policy(RULES, write=True, execute=True)
    expected = sum(method != "session/update" for method, _ in messages)
    async with (
        tidy_loop(),
        Client.start(loud.connect(), policy=policy, permissions=Nobody()) as flooder,
        Client.start(quiet.connect()) as client,
    ):
        flooded, session = await flooder.new_session(tmp_path), await client.new_session(tmp_path)
        flooded.prompt("go")
        await loud.expect("session/prompt")
        with steps(monkeypatch) as taken:
            for start in range(0, len(flood), PIECE):
                loud.raw(flood[start : start + PIECE])
            turn = session.prompt("go")
            prompt = await quiet.expect("session/prompt")
            for _ in range(100):
                quiet.say("word ")
                await asyncio.sleep(0)
            quiet.reply(prompt["id"], ENDED)
            await turn
            while answers(loud) < expected or is_loud(flooded):
                await a_moment()
    return max(taken)


async def a_moment() -> None:
    await asyncio.sleep(0.01)


def answers(agent: RawAgent) -> int:
    return sum("method" not in message for message in agent.received)


def is_loud(session: Session) -> bool:
    return any(each.running and each.argv[0] == "sh" for each in session.state.terminals.values())


@pytest.mark.parametrize("flood", FLOODS, ids=lambda flood: flood.__name__)
async def test_a_flood_holds_nobody_up(
    flood: Flood, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await longest_step(flood(tmp_path, 1), tmp_path, monkeypatch) < LONGEST


@pytest.mark.soak
@pytest.mark.within(600)
@pytest.mark.parametrize("flood", FLOODS, ids=lambda flood: flood.__name__)
async def test_a_flood_of_many_times_that_holds_nobody_up(
    flood: Flood, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await longest_step(flood(tmp_path, 25), tmp_path, monkeypatch) < LONGEST


FILES = [f"f{number}" for number in range(4_000)]


@pytest.mark.parametrize(
    "words",
    [
        ["touch", *FILES],
        ["cp", *FILES, "d"],
        ["ln", "-s", *FILES],
        ["sort", *(word for name in FILES for word in ("-o", name))],
        ["sort", *("-o", "f") * 4_000],
        ["sh", "-c", "; ".join(f"cp a {name}" for name in FILES[:250])],
    ],
    ids=lambda words: f"{words[0]}-{len(words)}",
)
def test_few_of_many_files_are_looked_at(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []
    look = Reach.look

    def counted(reach: Reach, path: str) -> Sighting | None:
        looks.append(path)
        return look(reach, path)

    monkeypatch.setattr(Reach, "look", counted)
    root, policy = str(tmp_path), Policy()
    access = terminal_access(words[0], words[1:], agent="a", cwd=root, roots=[root])
    workspace = Workspace("s1", root)
    offers = Offers(access, policy.decide(access, workspace), policy, workspace)
    offers.offer(OUR_OPTIONS)
    assert looks
    assert len(looks) <= 2 * MOST_LOOKS  # by the decision, and by all offers together


@pytest.mark.parametrize("count", [3, MOST_LOOKS + 1])
def test_an_answer_covers_no_file_that_is_not_looked_at(count: int, tmp_path: Path) -> None:
    root = str(tmp_path)
    wide = Rule(effect="allow", operation="execute", argv_prefix=("touch",), source=YOUR_ANSWER)
    access = terminal_access("touch", FILES[:count], agent="a", cwd=root, roots=[root])
    found = Policy([wide]).decide(access, Workspace("s1", root)).effect
    assert found == ("allow" if count < MOST_LOOKS else "ask")


async def test_control_a_long_step_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with steps(monkeypatch) as taken:
        await asyncio.sleep(0)
        start = time.thread_time()
        while time.thread_time() - start < LONGEST:
            pass
        await asyncio.sleep(0)
    assert max(taken) >= LONGEST

"""What a person types into a form reaches the agent, and no file and no database on its way."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.hosting import Place, two_hosts
from support.hubs import seen_until
from support.postgres import empty_database

from dragoman.errors import CommandRefused
from dragoman.hub.cluster import commands as c
from dragoman.hub.cluster.sealed_box import PRIME, Key, sealed
from dragoman.session import events as e
from dragoman.testing import AgentTurn, ScriptedAgent

PROGRAMS = Path(__file__).parent / "programs"
CANARY = "CANARY-OF-THE-FORM"
SCHEMA = {"type": "object", "properties": {"secret": {"type": "string"}}}


# ── from one process to another ───────────────────────────────────────────────────────────────


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(tmp_path, empty_database() if request.param == "postgresql" else None)


async def test_what_is_typed_elsewhere_reaches_the_agent_and_not_the_store(place: Place) -> None:
    got: list[Any] = []

    async def asks(turn: AgentTurn) -> None:
        got.append(await turn.elicit("Your key?", SCHEMA))

    agent = ScriptedAgent(asks)
    async with two_hosts(place, agent, agent) as (owner, other):
        live = await owner.create("it", place.cwd)
        sent: list[bytes] = []
        send = other.store.send

        async def spied(session_id: str, body: bytes, *, to: str | None = None) -> int:
            sent.append(body)
            return await send(session_id, body, to=to)

        other.store.send = spied  # type: ignore[method-assign]
        await other.send(live.id, c.Prompt("CANARY-OF-THE-PROMPT"))
        asked = await seen_until(other.watch(live.id), e.ElicitationRequested)
        form = next(each for each in asked if isinstance(each, e.ElicitationRequested))
        answer = c.AnswerElicitation(form.request_id, "accept", {"secret": CANARY})
        await other.send(live.id, answer)
        await seen_until(other.watch(live.id), e.TurnEnded)
        assert got == [{"action": "accept", "content": {"secret": CANARY}}]
        assert not [body for body in sent if CANARY.encode() in body]
        assert [body for body in sent if b"CANARY-OF-THE-PROMPT" in body]
        # Once more is too late, as it is for an answer that was given here.
        with pytest.raises(CommandRefused) as caught:
            await other.send(live.id, answer)
        assert caught.value.code == "settled"


async def test_nothing_that_was_typed_is_made_ready_for_a_store() -> None:
    with pytest.raises(ValueError, match="must be sealed before it is stored"):
        c.encode_command(c.AnswerElicitation("r", "accept", {"secret": CANARY}))
    assert b"decline" in c.encode_command(c.AnswerElicitation("r", "decline"))


async def test_a_box_for_a_process_that_has_ended_is_refused(place: Place) -> None:
    agent = ScriptedAgent()
    async with two_hosts(place, agent, agent) as (owner, other):
        live = await owner.create("it", place.cwd)
        box = c.sealed(c.AnswerElicitation("r", "accept", {"secret": CANARY}), Key().public)
        with pytest.raises(CommandRefused) as caught:
            await other.send(live.id, box)
        assert caught.value.code == "settled"


# ── on the disk ───────────────────────────────────────────────────────────────────────────────


@contextmanager
def waiting_answer(folder: Path) -> Generator[tuple[int, subprocess.Popen[bytes]]]:
    """The owner of a form, which stands still, and a process that has sent it an answer."""
    command = [sys.executable, str(PROGRAMS / "form_owner.py"), str(folder)]
    owner = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    with owner:
        assert owner.stdout is not None
        try:
            session_id = owner.stdout.readline().removeprefix("session ").strip()
            words = ["sessions", "answer", session_id, "accept", f"secret={CANARY}"]
            command = [sys.executable, "-m", "dragoman", *words]
            env = os.environ | {"DRAGOMAN_HOME": str(folder / "data")}
            with subprocess.Popen(command, env=env) as answering:
                try:
                    yield owner.pid, answering
                finally:
                    answering.kill()
        finally:
            owner.kill()


def files_with(folder: Path, words: str) -> list[str]:
    """Every file of the data directory that has them somewhere."""
    files = (path for path in (folder / "data").rglob("*") if path.is_file())
    return [path.name for path in files if words.encode() in path.read_bytes()]


async def until_there(folder: Path, words: str) -> None:
    async with asyncio.timeout(60):
        while not files_with(folder, words):
            await a_moment()


async def until_it_stands_still(process: int) -> None:
    """It does between two writes, which may be a little later."""
    async with asyncio.timeout(60):
        while not _stands_still(process):
            await a_moment()


def _stands_still(process: int) -> bool:
    return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].startswith("T")


async def a_moment() -> None:
    await asyncio.sleep(0.02)


@pytest.mark.skipif(sys.platform != "linux", reason="stops processes")
@pytest.mark.parametrize("killed", [False, True])
async def test_no_file_ever_has_what_was_typed(tmp_path: Path, killed: bool) -> None:
    with waiting_answer(tmp_path) as (owner, answering):
        await until_there(tmp_path, '"command":"sealed"')
        await until_it_stands_still(owner)
        assert files_with(tmp_path, CANARY) == []
        if killed:
            os.kill(owner, signal.SIGKILL)
        else:
            os.kill(owner, signal.SIGCONT)
            assert await asyncio.to_thread(answering.wait, 20) == 0
            assert (tmp_path / "got").read_text() == CANARY
            assert files_with(tmp_path, CANARY) == []
    # Both are gone, and what waited is still there.
    assert files_with(tmp_path, '"command":"sealed"') or not killed
    assert files_with(tmp_path, CANARY) == []
    assert files_with(tmp_path, "CANARY-OF-THE-PROMPT")


# ── boxes ─────────────────────────────────────────────────────────────────────────────────────


def test_the_group_is_the_one_of_the_standard() -> None:
    """ffdhe3072: 2^3072 - 2^3008 + (floor(2^2942 * e) + 2625351) * 2^64 - 1."""
    term, total, number = 1 << (2942 + 64), 0, 0
    while term:
        total, number = total + term, number + 1
        term //= number
    expected = 2**3072 - 2**3008 + ((total >> 64) + 2625351) * 2**64 - 1
    assert expected == PRIME


@pytest.mark.parametrize("text", [b"", b'{"a": 1}', "größer".encode(), b"x" * 10_000])
def test_a_box_is_opened_with_its_key_alone(text: bytes) -> None:
    key = Key()
    box = sealed(text, key.public)
    assert key.opened(box).rstrip(b" ") == text
    assert text not in box or not text
    assert sealed(text, key.public) != box
    for other, given in ((Key(), box), (key, box[:-1] + bytes([box[-1] ^ 1])), (key, box[:100])):
        with pytest.raises(ValueError, match="key"):
            other.opened(given)


def test_a_box_does_not_tell_how_long_a_word_was() -> None:
    key = Key().public
    assert len(sealed(b"1", key)) == len(sealed(b"a long password", key))


@pytest.mark.parametrize("number", [0, 1, PRIME - 1, PRIME])
def test_what_is_no_key_is_not_used(number: int) -> None:
    with pytest.raises(ValueError, match="not a public key"):
        sealed(b"x", number.to_bytes(384).hex())

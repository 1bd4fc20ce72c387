"""What a session of the library holds is bounded, whatever its agent says."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from support.clients import started
from support.cost import resident_bytes

from dragoman.schema import v1
from dragoman.session.state import AgentEntry, SessionState
from dragoman.session.state_limits import LIMITS
from dragoman.testing import AgentTurn, ScriptedAgent

MIB = 1 << 20
WORDS = "lorem ipsum dolor sit amet " * 400


def talker(megabytes: int) -> ScriptedAgent:
    async def talk(turn: AgentTurn) -> None:
        for _ in range(megabytes * 1_000_000 // len(WORDS)):
            # It runs in this process: what it kept to tell again would be counted too.
            turn.update(v1.AgentMessageChunk(content=v1.TextContent(text=WORDS)), keep=False)
            await turn.drain()

    return ScriptedAgent(talk)


async def after_talk(folder: Path, megabytes: int) -> SessionState:
    async with started(talker(megabytes)) as client:
        session = await client.new_session(folder)
        read = 0
        async for event in session.prompt("Talk"):
            read += len(event.text)
        assert read >= megabytes * 990_000
        return session.state


async def test_a_reader_is_told_all_of_it_and_the_state_keeps_its_beginning(tmp_path: Path) -> None:
    state = await after_talk(tmp_path, 10)
    answer = state.entries[-1]
    assert isinstance(answer, AgentEntry)
    assert len(answer.text) == LIMITS.entry
    assert len(answer.text) + answer.cut == 10_000_000 // len(WORDS) * len(WORDS)
    assert len(msgspec.msgpack.encode(state)) < LIMITS.entry + MIB


@pytest.mark.soak
async def test_300_mb_add_little_memory(tmp_path: Path) -> None:
    await after_talk(tmp_path, 5)
    before = resident_bytes()
    await after_talk(tmp_path, 300)
    assert resident_bytes() - before < 64 * MIB

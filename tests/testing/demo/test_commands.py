"""The demo agent's slash commands, over real stdio."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.demo import (
    answer_to,
    demo_session,
    events_of,
    only,
)
from support.peers import tidy_loop

from dragoman import Client, Image, Session
from dragoman.errors import AgentExited, InternalError
from dragoman.host.forms.elicitation import ElicitationAnswer, ElicitationRequest
from dragoman.session import events as e
from dragoman.session.state import AgentEntry, CompactionEntry, NoticeEntry


async def test_commands_are_told(cwd: Path) -> None:
    async with demo_session(cwd) as session:
        await events_of(session.prompt("/help"))
        names = {command.name for command in session.state.commands}
        assert names >= {"plan", "diff", "run", "think", "ask", "slow", "fail", "crash", "long"}
        answer = await answer_to(session, "/nope")
        assert all(f"`/{name}`" in answer for name in names)
        hints = {c.name for c in session.state.commands if c.hint is not None}
        assert hints == {"plan", "run", "slow", "long"}


def _has_plan(session: Session) -> bool:
    return session.state.plan is not None and len(session.state.plan.steps) == 4


def _has_diff(session: Session) -> bool:
    return any(call.diffs for call in session.state.tool_calls.values())


def _has_picture(session: Session) -> bool:
    spoken = [entry for entry in session.state.entries if isinstance(entry, AgentEntry)]
    return any(isinstance(part, Image) for entry in spoken for part in entry.content)


def _has_notice(session: Session) -> bool:
    return any(isinstance(entry, NoticeEntry) for entry in session.state.entries)


def _has_compaction(session: Session) -> bool:
    found = [entry for entry in session.state.entries if isinstance(entry, CompactionEntry)]
    return [(entry.status, entry.text) for entry in found] == [
        ("completed", "We spoke of this and that.")
    ]


def _has_unknown(session: Session) -> bool:
    return any(getattr(entry, "kind", "") == "demo_weather" for entry in session.state.entries)


def _has_many_pieces(session: Session) -> bool:
    return bool(session.state.entries) and session.state.entries[-1].text.endswith("999 1000 ")


SHOWS: dict[str, Callable[[Session], bool]] = {
    "/plan a nest": _has_plan,
    "/diff": _has_diff,
    "/image": _has_picture,
    "/notice": _has_notice,
    "/compact": _has_compaction,
    "/unknown": _has_unknown,
    "/long 1000": _has_many_pieces,
}


async def test_a_command_shows_its_feature_and_asks_for_nothing(cwd: Path) -> None:
    async with demo_session(cwd) as session:
        for prompt, is_shown in SHOWS.items():
            assert not is_shown(session)
            events = await events_of(session.prompt(prompt))
            assert is_shown(session)
            assert not only(events, e.PermissionRequested)
            assert session.state.turns[-1].stop_reason == "end_turn"


class Filler:
    """Fills in every form."""

    async def create_elicitation(self, request: ElicitationRequest) -> ElicitationAnswer:
        assert request.schema is not None
        assert set(request.schema["properties"]) == {"name", "colour", "count", "gift"}
        return ElicitationAnswer("accept", {"name": "Smaug", "colour": "red"})


async def test_a_form_is_asked_for(cwd: Path) -> None:
    async with tidy_loop(), Client.start("demo", elicitation=Filler()) as client:
        session = await client.new_session(cwd)
        assert "- name: Smaug" in await answer_to(session, "/ask")


async def test_it_fails_when_told_to(cwd: Path) -> None:
    async with demo_session(cwd) as session:
        with pytest.raises(InternalError, match="as requested"):
            await session.prompt("/fail")
        assert await answer_to(session, "/think")


async def test_it_crashes_when_told_to(cwd: Path) -> None:
    async with demo_session(cwd) as session:
        with pytest.raises(AgentExited) as ended:
            await session.prompt("/crash")
        assert ended.value.code == 3
        assert "crashes, as requested" in ended.value.stderr

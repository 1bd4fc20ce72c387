"""What an agent says of itself, and what it calls its sessions, is short whatever it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET, UnsetType
from support.clients import opened, started
from support.raw_agent import EVERYTHING, RawAgent

from dragoman.client.dialects.v2 import wire_format
from dragoman.errors import InvalidMessage
from dragoman.schema import v2
from dragoman.session import events as e
from dragoman.session.facts import Cost
from dragoman.session.state_limits import ID, LIMITS, weigh, weigh_struct

MUCH = "x" * 2_000_000


async def test_what_an_agent_says_of_itself_is_shortened() -> None:
    welcome: dict[str, Any] = {
        "protocolVersion": 1,
        "agentCapabilities": {**EVERYTHING, "_meta": {"much": MUCH}},
        "agentInfo": {"name": MUCH, "version": MUCH, "title": MUCH},
        "authMethods": [{"id": f"{number}", "name": MUCH} for number in range(4)],
        "_meta": {"much": MUCH, "little": 1},
    }
    async with started(RawAgent(welcome=welcome)) as client:
        info = client.agent_info
        assert [len(each or "") for each in (info.name, info.version, info.title)] == [1024] * 3
        assert weigh(client.capabilities.raw) <= LIMITS.fact
        assert client.capabilities.load
        assert weigh(client.meta) <= LIMITS.fact
        assert sum(map(weigh_struct, client.auth_methods)) <= LIMITS.fact
        assert len(client.name) == 1024


async def test_an_id_that_is_no_id_is_refused(tmp_path: Path) -> None:
    agent = RawAgent(session__new={"sessionId": "x" * (ID + 1)})
    async with started(agent) as client:
        with pytest.raises(InvalidMessage, match="more than 1024 characters"):
            await client.new_session(tmp_path)
    async with opened(RawAgent(session__new={"sessionId": "x" * ID}), tmp_path) as (_, session):
        assert len(session.id) == ID


async def test_sessions_of_which_much_is_said_are_not_listed() -> None:
    sessions = [
        {"sessionId": "x" * (ID + 1), "cwd": "/"},
        {"sessionId": "a", "cwd": "/", "title": MUCH},
        {"sessionId": "b", "cwd": "/"},
    ]
    async with started(RawAgent(session__list={"sessions": sessions})) as client:
        assert [info.id async for info in client.list_sessions()] == ["b"]


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        (UNSET, None),
        (None, None),
        (v2.Cost(amount=1.5, currency="EUR"), Cost(1.5, "EUR")),
        (v2.Cost(amount=1.7e308, currency="EUR"), None),
        (v2.Cost(amount=-1.0, currency="EUR"), None),
        (v2.Cost(amount=1.0, currency=MUCH), None),
    ],
)
def test_in_version_2_too_a_cost_is_a_sum_of_money(
    told: v2.Cost | UnsetType | None, kept: Cost | None
) -> None:
    update = wire_format.update(v2.UsageUpdate(used=1, size=2, cost=told))
    assert update == e.UsageChanged(1, 2, kept)

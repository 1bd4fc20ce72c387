"""What real agents ask for, as it was recorded: what is read of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.permission_requests import ALWAYS, RECORDED, recorded_claim


@pytest.mark.parametrize("name", RECORDED)
async def test_every_recorded_request_is_read(name: str, tmp_path: Path) -> None:
    claim = await recorded_claim(RECORDED[name], tmp_path)
    assert claim.access.claimed
    assert not claim.access.question


def test_the_requests_that_people_answered_with_always_are_among_them() -> None:
    assert {*ALWAYS} <= {*RECORDED}

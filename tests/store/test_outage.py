"""What the log says about an outage."""

from __future__ import annotations

import pytest

from dragoman.errors import StoreAway
from dragoman.store.outage import Outage


@pytest.mark.parametrize(
    ("seconds", "told"), [(0.02, "connected again"), (1.52, "the database is back after 1.5 s")]
)
def test_a_database_that_was_not_away_is_not_called_back(
    seconds: float, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    now = [0.0]
    outage = Outage("postgresql:", clock=lambda: now[0])
    outage.begins(StoreAway("postgresql:", "the connection was lost"))
    now[0] += seconds
    outage.ends()
    outage.ends()
    begun, ended = (record.getMessage() for record in caplog.records)
    assert begun.endswith("events are kept on this host until it is back")
    assert ended == f"postgresql:: {told}"

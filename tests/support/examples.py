"""How property tests draw their examples: the same on every run, however busy the machine is."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

EXAMPLES = settings(
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)

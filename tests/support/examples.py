"""How property tests draw their examples: the same on every run, however busy the machine is.

`make test` draws a quarter of them; `make soak` and `make cover` draw them all.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_ALL = "ALL_EXAMPLES" in os.environ


def examples(count: int) -> settings:
    return settings(
        max_examples=count if _ALL else count // 4,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )


EXAMPLES = examples(100)

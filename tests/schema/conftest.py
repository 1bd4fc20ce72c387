"""The official JSON schemas, for whoever asks for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support import official_schemas

Definitions = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def definitions() -> Definitions:
    """Gives the `$defs` of a version: `definitions("v1")`, `definitions("v1", stable=True)`."""
    return official_schemas.definitions

"""Runs a test over every kind of store."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from store.stores import KINDS, Opens

from dragoman.store.base import Store
from dragoman.store.store_limits import StoreLimits


@pytest.fixture(params=list(KINDS))
def opens(request: pytest.FixtureRequest, tmp_path: Path) -> Opens:
    def opened(limits: StoreLimits | None = None) -> AbstractAsyncContextManager[Store]:
        return KINDS[request.param](tmp_path / "home", limits)

    return opened

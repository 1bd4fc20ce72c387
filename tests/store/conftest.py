"""Runs a test over every kind of store."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from store.stores import KINDS, Opens

from dragoman.store.base import Store


@pytest.fixture(params=list(KINDS))
def opens(request: pytest.FixtureRequest, tmp_path: Path) -> Opens:
    def opened() -> AbstractAsyncContextManager[Store]:
        return KINDS[request.param](tmp_path / "home")

    return opened

"""Runs the installed command as a user would: in a home of its own, within a bound."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from support.command import Dragoman, agents_server


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where compiled Python is kept for all runs, so that only the first pays for it."""
    return str(tmp_path_factory.mktemp("pycache"))


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, compiled: str) -> Generator[str]:
    with agents_server(tmp_path_factory.mktemp("server"), compiled) as path:
        yield path


@pytest.fixture
def dragoman(tmp_path_factory: pytest.TempPathFactory, compiled: str, server: str) -> Dragoman:
    return Dragoman(tmp_path_factory.mktemp("home"), compiled, server)

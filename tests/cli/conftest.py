"""Runs the installed command as a user would: in a home of its own, within a bound."""

from __future__ import annotations

import shlex
from collections.abc import Generator

import pytest
from support.command import Dragoman, agents_server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    with agents_server(tmp_path_factory.mktemp("server")) as path:
        yield path


@pytest.fixture
def dragoman(tmp_path_factory: pytest.TempPathFactory, server: str) -> Dragoman:
    return Dragoman(tmp_path_factory.mktemp("home"), server)


@pytest.fixture
def user(dragoman: Dragoman) -> Dragoman:
    """Has two agents: `memo` remembers its sessions for ever, `lethe` none when it is restarted."""
    named = {"memo": "remembering", "lethe": "forgetful"}
    commands = {name: shlex.split(dragoman.agent(it, "memory.py")) for name, it in named.items()}
    servers = {name: {"command": words[0], "args": words[1:]} for name, words in commands.items()}
    dragoman.write_settings({"agent_servers": servers})
    return dragoman

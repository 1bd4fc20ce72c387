"""The store and the hub for commands that look at sessions or steer them."""

from __future__ import annotations

import argparse
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import msgspec

from dragoman.agents.settings import Settings, load_settings
from dragoman.errors import DragomanError
from dragoman.host.rules.policy import Policy
from dragoman.hub.assembly import new_hub
from dragoman.hub.hub import Hub
from dragoman.hub.launcher import SettingsLauncher
from dragoman.hub.session_lookup import find_session
from dragoman.store.base import Store
from dragoman.store.open import open_default
from dragoman.store.records import SessionRecord


@asynccontextmanager
async def opened_hub(
    settings: str | None = None, agent_command: str | None = None
) -> AsyncGenerator[Hub]:
    """A hub that asks nobody: what an agent wants is decided by the stored rules.

    With an `agent_command` it also starts that agent, by the name it has in a run. What owners that
    were killed left behind is put right first. Raises StoreError.
    """
    store = await open_default()
    try:
        launcher = SettingsLauncher(
            lambda: _settings(settings, agent_command), Policy(stored=store.rules)
        )
        async with new_hub(store, launcher, attended=False) as hub:
            with suppress(DragomanError):  # what cannot be written can still be looked at
                await hub.chores.recover()
            yield hub
    finally:
        await store.aclose()


def _settings(path: str | None, agent_command: str | None) -> Settings:
    settings = load_settings(path)
    if agent_command is None:
        return settings
    from dragoman.cli.run.agent_setup import from_command, program_of

    agent = from_command(agent_command)
    agents = {agent.name: agent}
    if agent.command is not None:  # sessions may be recorded by the name of the program
        program = program_of(agent.command)
        agents |= {program: msgspec.structs.replace(agent, name=program)}
    return msgspec.structs.replace(settings, agents=agents)


@asynccontextmanager
async def opened_store() -> AsyncGenerator[Store]:
    """Where sessions are recorded, for commands that need no agent. Raises StoreError."""
    async with opened_hub() as hub:
        yield hub.store


async def meant(store: Store, options: argparse.Namespace) -> SessionRecord:
    """The session that was named. Raises UnknownSession."""
    return await find_session(store, options.session, os.getcwd())

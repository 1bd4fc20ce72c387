"""The store and the hub for commands that look at sessions or steer them."""

from __future__ import annotations

import argparse
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from dragoman.agents.settings import load_settings
from dragoman.host.home import data_directory
from dragoman.host.rulebook import Policy
from dragoman.hub.finding import find_session
from dragoman.hub.hub import Hub
from dragoman.hub.launcher import SettingsLauncher
from dragoman.store.base import Store
from dragoman.store.open import open_store
from dragoman.store.records import SessionRecord


@asynccontextmanager
async def opened_store() -> AsyncGenerator[Store]:
    """Where sessions are recorded. Raises StoreError."""
    store = await open_store(data_directory())
    try:
        yield store
    finally:
        await store.aclose()


@asynccontextmanager
async def opened_hub(options: argparse.Namespace) -> AsyncGenerator[Hub]:
    """A hub that asks nobody: what an agent wants is decided by the stored rules."""
    path: str | None = getattr(options, "settings", None)
    async with opened_store() as store:
        launcher = SettingsLauncher(lambda: load_settings(path), Policy(stored=store.rules))
        async with Hub(store, launcher, attended=False) as hub:
            yield hub


async def meant(store: Store, options: argparse.Namespace) -> SessionRecord:
    """The session that was named. Raises UnknownSession."""
    return await find_session(store, options.session, os.getcwd())

"""Assembles a hub with this machine's directories, for the command line and the server."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from dragoman.agents.settings.settings_file import Settings
from dragoman.agents.sign_ins import SignInNotes
from dragoman.data_directory import data_directory, running_directory
from dragoman.errors import ConfigError
from dragoman.host.snapshots.snapshot_limits import SnapshotLimits
from dragoman.host.snapshots.snapshots import Snapshots
from dragoman.hub.cluster.host_directory import home_of
from dragoman.hub.hub import Hub
from dragoman.hub.running.agent_pool import Launcher
from dragoman.store.base import Store


def limits_in(settings: Callable[[], Settings]) -> SnapshotLimits:
    """What the settings say of snapshots; the usual while they cannot be read, which is said where
    an agent is to be started."""
    with suppress(ConfigError):
        return settings().snapshots
    return SnapshotLimits()


def new_hub(
    store: Store,
    launcher: Launcher,
    *,
    attended: bool = True,
    label: str | None = None,
    tracks_agents: bool = True,
    snapshots: SnapshotLimits = SnapshotLimits(),  # noqa: B008 - it cannot change
) -> Hub:
    """Enter it to run it; the store stays open. With `tracks_agents` the agents of a process that
    was killed are found and ended by the next one."""
    directory = data_directory()
    kept = Snapshots(directory / "snapshots", limits=snapshots, closed=[str(directory)])
    return Hub(
        store,
        launcher,
        attended=attended,
        notes=running_directory() if tracks_agents else None,
        home=home_of(store, directory),
        label=label,
        # Nobody could find those of a session that is not recorded, nor delete them.
        snapshots=kept if tracks_agents and snapshots.enabled else None,
        sign_ins=SignInNotes() if tracks_agents else None,
    )

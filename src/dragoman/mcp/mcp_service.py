"""Runs `dragoman mcp`: a hub of its own behind one client of MCP. What it started ends with it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine, Sequence
from typing import Any

import msgspec

from dragoman.agents.settings.settings_file import load_settings
from dragoman.client.mcp import McpServer
from dragoman.host.fence.fence_terms import NetworkTerms
from dragoman.host.rules.policy import Policy
from dragoman.host.rules.rule import Rule
from dragoman.hub.assembly import limits_in, new_hub
from dragoman.hub.running.caller import VARIABLE, Caller, starts_others
from dragoman.hub.running.settings_launcher import SettingsLauncher
from dragoman.mcp.caller_bounds import Bounds
from dragoman.mcp.mcp_connection import serve_mcp
from dragoman.mcp.session_tools import SessionTools
from dragoman.process import descriptors
from dragoman.session.facts import EVERYTHING, FenceMode, Offer
from dragoman.session.limits.spending_limits import SpendingLimit
from dragoman.store.open import open_default
from dragoman.transport.transport import Transport


class McpOptions(msgspec.Struct, kw_only=True, frozen=True):
    """The options of `dragoman mcp`, and who calls."""

    folders: Sequence[str]
    agents: Sequence[str] = ()
    most_sessions: int = 8
    settings: str | None = None
    rules: Sequence[Rule] = ()
    limits: tuple[SpendingLimit, ...] = ()
    offer: Offer = EVERYTHING
    fence: FenceMode | None = None
    network: NetworkTerms | None = None
    waits: bool = False
    """Whether what no rule decides waits for a person at the page or in a terminal."""
    caller: Caller | None = None


class _Launcher(SettingsLauncher):
    """What it starts cannot start others: none of its agents gets `dragoman mcp`."""

    def mcp_servers(self, session_id: str) -> list[McpServer]:
        return [each for each in super().mcp_servers(session_id) if not starts_others(each)]


async def serve(options: McpOptions, transport: Transport) -> None:
    """Serve one client until it has left, or a signal comes; then end what it started."""
    os.environ.pop(VARIABLE, None)  # it is about us, not about what we start
    descriptors.raise_limit()
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    store = await open_default()
    try:
        policy = Policy(rules_within(options.rules, options.caller), stored=store.rules)
        launcher = _Launcher(
            lambda: load_settings(options.settings),
            policy,
            offer=options.offer,
            fence=_fence(options),
            network=options.network,
        )
        kept = limits_in(launcher.settings)
        async with new_hub(store, launcher, attended=options.waits, snapshots=kept) as hub:
            tools = SessionTools(hub, launcher, bounds_of(options), attended=options.waits)
            await _first(serve_mcp(transport, tools), stopped.wait())
    finally:
        await store.aclose()


def bounds_of(options: McpOptions) -> Bounds:
    """A caller that is a session has its folders, whatever the options say, and no others."""
    caller = options.caller
    return Bounds(
        options.folders if caller is None else caller.folders,
        agents=options.agents,
        most_sessions=options.most_sessions,
        limits=options.limits if caller is None else (*caller.limits, *options.limits),
        caller=caller,
    )


def rules_within(rules: Sequence[Rule], caller: Caller | None) -> list[Rule]:
    """The rules of the caller, and of the options what denies or asks: nothing gets wider."""
    if caller is None:
        return list(rules)
    return [*caller.plain_rules, *(rule for rule in rules if rule.effect != "allow")]


def _fence(options: McpOptions) -> FenceMode | None:
    if options.caller is None or options.caller.fence == "off":
        return options.fence
    return options.caller.fence


async def _first(*waits: Coroutine[Any, Any, object]) -> None:
    tasks = [asyncio.create_task(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

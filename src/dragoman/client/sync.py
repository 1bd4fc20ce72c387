"""One prompt, from a program that is not async."""

from __future__ import annotations

import asyncio
import os

from dragoman.client.client import Client, name_of
from dragoman.client.config import HostCapabilities
from dragoman.host.rules.policy import Policy
from dragoman.transport.stdio import AgentCommand
from dragoman.transport.target import RemoteAgent


def run_prompt(
    prompt: str,
    *,
    agent: str | AgentCommand | RemoteAgent = "demo",
    cwd: str | os.PathLike[str] = ".",
    policy: Policy | None = None,
) -> str:
    """The agent's answer to one prompt in a new session. What the policy leaves open is refused.

    Raises what `Client.start` and the turn raise. Cannot be used inside a running event loop.
    """
    rules = policy or Policy()
    can_write = rules.could_allow("write", agent=name_of(agent), person=False)
    offers = HostCapabilities(write_files=can_write)

    async def run() -> str:
        async with Client.start(agent, policy=rules, capabilities=offers) as client:
            session = await client.new_session(cwd)
            turn = await session.prompt(prompt)
            return turn.text

    return asyncio.run(run())

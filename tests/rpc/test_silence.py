"""Outside pytest, which takes hold of logging, nothing may be printed either."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent.parent


async def provoke() -> None:
    """Everything a peer has to say something about."""
    from support.peers import connected

    def fail(*_: object) -> Any:
        raise RuntimeError("provoked")

    async with connected(on_notification=fail, on_request=fail, tap=fail) as pair:
        _, wire = pair
        wire.write(b"noise", b"[]", b'{"jsonrpc":"2.0","id":9,"result":1}')
        wire.write(b'{"jsonrpc":"2.0","method":"x"}', b'{"jsonrpc":"2.0","id":1,"method":"x"}')
        await wire.read()
        await wire.ping()


async def provoke_agents() -> None:
    """Agents that fail in every way, where they cannot be contained either."""
    from support.peers import ignore, refuse

    from dragoman.errors import DragomanError
    from dragoman.process import helper_watch, zygote_client
    from dragoman.rpc import Peer
    from dragoman.transport.stdio import AgentCommand, StdioTransport

    pytest.MonkeyPatch().setattr(
        zygote_client, "BOOT", f"import sys; sys.exit({helper_watch.IMPOSSIBLE})"
    )
    for script in ("exit 3", "kill -9 $$", "echo noise; echo error >&2", "nonexistent"):
        transport = await StdioTransport.start(AgentCommand("sh", ("-c", script)))
        async with Peer(transport, on_notification=ignore, on_request=refuse) as peer:
            try:
                await peer.call("work", b"{}")
            except DragomanError:
                continue
            raise AssertionError(script)


def run(before: str, provocation: str = "provoke") -> tuple[int, str, str]:
    code = f"{before}\nimport asyncio, rpc.test_silence as t\nasyncio.run(t.{provocation}())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        cwd=TESTS,
        capture_output=True,
        text=True,
        timeout=30,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("provocation", ["provoke", "provoke_agents"])
def test_a_peer_prints_nothing_unless_logging_is_set_up(provocation: str) -> None:
    assert run("", provocation) == (0, "", "")


def test_whoever_sets_up_logging_is_told() -> None:
    code, printed, logged = run("import logging; logging.basicConfig()")
    assert (code, printed) == (0, "")
    assert logged.count("RuntimeError: provoked") == 3


def test_whoever_sets_up_logging_is_told_that_agents_are_not_contained() -> None:
    code, printed, logged = run("import logging; logging.basicConfig()", "provoke_agents")
    assert (code, printed) == (0, "")
    assert logged.count("descendants of agents cannot be contained") == 4

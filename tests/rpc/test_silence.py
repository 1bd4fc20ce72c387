"""Outside pytest, which takes hold of logging, nothing may be printed either."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

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


def run(before: str) -> tuple[int, str, str]:
    code = f"{before}\nimport asyncio\nfrom rpc.test_silence import provoke\nasyncio.run(provoke())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        cwd=TESTS,
        capture_output=True,
        text=True,
        timeout=30,
    )
    return done.returncode, done.stdout, done.stderr


def test_a_peer_prints_nothing_unless_logging_is_set_up() -> None:
    assert run("") == (0, "", "")


def test_whoever_sets_up_logging_is_told() -> None:
    code, printed, logged = run("import logging; logging.basicConfig()")
    assert (code, printed) == (0, "")
    assert logged.count("RuntimeError: provoked") == 3

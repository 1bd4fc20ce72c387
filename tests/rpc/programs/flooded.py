"""A peer under a flood, in a process of its own: `python -m rpc.programs.flooded WHAT MEGABYTES`.

WHAT the agent prints before it answers: one `line`, `updates`, lines of `noise`, or `errors` on
its standard error. Prints one JSON object: how the call ended, how many updates came before, and
by how much memory has grown, at its peak and at the end. With `--hoard` the tap keeps everything.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from typing import Any

from support.cost import peak_resident_bytes, resident_bytes
from support.peers import refuse

from dragoman.errors import DragomanError
from dragoman.rpc import Peer
from dragoman.schema import decode, encode, v1
from dragoman.transport.stdio import AgentCommand, StdioTransport
from dragoman.wire.messages import encode_notification

_AGENT = """if True:
    import os, sys
    target, left, block = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3].encode() * 1000
    sys.stdin.readline()
    for _ in range(left // len(block)):
        data = block
        while data:
            data = data[os.write(target, data):]
    os.write(1, b'{"jsonrpc":"2.0","id":0,"result":1}\\n')
    sys.stdin.read()
"""
_CHUNK = v1.AgentMessageChunk(content=v1.TextContent(text="x" * 80))
_UPDATE = encode(v1.SessionNotification(session_id="s", update=_CHUNK))
_PRINTED = {
    "line": ("1", "x" * 100),
    "updates": ("1", encode_notification("session/update", _UPDATE).decode() + "\n"),
    "noise": ("1", "loading ... " * 20 + "\n"),
    "errors": ("2", "oh no\n"),
}


class Listener:
    def __init__(self, hoard: bool) -> None:
        self.updates = 0
        self.hoarded: list[bytes] = []
        self._hoard = hoard

    def notified(self, method: str, params: Any) -> None:
        decode(params, v1.SessionNotification)
        self.updates += 1

    def tap(self, direction: str, frame: bytes) -> None:
        if self._hoard:
            self.hoarded.append(frame)


async def flooded(what: str, megabytes: int, *, hoard: bool) -> dict[str, Any]:
    listener = Listener(hoard)
    await _call("updates", 1, Listener(hoard=False))  # what only the first one costs
    before = resident_bytes(), peak_resident_bytes()
    outcome = await _call(what, megabytes * 1_000_000, listener)
    gc.collect()
    return {
        "outcome": outcome,
        "updates": listener.updates,
        "peak_mib": (peak_resident_bytes() - before[1]) / 2**20,
        "left_mib": (resident_bytes() - before[0]) / 2**20,
    }


async def _call(what: str, size: int, listener: Listener) -> str:
    target, line = _PRINTED[what]
    words = ("-I", "-S", "-c", _AGENT, target, str(size), line)
    transport = await StdioTransport.start(AgentCommand(sys.executable, words))
    async with Peer(
        transport, on_notification=listener.notified, on_request=refuse, tap=listener.tap
    ) as peer:
        try:
            await peer.call("work", b"{}")
        except DragomanError as error:
            return type(error).__name__
        return "done"


if __name__ == "__main__":
    what, megabytes, *options = sys.argv[1:]
    measured = asyncio.run(flooded(what, int(megabytes), hoard="--hoard" in options))
    sys.stdout.write(json.dumps(measured))

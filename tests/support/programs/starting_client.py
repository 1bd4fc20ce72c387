"""A small client as a program: `starting_client.py AGENT [FAULT]`. It ends what it has started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from typing import Any

GRACE_SECONDS = 0.2


def main() -> None:
    fault = sys.argv[2] if len(sys.argv) > 2 else ""
    keeps_errors = fault == "drowns"
    with tempfile.TemporaryFile() as errors:
        agent = subprocess.Popen(
            [sys.argv[1]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if keeps_errors else errors,
            start_new_session=True,
        )
        code = converse(agent)
        leave(agent, fault)
    sys.exit(0 if fault == "succeeds" else code)


def converse(agent: subprocess.Popen[bytes]) -> int:
    info = {"name": "starting", "version": "1"}
    where: dict[str, Any] = {"cwd": os.getcwd(), "mcpServers": []}
    try:
        call(agent, 1, "initialize", {"protocolVersion": 1, "clientInfo": info})
        session = call(agent, 2, "session/new", where)["sessionId"]
        text = {"type": "text", "text": "go"}
        call(agent, 3, "session/prompt", {"sessionId": session, "prompt": [text]})
    except (EOFError, BrokenPipeError):
        return 1
    return 0


def call(agent: subprocess.Popen[bytes], key: int, method: str, params: Any) -> Any:
    assert agent.stdin is not None
    assert agent.stdout is not None
    frame = {"jsonrpc": "2.0", "id": key, "method": method, "params": params}
    agent.stdin.write(json.dumps(frame).encode() + b"\n")
    agent.stdin.flush()
    for line in agent.stdout:
        message = json.loads(line)
        if "method" not in message and message.get("id") == key:
            return message["result"]
        if "method" in message and "id" in message:
            refuse(agent.stdin, message["id"])
    raise EOFError


def refuse(stdin: Any, key: Any) -> None:
    error = {"code": -32601, "message": "no such method"}
    stdin.write(json.dumps({"jsonrpc": "2.0", "id": key, "error": error}).encode() + b"\n")
    stdin.flush()


def leave(agent: subprocess.Popen[bytes], fault: str) -> None:
    """Close its input, wait, and kill all that is left of it: its group, and what has left it."""
    assert agent.stdin is not None
    family = children(agent.pid)
    with suppress(BrokenPipeError):
        agent.stdin.close()
    time.sleep(GRACE_SECONDS)
    own_group = [
        pid for pid in family if os.path.exists(f"/proc/{pid}") and group(pid) == agent.pid
    ]
    for pid in {agent.pid, *family}:
        spared = (fault == "spares-group" and pid in own_group) or (
            fault == "spares-strays" and pid != agent.pid and pid not in own_group
        )
        spared = spared or (fault == "trusts" and pid == agent.pid)
        if not spared:
            kill(pid)


def group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def children(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            found = [int(each) for each in file.read().split()]
    except OSError:
        return []
    return [*found, *(below for each in found for below in children(each))]


if __name__ == "__main__":
    main()

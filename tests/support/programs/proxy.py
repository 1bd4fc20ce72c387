"""A proxy in plain Python, as somebody would write one: `proxy.py [HOW]`.

Without a word it adds a part to every prompt, `($SIGNED)`, and passes on everything else as it
is. The others do what their names say, or get something wrong.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from typing import Any

HOW = sys.argv[1] if len(sys.argv) > 1 else "plain"
PREFIX = "_" if HOW == "older" else ""
SUCCESSOR = f"{PREFIX}proxy/successor"

ids = itertools.count()
asked: dict[int, Any] = {}


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def refuse(message: dict[str, Any], code: int, words: str) -> None:
    send({"id": message["id"], "error": {"code": code, "message": words}})


def from_client(message: dict[str, Any]) -> None:
    method, params = message["method"], message.get("params")
    if method == f"{PREFIX}proxy/initialize":
        method = "initialize"
    elif method == "session/prompt" and HOW == "rejects":
        refuse(message, -32000 - 42, "not today")
        return
    elif method == "session/prompt" and params is not None:
        params["prompt"].append({"type": "text", "text": f"({os.environ.get('SIGNED', 'plain')})"})
    elif method == "$/cancel_request" and params is not None:
        ours = [key for key, theirs in asked.items() if theirs == params["requestId"]]
        for key in ours:
            send({"method": method, "params": {"requestId": key}})
        return
    pass_on(message, {"method": SUCCESSOR, "params": {"method": method, "params": params}})


def from_successor(message: dict[str, Any]) -> None:
    inner = message["params"]
    if HOW == "crashes" and inner["method"] == "session/update":
        sys.stderr.write("a proxy's last words\n")
        sys.stderr.flush()
        os._exit(3)
    if HOW == "slow":
        time.sleep(0.05)
    if HOW == "permits" and inner["method"] == "session/request_permission":
        chosen = {"outcome": "selected", "optionId": inner["params"]["options"][0]["optionId"]}
        send({"id": message["id"], "result": {"outcome": chosen}})
        return
    pass_on(message, inner)


def pass_on(message: dict[str, Any], onward: dict[str, Any]) -> None:
    if "id" in message:
        key = next(ids)
        asked[key] = message["id"]
        onward = {**onward, "id": key}
    send(onward)


def main() -> None:
    if HOW == "noisy":
        sys.stdout.write("Welcome to the proxy!\n\n[INFO] ready\n")
    if HOW == "nonsense":
        sys.exit("usage: proxy [--help]")
    for line in sys.stdin:
        message = json.loads(line)
        if "method" not in message:
            send({**message, "id": asked.pop(message["id"])})
        elif HOW == "agrees":
            send({"id": message["id"], "result": {}})
        elif HOW == "agent" or (HOW == "older" and message["method"].startswith("proxy/")):
            refuse(message, -32601, "method not found")
        elif message["method"] == SUCCESSOR:
            from_successor(message)
        else:
            from_client(message)


main()

"""An agent that shows a device code while one signs in, written by hand, without our own parts."""

from __future__ import annotations

import json
import sys
from typing import Any

WELCOME = {
    "protocolVersion": 1,
    "agentCapabilities": {},
    "agentInfo": {"name": "device", "version": "1"},
    "authMethods": [{"id": "device", "name": "Device code"}],
}
CODE = {
    "mode": "url",
    "message": "Enter the code ABCD-1234",
    "url": "https://example.com/device",
    "elicitationId": "e1",
}


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


asked_by = None
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize":
        send(id=message["id"], result=WELCOME)
    elif message.get("method") == "authenticate":
        asked_by = message["id"]
        send(id="q", method="elicitation/create", params={**CODE, "requestId": asked_by})
    elif message.get("id") == "q" and message.get("result") == {"action": "accept"}:
        send(id=asked_by, result={})
    elif message.get("id") == "q":
        send(id=asked_by, error={"code": -32000, "message": "the code was not used"})

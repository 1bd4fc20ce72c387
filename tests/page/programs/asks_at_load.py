"""An agent that asks for a code before it goes on with a session, and when a prompt says so;
written by hand."""

from __future__ import annotations

import json
import sys
from typing import Any

WELCOME = {
    "protocolVersion": 1,
    "agentCapabilities": {"loadSession": True},
    "agentInfo": {"name": "careful", "version": "1"},
}
SCHEMA = {
    "type": "object",
    "properties": {"code": {"type": "string", "title": "Code"}},
    "required": ["code"],
}


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


loading = None
for line in sys.stdin:
    message = json.loads(line)
    params: dict[str, Any] = message.get("params") or {}
    match message.get("method"):
        case "initialize":
            send(id=message["id"], result=WELCOME)
        case "session/new":
            send(id=message["id"], result={"sessionId": "one"})
        case "session/load":
            loading = message["id"]
            form = {"mode": "form", "message": "Which code?", "requestedSchema": SCHEMA}
            send(id="q", method="elicitation/create", params={**form, "requestId": loading})
        case "session/prompt" if "ask" in params["prompt"][0]["text"]:
            form = {"mode": "form", "message": "Which code, by the way?", "requestedSchema": SCHEMA}
            send(id="aside", method="elicitation/create", params=form)
            send(id=message["id"], result={"stopReason": "end_turn"})
        case "session/prompt":
            chunk = {"type": "text", "text": "Here I am."}
            update = {"sessionUpdate": "agent_message_chunk", "content": chunk}
            told = {"sessionId": params["sessionId"], "update": update}
            send(method="session/update", params=told)
            send(id=message["id"], result={"stopReason": "end_turn"})
        case None if message.get("id") == "q":
            if message.get("result", {}).get("content") == {"code": "1234"}:
                send(id=loading, result={})
            else:
                send(id=loading, error={"code": -32000, "message": "that is not the code"})
        case _:
            pass

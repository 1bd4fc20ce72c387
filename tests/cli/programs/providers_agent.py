"""An agent whose model providers can be set, written by hand: it forgets them when it ends, tells
them in an answer, and has one session that it archived."""

from __future__ import annotations

import json
import sys
from typing import Any

WELCOME: dict[str, Any] = {
    "protocolVersion": 1,
    "agentCapabilities": {
        "providers": {},
        "sessionCapabilities": {"list": {}, "archive": {}, "status": {}},
    },
}
SESSION = {"sessionId": "old", "cwd": "/x", "title": "An old one", "archived": True}
current: dict[str, Any] = {"main": {"apiType": "openai", "baseUrl": "https://api.example"}}
headers: dict[str, str] = {}


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def listed() -> list[dict[str, Any]]:
    more = {"supported": ["openai", "anthropic"], "required": False}
    spare: dict[str, Any] = {
        "providerId": "more",
        "current": None,
        "supported": [],
        "required": False,
    }
    return [{"providerId": "main", "current": current["main"], **more}, spare]


def answered(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            return WELCOME
        case "providers/list":
            return {"providers": listed()}
        case "providers/set":
            current["main"] = {key: params[key] for key in ("apiType", "baseUrl")}
            headers.update(params["headers"])
        case "providers/disable":
            current["main"] = None
        case "session/list":
            archived = params.get("archived", "exclude") != "exclude"
            return {"sessions": [SESSION] if archived else []}
        case "session/status":
            return {"status": "saved"}
        case "session/new":
            return {"sessionId": "s", "_meta": {"asked": params.get("_meta")}}
        case "session/prompt":
            text = json.dumps([current["main"], headers, params.get("_meta")])
            chunk = {"sessionUpdate": "agent_message_chunk"}
            update = chunk | {"content": {"type": "text", "text": text}}
            send(method="session/update", params={"sessionId": "s", "update": update})
            return {"stopReason": "end_turn"}
        case _:
            pass
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        send(id=message["id"], result=answered(message["method"], message.get("params") or {}))

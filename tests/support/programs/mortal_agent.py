"""An agent that dies when it is told to, and afterwards remembers what its first argument says.

Told to finish, it says much, answers, and exits.

"load" or "resume": it can continue sessions that way. "forget": it says it can, and cannot.
Standard library only, so that it starts quickly.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

MEMORY = sys.argv[1]
CAPABILITIES: dict[str, Any] = {
    "load": {"loadSession": True},
    "resume": {"sessionCapabilities": {"resume": {}}},
    "both": {"loadSession": True, "sessionCapabilities": {"resume": {}}},
    "forget": {"loadSession": True, "sessionCapabilities": {"resume": {}}},
    "none": {},
}


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
    sys.stdout.flush()


def say(session: str, text: str) -> None:
    chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    send(method="session/update", params={"sessionId": session, "update": chunk})


def prompted(params: Any) -> Any:
    text = params["prompt"][0]["text"]
    if text == "die":
        say(params["sessionId"], "argh")
        sys.stderr.write("out of memory\n")
        sys.stderr.flush()
        os._exit(3)
    for number in range(20 if text == "finish" else 0):
        say(params["sessionId"], f"{number} ")
    say(params["sessionId"], f"{os.getpid()}")
    return {"stopReason": "end_turn"}


def answer(method: str, params: Any) -> Any:
    match method:
        case "initialize":
            return {"protocolVersion": 1, "agentCapabilities": CAPABILITIES[MEMORY]}
        case "session/new":
            return {"sessionId": "s1"}
        case "session/load":
            say("s1", "told again")
            return {"modes": {"currentModeId": "back", "availableModes": []}}
        case "session/resume":
            return {}
        case "session/prompt":
            return prompted(params)
        case _:
            return None


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    if MEMORY == "forget" and request["method"] in ("session/load", "session/resume"):
        send(id=request["id"], error={"code": -32002, "message": "what session?"})
        continue
    send(id=request["id"], result=answer(request["method"], request["params"]))
    if request["method"] == "session/prompt" and request["params"]["prompt"][0]["text"] == "finish":
        os._exit(0)

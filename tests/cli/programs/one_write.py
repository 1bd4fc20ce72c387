"""An agent that answers a prompt with many updates, all of them in one write."""

from __future__ import annotations

import json
import os
import select
import sys

UPDATES = 20
_REPLIES: dict[str, object] = {
    "initialize": {"protocolVersion": 1, "agentCapabilities": {}},
    "session/new": {"sessionId": "s"},
    "session/prompt": {"stopReason": "end_turn"},
}


def _frame(**message: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


def _update(number: int) -> bytes:
    content = {"type": "text", "text": f"{number} "}
    update = {"sessionUpdate": "agent_message_chunk", "content": content}
    return _frame(method="session/update", params={"sessionId": "s", "update": update})


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        if asked.get("method") == "session/prompt":
            updates = b"".join(map(_update, range(UPDATES)))
            # So much is in the pipe at once, and one read takes it.
            assert len(updates) <= select.PIPE_BUF
            os.write(1, updates)
        if "id" in asked:
            os.write(1, _frame(id=asked["id"], result=_REPLIES.get(asked["method"], {})))


if __name__ == "__main__":
    main()

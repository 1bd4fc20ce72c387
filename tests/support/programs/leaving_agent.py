"""An agent whose end can be wrong: `leaving_agent.py [FAULT]`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any


class Agent:
    def __init__(self, fault: str) -> None:
        self.fault = fault
        self.sessions = 0
        self.turns = 0

    def run(self) -> None:
        if self.fault == "ignores-term":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        rest = b""
        while data := os.read(0, 65536):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self.take(json.loads(line))
        self.leave(rest)

    def take(self, message: dict[str, Any]) -> None:
        if "id" not in message:
            return
        result: Any = None
        match message["method"]:
            case "initialize":
                result = {"protocolVersion": 1}
            case "session/new":
                self.sessions += 1
                result = {"sessionId": f"session-{self.sessions}"}
                if self.fault == "leaves-child":
                    subprocess.Popen(["sleep", "60"], start_new_session=True)
            case "session/prompt":
                self.turns += 1
                return
            case _:
                pass
        error = {"code": -32601, "message": "no such method"}
        answer = {"error": error} if result is None else {"result": result}
        frame = json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer})
        os.write(1, frame.encode() + b"\n")

    def leave(self, rest: bytes) -> None:
        stays = {
            "stays": self.sessions and not self.turns,
            "stays-in-turn": self.turns,
            "stays-at-half": rest,
        }
        while stays.get(self.fault):
            signal.pause()
        sys.exit(3 if self.fault == "exits-badly" else 0)


if __name__ == "__main__":
    Agent(sys.argv[1] if len(sys.argv) > 1 else "").run()

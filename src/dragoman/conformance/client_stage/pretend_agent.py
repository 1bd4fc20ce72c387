"""The agent that clients are examined with: answers what every agent answers.

What it says in a turn is up to the scene.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from dragoman.conformance.probing.loose_json import Wire
from dragoman.conformance.probing.pretend_host import AgentRequest, Refused

SESSION: Final = "conformance-session"
WELCOME: Final[Wire] = {
    "protocolVersion": 1,
    "agentCapabilities": {"loadSession": False, "promptCapabilities": {}},
    "agentInfo": {"name": "conformance", "title": "Conformance", "version": "1"},
    "authMethods": [],
}
HELD: Final = object()
"""A `Reply` that does not come by itself."""

Reply: TypeAlias = Wire | Refused | Callable[[AgentRequest], Wire] | object


class PretendAgent:
    """Answers a client's requests, and remembers them."""

    def __init__(self) -> None:
        self.asked: list[AgentRequest] = []
        self.replies: dict[str, Reply] = {
            "initialize": WELCOME,
            "session/new": {"sessionId": SESSION},
            "session/prompt": HELD,
        }

    def of(self, method: str) -> list[AgentRequest]:
        """What was asked for by this method."""
        return [asked for asked in self.asked if asked.method == method]

    def answer(self, asked: AgentRequest) -> Any:
        self.asked.append(asked)
        reply = self.replies.get(asked.method, Refused(-32601, f"{asked.method} is not offered"))
        if isinstance(reply, Refused):
            raise reply
        if reply is HELD:
            return None
        return reply(asked) if callable(reply) else reply

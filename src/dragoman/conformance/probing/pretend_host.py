"""What the probe lets an agent do: files and commands that exist nowhere but here.

Nothing an agent asks for is carried out: what it writes is kept in memory, what it runs prints one
line. So an examination changes nothing on the machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

import msgspec

from dragoman.conformance.probing.loose_json import Wire, objects

Consent: TypeAlias = Literal["allow", "reject", "hold", "fail"]
"""How permission requests are answered; `hold` leaves them open."""

EVERYTHING: Final[Wire] = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "elicitation": {"form": {}},
}
"""The capabilities of a client that has all of this."""
NOTHING: Final[Wire] = {}
PRINTED: Final = "ready\n"


class Refused(Exception):
    """The error that a request is answered with."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class AgentRequest(msgspec.Struct, frozen=True):
    """A request of the agent, in the order of arrival, with the frame it came in."""

    id: Any
    method: str
    params: Wire
    frame: bytes


class PretendHost:
    """Answers what an agent asks of its client, and remembers it."""

    def __init__(self, consent: Consent = "allow") -> None:
        self.consent: Consent = consent
        self.asked: list[AgentRequest] = []
        self.files: dict[str, str] = {}
        self.terminals: dict[str, bool] = {}
        """Those there have ever been, and whether they were released."""
        self.held: list[AgentRequest] = []

    def of(self, *prefixes: str) -> list[AgentRequest]:
        """What was asked for by methods that begin like this."""
        return [asked for asked in self.asked if asked.method.startswith(prefixes)]

    def answer(self, asked: AgentRequest) -> Any:
        """The result; None if the question stays open. Raises Refused."""
        self.asked.append(asked)
        method = _METHODS.get(asked.method)
        if method is None:
            raise Refused(-32601, f"{asked.method} is not offered")
        return method(self, asked)

    def permit(self, asked: AgentRequest) -> Any:
        if self.consent == "hold":
            self.held.append(asked)
            return None
        if self.consent == "fail":
            raise Refused(-32603, "the question could not be shown")
        for option in objects(asked.params.get("options")):
            if str(option.get("kind", "")).startswith(self.consent):
                return selected(option.get("optionId"))
        return CANCELLED

    def read(self, asked: AgentRequest) -> Any:
        path = str(asked.params.get("path"))
        if path not in self.files:
            raise Refused(-32002, "there is no such file")
        return {"content": self.files[path]}

    def write(self, asked: AgentRequest) -> Any:
        self.files[str(asked.params.get("path"))] = str(asked.params.get("content"))
        return {}

    def create_terminal(self, asked: AgentRequest) -> Any:
        key = f"terminal-{len(self.terminals) + 1}"
        self.terminals[key] = False
        return {"terminalId": key}

    def output(self, asked: AgentRequest) -> Any:
        self._living(asked)
        return {"output": PRINTED, "truncated": False, "exitStatus": {"exitCode": 0}}

    def wait(self, asked: AgentRequest) -> Any:
        self._living(asked)
        return {"exitCode": 0, "signal": None}

    def kill(self, asked: AgentRequest) -> Any:
        self._living(asked)
        return {}

    def release(self, asked: AgentRequest) -> Any:
        self.terminals[self._living(asked)] = True
        return {}

    def decline(self, asked: AgentRequest) -> Any:
        return {"action": "decline"}

    def _living(self, asked: AgentRequest) -> str:
        key = str(asked.params.get("terminalId"))
        if self.terminals.get(key, True):
            raise Refused(-32002, "there is no such terminal")
        return key


def selected(option_id: Any) -> Wire:
    """The answer that chooses an option."""
    return {"outcome": {"outcome": "selected", "optionId": option_id}}


CANCELLED: Final[Wire] = {"outcome": {"outcome": "cancelled"}}

_METHODS: Final[dict[str, Callable[[PretendHost, AgentRequest], Any]]] = {
    "session/request_permission": PretendHost.permit,
    "fs/read_text_file": PretendHost.read,
    "fs/write_text_file": PretendHost.write,
    "terminal/create": PretendHost.create_terminal,
    "terminal/output": PretendHost.output,
    "terminal/wait_for_exit": PretendHost.wait,
    "terminal/kill": PretendHost.kill,
    "terminal/release": PretendHost.release,
    "elicitation/create": PretendHost.decline,
}

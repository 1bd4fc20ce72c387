"""An agent of version 2 by hand, a judge of what we send it, and updates in any number."""

from __future__ import annotations

import json
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from hypothesis import strategies as st
from jsonschema import Draft202012Validator, ValidationError
from msgspec import UNSET, UnsetType
from msgspec.structs import fields
from support.official_schemas import definitions
from support.raw_agent import Answer, Json, RawAgent

from dragoman.schema import Model, v2
from dragoman.schema.model import Choice
from dragoman.testing import AgentTurn
from dragoman.testing.v2.turn import TurnV2

SESSION: Json = {
    "prompt": {"image": {}, "audio": {}, "embeddedContext": {}},
    "mcp": {"stdio": {}, "http": {}, "acp": {}},
    "delete": {},
    "fork": {},
    "archive": {},
    "status": {},
    "title": {},
    "additionalDirectories": {},
    "systemPrompt": {},
}
CAPABILITIES: Json = {"session": SESSION, "auth": {"status": {}}, "providers": {}}


def second_agent(capabilities: Json | None = None, **answers: Answer) -> RawAgent:
    """It acknowledges a prompt at once, as the message `u1`."""
    welcome = {
        "protocolVersion": 2,
        "info": {"name": "raw", "version": "7", "title": "Raw"},
        "capabilities": CAPABILITIES if capabilities is None else capabilities,
        "authMethods": [{"type": "agent", "methodId": "login", "name": "Log in"}],
    }
    agent = RawAgent(welcome=welcome)
    agent.answers["session/prompt"] = {"messageId": "u1"}
    agent.answers |= {name.replace("__", "/"): answer for name, answer in answers.items()}
    return agent


async def stoppable(turn: AgentTurn) -> None:
    """A call and a terminal that run until they are stopped, each for itself. The call's id is one
    that could be no part of a path."""
    assert isinstance(turn, TurnV2)
    can = v2.ToolCallCapabilities(cancel=v2.ToolCallCancelCapabilities())
    turn.update(v2.SessionToolCallUpdate(tool_call_id="call/1", title="Wait", capabilities=can))
    terminal = await turn.create_terminal("sleep", "60")
    await turn.stopping("call/1").wait()
    turn.tool_call_update("call/1", status="cancelled")
    ended = await turn.terminal("wait_for_exit", terminal)
    turn.say(str(ended["signal"]))


def state(agent: RawAgent, state: str, **fields: Any) -> None:
    agent.update("state_update", state=state, **fields)


class Judge:
    """A tap: every frame we sent is held against the schema of version 2; `of_agent`, also what
    came from the agent. What is wrong is in `wrong`, since a tap cannot fail."""

    def __init__(self, *, of_agent: bool = False) -> None:
        self.methods: set[str] = set()
        self.answered: set[str] = set()
        self.wrong: list[str] = []
        self._of_agent = of_agent
        self._asked: dict[Any, str] = {}
        self._called: dict[Any, str] = {}

    def __call__(self, direction: Literal["sent", "received"], frame: bytes) -> None:
        message = json.loads(frame)
        try:
            if direction == "sent":
                self._from_us(message)
            else:
                self._from_agent(message)
        except ValidationError as error:
            self.wrong.append(f"{direction} {frame.decode()[:300]}: {error.message[:300]}")

    def _from_us(self, message: Json) -> None:
        if "method" not in message:
            self._answered(self._asked[message["id"]], message)
            return
        self._called[message.get("id")] = message["method"]
        self._sent(message["method"], message["params"])

    def _from_agent(self, message: Json) -> None:
        if "method" in message and "id" in message:
            self._asked[message["id"]] = message["method"]
        if not self._of_agent:
            return
        if "method" in message:
            known = v2.REQUESTS_TO_CLIENT | v2.NOTIFICATIONS_TO_CLIENT
            _judge(known[message["method"]].params.__name__, message["params"])
        elif "result" in message:
            result = v2.REQUESTS_TO_AGENT[self._called[message["id"]]].result
            assert result is not None
            _judge(result.__name__, message["result"])

    def _sent(self, method: str, params: Any) -> None:
        self.methods.add(method)
        known = v2.REQUESTS_TO_AGENT | v2.NOTIFICATIONS_TO_AGENT
        _judge(known[method].params.__name__, params)

    def _answered(self, method: str, message: Json) -> None:
        self.answered.add(method)
        if "error" in message:
            _judge("Error", message["error"])
            return
        result = v2.REQUESTS_TO_CLIENT[method].result
        assert result is not None
        _judge(result.__name__, message["result"])


def _judge(name: str, value: Any) -> None:
    schema = {"$ref": f"#/$defs/{name}", "$defs": definitions("v2")}
    judge: Any = Draft202012Validator(schema)
    judge.validate(value)


# ── updates from their types ──────────────────────────────────────────────────────────────────

_TEXT = st.text(max_size=4)
_IDS = st.sampled_from(["a", "b"])
_DATA = st.sampled_from(["", "aGk=", "w6k=", "ww==", "qQ==", "not base64"])
_JSON = st.none() | st.integers(0, 9) | _TEXT | st.dictionaries(_TEXT, _TEXT, max_size=1)
_SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    Any: _JSON,
    str: _TEXT,
    bool: st.booleans(),
    int: st.integers(1, 99),
    float: st.floats(0, 1),
    NoneType: st.none(),
    UnsetType: st.just(UNSET),
}
_STATES = st.sampled_from(["running", "requires_action", "idle", "_custom"])
_NAMED = {"data": _DATA, "state": _STATES, "stop_reason": st.none() | _TEXT}


def updates() -> st.SearchStrategy[Any]:
    """Any valid update of version 2; few ids, so that they meet each other."""
    [kinds] = [f.type for f in fields(v2.UpdateSessionNotification) if f.name == "update"]
    return st.one_of(*map(_structs, get_args(kinds)))


def _structs(struct: type[Model]) -> st.SearchStrategy[Any]:
    return st.builds(struct, **{f.name: _field(f.name, f.type) for f in fields(struct)})


def _field(name: str, type_: Any) -> st.SearchStrategy[Any]:
    if name.endswith("_id") and type_ is str:
        return _IDS
    return _NAMED[name] if name in _NAMED else _values(type_)


def _values(type_: Any) -> st.SearchStrategy[Any]:
    members = get_args(type_)
    match get_origin(type_):
        case origin if origin is list:
            return st.lists(_values(members[0]), max_size=2)
        case origin if origin is dict:
            return st.dictionaries(_TEXT, _values(members[1]), max_size=2)
        case origin if origin in (Union, UnionType):
            return st.one_of(*map(_values, members))
        case _ if isinstance(type_, type) and issubclass(type_, Choice):
            return st.one_of(*map(_structs, type_.variants))
        case _ if isinstance(type_, type) and issubclass(type_, Model):
            return st.deferred(lambda: _structs(type_))
        case _:
            return _SCALARS[type_]

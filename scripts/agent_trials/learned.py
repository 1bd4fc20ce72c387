"""What the wire has shown of an agent, so that a face can be asked for no more and no less."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from agent_trials.features import NotOffered
from dragoman.client.capabilities import AgentCapabilities
from dragoman.session.facts import ConfigOption, Modes


class Learned(msgspec.Struct):
    """Filled in by the trials of the library, which come first."""

    capabilities: AgentCapabilities = msgspec.field(default_factory=AgentCapabilities)
    seen: set[str] = msgspec.field(default_factory=set[str])
    """Methods and kinds of updates that came from the agent."""
    modes: Modes | None = None
    options: list[ConfigOption] = msgspec.field(default_factory=list[ConfigOption])
    vague: bool = False
    """It asks for permission without saying all of it: the host, which sees it, must ask again."""
    silent: bool = False
    """It says nothing of a model that fails."""
    steer: str = ""
    """How a steer went, and what became of it."""
    digest: list[str] = msgspec.field(default_factory=list[str])
    """What the recorded conversation came to."""
    recording: bytes = b""
    workspace: Path = Path()
    """Where it was recorded."""

    def tap(self, direction: Literal["sent", "received"], frame: bytes) -> None:
        if direction == "sent":
            return
        try:
            message = msgspec.json.decode(frame)
        except msgspec.DecodeError:
            return  # a banner
        match message:
            case {"method": "session/update", "params": {"update": {"sessionUpdate": str(kind)}}}:
                self.seen.add(kind)
            case {"method": str(method)}:
                self.seen.add(method)
            case _:
                pass

    def require(self, capability: str) -> None:
        """Raises NotOffered for what the agent did not advertise."""
        if not getattr(self.capabilities, capability):
            raise NotOffered(f"the agent does not advertise {capability}")

    def require_seen(self, kind: str, why: str) -> None:
        """Raises NotOffered for what never came over the wire."""
        if kind not in self.seen:
            raise NotOffered(why)

    def asked(self, count: int) -> str:
        """A remark on how often a person was asked; too often is an AssertionError."""
        assert count <= (2 if self.vague else 1), f"a person was asked {count} times"
        if count == 2:
            return "asked twice: the agent's own request does not say all of it"
        return "" if count else "the agent asked nobody"

    def other_mode(self) -> str:
        """A mode that is not the current one. Raises NotOffered."""
        if self.modes is None:
            for option in self.options:
                if option.category == "mode":
                    return str(_other_value(option))
            raise NotOffered("the agent has no modes")
        others = [mode.id for mode in self.modes.available if mode.id != self.modes.current]
        return others[0] if others else self.modes.current

    def setting(self) -> tuple[str, str | bool]:
        """An option and another value for it, where there is one. Raises NotOffered."""
        if not self.options:
            raise NotOffered("the agent has no config options")
        # Other providers of models need keys, another model does not.
        free = [option for option in self.options if option.id != "provider"]
        chosen = next((option for option in free if _other_value(option) != option.value), free[0])
        return chosen.id, _other_value(chosen)


def _other_value(option: ConfigOption) -> str | bool:
    if option.choices is None:
        return not option.value
    others = [choice.value for choice in option.choices if choice.value != option.value]
    return others[0] if others else option.value


def form_content(schema: dict[str, Any] | None) -> dict[str, Any]:
    """A form filled in with the first choice of everything."""
    fields: dict[str, Any] = (schema or {}).get("properties", {})
    return {name: _first(field) for name, field in fields.items()}


def _first(field: dict[str, Any]) -> Any:
    for key in ("oneOf", "anyOf"):
        if field.get(key):
            return field[key][0].get("const")
    if field.get("enum"):
        return field["enum"][0]
    if field.get("type") == "array":
        return [_first(field.get("items", {}))]
    return {"boolean": True, "integer": 1, "number": 1}.get(str(field.get("type")), "x")

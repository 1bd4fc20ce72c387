"""For tests of programs that use agents: a scripted agent, recordings, and their replay.

    agent = ScriptedAgent([say("hello")])
    async with Client.start(agent.connect()) as client: ...

The steps of a script are in `testing.steps`, the faults an agent can show in `testing.faults`.
Names are imported on first use, so that the pytest plugin costs nothing where it is not used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.testing.agent_stdio import StandardStreams
    from dragoman.testing.recordings.recorded_events import RecordedEvent
    from dragoman.testing.recordings.recording import Line, Recorder, Recording, load_recording
    from dragoman.testing.recordings.replay import ReplayAgent
    from dragoman.testing.scripted_agent import AgentSession, ScriptedAgent
    from dragoman.testing.scripted_turn import AgentTurn, Script, Step
    from dragoman.transport.memory import MemoryTransport, memory_pair

__all__ = [
    "AgentSession",
    "AgentTurn",
    "Line",
    "MemoryTransport",
    "RecordedEvent",
    "Recorder",
    "Recording",
    "ReplayAgent",
    "Script",
    "ScriptedAgent",
    "StandardStreams",
    "Step",
    "load_recording",
    "memory_pair",
]

_HOMES = {
    "AgentSession": "testing.scripted_agent",
    "AgentTurn": "testing.scripted_turn",
    "Line": "testing.recordings.recording",
    "MemoryTransport": "transport.memory",
    "RecordedEvent": "testing.recordings.recorded_events",
    "Recorder": "testing.recordings.recording",
    "Recording": "testing.recordings.recording",
    "ReplayAgent": "testing.recordings.replay",
    "Script": "testing.scripted_turn",
    "ScriptedAgent": "testing.scripted_agent",
    "StandardStreams": "testing.agent_stdio",
    "Step": "testing.scripted_turn",
    "load_recording": "testing.recordings.recording",
    "memory_pair": "transport.memory",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'dragoman.testing' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"dragoman.{home}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})

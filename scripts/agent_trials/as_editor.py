"""The same conversation with an agent directly and through `dragoman acp`, compared."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable
from itertools import groupby
from typing import Any

import msgspec

from agent_trials.lab import LabAgent
from agent_trials.turns import run
from dragoman import AgentCommand, Client, Policy, Timeouts
from dragoman.session import events as e

KINDS = ("say", "think", "write", "shell", "plan")
"""The prompts of the conversation, as far as the agent has them."""
_PASSING = re.compile(r"term_[0-9a-f]{32}|chatcmpl-[0-9a-f]+|\b1[0-9]{9,12}\b")
"""Ids of terminals and of requests to the model, and times."""
_DURATION = re.compile(r"[0-9.]+ seconds")
_CONVERSATION = (e.AgentMessage, e.AgentThought, e.ToolCallUpdated, e.PlanUpdated, e.UnknownUpdate)


async def conversation(client: Client, agent: LabAgent, workspace: str) -> list[Any]:
    """What an editor sees of all turns, without ids and times."""
    seen: list[Any] = []
    async with client:
        session = await client.new_session(workspace)
        for kind in KINDS:
            if kind in agent.prompts:
                events = await run(session, agent.prompts[kind])
                seen += [f"── {kind}", *_told(events)]
    return seen


def _told(events: Iterable[e.Event]) -> list[Any]:
    """Adjacent pieces of a message as one: where a model cuts its words is chance."""
    names: dict[str, str] = {}
    told: list[Any] = []
    of_agent = (each for each in events if isinstance(each, _CONVERSATION))
    for kind, some in groupby(of_agent, type):
        if issubclass(kind, e.AgentMessage | e.AgentThought):
            said = "".join(each.text for each in some)
            told.append([kind.__name__, _DURATION.sub("… seconds", said)])
        else:
            told += [_plain(each, names) for each in some]
    return told


def _plain(event: e.Event, names: dict[str, str]) -> Any:
    fields = msgspec.to_builtins(msgspec.structs.replace(event, seq=0, at=0.0))
    text = json.dumps(fields)
    if isinstance(event, e.ToolCallUpdated):
        name = names.setdefault(event.tool_call_id, f"call {len(names) + 1}")
        text = text.replace(event.tool_call_id, name)
    return json.loads(_PASSING.sub("0", text))


def through_dragoman(agent: LabAgent, home: str, **options: Any) -> Client:
    """A client of `dragoman acp`, whose only agent this is."""
    settings = os.path.join(home, "editor.json")
    entry = {"command": agent.command, "args": agent.args, "env": agent.env}
    with open(settings, "w", encoding="utf-8") as file:
        json.dump({"agent_servers": {agent.name: entry}}, file)
    words = ("-m", "dragoman", "acp", "-a", agent.name, "--settings", settings, "--yolo")
    env = {"DRAGOMAN_HOME": os.path.join(home, "editor")}
    command = AgentCommand(sys.executable, words, env, agent.workspace)
    return Client.start(command, policy=Policy(yolo=True), timeouts=Timeouts(cancel=20), **options)


def difference(direct: list[Any], through: list[Any]) -> str:
    """The first update that is not the same, in a sentence; empty if there is none."""
    for number, (one, other) in enumerate(zip(direct, through, strict=False)):
        if one != other:
            return f"update {number}: {str(one)[:200]} became {str(other)[:200]}"
    if len(direct) != len(through):
        return f"{len(direct)} updates became {len(through)}"
    return ""

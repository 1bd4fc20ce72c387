"""Translates what a script says in v1 into the JSON of v2.

A v2 struct, or a kind that only v2 has, goes out as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from dragoman.client.dialects.v2.encoding import git_patch
from dragoman.schema import codec, v1, v2

Json: TypeAlias = dict[str, Any]

_CHUNKS = ("user_message_chunk", "agent_message_chunk", "agent_thought_chunk")


class Words:
    """Translates the updates of one session, one after the other.

    In v1 a message may lack an id: it then continues until another entry begins in the thread.
    """

    def __init__(self, options: Callable[[], list[Json]]) -> None:
        self._options = options
        self._speaking: tuple[str, str | None, str] | None = None
        self._calls: set[str] = set()
        self._messages = 0
        self._plan = ""

    def begin_turn(self) -> None:
        self._speaking = None
        self._plan = ""

    def update(self, update: Any) -> Json:
        told: Json = msgspec.json.decode(codec.encode(update))
        kind = told.get("sessionUpdate", "")
        if kind in _CHUNKS:
            return self._chunk(kind, told)
        if self._begins(kind, told):
            self._speaking = None
        match kind:
            case "tool_call" | "tool_call_update":
                return tool_call(told) | {"sessionUpdate": "tool_call_update"}
            case "plan":
                return self._items(told)
            case "current_mode_update" | "config_option_update":
                return {"sessionUpdate": "config_option_update", "configOptions": self._options()}
            case "available_commands_update":
                return told | {"availableCommands": commands(told["availableCommands"])}
            case _:
                return told

    def _chunk(self, kind: str, told: Json) -> Json:
        wanted = told.get("messageId")
        if self._speaking is None or self._speaking[:2] != (kind, wanted):
            if kind == "user_message_chunk":
                self._plan = ""  # a plan without an id is of one prompt
            self._messages += 1
            self._speaking = kind, wanted, wanted or f"message-{self._messages}"
        return told | {"messageId": self._speaking[2]}

    def _begins(self, kind: str, told: Json) -> bool:
        """Whether this is in the thread as something new."""
        if kind in ("tool_call", "tool_call_update"):
            is_new = told["toolCallId"] not in self._calls
            self._calls.add(told["toolCallId"])
            return is_new
        return (kind == "plan" and not self._plan) or kind in ("notice", "plan_update")

    def _items(self, told: Json) -> Json:
        if not self._plan:
            self._messages += 1
            self._plan = f"plan-{self._messages}"
        plan = {"type": "items", "planId": self._plan, "entries": told["entries"]}
        return {"sessionUpdate": "plan_update", "plan": plan}


def tool_call(told: Json) -> Json:
    """A tool call, or what changed about it. In v1 null means nothing, in v2 it clears."""
    call = {name: value for name, value in told.items() if value is not None}
    if "content" in call:
        call["content"] = [_content(item) for item in call["content"]]
    return call


def _content(item: Json) -> Json:
    if item.get("type") != "diff" or "changes" in item:
        return item
    path, old, new = item["path"], item.get("oldText"), item["newText"]
    change = {"operation": "add" if old is None else "modify", "path": path, "fileType": "text"}
    patch = {"format": "git_patch", "text": git_patch(path, old, new)}
    return {"type": "diff", "changes": [change], "patch": patch}


def commands(told: list[Json]) -> list[Json]:
    return [_command(command) for command in told]


def _command(told: Json) -> Json:
    given = told.get("input")
    said = {name: told[name] for name in ("name", "description")}
    shown = {} if given is None else {"input": {"type": "text", "hint": given["hint"]}}
    return {"type": "command", **said, **shown}


def option(told: v1.SessionConfigOption) -> Json:
    """A config option with v2's names for its ids."""
    found: Json = msgspec.json.decode(codec.encode(told))
    found["configId"] = found.pop("id")
    for choice in found.get("options", []):
        if "group" in choice:
            choice["groupId"] = choice.pop("group")
    return found


def mode_option(modes: v1.SessionModeState) -> Json:
    """Modes as the option they are in v2."""
    choices = [
        {"value": mode.id, "name": mode.name}
        | ({} if mode.description is None else {"description": mode.description})
        for mode in modes.available_modes
    ]
    return {
        "type": "select",
        "configId": MODE,
        "name": "Mode",
        "category": "mode",
        "currentValue": modes.current_mode_id,
        "options": choices,
    }


MODE = "mode"


def auth_method(told: v1.AuthMethod) -> Json:
    found: Json = msgspec.json.decode(codec.encode(told))
    found["methodId"] = found.pop("id")
    env = found.pop("env", None)
    if env:
        found["env"] = [{"name": name, "value": value} for name, value in env.items()]
    return {"type": "agent", **found}


def capabilities(told: v1.AgentCapabilities) -> v2.AgentCapabilities:
    """What v2 has a marker for; a marker is an object."""
    session = told.session_capabilities
    return v2.AgentCapabilities(
        session=v2.SessionCapabilities(
            prompt=_prompt(told.prompt_capabilities),
            mcp=_mcp(told.mcp_capabilities),
            delete=v2.SessionDeleteCapabilities() if session.delete else None,
            fork=v2.SessionForkCapabilities() if session.fork else None,
            archive=v2.SessionArchiveCapabilities() if session.archive else None,
            status=v2.SessionStatusCapabilities() if session.status else None,
            title=v2.SessionTitleCapabilities() if session.title else None,
            additional_directories=(
                v2.SessionAdditionalDirectoriesCapabilities()
                if session.additional_directories
                else None
            ),
            system_prompt=v2.SessionSystemPromptCapabilities() if session.system_prompt else None,
        )
    )


def _prompt(told: v1.PromptCapabilities) -> v2.PromptCapabilities:
    embedded = v2.PromptEmbeddedContextCapabilities() if told.embedded_context else None
    return v2.PromptCapabilities(
        image=v2.PromptImageCapabilities() if told.image else None,
        audio=v2.PromptAudioCapabilities() if told.audio else None,
        embedded_context=embedded,
    )


def _mcp(told: v1.McpCapabilities) -> v2.McpCapabilities:
    return v2.McpCapabilities(
        stdio=v2.McpStdioCapabilities(),
        http=v2.McpHttpCapabilities() if told.http else None,
        acp=v2.McpAcpCapabilities() if told.acp else None,
    )

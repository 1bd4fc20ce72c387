"""What an agent means by its requests where they do not say it: it is known by experience.

A habit says where an agent puts what ACP has a field for. What is found there is a claim like any
other, read by the same rules. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

import msgspec

from dragoman.lazy_pattern import lazy_pattern
from dragoman.session.content import ContentItem, Text
from dragoman.session.state import ToolCall

ToolKind: TypeAlias = Literal["read", "edit", "execute", "fetch"]
# A name with a bracket in it could end anywhere.
_place = lazy_pattern(
    r"\[(?:in|current working directory) (?P<folder>[^][]+)\](?: \([^][]*\))?(?: \[background\])?"
)


class Habits(msgspec.Struct, frozen=True, kw_only=True):
    """One for each agent that has some."""

    permission_titles: tuple[str, ...] = ()
    """Titles of permission requests that name no action: they cover all unfinished tool calls of
    the turn."""
    edit_titles: tuple[str, ...] = ()
    """Title prefixes of tool calls that edit files although their kind is `other`."""
    edit_verbs: tuple[str, ...] = ()
    """Values of `command` that are editor actions, not shell commands, in a call that edits files;
    in a call that reads files, only `view` is."""
    edit_tools: tuple[str, ...] = ()
    """Values of `tool` that are the agent's own editor, not MCP tools, in a call that edits
    files."""
    tool_kinds: dict[str, ToolKind] = {}
    """What the agent's own tools do, by name, if the kind of their calls is `other`. A tool that
    fetches takes one address, under `url`; only such a call counts as `fetch`."""
    command_titles: bool = False
    """The title of a call that runs a command is the command, and its content says where."""
    input_in_content: bool = False
    """The input of a call is its content, as JSON, until permission is asked for."""

    def kind_of(self, call: ToolCall) -> str:
        if call.kind != "other":
            return call.kind
        if call.title.startswith(self.edit_titles):
            return "edit"
        return self.tool_kinds.get(call.name or "", call.kind)

    def fetches(self, call: ToolCall) -> bool:
        """Whether the call is known to fetch the one address that it names, and to do nothing
        else."""
        return self.tool_kinds.get(call.name or "") == "fetch" == self.kind_of(call)

    def inputs_of(self, call: ToolCall) -> list[Any]:
        """Everything that the call claims as its input."""
        return [call.raw_input, *self._told_in_content(call), *self._told_in_title(call)]

    def _told_in_content(self, call: ToolCall) -> Iterator[Any]:
        if not self.input_in_content or len(call.content) != 1:
            return
        try:
            told = msgspec.json.decode(_text(call))
        except (msgspec.DecodeError, RecursionError):
            return  # it is not told to its end
        if isinstance(told, dict):
            yield told

    def _told_in_title(self, call: ToolCall) -> Iterator[Any]:
        if not self.command_titles or call.kind != "execute" or not call.title:
            return
        if len(call.content) == 1 and (found := _place.fullmatch(_text(call))):
            yield {"command": call.title, "cwd": found["folder"]}


NO_HABITS = Habits()


def _text(call: ToolCall) -> str:
    match call.content[0]:
        case ContentItem(content=Text(text=text)):
            return text
        case _:
            return ""

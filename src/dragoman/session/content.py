"""The content of messages, prompts and tool calls, in our own types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec

Meta: TypeAlias = dict[str, Any] | None


class Part(
    msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel", tag_field="type", gc=False
):
    """The base of all content: annotations and metadata travel with it untouched."""

    annotations: dict[str, Any] | None = None
    meta: Meta = None


class Text(Part, tag="text"):
    """Plain text or Markdown."""

    text: str


class _Wordless:
    """Content that says nothing in words."""

    __slots__ = ()

    @property
    def text(self) -> str:
        return ""


class Image(Part, _Wordless, tag="image"):
    """An image; `data` is base64."""

    data: str
    mime_type: str
    uri: str | None = None


class Audio(Part, _Wordless, tag="audio"):
    """Sound; `data` is base64."""

    data: str
    mime_type: str


class ResourceLink(Part, _Wordless, tag="resource_link"):
    """A link to a resource that the agent can read itself, such as a file of the workspace."""

    uri: str
    name: str
    mime_type: str | None = None
    title: str | None = None
    description: str | None = None
    size: int | None = None


class Resource(Part, tag="resource"):
    """A resource with its content: text in `content`, or base64 in `blob`."""

    uri: str
    content: str | None = None
    blob: str | None = None
    mime_type: str | None = None
    resource_meta: Meta = None

    @property
    def text(self) -> str:
        return self.content or ""


class UnknownContent(Part, _Wordless, tag="unknown"):
    """Content of a type this version does not know; `raw` is its JSON."""

    kind: str
    raw: str


Content: TypeAlias = Text | Image | Audio | ResourceLink | Resource | UnknownContent


class _Item(msgspec.Struct, omit_defaults=True, rename="camel", tag_field="type"):
    """The base of what a tool call shows."""

    @property
    def text(self) -> str:
        return ""


class ContentItem(_Item, tag="content"):
    """Ordinary content inside a tool call."""

    content: Content
    meta: Meta = None

    @property
    def text(self) -> str:
        return self.content.text


class Diff(_Item, tag="diff"):
    """A change to a file.

    Without `operation`, it has the text before and after (`old_text` is None for a new file).
    With `operation` (`add`, `delete`, `modify`, or `move` and `copy` from `old_path`), it has no
    text, but may have a `patch` in Git format.
    """

    path: str
    new_text: str
    old_text: str | None = None
    meta: Meta = None
    operation: str | None = None
    old_path: str | None = None
    patch: str | None = None
    file_type: str | None = None
    mime_type: str | None = None
    replaces: str | None = None
    """Set if the file exists and its content is not shown: what would be overwritten, in words."""

    @property
    def paths(self) -> list[str]:
        """Every file it touches."""
        return [self.path] if self.old_path is None else [self.old_path, self.path]


class TerminalItem(_Item, tag="terminal"):
    """A terminal shown inside a tool call; if we did not create it, it is the agent's own."""

    terminal_id: str
    meta: Meta = None


UNREAD = "unread"
"""The kind of an item that stands for what could not be read: a tool call shows the last one."""


class UnknownItem(_Item, tag="unknown"):
    """Tool content of a type this version does not know; `raw` is its JSON."""

    kind: str
    raw: str


ToolContent: TypeAlias = ContentItem | Diff | TerminalItem | UnknownItem


def diffs_in(content: Sequence[ToolContent]) -> list[Diff]:
    return [item for item in content if isinstance(item, Diff)]


class Location(msgspec.Struct, omit_defaults=True, rename="camel"):
    """A place in a file that a tool call touches; `line` is 1-based."""

    path: str
    line: int | None = None
    meta: Meta = None

"""Wire types that only ACP v2 has, to and from ours; shared ones are in `translation`.

The list of changes says what is done; the patch, in Git's form, is cut into the part of each file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from dragoman.agents.extensions import TOOL_OUTPUT, said, tool_name
from dragoman.client.client_options import HostCapabilities
from dragoman.client.dialects.translation import (
    Updates,
    block_of,
    location,
    shared_updates,
    tool_contents,
)
from dragoman.client.dialects.v1 import wire_format as v1_format
from dragoman.host.claims.patch_names import PatchNames
from dragoman.lazy_pattern import lazy_pattern
from dragoman.schema import codec, v1, v2
from dragoman.schema.model import Unknown
from dragoman.session import events as e
from dragoman.session.content import Content, Diff, ToolContent, UnknownItem
from dragoman.session.facts import Command


def update(wire: v2.SessionUpdate) -> e.Event:
    """The event for an update that means the same whatever came before it."""
    if isinstance(wire, Unknown):
        return e.UnknownUpdate(wire.kind, wire.raw.decode())
    return _UPDATES[type(wire)](wire)


def tool_call_update(wire: v2.ToolCallUpdate) -> e.ToolCallUpdated:
    """What is missing did not change, and null clears."""
    items, places, can = wire.content, wire.locations, wire.capabilities
    return e.ToolCallUpdated(
        wire.tool_call_id,
        title=wire.title,
        name=_tool_name(wire),
        kind=wire.kind,
        status=wire.status,
        content=tool_contents(items, diffs) if isinstance(items, list) else items,
        locations=[location(p) for p in places] if isinstance(places, list) else places,
        raw_input=wire.raw_input,
        raw_output=_tool_output(wire),
        cancellable=can if can is UNSET else _can_cancel(can),
        forgets_meta=wire.meta is None,
        meta=wire.meta or None,
    )


def _tool_name(wire: v2.ToolCallUpdate) -> str | UnsetType | None:
    name = tool_name(wire.meta or None) if wire.name is UNSET else None
    return name or wire.name


def _tool_output(wire: v2.ToolCallUpdate) -> Any:
    output = said(wire.meta or None, TOOL_OUTPUT) if wire.raw_output is UNSET else None
    return wire.raw_output if output is None else output


def _can_cancel(capabilities: Any) -> bool:
    return capabilities is not None and capabilities.cancel is not None


def _tool_chunk(wire: v2.ToolCallContentChunk) -> e.Event:
    return e.ToolCallUpdated(wire.tool_call_id, more=tool_contents([wire.content], diffs))


def _commands(wire: v2.AvailableCommandsUpdate) -> e.Event:
    return e.CommandsChanged(commands(wire.available_commands), meta=wire.meta)


_UPDATES: Updates = shared_updates(v2) | {
    v2.SessionToolCallUpdate: tool_call_update,
    v2.ToolCallContentChunk: _tool_chunk,
    v2.AvailableCommandsUpdate: _commands,
}


# ── what replies and requests carry ───────────────────────────────────────────────────────────


def commands(wire: list[v2.AvailableCommand]) -> list[Command]:
    found = (_command(command) for command in wire)
    return [command for command in found if command.name]


class _Named(msgspec.Struct):
    name: str = ""
    description: str = ""


def _command(wire: v2.AvailableCommand) -> Command:
    """Of a kind that is not known, its name and what it says of itself are."""
    if isinstance(wire, Unknown):
        try:
            named = msgspec.json.decode(wire.raw, type=_Named)
        except msgspec.ValidationError:
            named = _Named()
        return Command(named.name, named.description)
    hint = wire.input.hint if isinstance(wire.input, v2.TextCommandInput) else None
    return Command(wire.name, wire.description, hint, meta=wire.meta)


GIT = "git_patch"
# Every line of a hunk begins with a sign, so this is at the beginning of headers alone.
_header = lazy_pattern(r"^(?=diff --git )", re.MULTILINE)
_escape = lazy_pattern(r"\\([0-7]{3}|.)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


_MOST_LINES = 50_000
"""Of a patch that is read for the names in it: an agent chooses how long it is."""
_MOST_COMPARED = 50_000
"""Names, with each change. In the order of the changes, each section is the first to be looked
at."""
_LONG_NAME = 100
"""A name counts again for each so many characters."""


class _Section(msgspec.Struct, frozen=True):
    """What a patch says of one file; it belongs to none without the names of its files."""

    text: str
    names: tuple[str, ...] = ()

    def is_about(self, paths: Sequence[str]) -> bool:
        """Whether it names these files and no other: what else it named would be neither judged nor
        shown."""
        return bool(self.names) and all(_is_one_of(name, paths) for name in self.names)

    @property
    def cost(self) -> int:
        """Of that question."""
        return 1 + sum(1 + len(name) // _LONG_NAME for name in self.names)


def diffs(wire: v2.Diff) -> list[ToolContent]:
    """An item for each change. A patch that belongs to none of them is shown with the first, and
    is an item more, so that no rule allows what nobody announced.

    There is always one: a diff that does not say what is changed is something nobody understands.
    """
    if not wire.changes:
        return [UnknownItem("diff", codec.encode(wire).decode())]
    sections = _Sections(wire.patch)
    items: list[ToolContent] = []
    for change in wire.changes:
        if isinstance(change, Unknown):
            items.append(UnknownItem(f"diff/{change.kind}", change.raw.decode()))
        else:
            items.append(_diff(change, sections))
    _keep_rest(items, sections.rest)
    for item in items[:1]:
        if isinstance(item, Diff):
            item.meta = wire.meta
    return items


def _diff(
    change: v2.DiffAdd | v2.DiffDelete | v2.DiffModify | v2.DiffMove | v2.DiffCopy,
    sections: _Sections,
) -> Diff:
    diff = Diff(change.path, "", operation=str(change.__struct_config__.tag))
    if isinstance(change, v2.DiffMove | v2.DiffCopy):
        diff.old_path = change.old_path
    diff.file_type, diff.mime_type = change.file_type, change.mime_type
    diff.patch = sections.take(diff.paths)
    return diff


def _keep_rest(items: list[ToolContent], rest: str) -> None:
    first = next((item for item in items if isinstance(item, Diff)), None)
    if rest:
        items.append(UnknownItem("patch", rest))
    if rest and first is not None:
        first.patch = (first.patch or "") + rest


class _Sections:
    """The sections of a patch that no change has taken yet."""

    def __init__(self, patch: v2.DiffPatch | None) -> None:
        self._left = dict(enumerate(_sections(patch)))
        self._compared = 0

    def take(self, paths: Sequence[str]) -> str | None:
        """That about these files. Where the two lists differ in many places, not all is compared:
        what is left is then the rest."""
        for number, section in self._left.items():
            if self._compared >= _MOST_COMPARED:
                return None
            self._compared += section.cost
            if section.is_about(paths):
                del self._left[number]
                return section.text
        return None

    @property
    def rest(self) -> str:
        return "".join(each.text for each in self._left.values())


def _sections(patch: v2.DiffPatch | None) -> list[_Section]:
    if patch is None or not patch.text:
        return []
    if patch.text.count("\n") > _MOST_LINES:
        return [_Section(patch.text)]
    texts = _header.split(patch.text) if patch.format == GIT else [patch.text]
    return [_Section(text, _names_in(text)) for text in texts if text]


def _names_in(section: str) -> tuple[str, ...]:
    names = PatchNames(section)
    return tuple(map(_unquoted, names)) if names.is_clear else ()


def _is_one_of(name: str, paths: Sequence[str]) -> bool:
    # Git names files from the top of the repository, most often with a letter before each.
    short = [name[2:]] if name.startswith(("a/", "b/")) else []
    ends = [f"/{each}" for each in (name, *short) if each and not each.startswith("/")]
    return name in paths or any(path.endswith(end) for path in paths for end in ends)


def _unquoted(name: str) -> str:
    """Git quotes what is not plain: in double quotes, other bytes in octal."""
    if not (len(name) > 1 and name.startswith('"') and name.endswith('"')):
        return name
    plain = _escape.sub(_unescaped, name[1:-1])
    return plain.encode("latin-1", "replace").decode("utf-8", "replace")


def _unescaped(found: re.Match[str]) -> str:
    code = found[1]
    return chr(int(code, 8) & 255) if len(code) == 3 else _ESCAPES.get(code, code)


VERSION = 2


class _EitherInitialize(v2.InitializeRequest, kw_only=True):
    """A request that an agent of version 1 understands too: it looks for these fields, and would
    take us for a client that offers nothing without them."""

    client_capabilities: v1.ClientCapabilities
    client_info: v1.Implementation


def initialize(host: HostCapabilities, name: str, version: str) -> bytes:
    request = _EitherInitialize(
        protocol_version=VERSION,
        info=v2.Implementation(name=name, title="Dragoman", version=version),
        capabilities=_capabilities(host),
        client_capabilities=v1_format.client_capabilities(host),
        client_info=v1.Implementation(name=name, title="Dragoman", version=version),
    )
    return codec.encode(request)


def _capabilities(host: HostCapabilities) -> v2.ClientCapabilities:
    """Only what was not switched off; files and terminals are the agent's own in this version."""
    terminal = v2.TerminalAuthCapabilities() if host.terminal_sign_in else None
    form = v2.ElicitationFormCapabilities()
    url = v2.ElicitationUrlCapabilities()
    return v2.ClientCapabilities(
        auth=None if terminal is None else v2.ClientAuthCapabilities(terminal=terminal),
        elicitation=v2.ElicitationCapabilities(form=form, url=url) if host.elicitation else None,
        meta=host.meta,
    )


def content(part: Content) -> v2.ContentBlock:
    return block_of(part, v2)

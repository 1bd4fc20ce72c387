"""What agents ask for in frames: a permission, a file, a command, in either version of ACP.

The same words for recordings and for what a proxy passes on.
"""

from __future__ import annotations

import msgspec

from dragoman.client.dialects import translation
from dragoman.client.dialects.v1 import wire_format
from dragoman.host.permissions.questions import NO_SUBJECT, Subject
from dragoman.host.permissions.trial import real_roots, seen
from dragoman.host.rules.access import Access, file_access, terminal_access
from dragoman.host.workspace.roots import Workspace
from dragoman.schema import codec, v1
from dragoman.session.events import ToolCallUpdated
from dragoman.session.facts import PermissionOption
from dragoman.wire.messages import Request

EFFECTS = frozenset({"fs/read_text_file", "fs/write_text_file", "terminal/create"})
"""What an agent has its client do."""


class AskedPermission(msgspec.Struct, frozen=True):
    """A request for permission."""

    session_id: str
    call: ToolCallUpdated | None
    options: list[PermissionOption]
    subject: Subject = NO_SUBJECT


def asked_permission(request: Request, *, second: bool) -> AskedPermission:
    """As it reads in version 1, or in the `second`. Raises InvalidMessage."""
    if second:
        from dragoman.testing.recordings.recorded_events_v2 import permission

        return AskedPermission(*permission(request))
    asked = codec.decode(request.params, v1.RequestPermissionRequest)
    options = [translation.permission_option(option) for option in asked.options]
    return AskedPermission(asked.session_id, wire_format.tool_call_update(asked.tool_call), options)


def asked_effect(method: str, request: Request, workspace: Workspace, agent: str) -> Access:
    """What one of `EFFECTS` would do. Raises InvalidMessage."""
    roots = real_roots(workspace)
    if method == "terminal/create":
        asked = codec.decode(request.params, v1.CreateTerminalRequest)
        return terminal_access(
            asked.command,
            asked.args,
            agent=agent,
            cwd=seen(asked.cwd or workspace.cwd, roots),
            roots=roots,
            env=bool(asked.env),
            variables=[each.name for each in asked.env],
        )
    file = codec.decode(request.params, v1.ReadTextFileRequest)
    operation = "read" if method == "fs/read_text_file" else "write"
    return file_access(operation, seen(file.path, roots), agent=agent, roots=roots)

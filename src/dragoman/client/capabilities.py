"""An agent's capabilities, independent of the protocol version."""

from __future__ import annotations

from typing import Any

import msgspec


class AgentInfo(msgspec.Struct, omit_defaults=True):
    """The name and version that the agent gives itself; empty if it gives none."""

    name: str = ""
    version: str = ""
    title: str | None = None


class AuthMethod(msgspec.Struct, omit_defaults=True):
    """A sign-in method: `authenticate`, or running the agent in a terminal."""

    id: str
    name: str
    kind: str = "agent"
    description: str | None = None
    args: list[str] = []
    env: dict[str, str] = {}
    meta: dict[str, Any] | None = None


class AgentCapabilities(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What the agent offers. `raw` is its own JSON, for what has no field here."""

    load: bool = False
    resume: bool = False
    fork: bool = False
    list: bool = False
    delete: bool = False
    close: bool = False
    archive: bool = False
    status: bool = False
    set_title: bool = False
    additional_directories: bool = False
    system_prompt: bool = False
    image: bool = False
    audio: bool = False
    embedded_context: bool = False
    mcp_stdio: bool = True
    mcp_http: bool = False
    mcp_sse: bool = False
    mcp_acp: bool = False
    logout: bool = False
    auth_status: bool = False
    providers: bool = False
    raw: dict[str, Any] = {}


class SessionInfo(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A session as the agent lists it."""

    id: str
    cwd: str
    additional_directories: list[str] = []
    title: str | None = None
    updated_at: str | None = None
    archived: bool | None = None
    meta: dict[str, Any] | None = None

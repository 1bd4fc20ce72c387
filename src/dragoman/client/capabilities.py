"""What an agent says of itself, in any version of ACP: capabilities, sign-in methods, sessions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from dragoman.errors import AuthRequired, DragomanError, RemoteError
from dragoman.safe_text import reveal
from dragoman.session.facts import SystemPrompt
from dragoman.session.state_limits import LIMITS, fitted


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


class AgentCapabilities(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel"):
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
    system_prompt_override: bool = False
    """Whether one may also take the place of the agent's own instructions."""
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
    steer: Literal["steering", "prompt"] | None = None
    """How it accepts steers, if it says so in the handshake. Other agents name a run to steer in
    each turn, or ask for the steers that wait."""
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


NO_SYSTEM_PROMPT = "a system prompt"
NO_OVERRIDE = "a system prompt in the place of its own, only one that is added to it"


def lacking_for(prompt: SystemPrompt, agent: AgentCapabilities) -> str | None:
    """What the agent would have to accept for this system prompt, and does not."""
    if not agent.system_prompt:
        return NO_SYSTEM_PROMPT
    if prompt.mode == "override" and not agent.system_prompt_override:
        return NO_OVERRIDE
    return None


def explained(error: DragomanError, methods: Sequence[AuthMethod]) -> DragomanError:
    """The same error; if it asks for a sign-in, with what to do in its sentence."""
    if isinstance(error, RemoteError):
        error = _shortened(error)
    return _with_ways(error, methods) if isinstance(error, AuthRequired) else error


def _shortened(error: RemoteError) -> RemoteError:
    """A session keeps its last error, and an agent may say very much."""
    message, data = error.message[: LIMITS.fact], fitted(error.data, LIMITS.fact)[0]
    if len(message) == len(error.message) and data is error.data:
        return error
    return type(error)(message, data, code=error.code)


def _with_ways(error: AuthRequired, methods: Sequence[AuthMethod]) -> AuthRequired:
    ways = "; ".join(_way(method) for method in methods)
    how = f"sign in first: {ways}" if ways else "it offers no sign-in method"
    found = AuthRequired(f"{error.message}: {how}", error.data)
    found.methods = tuple(methods)
    return found


def _way(method: AuthMethod) -> str:
    name = f"{method.id!r} ({method.name})"
    if method.description:
        name = f"{method.id!r} ({method.name}: {method.description})"
    if method.kind == "terminal":
        arguments = " ".join(method.args)
        return reveal(f"{name}, by running the agent's command with {arguments!r} in a terminal")
    return reveal(f"{name}, through authenticate")

"""The note of what a session may do, for an agent of it that starts others by `dragoman mcp`.

What it starts has no more than that: rules, folders, limits, and what the agent is offered.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import msgspec

from dragoman.agents.settings.mcp_settings import StdioServer
from dragoman.errors import ConfigError
from dragoman.host.rules.rule import RuleFields
from dragoman.session.facts import EVERYTHING, FenceMode, Offer
from dragoman.session.limits.spending_limits import SpendingLimit

if TYPE_CHECKING:
    from dragoman.client.client import Client
    from dragoman.client.mcp import McpServer
    from dragoman.host.rules.rule import Rule
    from dragoman.store.records import SessionRecord

VARIABLE = "DRAGOMAN_CALLER"


class Caller(msgspec.Struct, kw_only=True, rename="camel"):
    """The session that starts others."""

    session: str
    folders: list[str]
    rules: list[RuleFields] = []
    limits: list[SpendingLimit] = []
    offer: Offer = EVERYTHING
    fence: FenceMode = "off"

    @property
    def plain_rules(self) -> list[Rule]:
        return [rule.plain() for rule in self.rules]


def caller_here() -> Caller | None:
    """The one that this process was started by. Raises ConfigError for a note that is not ours."""
    text = os.environ.get(VARIABLE)
    if not text:
        return None
    try:
        return msgspec.json.decode(text, type=Caller)
    except (msgspec.DecodeError, ValueError) as error:
        raise ConfigError(f"${VARIABLE}", "", f"what Dragoman writes there ({error})") from error


def caller_of(record: SessionRecord, client: Client) -> Caller:
    """A session that runs here, with all that it may do."""
    terms, fence = client.openings.terms, client.fence
    return Caller(
        session=record.id,
        folders=[record.cwd, *record.additional_directories],
        rules=[RuleFields.of(rule) for rule in terms.policy.rules],
        limits=[*record.limits.limits, *terms.limits],
        offer=record.offer,
        fence="off" if fence is None else "on" if fence.problem else "require",
    )


def with_caller(servers: Iterable[McpServer], caller: Callable[[], Caller]) -> list[McpServer]:
    """The servers of a session, with the note for those that are `dragoman mcp`."""
    return [_noted(each, caller()) if starts_others(each) else each for each in servers]


def starts_others(server: McpServer) -> bool:
    """Whether it is `dragoman mcp`."""
    if not isinstance(server, StdioServer):
        return False
    words = (server.command, *server.args)
    return any(map(_is_mcp, words, words[1:]))


def _is_mcp(word: str, following: str) -> bool:
    return os.path.basename(word) == "dragoman" and following == "mcp"


def _noted(server: McpServer, caller: Caller) -> McpServer:
    assert isinstance(server, StdioServer)
    note = msgspec.json.encode(caller).decode()
    return msgspec.structs.replace(server, env={**server.env, VARIABLE: note})

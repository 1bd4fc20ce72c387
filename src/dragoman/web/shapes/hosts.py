"""Hosts, and where a session is among them."""

from __future__ import annotations

from datetime import datetime

from dragoman.web.shapes.base import Shape


class HostShape(Shape):
    """A process that takes sessions; `alive` when it was heard of in time, `here` is this server.

    `id` is another one after each start. `address` is where its page is, null when other machines
    do not reach one. `sessions` are those it runs, `turns` how many of them are at work.
    """

    id: str
    name: str
    alive: bool
    here: bool
    address: str | None
    cwd: str
    agents: list[str]
    sessions: int
    turns: int
    version: str
    seen_at: datetime


class HostList(Shape):
    hosts: list[HostShape]


class SessionHost(Shape):
    """Where a session runs; where its workspace is, when it does not."""

    name: str
    alive: bool
    here: bool


class MoveBody(Shape):
    """Without a host, the least busy one with the agent; `cwd` when the folder is another there.
    With `reset` the session goes on even if its agent does not remember it there."""

    host: str | None = None
    cwd: str | None = None
    reset: bool = False

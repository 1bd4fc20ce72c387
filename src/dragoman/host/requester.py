"""Who asks for what is being served: the session's own agent, or one of its subagents."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_subagent: ContextVar[str | None] = ContextVar("asking_subagent", default=None)


def asking_subagent() -> str | None:
    """The id of the subagent whose request is being served; None for the session's own agent."""
    return _subagent.get()


@contextmanager
def asked_by(subagent_id: str | None) -> Generator[None]:
    token = _subagent.set(subagent_id)
    try:
        yield
    finally:
        _subagent.reset(token)

"""A listener that keeps what it hears, and an answer that refuses."""

from __future__ import annotations

from typing import Any

from support.raw_agent import Refusal

from dragoman import Session
from dragoman.session import events as e


def refuse(code: int, message: str = "no") -> Any:
    def answer(params: Any) -> Any:
        raise Refusal(code, message)

    return answer


class Heard:
    """A listener that keeps what it hears."""

    def __init__(self) -> None:
        self.events: list[tuple[str, e.Event]] = []

    def __call__(self, session: Session, event: e.Event) -> None:
        self.events.append((session.id, event))

    @property
    def openings(self) -> list[tuple[str, str]]:
        return [
            (i, event.continuity) for i, event in self.events if isinstance(event, e.SessionOpened)
        ]

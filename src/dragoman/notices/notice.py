"""What is worth telling someone who is not looking: a question, or the end of a turn. Pure."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from dragoman.safe_text import columns, reveal, single_line
from dragoman.session.events import ElicitationRequested, PermissionRequested, TurnEnded
from dragoman.session.facts import PermissionOption
from dragoman.store.records import SessionRecord

NoticeKind: TypeAlias = Literal["question", "turn_ended"]
Noticed: TypeAlias = PermissionRequested | ElicitationRequested | TurnEnded

_LONGEST = 300


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """`key` is unique. `words` come from the agent: they are included only where content is
    wanted. `allow` and `reject` are the one-time answers, if there is a plain one of each, and
    for `allow` also only if the words are all that would be allowed."""

    key: str
    kind: NoticeKind
    session: str
    agent: str
    cwd: str
    title: str
    at: float
    words: str = ""
    request: str | None = None
    allow: str | None = None
    reject: str | None = None
    outcome: Literal["finished", "stopped", "failed", "interrupted"] | None = None

    @property
    def sentence(self) -> str:
        """What happened, as Dragoman says it."""
        if self.kind == "question":
            return "An agent is waiting for your answer."
        return f"A turn {self.outcome}." if self.outcome != "interrupted" else "A turn was cut off."

    def public(self, *, content: bool) -> dict[str, Any]:
        """For programs; without content only what Dragoman itself says."""
        found: dict[str, Any] = {
            "id": self.key,
            "kind": self.kind,
            "at": self.at,
            "session": self.session,
            "agent": self.agent,
        }
        if self.request is not None:
            found["request"] = self.request
        if self.outcome is not None:
            found["outcome"] = self.outcome
        if content:
            found |= {"cwd": self.cwd, "title": self.title, "words": self.words}
        return found

    def push(self, *, content: bool) -> bytes:
        """For the page's service worker. Nobody is to allow what is not shown: without content it
        can only be rejected."""
        found: dict[str, Any] = {"key": self.key, "kind": self.kind, "session": self.session}
        if self.request is not None:
            found["request"] = self.request
        if self.reject is not None:
            found["reject"] = self.reject
        if content:
            project = os.path.basename(self.cwd.rstrip("/"))
            found["title"] = single_line(self.title or project or self.agent, _LONGEST)
            found["body"] = self.words or self.sentence
            if self.allow is not None:
                found["allow"] = self.allow
        else:
            found |= {"title": "Dragoman", "body": self.sentence}
        return msgspec.json.encode(found)


def notice_of(event: Noticed, record: SessionRecord) -> Alert:
    allow = reject = request = outcome = None
    kind: NoticeKind = "question"
    match event:
        case PermissionRequested():
            request, subject = event.request_id, _subject(event)
            words = subject or event.title or event.operation
            reject = _only(event.options, "reject_once")
            if event.danger is None and subject and columns(reveal(subject)) <= _LONGEST:
                allow = _only(event.options, "allow_once")
        case ElicitationRequested():
            request, words = event.request_id, event.message
        case TurnEnded():
            kind, words = "turn_ended", event.error or ""
            outcome = _outcome(event)
    return Alert(
        key=f"{record.id}:{event.seq}",
        kind=kind,
        session=record.id,
        agent=record.agent,
        cwd=record.cwd,
        title=record.title or record.name or "",
        at=event.at,
        words=single_line(words, _LONGEST),
        request=request,
        allow=allow,
        reject=reject,
        outcome=outcome,
    )


def _subject(event: PermissionRequested) -> str:
    """What it is about, not as the agent titles it; "" where the request does not say."""
    if event.argv is not None:
        return shlex.join(event.argv)
    return f"{event.operation} {' '.join(event.paths)}" if event.paths else ""


def _only(options: Sequence[PermissionOption], kind: str) -> str | None:
    """The option of that kind, if there is exactly one and nothing is odd about it."""
    found = [option for option in options if option.kind == kind]
    return found[0].id if len(found) == 1 and found[0].warning is None else None


def _outcome(event: TurnEnded) -> Literal["finished", "stopped", "failed", "interrupted"]:
    if event.interrupted:
        return "interrupted"
    if event.error is not None:
        return "failed"
    return "stopped" if event.stop_reason == "cancelled" else "finished"

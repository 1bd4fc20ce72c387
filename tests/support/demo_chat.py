"""Turns of the demo agent, told to a page that answers what it is asked."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec
from support.chunk_rules import Told
from support.demo import demo_session

from dragoman import DragomanError, Session
from dragoman.host.forms.elicitation import ElicitationAnswer
from dragoman.session import events as e
from dragoman.session.state import PendingPermission
from dragoman.ui_stream.chunks import Sdk
from dragoman.ui_stream.decoder import Answer


class Scene(msgspec.Struct, frozen=True):
    """A prompt, what the page says to whatever it is asked, and what else happens."""

    name: str
    prompt: str
    approve: bool = True
    cancel_at: type[e.Event] | None = None


SCENES = [
    Scene("allowed", "Add a line to the notes"),
    Scene("denied", "Add a line to the notes", approve=False),
    Scene("read", "Summarise @notes.md"),
    Scene("cancelled", "/slow 20", cancel_at=e.AgentMessage),
    Scene("cancelled while asking", "Add a line to the notes", cancel_at=e.PermissionRequested),
    Scene("crashed", "/crash"),
    Scene("failed", "/fail it broke"),
    Scene("picture", "/image"),
    Scene("unknown", "/unknown"),
    Scene("notice", "/notice"),
    Scene("compacted", "/compact"),
    Scene("form", "/ask"),
    Scene("terminal", "/run sh -c 'echo one; echo two'"),
]


class Performed(msgspec.Struct):
    """What happened: the events from the session's first on, and what was asked of the page."""

    scene: Scene
    events: list[e.Event]
    asked: list[str]
    live: list[int]
    """How many chunks each stream had that was written while it happened."""


async def performed(scene: Scene, folder: Path) -> Performed:
    (folder / "notes.md").write_text("# Notes\n\nAll is well.\n")
    async with demo_session(folder) as session:
        return await _perform(scene, session)


async def _perform(scene: Scene, session: Session) -> Performed:
    assert session.pending == []  # from now on, questions wait for us
    events: list[e.Event] = [e.SessionOpened(session.id, session.cwd, "new")]
    stream, asked, story = session.events(), list[str](), Told(session_id=session.id)
    turn = session.prompt(scene.prompt)
    async for event in stream:
        events.append(event)
        story.feed(event, pending=session.state.pending)
        if scene.cancel_at is type(event) and not turn.cancel_requested:
            await session.cancel()
        if story.encoder.waiting:
            asked += story.encoder.waiting
            await _answer(session, story.encoder.waiting, scene.approve)
            story.resume(scene.approve)
        if story.encoder.ended:
            break
    with suppress(DragomanError):
        await turn
    assert story.problems == []
    return Performed(scene, events, asked, [len(chunks) for chunks in story.streams])


async def _answer(session: Session, waiting: frozenset[str], approve: bool) -> None:
    for key in waiting:
        pending = session.state.pending.get(key)
        if isinstance(pending, PendingPermission):
            option = Answer(key, approve).choose(pending.options)
            assert option is not None
            await session.answer(key, option)
        elif pending is not None:
            answer = ElicitationAnswer("accept", {"name": "Ada", "colour": "red"})
            await session.answer_elicitation(key, answer)


def retold(performance: Performed, sdk: Sdk) -> Told:
    """The same again for a release of the SDK, from the events alone."""
    opening = performance.events[0]
    assert isinstance(opening, e.SessionOpened)
    story = Told(sdk, session_id=opening.session_id)
    for event in performance.events:
        story.feed(event, pending=performance.asked)
        if story.encoder.waiting:
            story.resume(performance.scene.approve)
    assert story.encoder.ended
    return story

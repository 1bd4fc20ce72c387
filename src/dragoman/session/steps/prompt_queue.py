"""The queue of prompts, and what becomes of those that are meant for the running turn.

Pure. Steers come before other prompts, in their order.
"""

from __future__ import annotations

from dragoman.session import events as e
from dragoman.session.state import QueuedPrompt, SessionState, UserEntry
from dragoman.session.state_limits import Limits
from dragoman.session.thread import LAST_PROMPT, add, append, piece_of, put


def prompt_queued(state: SessionState, event: e.PromptQueued, limits: Limits) -> None:
    for prompt in state.queue:
        if prompt.id == event.queue_id:
            prompt.content, prompt.steer = event.content, event.steer
            return
    prompt = QueuedPrompt(event.queue_id, event.content, event.terms, event.steer)
    place = len(state.queue) if event.steer is None else _steers(state.queue)
    state.queue.insert(place, prompt)


def _steers(queue: list[QueuedPrompt]) -> int:
    """How many there are at the beginning."""
    return next((n for n, each in enumerate(queue) if each.steer is None), len(queue))


def prompt_unqueued(state: SessionState, event: e.PromptUnqueued, limits: Limits) -> None:
    state.queue = [prompt for prompt in state.queue if prompt.id != event.queue_id]


def steered(state: SessionState, event: e.Steered, limits: Limits) -> None:
    if event.outcome == "queued":
        for prompt in state.queue:
            if prompt.id == event.queue_id:
                prompt.steer = "waiting"
        return
    state.queue = [prompt for prompt in state.queue if prompt.id != event.queue_id]
    if event.content:
        _say(state, event, limits)


def _say(state: SessionState, event: e.Steered, limits: Limits) -> None:
    entry = UserEntry(steer=event.outcome)
    state.places[LAST_PROMPT] = state.entry_count  # the agent may repeat it
    append(state, event, entry, limits)
    for part in event.content:
        add(state, entry, piece_of(part), limits, whole=True)
    put(state, entry, "reason", event.reason, limits)

"""`GET /metrics`: what this process does, in the text format of Prometheus.

Each host is asked for its own; the program that collects them adds them up. The names of
agents are the only texts that are not ours, and nothing here is content.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple, TypeAlias, get_args

from starlette.responses import Response

from dragoman._version import __version__
from dragoman.hub.hub import Hub
from dragoman.hub.running.activity import Count, Labels
from dragoman.hub.stored.stored_sessions import status_of
from dragoman.session.state import SessionState
from dragoman.store.records import Status
from dragoman.web.context import Server

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "dragoman_"

_METHODS = ("GET", "POST", "PATCH", "PUT", "DELETE", "OPTIONS", "HEAD")

Kind: TypeAlias = Literal["counter", "gauge", "summary"]


class Family(NamedTuple):
    kind: Kind
    meaning: str


FAMILIES: Mapping[str, Family] = {
    "info": Family("gauge", "Version of this process; always 1."),
    "sessions": Family("gauge", "Sessions that run in this process, by what they do."),
    "agents": Family("gauge", "Agents that run in this process."),
    "questions_waiting": Family("gauge", "Questions that wait for a person."),
    "prompts_queued": Family("gauge", "Prompts that wait for the end of a turn."),
    "store_away": Family("gauge", "1 while the store cannot be reached."),
    "store_undelivered": Family("gauge", "1 while events wait on this disk for the store."),
    "chores_failing": Family("gauge", "Chores that failed the last time they were due."),
    "turns_total": Family("counter", "Turns that have ended, by agent and outcome."),
    "turn_seconds": Family("summary", "Duration of turns."),
    "tool_calls_total": Family("counter", "Tool calls."),
    "tokens_total": Family("counter", "Tokens, as agents report them at the end of a turn."),
    "cost_total": Family("counter", "Cost, as agents report it, by currency."),
    "questions_total": Family("counter", "Questions that were answered, by answer."),
    "question_seconds": Family("summary", "How long questions waited."),
    "queued_prompt_seconds": Family("summary", "How long queued prompts waited."),
    "events_stored_total": Family("counter", "Events that were stored."),
    "store_write_seconds": Family("summary", "How long it took until a batch was durable."),
    "http_requests_total": Family("counter", "Requests, by method and status."),
}


async def metrics(server: Server) -> Response:
    counts = {**_gauges(server.hub), **server.hub.activity.counts}
    return Response(exposition(counts), media_type=MEDIA_TYPE)


def count_request(server: Server, method: str, status: int) -> None:
    """A client may send any method: one that no route has counts as `other`."""
    known = method if method in _METHODS else "other"
    labels = (("method", known), ("status", str(status or "none")))
    server.hub.activity.add("http_requests_total", 1.0, labels)


def exposition(counts: Mapping[Count, float]) -> str:
    """Each family with its samples, together as the format wants them. Raises KeyError for a count
    that has none."""
    samples: dict[str, list[str]] = {name: [] for name in FAMILIES}
    for count, value in counts.items():
        samples[_family_of(count.name)].append(_sample(count, value))
    lines: list[str] = []
    for name, family in FAMILIES.items():
        if samples[name]:
            lines.append(f"# HELP {PREFIX}{name} {family.meaning}")
            lines.append(f"# TYPE {PREFIX}{name} {family.kind}")
            lines += samples[name]
    return "\n".join([*lines, ""])


def _family_of(name: str) -> str:
    """A summary is a sum and a count."""
    stem = name.removesuffix("_sum").removesuffix("_count")
    return stem if stem in FAMILIES else name


def _sample(count: Count, value: float) -> str:
    labels = ",".join(f'{name}="{_escaped(text)}"' for name, text in count.labels)
    return (
        f"{PREFIX}{count.name}{{{labels}}} {value:.15g}"
        if labels
        else f"{PREFIX}{count.name} {value:.15g}"
    )


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


# ── what there is now ─────────────────────────────────────────────────────────────────────────


def _gauges(hub: Hub) -> dict[Count, float]:
    states = [live.state for live in hub.live.values()]
    return {
        Count("info", (("version", __version__),)): 1,
        **dict(_by_state(states)),
        Count("agents"): len(hub.clients(None)),
        Count("questions_waiting"): sum(len(each.pending) for each in states),
        Count("prompts_queued"): sum(len(each.queue) for each in states),
        Count("store_away"): hub.store.away is not None,
        Count("store_undelivered"): hub.store.holds_undelivered,
        Count("chores_failing"): len(hub.maintenance.failing),
    }


def _by_state(states: list[SessionState]) -> Iterator[tuple[Count, float]]:
    """Also the states that no session is in: a series that vanishes looks like an outage."""
    now = [status_of(each) for each in states]
    for status in get_args(Status):
        labels: Labels = (("state", status),)
        yield Count("sessions", labels), now.count(status)

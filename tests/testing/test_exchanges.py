"""A recording taken apart: every frame of the agent belongs to one request of the client."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.testing.recordings.recording import Line, Recording
from dragoman.testing.recordings.replay import (
    Ask,
    Exchange,
    Go,
    Hear,
    HearCancel,
    Say,
    ScriptedAnswer,
    conversations,
)


def to_agent(method: str, key: object = None, **params: object) -> Line:
    message: dict[str, Any] = {"method": method, "params": params}
    return Line(0, "->", encoded(message if key is None else message | {"id": key}))


def from_agent(**message: object) -> Line:
    return Line(0, "<-", encoded(message))


def update(session_id: str, text: str) -> Line:
    return from_agent(method="session/update", params={"sessionId": session_id, "text": text})


def result(key: object, **fields: object) -> Line:
    return from_agent(id=key, result=fields)


def encoded(message: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", **message})


def taken_apart(*lines: Line) -> list[Exchange]:
    (conversation,) = conversations(Recording(lines))
    return conversation.exchanges


def shape(exchange: Exchange) -> list[str]:
    return [
        msgspec.json.decode(act.frame)["params"]["text"]
        if isinstance(act, Say)
        else type(act).__name__
        for act in exchange.acts
    ]


def test_updates_belong_to_the_open_request_of_their_session() -> None:
    one, two = taken_apart(
        to_agent("session/prompt", 1, sessionId="a"),
        to_agent("session/prompt", 2, sessionId="b"),
        update("a", "a1"),
        update("b", "b1"),
        result(2),
        update("a", "a2"),
        result(1),
    )
    assert shape(one) == ["a1", "a2", "ScriptedAnswer"]
    assert shape(two) == ["b1", "ScriptedAnswer"]


def test_updates_between_requests_belong_to_the_last_one_of_their_session() -> None:
    one, two = taken_apart(
        to_agent("session/prompt", 1, sessionId="a"),
        result(1),
        to_agent("session/prompt", 2, sessionId="b"),
        result(2),
        update("a", "late"),
        update("b", "later"),
    )
    assert shape(one) == ["ScriptedAnswer", "late"]
    assert shape(two) == ["ScriptedAnswer", "later"]


def test_updates_before_the_reply_that_names_their_session_belong_to_it() -> None:
    new, fork = taken_apart(
        to_agent("session/new", 1),
        update("a", "early"),
        result(1, sessionId="a"),
        update("a", "behind"),
        to_agent("session/fork", 2, sessionId="a"),
        update("b", "copied"),
        result(2, sessionId="b"),
    )
    assert shape(new) == ["early", "ScriptedAnswer", "behind"]
    assert shape(fork) == ["copied", "ScriptedAnswer"]


def test_a_request_of_the_agent_stands_with_its_reply() -> None:
    (exchange,) = taken_apart(
        to_agent("session/prompt", 1, sessionId="a"),
        from_agent(id=0, method="fs/read_text_file", params={"sessionId": "a"}),
        update("a", "meanwhile"),
        Line(0, "->", encoded({"id": 0, "result": {}})),
        Line(0, "->", encoded({"method": "session/cancel", "params": {"sessionId": "a"}})),
        result(1),
    )
    kinds = [type(act) for act in exchange.acts]
    assert kinds == [Ask, Say, Hear, HearCancel, ScriptedAnswer]


def test_a_second_handshake_begins_another_conversation() -> None:
    lines = [to_agent("initialize", 1), result(1), to_agent("initialize", 1), result(1)]
    found = conversations(Recording(tuple(lines)))
    assert [len(conversation.exchanges) for conversation in found] == [1, 1]


def test_what_was_said_before_any_request_is_unasked() -> None:
    note = from_agent(method="_x/hello", params={})
    (conversation,) = conversations(Recording((note, to_agent("initialize", 1), result(1))))
    assert conversation.unasked == [Say(note.frame)]


def test_an_agent_that_ended_owes_nothing_more() -> None:
    (exchange,) = taken_apart(to_agent("session/prompt", 1, sessionId="a"), Line(1, "eof"))
    assert exchange.acts == [Go()]

"""What `useChat` sends, read as a prompt or as answers; nothing is dropped, nothing is assumed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dragoman.client.capabilities import AgentCapabilities
from dragoman.session.content import Content, Text
from dragoman.session.facts import PermissionOption
from dragoman.ui_stream import UnusableRequest, decode
from dragoman.ui_stream.decoder import AcpOptions, Answer, ChatRequest, ElicitationReply

YES = PermissionOption("yes", "Yes", "allow_once")
ALWAYS = PermissionOption("always", "Always", "allow_always")
NO = PermissionOption("no", "No", "reject_once")
NEVER = PermissionOption("never", "Never", "reject_always")
ODD = PermissionOption("odd", "Odd", "ponder")
ALL = [YES, ALWAYS, NO, NEVER]


def body(*messages: Any, **more: Any) -> bytes:
    return msgspec.json.encode({"id": "chat-1", "messages": messages, **more})


def user(*parts: Any) -> dict[str, Any]:
    return {"id": "u", "role": "user", "parts": parts}


def assistant(*parts: Any) -> dict[str, Any]:
    return {"id": "t", "role": "assistant", "parts": parts}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def approval(request_id: str, approved: Any, **more: Any) -> dict[str, Any]:
    answer = {"id": request_id, "approved": approved, **more}
    return {"type": "dynamic-tool", "state": "approval-responded", "approval": answer}


def prompt(request: ChatRequest) -> list[Content]:
    return request.prompt(AgentCapabilities(), "file:///files/")[0]


# ── prompts ───────────────────────────────────────────────────────────────────────────────────


def test_only_the_last_message_goes_to_the_agent() -> None:
    request = decode(
        body(user(text("one")), assistant(text("two")), user(text("three"), text(""), text("four")))
    )
    assert prompt(request) == [Text("three"), Text("four")]
    assert (request.chat_id, request.trigger, request.message_id) == (
        "chat-1",
        "submit-message",
        None,
    )
    assert request.acp == AcpOptions()


def test_the_rest_of_the_body_is_read() -> None:
    request = decode(
        body(
            user(text("hi")),
            trigger="regenerate-message",
            messageId="m",
            acp={
                "agent": "demo",
                "cwd": "/work",
                "elicitation": {"requestId": "f", "action": "accept", "content": {"a": 1}},
            },
            unknown=True,
        )
    )
    reply = ElicitationReply("f", "accept", {"a": 1})
    assert (request.trigger, request.message_id) == ("regenerate-message", "m")
    assert request.acp == AcpOptions(agent="demo", cwd="/work", elicitation=reply)


@pytest.mark.parametrize(
    ("given", "place"),
    [
        (b"", "body"),
        (b"[]", "body"),
        (b"\xff", "body"),
        (b"[" * 100_000, "body"),
        (b'{"messages":[]}', "body"),
        (body(user(text("hi")), acp={"optionId": 3}), "body"),
        (body(), "messages"),
        (body(user(text("hi")), id="../etc"), "id"),
        (body(user(text("hi")), id=""), "id"),
        (body(user(text("hi")), id="x" * 129), "id"),
        (body(user(text("hi")), id="x\n"), "id"),
        (body(assistant(approval("p", "yes"))), "messages"),
        (body(assistant(approval("p", 1))), "messages"),
        (body(assistant({"state": "approval-responded"})), "messages"),
    ],
)
def test_a_body_that_is_none_is_refused_with_its_place(given: bytes, place: str) -> None:
    with pytest.raises(UnusableRequest) as caught:
        decode(given)
    assert caught.value.place == place
    assert str(caught.value) == f"{place}: {caught.value.reason}"


@pytest.mark.parametrize(
    "part",
    [
        {"type": "tool-x", "toolCallId": "a"},
        {"type": "reasoning", "text": "hm"},
        {"type": "data-x", "data": 1},
        {"type": "text"},
        {"type": "file"},
        {"type": "file", "url": "file:///etc/passwd"},
        {},
    ],
)
def test_a_part_that_cannot_be_sent_is_an_error(part: dict[str, Any]) -> None:
    request = decode(body(user(text("hi"), part)))
    with pytest.raises(UnusableRequest, match=r"messages\[-1\]\.parts\[1\]"):
        prompt(request)


@pytest.mark.parametrize("message", [user(), user(text("")), assistant(text("hi"))])
def test_a_message_that_says_nothing_is_an_error(message: dict[str, Any]) -> None:
    with pytest.raises(UnusableRequest, match="nothing"):
        prompt(decode(body(message)))


# ── answers ───────────────────────────────────────────────────────────────────────────────────


def test_answers_are_found_where_the_page_keeps_them() -> None:
    done = {"type": "dynamic-tool", "state": "output-available", "approval": {"id": "x"}}
    request = decode(
        body(
            user(text("hi")),
            assistant(text("ok"), done, approval("p", True), approval("q", False, reason="no!")),
            acp={"optionId": "yes"},
        )
    )
    assert request.answers == {
        "p": Answer("p", True, None, "yes"),
        "q": Answer("q", False, "no!", "yes"),
    }
    assert request.approvals == {"p": True, "q": False}
    assert request.parts == []


def test_an_answer_in_a_users_message_is_none() -> None:
    assert decode(body(user(text("hi"), approval("p", True)))).answers == {}


def test_a_reason_that_is_no_text_is_no_reason() -> None:
    assert decode(body(assistant(approval("p", True, reason=None)))).answers == {
        "p": Answer("p", True)
    }


@pytest.mark.parametrize(
    ("answer", "options", "chosen"),
    [
        # The boolean alone: once, or the first way to refuse.
        (Answer("p", True), ALL, "yes"),
        (Answer("p", False), ALL, "no"),
        (Answer("p", False), [YES, NEVER], "never"),
        # An option that agrees counts, in either place.
        (Answer("p", True, "always"), ALL, "always"),
        (Answer("p", True, None, "always"), ALL, "always"),
        (Answer("p", False, "never"), ALL, "never"),
        (Answer("p", True, "odd"), [*ALL, ODD], "odd"),
        # The body's wish comes before the reason.
        (Answer("p", True, "always", "yes"), ALL, "yes"),
        # Prose is no option.
        (Answer("p", True, "looks good"), ALL, "yes"),
        (Answer("p", False, "looks bad"), ALL, "no"),
        # What contradicts the boolean, or is unknown, is a no.
        (Answer("p", True, "no"), ALL, "no"),
        (Answer("p", True, "never"), ALL, "no"),
        (Answer("p", True, None, "no"), ALL, "no"),
        (Answer("p", True, None, "nonsense"), ALL, "no"),
        (Answer("p", False, "yes"), ALL, "no"),
        (Answer("p", False, None, "always"), ALL, "no"),
        (Answer("p", False, None, "odd"), [*ALL, ODD], "no"),
        # A yes that could mean several things means none of them.
        (Answer("p", True), [YES, PermissionOption("also", "Also", "allow_once"), NO], "no"),
        (Answer("p", True), [ALWAYS, NO], "no"),
        (Answer("p", True), [YES, ODD, NO], "no"),
        # Where there is no way to refuse, only a cancel is left.
        (Answer("p", False), [YES, ALWAYS], None),
        (Answer("p", True, None, "nonsense"), [YES], None),
        (Answer("p", True), [], None),
    ],
)
def test_what_an_answer_comes_to(
    answer: Answer, options: list[PermissionOption], chosen: str | None
) -> None:
    assert answer.choose(options) == chosen

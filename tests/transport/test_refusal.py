"""What is said of a refusal: its reason when it has one, and nothing that we told there."""

from __future__ import annotations

import json
from base64 import b64encode

import pytest

from dragoman.transport.reconnection import refusal
from dragoman.transport.target import RemoteAgent

HERE = RemoteAgent("ws://host/acp")


def said(message: object) -> bytes:
    return json.dumps({"error": {"code": "x", "message": message}}).encode()


def test_the_reason_stands_behind_the_status() -> None:
    error = refusal(HERE, 409, None, said("could not start 'x': no such file"))
    expected = "it replied with HTTP status 409: could not start 'x': no such file"
    assert error.reason == expected


@pytest.mark.parametrize("status", [401, 403, 404, 405, 421, 426])
def test_a_status_with_a_sentence_of_its_own_keeps_it(status: int) -> None:
    assert refusal(HERE, status, None, said("CANARY")).reason == refusal(HERE, status).reason


def test_a_redirect_is_not_explained() -> None:
    error = refusal(HERE, 302, "/x", said("CANARY"))
    assert "CANARY" not in error.reason


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>no</html>",
        b'{"error":"no"}',
        b'{"message":"no"}',
        b'[{"error":{"message":"no"}}]',
        said(None),
        said({"text": "no"}),
        said("no")[:-1],
        b'{"error":{"message":"\xff"}}',
        b'{"x":' + b"[" * 4000,
    ],
)
def test_a_body_of_another_shape_means_nothing(body: bytes) -> None:
    assert refusal(HERE, 409, None, body).reason == "it replied with HTTP status 409"


def test_nothing_in_a_reason_acts_or_hides_and_it_is_not_long() -> None:
    error = refusal(HERE, 409, None, said("\x1b[2Ja\nb\u202ec" + "d" * 1000))
    told = error.reason.removeprefix("it replied with HTTP status 409: ")
    assert told == "\ufffd[2Ja\ufffdb\ufffdc" + "d" * 190 + "…"
    assert len(told) == 200


@pytest.mark.parametrize(
    ("url", "headers"),
    [
        ("ws://host/acp#token=CANARY", {}),
        ("ws://host/acp#token=CAN%41RY", {}),
        ("ws://host/acp", {"X-Key": "CANARY"}),
        ("ws://host/acp", {"Authorization": "Basic CANARY=="}),
        ("ws://host/acp", {"Authorization": f"Basic {b64encode(b'me:CANARY').decode()}"}),
        ("ws://host/acp", {"X-Key": "path/CANARY"}),
        ("ws://host/acp", {"Cookie": "a=CANARY; b=other"}),
        ("ws://host/acp?a=b&key=CANARY", {}),
        ("ws://host/acp?key=CAN%41RY", {}),
        ("ws://me:CANARY@host/acp", {}),
    ],
)
def test_a_reason_that_repeats_what_we_told_is_not_shown(url: str, headers: dict[str, str]) -> None:
    error = refusal(RemoteAgent(url, headers), 409, None, said("the key 'CANARY' is unknown"))
    assert error.reason == "it replied with HTTP status 409"


def test_what_is_too_short_to_be_a_secret_hides_no_reason() -> None:
    agent = RemoteAgent("ws://host/acp?v=1", {"X-Debug": "on"})
    error = refusal(agent, 409, None, said("only 1 connection"))
    assert error.reason.endswith("only 1 connection")

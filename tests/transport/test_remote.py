"""The address of an agent: what is sent there, and what is shown of it."""

from __future__ import annotations

import pytest

from dragoman.transport.target import RemoteAgent, is_remote


def test_nothing_that_could_be_a_secret_is_shown() -> None:
    url = "wss://CANARY:CANARY@host.example:8443/acp?key=CANARY#token=CANARY"
    agent = RemoteAgent(url, {"X-Key": "CANARY"})
    assert (agent.place, agent.name) == ("wss://host.example:8443/acp", "host.example")
    assert repr(agent) == "<RemoteAgent wss://host.example:8443/acp, headers: X-Key>"


def test_a_token_behind_the_address_is_a_header_and_not_part_of_it() -> None:
    agent = RemoteAgent("HTTPS://host/acp?a=b#token=a%20b", {"X": "1"})
    assert agent.endpoint == "https://host/acp?a=b"
    assert agent.sent_headers == {"Authorization": "Bearer a b", "X": "1"}


@pytest.mark.parametrize("name", ["Authorization", "authorization"])
def test_a_header_that_was_given_counts_before_the_token(name: str) -> None:
    agent = RemoteAgent("ws://host#token=a", {name: "Basic b"})
    assert agent.sent_headers == {name: "Basic b"}


@pytest.mark.parametrize(
    "url", ["", "x", "ftp://host", "ws://", "ws:///acp", "ws://host:port", "ws://h/a b", "ws://[x"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="address"):
        RemoteAgent(url)


@pytest.mark.parametrize(
    ("url", "headers"),
    [
        ("ws://h#token=CANARY%0d%0aX:%20y", {}),
        ("ws://h", {"X": "CANARY\n"}),
        ("ws://h", {"X": "é"}),
    ],
)
def test_a_header_cannot_bring_another_along(url: str, headers: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="not allowed") as caught:
        RemoteAgent(url, headers)
    assert "CANARY" not in str(caught.value)


@pytest.mark.parametrize(
    ("word", "expected"),
    [("ws://x", True), ("HTTPS://x", True), ("ftp://x", False), ("./ws", False), ("ws:x", False)],
)
def test_an_address_is_told_from_a_command(word: str, expected: bool) -> None:
    assert is_remote(word) == expected

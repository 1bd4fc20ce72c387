"""Frames that are kept or shown: nothing in them that may be secret, and all else as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.client.redaction import BLANK, Direction, Requests, blanked
from dragoman.wire import messages

SECRET = "s3cr3t-canary"
FORM = {"jsonrpc": "2.0", "id": 7, "method": "elicitation/create", "params": {"sessionId": "s"}}


class Kept:
    """What is left of the frames of one connection."""

    def __init__(self) -> None:
        self._requests = Requests()

    def __call__(self, direction: Direction, frame: bytes) -> bytes:
        return blanked(frame, self._requests.asked(direction, messages.decode(frame)))

    def json(self, direction: Direction, message: object) -> Any:
        return json.loads(self(direction, json.dumps(message).encode()))


def request(method: str, params: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def left_of_server(server: dict[str, Any]) -> dict[str, Any]:
    message = request("session/new", {"cwd": "/", "mcpServers": [server]})
    return Kept().json("sent", message)["params"]["mcpServers"][0]


# ── variables, headers, servers ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "method", ["session/new", "session/load", "session/resume", "session/fork"]
)
def test_of_a_server_its_name_its_command_and_the_names_of_variables_stay(method: str) -> None:
    variables = [{"name": "KEY", "value": SECRET}]
    server = {"name": "a", "command": "x", "args": [SECRET, "-v"], "env": variables}
    found = Kept().json("sent", request(method, {"cwd": "/", "mcpServers": [server]}))
    assert found["params"]["mcpServers"] == [
        {
            "name": "a",
            "command": "x",
            "args": [BLANK, BLANK],
            "env": [{"name": "KEY", "value": BLANK}],
        }
    ]


@pytest.mark.parametrize(
    ("values", "left"),
    [
        ({"KEY": SECRET}, {"KEY": BLANK}),
        ({"name": SECRET, "value": SECRET}, {"name": BLANK, "value": BLANK}),
        ([{"name": "K", "value": SECRET, "x": [1]}], [{"name": "K", "value": BLANK, "x": [BLANK]}]),
        ([f"KEY={SECRET}"], [BLANK]),
        (SECRET, BLANK),
        ([], []),
        (None, None),
    ],
)
def test_variables_and_headers_are_blanked_however_they_are_written(values: Any, left: Any) -> None:
    assert left_of_server({"env": values}) == {"env": left}
    assert left_of_server({"headers": values}) == {"headers": left}
    told = {"sessionUpdate": "tool_call", "rawInput": {"headers": values, "url": "https://x?y"}}
    found = Kept().json("received", request("session/update", {"update": told}))
    assert found["params"]["update"]["rawInput"] == {"headers": left, "url": "https://x?y"}


@pytest.mark.parametrize(
    ("url", "left"),
    [
        ("https://x.example/mcp", "https://x.example/mcp"),
        (f"https://me:{SECRET}@x.example:8/mcp", f"https://{BLANK}@x.example:8/mcp"),
        (f"https://{SECRET}@x.example", f"https://{BLANK}@x.example"),
        (f"https://x.example/mcp?key={SECRET}&b", f"https://x.example/mcp?{BLANK}"),
        (f"https://x.example/#{SECRET}", f"https://x.example/#{BLANK}"),
        (f"me:{SECRET}@x.example/mcp", BLANK),
        (f"https://[{SECRET}", BLANK),
        ([SECRET], [BLANK]),
    ],
)
def test_of_an_address_of_a_server_only_where_it_leads_stays(url: Any, left: Any) -> None:
    assert left_of_server({"name": "a", "url": url}) == {"name": "a", "url": left}


def test_of_a_command_the_words_stay_and_the_values_of_variables_do_not() -> None:
    params = {"command": "x", "args": ["-v"], "env": [{"name": "KEY", "value": SECRET}]}
    found = Kept().json("received", request("terminal/create", params))
    assert found["params"] == params | {"env": [{"name": "KEY", "value": BLANK}]}


# ── forms ─────────────────────────────────────────────────────────────────────────────────────


def test_of_a_form_the_names_of_its_fields_stay_and_what_was_typed_does_not() -> None:
    kept = Kept()
    kept.json("received", FORM)
    typed = {"name": SECRET, "value": SECRET, "several": [SECRET], "many": 3, "gift": True}
    result = {"action": "accept", "content": typed}
    found = kept.json("sent", {"jsonrpc": "2.0", "id": 7, "result": result})
    blank = {"name": BLANK, "value": BLANK, "several": [BLANK], "many": BLANK, "gift": BLANK}
    assert found["result"] == {"action": "accept", "content": blank}


@pytest.mark.parametrize("key", [7, "7", 7.5, None])
def test_an_answer_is_known_by_the_id_of_its_form_whatever_that_is(key: Any) -> None:
    kept = Kept()
    kept.json("received", FORM | {"id": key, "params": {"sessionId": 5}})
    # The same id the other way is another request.
    kept.json("sent", request("session/prompt", {}) | {"id": key})
    result = {"action": "accept", "content": {"k": SECRET}}
    found = kept.json("sent", {"jsonrpc": "2.0", "id": key, "result": result})
    assert found["result"]["content"] == {"k": BLANK}


ANSWERED: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 7,
    "result": {"action": "accept", "content": {"k": SECRET}},
}
OTHER: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 7,
    "method": "session/request_permission",
    "params": {},
}


@pytest.mark.parametrize("asked", [[FORM, OTHER], [OTHER, FORM], [OTHER, FORM, OTHER]])
def test_a_form_whose_id_is_used_again_while_it_is_open_stays_a_form(
    asked: list[dict[str, Any]],
) -> None:
    kept = Kept()
    for each in asked:
        kept.json("received", each)
    for _ in asked:
        found = kept.json("sent", ANSWERED)
        assert found["result"]["content"] == {"k": BLANK}
        kept.json("received", OTHER)


def test_once_all_are_answered_an_id_stands_for_what_comes_next() -> None:
    kept = Kept()
    kept.json("received", FORM)
    kept.json("received", OTHER)
    kept.json("sent", ANSWERED)
    kept.json("sent", ANSWERED)
    kept.json("received", request("fs/read_text_file", {"path": "/x"}) | {"id": 7})
    answer = {"jsonrpc": "2.0", "id": 7, "result": {"content": "words"}}
    assert kept.json("sent", answer) == answer


def test_an_answer_to_a_form_that_was_forgotten_is_blanked_too() -> None:
    kept = Kept()
    kept.json("received", FORM)
    for number in range(5000):
        kept("received", b'{"jsonrpc":"2.0","id":"%d","method":"x"}' % number)
    result = {"action": "accept", "content": {"k": SECRET}}
    found = kept.json("sent", {"jsonrpc": "2.0", "id": 7, "result": result})
    assert found["result"]["content"] == {"k": BLANK}


def test_a_form_itself_stays_as_it_is_whatever_its_fields_are_called() -> None:
    fields = {"env": {"type": "string", "enum": ["test", "live"]}, "headers": {"type": "string"}}
    form = FORM | {"params": {"requestedSchema": {"type": "object", "properties": fields}}}
    frame = json.dumps(form).encode()
    assert Kept()("received", frame) == frame


# ── all else ──────────────────────────────────────────────────────────────────────────────────


def test_what_a_file_holds_stays() -> None:
    kept = Kept()
    kept.json("received", request("fs/read_text_file", {"path": "/x"}))
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"content": 'env "env" headers'}}
    assert kept.json("sent", answer) == answer


@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc": "2.0",  "method":"x","params":{"n":1.50}}',
        b'{"method":"terminal/create","params":{"env": [ ],"n":1.50}}',
        b"a banner",
        b"\xff\xfe",
        b"",
    ],
)
def test_a_frame_without_secrets_stays_byte_for_byte(frame: bytes) -> None:
    assert Kept()("received", frame) == frame


@pytest.mark.parametrize(
    "frame",
    [
        b'{"env": {"KEY": "s3cr3t-canary"',
        b'{"env": {"KEY": "s3cr3t-canary\xff"}}',
        b'{"env": {"KEY": "s3cr3t-canary"}, "x": %b}' % (b"[" * 5000 + b"]" * 5000),
    ],
)
def test_of_a_frame_that_nobody_can_read_nothing_stays(frame: bytes) -> None:
    assert Kept()("received", frame) == b""


def test_a_frame_with_half_a_letter_is_blanked_and_stays() -> None:
    left = Kept()("received", b'{"method":"x","params":{"env":{"KEY":"s"},"t":"\\ud83d"}}')
    assert json.loads(left)["params"] == {"env": {"KEY": BLANK}, "t": "\ufffd"}

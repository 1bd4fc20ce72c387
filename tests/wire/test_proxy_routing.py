"""Who is sent what in a chain, message by message; any order: `test_proxy_routing_storms`."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from dragoman.wire.messages import MAX_DEPTH, Malformed, decode
from dragoman.wire.proxy_routing import CLIENT, DEEPEST, MOST_OPEN, Chain, NotAProxy

PROXY, AGENT = 1, 2
FIRST = 1_000_000_000
MEBIBYTE = 1 << 20
IDS = ["0", "1.0", '"a"', "null", "true", '{"a":[1]}', "12345678901234567890123"]


class Talk:
    """A chain, and what each place says as JSON."""

    def __init__(self, last: int = AGENT) -> None:
        self.chain = Chain(last)

    def say(self, place: int, message: dict[str, Any] | bytes) -> list[tuple[int, dict[str, Any]]]:
        frame = message if isinstance(message, bytes) else json.dumps(message).encode()
        sent = self.chain.heard(place, decode(frame))
        assert all(b"\n" not in frame for _, frame in sent)
        return [(to, _bare(json.loads(frame))) for to, frame in sent]

    def one(self, place: int, message: dict[str, Any] | bytes) -> tuple[int, dict[str, Any]]:
        [sent] = self.say(place, message)
        return sent


def _bare(message: dict[str, Any]) -> dict[str, Any]:
    assert message.pop("jsonrpc") == "2.0"
    return message


def request(key: Any, method: str, params: Any = None) -> dict[str, Any]:
    return {"id": key, **told(method, params)}


def told(method: str, params: Any = None) -> dict[str, Any]:
    return {"method": method} if params is None else {"method": method, "params": params}


def wrapped(method: str, params: Any = None, name: str = "proxy/successor") -> dict[str, Any]:
    return told(name, told(method, params))


# ── ways ──────────────────────────────────────────────────────────────────────────────────────


def test_a_request_goes_through_the_proxy_and_its_answer_comes_back() -> None:
    talk = Talk()
    params = {"prompt": "hi", "_meta": {"k": [1]}, "more": None}
    assert talk.one(CLIENT, request("c", "work", params)) == (PROXY, request(FIRST, "work", params))
    assert talk.one(PROXY, {"id": "p"} | wrapped("work", params)) == (
        AGENT,
        request(FIRST, "work", params),
    )
    assert talk.one(AGENT, {"id": FIRST, "result": {"a": 1}}) == (
        PROXY,
        {"id": "p", "result": {"a": 1}},
    )
    assert talk.one(PROXY, {"id": FIRST, "result": {"a": 2}}) == (
        CLIENT,
        {"id": "c", "result": {"a": 2}},
    )
    assert talk.chain.open == 0


def test_a_request_of_the_agent_goes_to_the_proxy_wrapped_and_to_the_client_bare() -> None:
    talk = Talk()
    asked = request(7, "fs/read", {"path": "x"})
    assert talk.one(AGENT, asked) == (PROXY, {"id": FIRST} | wrapped("fs/read", {"path": "x"}))
    assert talk.one(PROXY, asked) == (CLIENT, request(FIRST, "fs/read", {"path": "x"}))
    assert talk.one(CLIENT, {"id": FIRST, "result": 1}) == (PROXY, {"id": 7, "result": 1})
    assert talk.one(PROXY, {"id": FIRST, "result": 2}) == (AGENT, {"id": 7, "result": 2})


def test_notifications_go_the_same_ways() -> None:
    talk = Talk(last=3)
    assert talk.one(CLIENT, told("stop", {"s": 1})) == (1, told("stop", {"s": 1}))
    assert talk.one(1, wrapped("stop", {"s": 1})) == (2, told("stop", {"s": 1}))
    assert talk.one(2, wrapped("stop", {"s": 1})) == (3, told("stop", {"s": 1}))
    assert talk.one(3, told("update", {"u": 1})) == (2, wrapped("update", {"u": 1}))
    assert talk.one(2, told("update", {"u": 1})) == (1, wrapped("update", {"u": 1}))
    assert talk.one(1, told("update", {"u": 1})) == (CLIENT, told("update", {"u": 1}))


def test_params_that_are_not_there_stay_away() -> None:
    talk = Talk()
    assert talk.one(CLIENT, told("x")) == (PROXY, told("x"))
    assert talk.one(PROXY, wrapped("x")) == (AGENT, told("x"))
    assert talk.one(AGENT, told("x")) == (PROXY, wrapped("x"))


def test_params_pass_byte_for_byte() -> None:
    odd = b'{"a" : 1.0e2, "b":"\\u0041", "a":2}'
    chain = Chain(AGENT)
    [(_, down)] = chain.heard(CLIENT, decode(b'{"method":"x","params":%b}' % odd))
    [(_, on)] = chain.heard(
        PROXY, decode(b'{"method":"proxy/successor","params":{"params":%b,"method":"x"}}' % odd)
    )
    [(_, up)] = chain.heard(AGENT, decode(b'{"method":"x","params":%b}' % odd))
    assert odd in down
    assert odd in on
    assert odd in up


@pytest.mark.parametrize("key", IDS)
@pytest.mark.parametrize("place", [CLIENT, PROXY, AGENT])
def test_an_answer_has_the_exact_id_of_its_request(place: int, key: str) -> None:
    chain = Chain(AGENT)
    frame = b'{"jsonrpc":"2.0","id":%b,"method":"x"}' % key.encode()
    [(to, _)] = chain.heard(place, decode(frame))
    [(back, answer)] = chain.heard(to, decode(b'{"id":%d,"result":[]}' % FIRST))
    assert back == place
    assert answer == b'{"jsonrpc":"2.0","id":%b,"result":[]}' % key.encode()


def test_an_error_keeps_its_code_words_and_data() -> None:
    talk = Talk()
    talk.say(CLIENT, request(1, "x"))
    error = {"code": -32000, "message": "sign in", "data": {"methods": ["a"]}}
    assert talk.one(PROXY, {"id": FIRST, "error": error}) == (CLIENT, {"id": 1, "error": error})


def test_answers_that_nobody_waits_for_are_dropped() -> None:
    talk = Talk()
    talk.say(CLIENT, request(1, "x"))
    assert talk.say(PROXY, {"id": 1, "result": {}}) == []
    assert talk.say(PROXY, {"id": "x", "error": {"code": 1, "message": ""}}) == []
    assert len(talk.say(PROXY, {"id": float(FIRST), "result": {}})) == 1
    assert talk.say(PROXY, {"id": FIRST, "result": {}}) == []


# ── the handshake ─────────────────────────────────────────────────────────────────────────────


def test_all_but_the_last_are_told_that_they_are_proxies() -> None:
    talk = Talk(last=3)
    assert talk.one(CLIENT, request(0, "initialize", {}))[1]["method"] == "proxy/initialize"
    assert talk.one(1, {"id": 0} | wrapped("initialize", {}))[1]["method"] == "proxy/initialize"
    # One that passes on the very method it got means the same.
    last = talk.one(2, {"id": 0} | wrapped("proxy/initialize", {}))
    assert last == (3, request(FIRST, "initialize", {}))


def test_it_is_known_who_has_not_answered_the_handshake() -> None:
    talk = Talk()
    assert talk.chain.ungreeted is None
    talk.say(CLIENT, request(0, "initialize", {}))
    talk.say(CLIENT, request(1, "x"))
    assert talk.chain.ungreeted == PROXY
    talk.say(PROXY, {"id": 0} | wrapped("initialize", {}))
    assert talk.chain.ungreeted == AGENT
    talk.say(AGENT, {"id": FIRST, "result": {}})
    assert talk.chain.ungreeted == PROXY
    talk.say(PROXY, {"id": FIRST, "result": {}})
    assert talk.chain.ungreeted is None


def test_a_proxy_of_the_older_names_is_spoken_to_in_them() -> None:
    talk = Talk()
    hello = {"protocolVersion": 1}
    talk.say(CLIENT, request("hi", "initialize", hello))
    unknown = {"code": -32601, "message": "no"}
    again = talk.one(PROXY, {"id": FIRST, "error": unknown})
    assert again == (PROXY, request(FIRST + 1, "_proxy/initialize", hello))
    forwarded = talk.one(PROXY, {"id": 5} | wrapped("initialize", hello, "_proxy/successor"))
    assert forwarded == (AGENT, request(FIRST, "initialize", hello))
    assert talk.one(AGENT, told("update")) == (PROXY, wrapped("update", name="_proxy/successor"))
    assert talk.one(PROXY, {"id": FIRST + 1, "result": hello}) == (
        CLIENT,
        {"id": "hi", "result": hello},
    )


UNKNOWN = {"code": -32601, "message": "no"}
NO_WELCOMES: list[Any] = [{"ok": True}, "protocolVersion", {"a": {"protocolVersion": 1}}, None]


def test_one_that_knows_neither_name_is_no_proxy() -> None:
    talk = Talk()
    talk.say(CLIENT, request("hi", "initialize", {}))
    talk.say(PROXY, {"id": FIRST, "error": UNKNOWN})
    with pytest.raises(NotAProxy) as caught:
        talk.say(PROXY, {"id": FIRST + 1, "error": UNKNOWN})
    assert (caught.value.place, caught.value.reason) == (PROXY, "does not know proxy/initialize")


@pytest.mark.parametrize("result", NO_WELCOMES)
@pytest.mark.parametrize("name", ["proxy/initialize", "_proxy/initialize"])
def test_one_that_answers_its_greeting_with_something_else_is_no_proxy(
    name: str, result: Any
) -> None:
    talk = Talk(last=3)
    talk.say(CLIENT, request("hi", "initialize", {}))
    _, greeted = talk.one(1, {"id": 0} | wrapped("initialize", {}))
    if greeted["method"] != name:
        _, greeted = talk.one(2, {"id": FIRST, "error": UNKNOWN})
    with pytest.raises(NotAProxy) as caught:
        talk.say(2, {"id": greeted["id"], "result": result})
    assert caught.value.place == 2
    assert caught.value.reason == f"answered {name} without a protocolVersion"


@pytest.mark.parametrize("result", NO_WELCOMES)
def test_a_proxy_is_not_to_blame_for_what_its_agent_answers(result: Any) -> None:
    talk = Talk()
    talk.say(CLIENT, request("hi", "initialize", {}))
    talk.say(PROXY, {"id": 0} | wrapped("initialize", {}))
    assert talk.one(AGENT, {"id": FIRST, "result": result}) == (PROXY, {"id": 0, "result": result})
    told = talk.one(PROXY, {"id": FIRST, "result": result})
    assert told == (CLIENT, {"id": "hi", "result": result})


def test_only_the_first_greeting_of_a_place_is_repeated_in_other_words() -> None:
    """The params of each would have to be kept."""
    talk = Talk()
    for number in range(3):
        talk.say(CLIENT, request(number, "initialize", {"n": number}))
    refused = {"id": FIRST + 1, "error": UNKNOWN}
    assert talk.one(PROXY, refused) == (CLIENT, {"id": 1, "error": UNKNOWN})
    again = request(FIRST + 3, "_proxy/initialize", {"n": 0})
    assert talk.one(PROXY, {"id": FIRST, "error": UNKNOWN}) == (PROXY, again)
    refused = {"id": FIRST + 2, "error": UNKNOWN}
    assert talk.one(PROXY, refused) == (CLIENT, {"id": 2, "error": UNKNOWN})


def test_a_proxy_may_refuse_for_another_reason() -> None:
    talk = Talk()
    talk.say(CLIENT, request("hi", "initialize", {}))
    error = {"code": -32000, "message": "who are you?"}
    assert talk.one(PROXY, {"id": FIRST, "error": error}) == (CLIENT, {"id": "hi", "error": error})


def test_one_that_echoes_is_no_proxy() -> None:
    """What it sends back is a request to the client, which does not know it either."""
    with pytest.raises(NotAProxy) as caught:
        _echo(Talk())
    assert caught.value.place == PROXY


def _echo(talk: Talk) -> None:
    to, message = talk.one(CLIENT, request("hi", "initialize", {}))
    for _ in range(10):
        unknown = {"id": message.get("id"), "error": {"code": -32601, "message": "no"}}
        to, message = talk.one(to, message if to == PROXY else unknown)


# ── what cannot be ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("place", "message", "code"),
    [
        (PROXY, told("proxy/successor", {"params": {}}), -32602),
        (PROXY, told("proxy/successor", {"method": 1}), -32602),
        (PROXY, told("proxy/successor", []), -32602),
        (PROXY, told("proxy/successor"), -32602),
        (PROXY, wrapped("proxy/successor", told("x")), -32602),
        (PROXY, wrapped("_proxy/successor", told("x")), -32602),
        (AGENT, wrapped("x"), -32601),
        (CLIENT, wrapped("x"), -32601),
        (CLIENT, told("proxy/initialize", {}), -32601),
    ],
)
def test_what_makes_no_sense_is_answered_and_not_passed_on(
    place: int, message: dict[str, Any], code: int
) -> None:
    talk = Talk()
    to, answer = talk.one(place, {"id": "x"} | message)
    assert (to, answer["id"], answer["error"]["code"]) == (place, "x", code)
    assert talk.say(place, message) == []
    assert talk.chain.open == 0


def test_a_broken_request_is_answered_and_other_noise_is_not() -> None:
    talk = Talk()
    to, answer = talk.one(AGENT, b'{"jsonrpc":"2.0","id":3,"method":7}')
    assert (to, answer["id"], answer["error"]["code"]) == (AGENT, 3, -32600)
    assert talk.say(AGENT, b"Listening on port 7") == []


def test_too_many_open_requests_of_one_are_refused_until_some_are_answered() -> None:
    talk = Talk()
    for number in range(MOST_OPEN):
        talk.say(AGENT, request(number, "x"))
    to, answer = talk.one(AGENT, request("more", "x"))
    assert (to, answer["id"], answer["error"]["code"]) == (AGENT, "more", -32603)
    assert len(talk.say(CLIENT, request(0, "x"))) == 1, "the others are not held up by it"
    talk.say(PROXY, {"id": FIRST, "result": {}})
    assert talk.one(AGENT, request("more", "x"))[0] == PROXY


@pytest.mark.parametrize(
    "message",
    [
        b'{"id":1,"method":"proxy/successor","params":{"method":"initialize","params":"%b"}}',
        b'{"id":1,"method":"proxy/successor","params":{"method":"%b"}}',
        b'{"id":"%b","method":"x"}',
    ],
    ids=["greetings", "methods", "ids"],
)
def test_what_is_kept_of_open_requests_is_little(message: bytes) -> None:
    chain = Chain(3)
    tracemalloc.start()
    for _ in range(50):
        chain.heard(PROXY, decode(message % (b"x" * MEBIBYTE)))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 4 * MEBIBYTE


def test_what_nests_as_deep_as_it_may_is_passed_on_by_a_proxy() -> None:
    deep = b"[" * (MAX_DEPTH - 1) + b"]" * (MAX_DEPTH - 1)
    chain = Chain(AGENT)
    [(_, wrapped)] = chain.heard(AGENT, decode(b'{"method":"x","params":%b}' % deep))
    assert isinstance(decode(wrapped), Malformed)
    [(to, sent)] = chain.heard(PROXY, decode(wrapped, DEEPEST))
    assert (to, deep in sent) == (AGENT, True)


def test_it_is_known_who_owes_an_answer() -> None:
    talk = Talk()
    talk.say(CLIENT, request(0, "x"))
    talk.say(AGENT, request(0, "of no account"))
    assert [talk.chain.owes(place) for place in (PROXY, AGENT)] == [True, False]
    talk.say(PROXY, {"id": FIRST, "result": {}})
    assert not talk.chain.owes(PROXY)


# ── giving up ─────────────────────────────────────────────────────────────────────────────────


def cancel(key: Any) -> dict[str, Any]:
    return told("$/cancel_request", {"requestId": key})


def test_a_cancellation_names_the_id_that_the_other_side_knows() -> None:
    talk = Talk()
    talk.say(CLIENT, request("a", "x"))
    talk.say(CLIENT, request("b", "x"))
    talk.say(PROXY, {"id": "mine"} | wrapped("x"))
    assert talk.one(CLIENT, cancel("b")) == (PROXY, cancel(FIRST + 1))
    assert talk.one(PROXY, cancel("mine")) == (AGENT, cancel(FIRST))
    assert talk.say(PROXY, cancel("mine")) == [], "once is enough"
    assert talk.one(AGENT, {"id": FIRST, "result": {}})[1]["id"] == "mine"


def test_a_cancellation_that_is_wrapped_is_understood() -> None:
    talk = Talk()
    talk.say(PROXY, {"id": "mine"} | wrapped("x"))
    assert talk.one(PROXY, wrapped("$/cancel_request", {"requestId": "mine"})) == (
        AGENT,
        cancel(FIRST),
    )


def test_a_cancellation_of_the_agent_reaches_the_proxy_and_the_client() -> None:
    talk = Talk()
    talk.say(AGENT, request(0, "ask"))
    talk.say(PROXY, request("up", "ask"))
    assert talk.one(AGENT, cancel(0)) == (PROXY, cancel(FIRST))
    assert talk.one(PROXY, cancel("up")) == (CLIENT, cancel(FIRST))


@pytest.mark.parametrize(
    "message",
    [
        cancel(0),
        cancel(FIRST + 9),
        told("$/cancel_request", {"id": 0}),
        told("$/cancel_request"),
        wrapped("$/cancel_request", {"requestId": FIRST}),
    ],
)
def test_a_cancellation_of_something_unknown_does_no_harm(message: dict[str, Any]) -> None:
    """The last is one that a proxy passes on word for word: the id is ours, not the proxy's."""
    talk = Talk()
    talk.say(CLIENT, request("a", "x"))
    talk.say(PROXY, {"id": "mine"} | wrapped("x"))
    assert talk.say(PROXY, message) == []
    assert talk.one(AGENT, {"id": FIRST, "result": {}})[1]["id"] == "mine"

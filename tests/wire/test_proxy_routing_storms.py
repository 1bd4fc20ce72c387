"""Any interleaving of requests, answers, cancellations and notes, over one to three proxies.

Each place is played by a small honest peer with odd ids of its own; the chain is between them.
"""

from __future__ import annotations

import json
import random
from collections import deque
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from dragoman.wire.messages import decode
from dragoman.wire.proxy_routing import CLIENT, Chain

Json = dict[str, Any]


class Place:
    """One that speaks to the chain. It counts its requests in its own way, and keeps what it is
    asked until it is told to answer."""

    def __init__(self, storm: Storm, place: int) -> None:
        self.storm = storm
        self.place = place
        self.inbox: deque[bytes] = deque()
        self.waiting: dict[str, Any] = {}
        self.asked: list[Json] = []
        self._made = 0

    def ask(self, method: str, params: Json, waiter: Any) -> Any:
        key = [self._made, f"{self._made}", [self._made], {"n": self._made}][self._made % 4]
        self._made += 1
        self.waiting[json.dumps(key)] = waiter
        self.say({"id": key, "method": method, "params": params})
        return key

    def say(self, message: Json) -> None:
        self.storm.heard(self.place, json.dumps(message).encode())

    def answer(self, request: Json, cancelled: bool = False) -> None:
        outcome = {"error": {"code": -32800, "message": "cancelled"}} if cancelled else None
        self.say({"id": request["id"]} | (outcome or {"result": {"echo": request["params"]}}))

    def step(self) -> None:
        message = json.loads(self.inbox.popleft())
        if "method" not in message:
            waiter = self.waiting.pop(json.dumps(message["id"]))
            self.answered(waiter, message)
        elif message["method"] == "$/cancel_request":
            self.cancelled(message["params"]["requestId"])
        elif "id" in message:
            self.requested(message)
        else:
            self.notified(message)

    def answered(self, waiter: Any, message: Json) -> None:
        raise NotImplementedError

    def requested(self, message: Json) -> None:
        raise NotImplementedError

    def cancelled(self, key: Any) -> None:
        raise NotImplementedError

    def notified(self, message: Json) -> None:
        raise NotImplementedError


class End(Place):
    """The client or the agent: asks, tells, answers in any order."""

    def __init__(self, storm: Storm, place: int) -> None:
        super().__init__(storm, place)
        self.outcomes: dict[int, Json] = {}
        self.told: list[int] = []
        self.open: dict[int, Any] = {}
        self.given_up: set[int] = set()

    def begin(self, number: int) -> None:
        self.open[number] = self.ask("work", {"number": number}, number)

    def give_up(self, number: int) -> None:
        self.given_up.add(number)
        self.say({"method": "$/cancel_request", "params": {"requestId": self.open[number]}})

    def answered(self, waiter: int, message: Json) -> None:
        assert waiter not in self.outcomes, "answered twice"
        self.outcomes[waiter] = message
        del self.open[waiter]

    def requested(self, message: Json) -> None:
        assert message["method"] == "work"
        self.asked.append(message)

    def cancelled(self, key: Any) -> None:
        for request in [asked for asked in self.asked if asked["id"] == key]:
            other = self.storm.ends[1 - self.storm.ends.index(self)]
            assert request["params"]["number"] in other.given_up, "the wrong one was cancelled"
            self.asked.remove(request)
            self.answer(request, cancelled=True)

    def notified(self, message: Json) -> None:
        self.told.append(message["params"]["number"])


class Proxy(Place):
    """Passes everything on, under ids of its own."""

    def __init__(self, storm: Storm, place: int) -> None:
        super().__init__(storm, place)
        self.passed: dict[str, Any] = {}

    def answered(self, waiter: Any, message: Json) -> None:
        self.passed.pop(json.dumps(waiter))
        self.say({**message, "id": waiter})

    def requested(self, message: Json) -> None:
        method, params = self._onward(message)
        self.passed[json.dumps(message["id"])] = self.ask(method, params, message["id"])

    def notified(self, message: Json) -> None:
        method, params = self._onward(message)
        self.say({"method": method, "params": params})

    def cancelled(self, key: Any) -> None:
        if json.dumps(key) in self.passed:
            ours = self.passed[json.dumps(key)]
            self.say({"method": "$/cancel_request", "params": {"requestId": ours}})

    def _onward(self, message: Json) -> tuple[str, Json]:
        if message["method"] == "proxy/successor":
            return message["params"]["method"], message["params"]["params"]
        return "proxy/successor", {"method": message["method"], "params": message["params"]}


class Storm:
    def __init__(self, proxies: int, chance: random.Random) -> None:
        self.chance = chance
        self.chain = Chain(proxies + 1)
        between = [Proxy(self, place) for place in range(1, proxies + 1)]
        self.ends = [End(self, CLIENT), End(self, proxies + 1)]
        self.places: list[Place] = [self.ends[0], *between, self.ends[1]]
        self.count = 0

    def heard(self, place: int, frame: bytes) -> None:
        for to, sent in self.chain.heard(place, decode(frame)):
            self.places[to].inbox.append(sent)

    def rage(self) -> None:
        end = self.chance.choice(self.ends)
        match self.chance.randrange(6):
            case 0:
                self.count += 1
                end.begin(self.count)
            case 1:
                self.count += 1
                end.say({"method": "note", "params": {"number": self.count}})
            case 2 if end.open.keys() - end.given_up:
                end.give_up(self.chance.choice(sorted(end.open.keys() - end.given_up)))
            case 3 if end.asked:
                end.answer(end.asked.pop(self.chance.randrange(len(end.asked))))
            case _:
                self.deliver_one()

    def deliver_one(self) -> bool:
        busy = [place for place in self.places if place.inbox]
        if busy:
            self.chance.choice(busy).step()
        return bool(busy)

    def calm(self) -> None:
        while self.deliver_one() or any(end.asked for end in self.ends):
            for end in self.ends:
                while end.asked:
                    end.answer(end.asked.pop())


@examples(150)
@given(st.integers(1, 3), st.integers(0, 2**32))
def test_each_request_is_answered_once_with_its_own_id_and_payload_in_order(
    proxies: int, seed: int
) -> None:
    storm = Storm(proxies, random.Random(seed))
    for _ in range(120):
        storm.rage()
    storm.calm()
    assert storm.chain.open == 0
    assert not any(place.waiting for place in storm.places)
    for end in storm.ends:
        assert not end.open
        assert end.told == sorted(end.told)
        for number, outcome in end.outcomes.items():
            if "error" in outcome:
                assert number in end.given_up
            else:
                assert outcome["result"] == {"echo": {"number": number}}
    notes = sum(len(end.told) for end in storm.ends)
    assert notes + sum(len(end.outcomes) for end in storm.ends) == storm.count

from __future__ import annotations

import pytest
from support.cost import cpu_seconds

from dragoman.wire.in_flight import Answers
from dragoman.wire.messages import NULL, Request


def request(key: bytes) -> Request:
    return Request(key, "work", NULL)


def answering(**keys: bytes) -> Answers[str]:
    answers: Answers[str] = Answers()
    for worker, key in keys.items():
        answers.open(worker, request(key))
    return answers


def test_a_worker_that_is_done_gives_back_its_request_and_is_forgotten() -> None:
    answers = answering(one=b"1", two=b"2")
    assert answers.close("one") == request(b"1")
    assert (list(answers), len(answers), answers.cancel(b"1")) == (["two"], 1, [])


@pytest.mark.parametrize(
    ("key", "spelt"),
    [
        (b'"a"', rb'"\u0061"'),
        (b"1.0", b"10e-1"),
        (b'{"a":1,"b":2}', b'{"b": 2, "a": 1}'),
        (b"9" * 5000, b"9" * 5000),
        (rb'"\ud83d"', rb'"\ud83d"'),
        (b"1e999", b"1e999"),
    ],
)
def test_an_id_spelt_otherwise_is_the_same(key: bytes, spelt: bytes) -> None:
    assert answering(it=key).cancel(spelt) == ["it"]
    assert answering(it=spelt).cancel(key) == ["it"]


@pytest.mark.parametrize("other", [b"1.0", b'"1"', b"true", b"null", b"[1]", b"11", b"1e999"])
def test_what_is_not_the_id_is_not_the_same(other: bytes) -> None:
    assert answering(it=b"1").cancel(other) == []
    assert answering(it=other).cancel(b"1") == []


def test_all_requests_that_share_an_id_are_found_in_the_order_they_came() -> None:
    answers = answering(one=b"1", other=b"2", two=b"1", three=b"1")
    answers.close("two")
    assert answers.cancel(b"1") == ["one", "three"]


def test_a_request_is_cancelled_once() -> None:
    answers = answering(one=b"1")
    assert (answers.cancel(b"1"), answers.cancel(b"1")) == (["one"], [])


def test_an_id_used_again_after_it_was_cancelled_is_another_request() -> None:
    answers = answering(old=b"1")
    answers.cancel(b"1")
    answers.open("new", request(b"1"))
    answers.close("old")
    assert answers.cancel(b"1") == ["new"]
    answers.close("new")
    assert len(answers) == 0


def test_nothing_is_kept_of_what_was_answered() -> None:
    answers = answering(one=b"1", two=b"1")
    answers.cancel(b"1")
    for worker in ("one", "two"):
        answers.close(worker)
    answers.open("three", request(b"1"))
    answers.close("three")
    assert vars(answers) == {"_requests": {}, "_workers": {}}


def test_finding_a_request_does_not_take_longer_when_thousands_are_open() -> None:
    few, many = (answering(**{f"w{n}": b'"%d"' % n for n in range(size)}) for size in (1, 5000))

    def flooded(answers: Answers[str]) -> float:
        return cpu_seconds(lambda: [answers.cancel(b'"unknown"') for _ in range(1000)])

    assert flooded(many) < 20 * flooded(few)

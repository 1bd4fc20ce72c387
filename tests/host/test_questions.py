from __future__ import annotations

import asyncio

import pytest
from support.peers import settled, soon

from dragoman.host.permissions.questions import Questions


def questions() -> Questions[str, str]:
    return Questions("q-", withdrawn="withdrawn", failed=lambda error: "failed")


async def slowly(answer: str | Exception) -> str:
    await settled()
    if isinstance(answer, Exception):
        raise answer
    return answer


async def test_the_first_answer_counts_and_is_passed_on_at_once() -> None:
    asked, answers = questions(), list[str]()

    def passed_on(answer: str) -> str:
        answers.append(answer)
        return answer.upper()

    asking = asyncio.create_task(asked.ask("q-1", passed_on, None))
    await settled()
    assert "q-1" in asked
    assert asked.settle("q-1", "first")
    assert answers == ["first"]
    assert not asked.settle("q-1", "second")
    assert await soon(asking) == "FIRST"
    assert "q-1" not in asked
    assert answers == ["first"]


@pytest.mark.parametrize(
    ("answer", "outcome"), [("yes", "YES"), (RuntimeError("no screen"), "FAILED")]
)
async def test_someone_who_can_be_asked_answers_or_fails(
    answer: str | Exception, outcome: str
) -> None:
    assert await soon(questions().ask("q-1", str.upper, slowly(answer))) == outcome


async def test_giving_up_withdraws_the_question() -> None:
    asked, answers = questions(), list[str]()

    def passed_on(answer: str) -> str:
        answers.append(answer)
        return answer

    asking = asyncio.create_task(asked.ask("q-1", passed_on, None))
    await settled()
    asking.cancel()
    await asyncio.wait([asking])
    assert answers == ["withdrawn"]
    assert not asked.settle("q-1", "late")


async def test_what_fails_after_an_answer_reaches_the_one_who_asked() -> None:
    """A question that is gone and never answered would wait for ever."""
    asked = questions()

    def broken(answer: str) -> str:
        raise OSError(f"cannot keep {answer}")

    asking = asyncio.create_task(asked.ask("q-1", broken, None))
    await settled()
    assert asked.settle("q-1", "yes")
    with pytest.raises(OSError, match="cannot keep yes"):
        await soon(asking)
    with pytest.raises(OSError, match="cannot keep no"):
        await soon(asked.ask("q-2", broken, slowly("no")))


def test_an_id_is_never_used_again() -> None:
    asked = questions()
    assert len({asked.new_id() for _ in range(1_000)}) == 1_000

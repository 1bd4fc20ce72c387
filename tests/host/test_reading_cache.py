"""What is kept of requests is bounded, however long they are."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.cost import Memory, is_done_within

from dragoman.host.commands.danger import danger
from dragoman.host.commands.reading_cache import LONG, cached
from dragoman.host.permissions.grants import Grants
from dragoman.host.permissions.offers import Offers
from dragoman.host.permissions.wording import OUR_OPTIONS
from dragoman.host.rules.access import Access, file_access, terminal_access
from dragoman.host.rules.policy import Policy
from dragoman.host.rules.rule import Rule
from dragoman.host.workspace.roots import Workspace

WS = Workspace("s", "/ws")
POLICY = Policy(
    rules=[
        Rule(effect="deny", operation="execute", argv_prefix=("git", "push")),
        Rule(effect="deny", operation="read", path="~/keys/**"),
    ]
)


def words(first: int, count: int = 8_000) -> tuple[str, ...]:
    return tuple(f"{first:x}.{number:x}" for number in range(count))


def argv(number: int) -> Access:
    first, *others = words(number)
    return terminal_access(first, others, agent="a", cwd="/ws", roots=("/ws",))


def deep_path(number: int) -> Access:
    return file_access("read", f"/ws{'/fourteen-chars' * 240}/{number}", agent="a", roots=("/ws",))


@pytest.mark.parametrize("request_for", [argv, deep_path])
def test_requests_that_are_over_leave_little_behind(request_for: Callable[[int], Access]) -> None:
    def ask(number: int) -> None:
        access = request_for(number)
        Offers(access, POLICY.decide(access, WS), POLICY, WS).offer(OUR_OPTIONS)

    ask(0)
    with Memory() as memory:
        for number in range(1, 16):
            ask(number)
    assert memory.left < 4 << 20


def test_commands_that_were_allowed_take_little_room() -> None:
    grants = Grants()
    with Memory() as memory:
        for number in range(32):
            grants.add(argv(number), [])
    assert memory.left < 12 << 20
    assert not grants.take_command(argv(0))
    assert grants.take_command(argv(31))


def test_of_long_commands_only_the_last_is_kept() -> None:
    read: list[tuple[str, ...]] = []
    look = cached(8)(read.append)
    short, long, other = ("a",), ("a",) * LONG, ("b" * LONG,)
    for command in (short, long, short, long, other, other, long, short):
        look(command)
    assert read == [short, long, other, long]
    look.cache_clear()
    look(short)
    assert read[-1] == short


def test_many_wrappers_around_many_words_are_looked_at_in_little_time() -> None:
    """Each wrapper runs all words that follow it."""

    def work() -> None:
        danger.cache_clear()
        for wrapper in (("time",), ("nice",), ("env",), ("timeout", "5")):
            assert danger(wrapper * (26_000 // len(wrapper))) is None

    assert is_done_within(1.2, work)
    assert danger((*("time",) * 60, "rm", "-rf", "x")) is not None

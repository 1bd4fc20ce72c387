"""Each question that nobody watches is pushed once to each device, whatever happens meanwhile."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from store.stores import Opens, in_memory
from support.clients import until
from support.notified import (
    OPTIONS,
    Sessions,
    hub_on,
    notifying,
    read,
    settings_for,
    subscribed,
    until_marked,
)
from support.push_stub import Browser, PushStub, push_stub

from dragoman.access.token_book import TokenBook
from dragoman.notices.notice_board import Notices
from dragoman.notices.push.subscriptions import Subscription
from dragoman.session.facts import PermissionOption


@pytest.fixture
def opens(tmp_path: Path) -> Opens:
    return lambda: in_memory(tmp_path)


async def test_a_question_is_pushed_without_its_content_by_default(
    opens: Opens, tmp_path: Path
) -> None:
    browser = Browser()
    async with opens() as store, push_stub() as stub, hub_on(store) as hub:
        sessions = Sessions(store)
        await sessions.begin("s")
        async with notifying(hub, tmp_path, settings_for(stub)) as notices:
            made = await subscribed(notices, stub, browser)
            key = await sessions.ask("s", "r")
            await until_marked(store, {key}, f"push:{made.id}")
        [pushed] = stub.came
        assert read(pushed, browser) == {
            "key": key,
            "kind": "question",
            "session": "s",
            "request": "r",
            "reject": "no",
            "title": "Dragoman",
            "body": "An agent is waiting for your answer.",
        }
        headers = pushed.headers
        assert headers["content-encoding"] == "aes128gcm"
        assert headers["urgency"] == "high"
        assert int(headers["ttl"]) > 0
        assert len(headers["topic"]) == 32
        assert pushed.claims()["aud"] == stub.origin
        assert pushed.claims()["k"] == made.server_key


async def pushed_for(tmp_path: Path, opens: Opens, **question: Any) -> dict[str, Any]:
    """What a device that wants content is told of a question."""
    browser = Browser()
    async with opens() as store, push_stub() as stub, hub_on(store) as hub:
        sessions = Sessions(store)
        await sessions.begin("s")
        async with notifying(hub, tmp_path, settings_for(stub)) as notices:
            made = await subscribed(notices, stub, browser, content=True)
            key = await sessions.ask("s", "r", **question)
            await until_marked(store, {key}, f"push:{made.id}")
        [pushed] = stub.came
        return read(pushed, browser)


async def test_with_content_it_says_what_would_run_and_can_be_allowed(
    opens: Opens, tmp_path: Path
) -> None:
    found = await pushed_for(tmp_path, opens, argv=["rm", "a b"], title="Harmless, really")
    assert (found["title"], found["body"]) == ("A secret title", "rm 'a b'")
    assert (found["allow"], found["reject"]) == ("yes", "no")


TWICE = [*OPTIONS, PermissionOption("also", "Allow that", "allow_once")]
ODD = [PermissionOption("yes", "Deny", "allow_once", warning="it says the opposite")]


@pytest.mark.parametrize(
    "question",
    [
        {"danger": "it deletes files"},
        {"argv": ["echo", "x" * 400]},
        {"argv": None, "title": "trust me"},
        {"options": TWICE},
        {"options": ODD},
        {"options": [OPTIONS[1]]},
    ],
)
async def test_what_is_not_plain_can_only_be_allowed_on_the_page(
    opens: Opens, tmp_path: Path, question: dict[str, Any]
) -> None:
    assert "allow" not in await pushed_for(tmp_path, opens, **question)


async def test_control_characters_of_an_agent_are_shown_not_obeyed(
    opens: Opens, tmp_path: Path
) -> None:
    found = await pushed_for(tmp_path, opens, argv=["echo", "a\u202eb\nc\x1b"])
    assert not any(char in found["body"] for char in "\u202e\n\x1b")


async def test_nothing_is_pushed_while_a_window_looks_also_not_later(
    opens: Opens, tmp_path: Path
) -> None:
    async with opens() as store, push_stub() as stub, hub_on(store) as hub:
        sessions = Sessions(store)
        await sessions.begin("s")
        async with notifying(hub, tmp_path, settings_for(stub)) as notices:
            made = await subscribed(notices, stub, Browser())
            notices.attention.note("w", looking=True)
            seen = await sessions.ask("s", "seen")
            await until_marked(store, {seen}, f"push:{made.id}")
            notices.attention.note("w", looking=False)
            unseen = await sessions.ask("s", "unseen")
            await until_marked(store, {unseen}, f"push:{made.id}")
        async with notifying(hub, tmp_path, settings_for(stub)):
            later = await sessions.ask("s", "later")
            await until_marked(store, {later}, f"push:{made.id}")
        assert len(stub.came) == 2


async def test_one_that_arrived_while_no_server_ran_is_pushed_when_one_starts(
    opens: Opens, tmp_path: Path
) -> None:
    browser = Browser()
    async with opens() as store, push_stub() as stub, hub_on(store) as hub:
        sessions = Sessions(store)
        await sessions.begin("s")
        async with notifying(hub, tmp_path, settings_for(stub)) as notices:
            made = await subscribed(notices, stub, browser)
        answered = await sessions.ask("s", "answered")
        await sessions.settle("s", "answered")
        waits = await sessions.ask("s", "waits")
        async with notifying(hub, tmp_path, settings_for(stub)):
            await until_marked(store, {waits}, f"push:{made.id}")
        assert [read(each, browser)["request"] for each in stub.came] == ["waits"]
        assert answered != waits


async def test_a_service_that_fails_is_tried_again_but_not_for_ever(
    opens: Opens, tmp_path: Path
) -> None:
    async with opens() as store, push_stub() as stub, hub_on(store) as hub:
        sessions = Sessions(store)
        await sessions.begin("s")
        async with notifying(hub, tmp_path, settings_for(stub)) as notices:
            made = await subscribed(notices, stub, Browser())
            stub.answers[:] = [(503, ""), (429, "retry-after: 0\r\n")]
            first = await sessions.ask("s", "first")
            await until_marked(store, {first}, f"push:{made.id}")
            assert len(stub.came) == 3
            assert len({each.headers["topic"] for each in stub.came}) == 1
            stub.answers[:] = [(500, "")] * 9
            second = await sessions.ask("s", "second")
            await until_marked(store, {second}, f"push:{made.id}")
            assert len(stub.came) == 6  # of nine that would have failed
            stub.answers[:] = [(400, "")]
            third = await sessions.ask("s", "third")
            await until_marked(store, {third}, f"push:{made.id}")
            assert len(stub.came) == 7


async def test_a_browser_that_its_service_no_longer_knows_is_forgotten(
    opens: Opens, tmp_path: Path
) -> None:
    async with opens() as store, push_stub() as stub, hub_on(store) as hub:
        sessions = Sessions(store)
        await sessions.begin("s")
        async with notifying(hub, tmp_path, settings_for(stub)) as notices:
            made = await subscribed(notices, stub, Browser())
            stub.answers[:] = [(410, "")]
            key = await sessions.ask("s", "r")
            await until_marked(store, {key}, f"push:{made.id}")
            while await store.shared("push"):
                await until(lambda: True)
        assert len(stub.came) == 1


async def test_the_browser_of_a_revoked_device_is_told_nothing(
    opens: Opens, tmp_path: Path
) -> None:
    async with opens() as store, push_stub() as stub, hub_on(store) as hub:
        sessions = Sessions(store)
        await sessions.begin("s")
        book = TokenBook(store)
        token, _ = await book.pairing("phone")
        async with notifying(hub, tmp_path, settings_for(stub)) as notices:
            await subscribed(notices, stub, Browser(), "lost", device=token.id)
            kept = await subscribed(notices, stub, Browser(), "kept")
            await book.revoke(token.id)
            key = await sessions.ask("s", "r")
            await until_marked(store, {key}, f"push:{kept.id}")
        assert [each.path for each in stub.came] == ["/push/kept"]
        assert list(await store.shared("push")) == [kept.id]


async def test_ends_of_turns_are_told_to_those_who_want_that(opens: Opens, tmp_path: Path) -> None:
    browser = Browser()
    async with opens() as store, push_stub() as stub, hub_on(store) as hub:
        sessions = Sessions(store)
        await sessions.begin("s")
        async with notifying(hub, tmp_path, settings_for(stub)) as notices:
            await subscribed(notices, stub, Browser(), "questions")
            made = await subscribed(notices, stub, browser, "both", endings=True)
            key = await sessions.end_turn("s", stop_reason="end_turn")
            await until_marked(store, {key}, f"push:{made.id}")
        [pushed] = stub.came
        assert read(pushed, browser)["body"] == "A turn finished."


class Story:
    """Questions of two sessions, windows that come and go, answers, and servers that end and start
    in between."""

    def __init__(self, seed: int, sessions: Sessions, stub: PushStub) -> None:
        self.luck = random.Random(seed)
        self.sessions = sessions
        self.stub = stub
        self.browsers = [Browser() for _ in range(self.luck.randint(1, 2))]
        self.made: list[Subscription] = []
        self.looking = False
        self.asked = 0
        self.left: set[str] = set()
        self.expected: set[tuple[str, str]] = set()

    async def life(self, notices: Notices) -> None:
        """What happens while one server runs."""
        notices.attention.note("w", looking=self.looking)
        if not self.made:
            self.made = [
                await subscribed(notices, self.stub, browser, str(number))
                for number, browser in enumerate(self.browsers)
            ]
        await self.until_told(self.left)  # nobody looks before it has seen what waits
        for _ in range(self.luck.randint(1, 5)):
            if self.luck.random() < 0.3:
                self.looking = not self.looking
                notices.attention.note("w", looking=self.looking)
            keys = {await self.ask() for _ in range(self.luck.randint(1, 3))}
            if self.luck.random() < 0.3 and not self.looking:
                return  # it ends before it has told all of them, or any
            await self.until_told(keys)
            if self.luck.random() < 0.5:
                await self.sessions.settle("ab"[self.asked % 2], f"r{self.asked}")

    async def ask(self) -> str:
        self.asked += 1
        if not self.looking:
            self.expected |= {(str(n), f"r{self.asked}") for n in range(len(self.browsers))}
        key = await self.sessions.ask("ab"[self.asked % 2], f"r{self.asked}")
        self.left.add(key)
        return key

    async def until_told(self, keys: set[str]) -> None:
        for each in self.made:
            await until_marked(self.sessions.store, keys, f"push:{each.id}")

    def found(self) -> list[tuple[str, str]]:
        names = [each.path.rpartition("/")[2] for each in self.stub.came]
        return [
            (name, read(each, self.browsers[int(name)])["request"])
            for name, each in zip(names, self.stub.came, strict=True)
        ]


@pytest.mark.parametrize(
    "seed", [*range(8), *(pytest.param(n, marks=pytest.mark.soak) for n in range(8, 1000))]
)
async def test_over_random_schedules_a_question_is_pushed_once_unless_watched(
    tmp_path: Path, seed: int
) -> None:
    async with in_memory(tmp_path) as store, push_stub() as stub, hub_on(store) as hub:
        story = Story(seed, Sessions(store), stub)
        for name in "ab":
            await story.sessions.begin(name)
        for _ in range(story.luck.randint(2, 3)):
            async with notifying(hub, tmp_path, settings_for(stub)) as notices:
                await story.life(notices)
            story.looking = story.looking and story.luck.random() < 0.5
        story.looking = False
        async with notifying(hub, tmp_path, settings_for(stub)) as notices:
            await story.life(notices)
            await story.ask()
            await story.until_told(story.left)
        found = story.found()
        assert len(found) == len(set(found)), "one was pushed twice"
        assert set(found) == story.expected

"""Updates take a quick way where they can; what they tell is the same as on the long one."""

from __future__ import annotations

import inspect
import random
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from support.clients import opened, until
from support.examples import EXAMPLES
from support.frames import mutated
from support.raw_agent import RawAgent
from support.samples import updates
from support.v2_agent import second_agent
from support.v2_agent import updates as second_updates

from dragoman.client.dialects.v1 import wire_format as format1
from dragoman.client.dialects.v1.inbound import Serving as First
from dragoman.client.dialects.v2 import wire_format as format2
from dragoman.client.dialects.v2.inbound import Serving as Second
from dragoman.schema import codec, v1, v2
from dragoman.session import events as e
from dragoman.session.content import Text
from dragoman.session.reduce import reduce
from dragoman.session.state import SessionState
from dragoman.wire import messages
from dragoman.wire.messages import MAX_DEPTH, Notification

MUTATIONS = 4_000


class Told:
    """The host of a dialect, as far as updates need one."""

    def __init__(self) -> None:
        self.events: list[tuple[str, e.Event]] = []
        self.sizes: list[tuple[str, int]] = []
        self.states: dict[str, SessionState] = {}

    def on_events(self, session_id: str, events: list[e.Event], size: int) -> None:
        self.sizes.append((session_id, size))
        for event in events:
            self.events.append((session_id, event))
            reduce(self.states.setdefault(session_id, SessionState(session_id)), event)

    def known(self, session_id: str) -> SessionState | None:
        return self.states.get(session_id)


def long_way(dialect: type[First | Second], frame: bytes) -> list[tuple[str, e.Event]]:
    """What a frame tells; it must be an update and no other message."""
    host: Any = Told()
    message = messages.decode(frame)
    assert isinstance(message, Notification)
    assert message.method == "session/update"
    dialect(host).on_notification(message.method, message.params)
    return host.events


def quick_way(dialect: type[First | Second], frame: bytes) -> list[tuple[str, e.Event]] | None:
    host: Any = Told()
    usual = dialect(host).usual()
    usual.expect()
    if usual.take(iter([frame])) is not None:
        return None
    usual.hand_over()
    return host.events


def written(params: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","method":"session/update","params":%b}' % params


FIRST = [written(codec.encode(update)) for update in updates()]


@pytest.mark.parametrize("frame", FIRST)
def test_every_kind_of_update_comes_to_the_same_end(frame: bytes) -> None:
    _, fits = codec.examine(_params(frame), v1.SessionNotification)
    assert quick_way(First, frame) == (long_way(First, frame) if fits else None)


def _params(frame: bytes) -> msgspec.Raw:
    message = messages.decode(frame)
    assert isinstance(message, Notification)
    return message.params


@EXAMPLES
@given(second_updates())
def test_the_same_in_version_2(update: Any) -> None:
    frame = written(codec.encode({"sessionId": "s", "update": update}))
    _, fits = codec.examine(_params(frame), v2.UpdateSessionNotification)
    assert quick_way(Second, frame) == (long_way(Second, frame) if fits else None)


def test_a_mutated_frame_takes_the_quick_way_only_to_the_same_end() -> None:
    taken = 0
    for seed in range(MUTATIONS):
        chance = random.Random(seed)
        frame = mutated(chance.choice(FIRST), seed, chance.randint(1, 3))
        told = quick_way(First, frame)
        if told is not None:
            taken += 1
            assert told == long_way(First, frame), f"seed {seed}: {frame!r}"
    assert taken > 50


CHUNK = b'{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":%b}}'
TEXT = CHUNK % b'{"type":"text","text":"hi"}'
DEEP = b"[" * MAX_DEPTH + b"]" * MAX_DEPTH


@pytest.mark.parametrize(
    "frame",
    [
        written(TEXT)[:-1] + b',"id":1}',
        written(TEXT)[:-1] + b',"id":null}',
        written(TEXT).replace(b"session/update", b"session/other"),
        written(TEXT).replace(b"session/update", b"session_update"),
        written(TEXT) + b"x",
        written(TEXT) + written(TEXT),
        written(TEXT)[:-1],
        written(TEXT.replace(b"agent_message_chunk", b"novel")),
        written(CHUNK % b'{"type":"novel"}'),
        written(CHUNK % b'{"type":"text","text":"\\ud800"}'),
        written(CHUNK % b'{"type":"text","text":"\xff"}'),
        written(CHUNK % (b'{"type":"text","text":"hi","_meta":{"a":%b}}' % DEEP)),
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b"[INFO] ready",
        b"",
    ],
)
def test_all_else_takes_the_long_way(frame: bytes) -> None:
    assert quick_way(First, frame) is None


def test_a_stack_with_little_room_left_changes_nothing_but_the_way() -> None:
    nested = b"[" * 100 + b"]" * 100
    frame = written(CHUNK % (b'{"type":"text","text":"hi","_meta":{"a":%b}}' % nested))

    def below(frames: int) -> list[tuple[str, e.Event]] | None:
        return below(frames - 1) if frames else quick_way(First, frame)

    told = long_way(First, frame)
    assert below(0) == told
    # Some versions of Python count the levels of JSON with the calls on the stack.
    assert below(sys.getrecursionlimit() - len(inspect.stack(0)) - 60) in (told, None)


@pytest.mark.parametrize(
    "frame",
    [
        written(CHUNK % (b'{"type":"text","text":"%b"}' % (b"a" * 100_000))),
        written(CHUNK % '{"type":"text","text":"äöü \u2028"}'.encode()),
        b' {"method":"session/update", "params": %b, "jsonrpc":"2.0"}\r' % TEXT,
    ],
)
def test_it_matters_neither_how_long_it_is_nor_how_it_is_written(frame: bytes) -> None:
    assert quick_way(First, frame) == long_way(First, frame)


@pytest.mark.parametrize("dialect", [First, Second])
def test_each_session_is_told_of_its_own_bytes(dialect: type[First | Second]) -> None:
    host: Any = Told()
    usual = dialect(host).usual()
    usual.expect()
    expected: Counter[str] = Counter()
    for session, length in [("a", 10_000), ("b", 1), ("b", 2), ("a", 3)]:
        told = TEXT.replace(b'"s"', b'"%b"' % session.encode()).replace(b"hi", b"x" * length)
        frame = written(told.replace(b'"content"', b'"messageId":"m","content"'))
        assert usual.take(iter([frame])) is None
        expected[session] += len(frame)
    usual.hand_over()
    found: Counter[str] = Counter()
    for session, size in host.sizes:
        found[session] += size
    assert found == expected


def test_updates_of_several_sessions_keep_their_order() -> None:
    host: Any = Told()
    usual = First(host).usual()
    usual.expect()
    sessions = [b"a", b"a", b"b", b"a"]
    for number, session in enumerate(sessions):
        told = TEXT.replace(b'"s"', b'"%b"' % session).replace(b"hi", b"%d" % number)
        assert usual.take(iter([written(told)])) is None
    usual.hand_over()
    assert [(session, event.text) for session, event in host.events] == [
        ("a", "0"),
        ("a", "1"),
        ("b", "2"),
        ("a", "3"),
    ]


@pytest.mark.parametrize("dialect", [First, Second])
def test_one_that_fails_takes_no_other_along(
    dialect: type[First | Second], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(wire: Any) -> e.Event:
        if wire.content.text == "1":
            raise ValueError("one")
        return e.AgentMessage(Text(wire.content.text))

    monkeypatch.setitem(format1.UPDATES, v1.AgentMessageChunk, fails)
    monkeypatch.setattr(format2, "update", fails)
    host: Any = Told()
    usual = dialect(host).usual()
    usual.expect()
    for number in range(3):
        told = TEXT.replace(b"hi", b"%d" % number).replace(
            b'"content"', b'"messageId":"m","content"'
        )
        assert usual.take(iter([written(told)])) is None
    usual.hand_over()
    assert [event.text for _, event in host.events] == ["0", "2"]


def test_terminals_shown_in_metadata_stand_behind_what_they_came_with() -> None:
    meta = b'{"terminal_output":{"terminal_id":"t","data":"out"}}'
    frame = written(
        CHUNK.replace(b"%b}}", b'%b,"_meta":%b}}') % (b'{"type":"text","text":"hi"}', meta)
    )
    told = quick_way(First, frame)
    assert told is not None
    assert told == long_way(First, frame)
    assert [type(event) for _, event in told] == [e.AgentMessage, e.TerminalOutput]


def test_one_that_is_none_ends_what_was_expected() -> None:
    usual = First(_host()).usual()
    update, other = written(TEXT), b'{"jsonrpc":"2.0","id":1,"method":"x"}'
    frames = iter([update, update, update, other, update])
    assert usual.take(frames) == update
    usual.expect()
    assert usual.take(frames) == other
    assert usual.frames == [update, update]
    assert usual.take(frames) == update


def _host() -> Any:
    return Told()


# ── through a client ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("make", "protocol", "dialect"),
    [(RawAgent, 1, First), (second_agent, 2, Second), (RawAgent, 2, First)],
)
async def test_a_client_takes_it_in_the_version_that_was_agreed_on(
    make: Callable[[], RawAgent],
    protocol: int,
    dialect: type[First | Second],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs: list[int] = []
    usual = dialect.usual

    def watched(serving: Any) -> Any:
        real: Any = usual(serving)
        hand_over: Callable[[], None] = real.hand_over

        def counted() -> None:
            runs.append(len(real.frames))
            hand_over()

        real.hand_over = counted
        return real

    monkeypatch.setattr(dialect, "usual", watched)
    agent = make()
    async with opened(agent, tmp_path, protocol=protocol) as (_, session):
        runs.clear()
        agent.send(*(_says(session.id, str(number)) for number in range(5)))
        await until(lambda: [entry.text for entry in session.state.entries] == ["01234"])
    assert sum(runs) == 4  # the first comes the long way


def _says(session_id: str, word: str) -> dict[str, Any]:
    content = {"type": "text", "text": word}
    update = {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": content}
    return {"method": "session/update", "params": {"sessionId": session_id, "update": update}}

"""A recording played back is the same agent again, through the real client."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from support.peers import settled, soon, tidy_loop

from dragoman import Client, Policy, Session
from dragoman.errors import DragomanError, InternalError, InvalidParams, MethodNotFound
from dragoman.schema import v1
from dragoman.session import events as e
from dragoman.session.reduce import reduce
from dragoman.session.state import SessionState
from dragoman.testing import AgentTurn, Recorder, ReplayAgent, ScriptedAgent, faults
from dragoman.testing.recordings.recording import load_recording
from dragoman.testing.recordings.replay import (
    Ask,
    Exchange,
    HearCancel,
    Say,
    ScriptedAnswer,
    ScriptedConversation,
    conversations,
)
from dragoman.testing.steps import ask, run, say, wait_for_cancel, write_file
from dragoman.wire import messages

# ── our own recordings ────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def recording_of(agent: ScriptedAgent, path: Path) -> AsyncGenerator[Client]:
    with Recorder(path) as recorder:
        async with (
            tidy_loop(),
            Client.start(agent.connect(), policy=Policy(yolo=True), tap=recorder) as client,
        ):
            yield client


async def replayed(agent: ReplayAgent, cwd: Path, *prompts: str) -> Session:
    async with tidy_loop(), Client.start(agent.connect(), policy=Policy(yolo=True)) as client:
        session = await client.new_session(cwd)
        for prompt in prompts:
            await soon(ended(session, prompt))
    return session


async def ended(session: Session, prompt: str) -> None:
    await session.prompt(prompt)


def shown(session: Session) -> list[tuple[str, str]]:
    return [(type(entry).__name__, entry.text) for entry in session.state.entries]


async def test_a_turn_is_played_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    agent = ScriptedAgent(
        [say("a"), write_file(str(tmp_path / "x"), "X"), run("printf", "hi"), ask("t"), say("b")]
    )
    async with recording_of(agent, path) as client:
        session = await client.new_session(tmp_path)
        await session.prompt("go")
        await session.prompt("again")
    (tmp_path / "x").unlink()
    replay = ReplayAgent(path, strict=True)
    assert shown(await replayed(replay, tmp_path, "go", "again")) == shown(session)
    assert replay.mismatches == []
    assert (tmp_path / "x").read_text() == "X"


async def test_it_can_run_as_a_process(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    async with recording_of(ScriptedAgent([say("hello")]), path) as client:
        await (await client.new_session(tmp_path)).prompt("go")
    async with tidy_loop(), Client.start(ReplayAgent.command(path)) as client:
        session = await client.new_session(tmp_path)
        await session.prompt("go")
        assert shown(session) == [("UserEntry", "go"), ("AgentEntry", "hello")]


async def test_paths_follow_the_live_workspace_and_terminals_the_live_ids(tmp_path: Path) -> None:
    path, old, new = tmp_path / "r.jsonl", tmp_path / "old", tmp_path / "new"
    old.mkdir()
    new.mkdir()

    async def script(turn: AgentTurn) -> None:
        await turn.write_text_file(f"{turn.cwd}/x", "X")
        first = await turn.create_terminal("printf", "one", cwd=turn.cwd)
        turn.tool_call("t", "Run", content=[v1.Terminal(terminal_id=first)])
        await turn.terminal("wait_for_exit", first)
        turn.say((await turn.terminal("output", first))["output"])
        await turn.terminal("release", first)

    async with recording_of(ScriptedAgent(script), path) as client:
        await (await client.new_session(old)).prompt("go")
    session = await replayed(ReplayAgent(path), new, "go")
    assert (new / "x").read_text() == "X"
    assert {t.output for t in session.state.terminals.values()} == {"one"}
    assert {t.exit_code for t in session.state.terminals.values()} == {0}


async def test_a_recorded_cancel_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    async with recording_of(ScriptedAgent([say("a"), wait_for_cancel()]), path) as client:
        await cancelled_at(await client.new_session(tmp_path), "a")
    async with tidy_loop(), Client.start(ReplayAgent(path).connect()) as client:
        assert await cancelled_at(await client.new_session(tmp_path), "a") == "cancelled"


async def cancelled_at(session: Session, word: str) -> str | None:
    turn = session.prompt("go")
    async for event in turn:
        if event.text == word:
            await settled()
            assert not turn.done
            await soon(session.cancel())
    return turn.stop_reason


async def test_sessions_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"

    async def script(turn: AgentTurn) -> None:
        turn.say(f"{turn.session_id}: {turn.text}")

    async with recording_of(ScriptedAgent(script), path) as client:
        one, two = [await client.new_session(tmp_path) for _ in range(2)]
        await one.prompt("1")
        await two.prompt("2")
    async with tidy_loop(), Client.start(ReplayAgent(path).connect()) as client:
        one, two = [await client.new_session(tmp_path) for _ in range(2)]
        await two.prompt("2")
        await one.prompt("1")
        assert [s.state.entries[1].text for s in (one, two)] == ["session-1: 1", "session-2: 2"]


async def test_what_is_not_in_the_recording_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    async with recording_of(ScriptedAgent([say("a")]), path) as client:
        await (await client.new_session(tmp_path)).prompt("go")
    async with tidy_loop(), Client.start(ReplayAgent(path).connect()) as client:
        session = await client.new_session(tmp_path)
        await session.prompt("go")
        with pytest.raises(InternalError, match="has no further session/prompt"):
            await session.prompt("more")
        with pytest.raises(MethodNotFound, match="not in the recording"):
            await client.load_session(session.id, tmp_path)


async def test_strict_refuses_what_differs(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    async with recording_of(ScriptedAgent([ask("t")]), path) as client:
        session = await client.new_session(tmp_path)
        await session.prompt("go")
    replay = ReplayAgent(path, strict=True)
    with pytest.raises(InvalidParams):
        await replayed(replay, tmp_path, "something else")
    assert len(replay.mismatches) == 1
    strict = ReplayAgent(path, strict=True)
    async with tidy_loop(), Client.start(strict.connect()) as client:  # nobody allows it this time
        await (await client.new_session(tmp_path)).prompt("go")
    assert len(strict.mismatches) == 1


async def test_odd_ids_and_odd_replies_are_played_exactly(tmp_path: Path) -> None:
    path, sent = tmp_path / "r.jsonl", list[bytes]()
    lines = [
        '{"dir":"->","msg":{"jsonrpc":"2.0","id":"a","method":"initialize","params":{}}}',
        '{"dir":"<-","msg":{"jsonrpc":"2.0","id":"a","result":{"protocolVersion":1}}}',
        '{"dir":"->","msg":{"jsonrpc":"2.0","id":"b","method":"session/new","params":{}}}',
        '{"dir":"<-","msg":{"jsonrpc":"2.0","id":9.50,"method":"_x/y"}}',
        '{"dir":"->","msg":{"jsonrpc":"2.0","id":9.50,"error":{"code":-32601,"message":"no"}}}',
        '{"dir":"<-","msg":{"jsonrpc":"2.0","id":"b","error":"not today"}}',
    ]
    path.write_text("\n".join(lines) + "\n")

    def tap(direction: Literal["sent", "received"], frame: bytes) -> None:
        if direction == "sent":
            sent.append(frame)

    async with tidy_loop(), Client.start(ReplayAgent(path).connect(), tap=tap) as client:
        with pytest.raises(DragomanError, match="not today"):
            await client.new_session(tmp_path)
    assert any(frame.startswith(b'{"jsonrpc":"2.0","id":9.50,"error"') for frame in sent)


async def test_an_agent_that_was_gone_is_gone_again(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    agent = ScriptedAgent([say("a"), faults.crash()])
    with pytest.raises(DragomanError):
        async with recording_of(agent, path) as client:
            await (await client.new_session(tmp_path)).prompt("go")
    with path.open("a") as file:
        file.write('{"t":9,"dir":"eof"}\n')
    with pytest.raises(DragomanError, match="closed"):
        await replayed(ReplayAgent(path), tmp_path, "go")


# ── recordings of real agents ─────────────────────────────────────────────────────────────────


def lab_recordings() -> list[Path]:
    lab = os.environ.get("DRAGOMAN_LAB")
    return sorted(Path(lab, "recordings").glob("*.jsonl")) if lab else []


LAB = [pytest.param(path, id=path.stem) for path in lab_recordings()] or [
    pytest.param(None, marks=pytest.mark.skip("DRAGOMAN_LAB is not set: no recordings to replay"))
]
NOT_CALLED = {"session/nope", "_x/nope"}
"""What the recorded driver called on purpose, and no client does."""


class Driver:
    """Does through the client what was done in the recording, and takes notes."""

    def __init__(self, agent: ReplayAgent, cwd: Path) -> None:
        self.cwd = cwd
        self.events: dict[Session, list[bytes]] = {}
        self.sent: list[Any] = []
        self.received: list[Any] = []
        self.sessions: dict[str, Session] = {}
        self.client = Client.start(
            agent.connect(), policy=Policy(yolo=True), tap=self.tap, listen=self.listen
        )

    def tap(self, direction: Literal["sent", "received"], frame: bytes) -> None:
        (self.sent if direction == "sent" else self.received).append(msgspec.json.decode(frame))

    def listen(self, session: Session, event: e.Event) -> None:
        self.events.setdefault(session, []).append(msgspec.json.encode(event))

    async def drive(self, conversation: ScriptedConversation) -> None:
        async with self.client:
            for exchange in conversation.exchanges:
                with suppress(DragomanError):
                    if any(isinstance(act, ScriptedAnswer) for act in exchange.acts):
                        await soon(self.repeat(exchange))
                    else:
                        await self.begin(exchange)
            await settled()  # what stood behind the last reply

    async def begin(self, exchange: Exchange) -> None:
        """The recording was cut off before the reply."""
        task = asyncio.ensure_future(self.repeat(exchange))
        await settled()
        task.cancel()
        await asyncio.wait([task])

    async def repeat(self, exchange: Exchange) -> None:
        client, params = self.client, msgspec.json.decode(exchange.params)
        known = self.sessions.get(exchange.session_id or "")
        match exchange.method:
            case "authenticate":
                await client.authenticate(params["methodId"])
            case "session/new":
                self.keep(await client.new_session(self.cwd))
            case "session/load" | "session/resume" | "session/fork" as method:
                await self.open(method, params["sessionId"])
            case "session/list":
                [info async for info in client.list_sessions(self.cwd)]
            case "session/delete":
                await client.delete_session(params["sessionId"])
            case "session/close":
                await client.close_session(params["sessionId"])
            case "session/prompt" if known is not None:
                await self.prompt(known, params["prompt"][0]["text"], exchange)
            case "session/set_mode" if known is not None:
                await known.set_mode(params["modeId"])
            case "session/set_model" if known is not None:
                await known.set_model(params["modelId"])
            case "session/set_config_option" if known is not None:
                await known.set_config_option(params["configId"], params["value"])
            case method:
                assert method in NOT_CALLED | {"initialize", "session/prompt"}

    async def open(self, method: str, session_id: str) -> None:
        ways = {
            "session/load": self.client.load_session,
            "session/resume": self.client.resume_session,
            "session/fork": self.client.fork_session,
        }
        self.keep(await ways[method](session_id, self.cwd))

    def keep(self, session: Session) -> None:
        self.sessions[session.id] = session

    async def prompt(self, session: Session, text: str, exchange: Exchange) -> None:
        turn = session.prompt(text)
        async for event in turn:
            if HearCancel() in exchange.acts and isinstance(event, e.AgentMessage):
                await session.cancel()


def recorded_updates(conversation: ScriptedConversation) -> Iterator[str]:
    for exchange in conversation.exchanges:
        for act in exchange.acts:
            if isinstance(act, Say):
                yield msgspec.json.decode(act.frame)["params"]["update"]["sessionUpdate"]


@pytest.mark.parametrize("path", LAB)
async def test_a_recording_of_a_real_agent_goes_through_the_client(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))  # lines run in a login shell: not in the user's
    agent = ReplayAgent(path)
    for conversation in agent.conversations:
        driver = Driver(agent, tmp_path)
        async with tidy_loop():
            await driver.drive(conversation)
        assert_no_method_is_unknown(driver)
        assert_every_update_arrived(driver, conversation)
        assert_state_is_the_fold(driver)


def assert_no_method_is_unknown(driver: Driver) -> None:
    replies = [frame for frame in driver.sent if "error" in frame]
    assert [r for r in replies if r["error"]["code"] == MethodNotFound.code] == []


def assert_every_update_arrived(driver: Driver, conversation: ScriptedConversation) -> None:
    """On the wire as they were recorded, and each as the event of its kind."""
    frames = [f["params"] for f in driver.received if f.get("method") == "session/update"]
    arrived = Counter(params["update"]["sessionUpdate"] for params in frames)
    assert arrived == Counter(recorded_updates(conversation))
    asked = sum(f.get("method") == "session/request_permission" for f in driver.received)
    events = Counter(
        kind for recorded in driver.events.values() for kind in map(event_kind, recorded)
    )
    assert events["unknown"] == 0
    for kind, updates in EVENT_KINDS.items():
        extra = asked if kind == "tool_call" else 0  # a request tells of its tool call too
        assert events[kind] == sum(arrived[update] for update in updates) + extra


EVENT_KINDS = {
    "user_message": ("user_message_chunk",),
    "agent_message": ("agent_message_chunk",),
    "agent_thought": ("agent_thought_chunk",),
    "tool_call": ("tool_call", "tool_call_update"),
    "plan": ("plan",),
    "commands": ("available_commands_update",),
    "info": ("session_info_update",),
    "usage": ("usage_update",),
}


def event_kind(recorded: bytes) -> str:
    return msgspec.json.decode(recorded)["type"]


def assert_state_is_the_fold(driver: Driver) -> None:
    assert driver.events
    for session, recorded in driver.events.items():
        state = SessionState()
        for event in recorded:
            reduce(state, msgspec.json.decode(event, type=e.Event))
        assert msgspec.to_builtins(state) == msgspec.to_builtins(session.state)


@pytest.mark.parametrize("path", LAB)
def test_nothing_of_a_recording_is_lost_when_it_is_taken_apart(path: Path) -> None:
    recording = load_recording(path)
    acts = [
        act
        for conversation in conversations(recording)
        for acts in [conversation.unasked, *(e.acts for e in conversation.exchanges)]
        for act in acts
    ]
    from_agent = [line for line in recording.frames if line.dir == "<-"]
    assert sum(hasattr(act, "frame") for act in acts) >= len(from_agent)
    asked = [m for m in map(decoded, from_agent) if isinstance(m, messages.Request)]
    assert sum(isinstance(act, Ask) for act in acts) == len(asked)


def decoded(line: Any) -> messages.Message:
    return messages.decode(line.frame)

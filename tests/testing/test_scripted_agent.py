"""A scripted agent in the same program: what it keeps, offers, answers, and does wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.peers import soon, tidy_loop

from dragoman import Client, Policy, Session, Timeouts, Turn
from dragoman.errors import (
    AuthRequired,
    CallTimeout,
    CancelIgnored,
    ConnectionLost,
    InternalError,
    InvalidParams,
    MethodNotFound,
    RemoteError,
    ResourceNotFound,
)
from dragoman.rpc import Peer
from dragoman.schema import codec, v1
from dragoman.session import events as e
from dragoman.testing import AgentTurn, ScriptedAgent, faults, steps
from dragoman.testing.steps import ask, fail, pause, plan, run, say, stop, think, wait_for_cancel

MODES = [v1.SessionMode(id="ask", name="Ask"), v1.SessionMode(id="auto", name="Auto")]
OPTIONS = [
    v1.SessionConfigSelect(
        id="model",
        name="Model",
        category="model",
        current_value="small",
        options=[
            v1.SessionConfigSelectOption(value="small", name="Small"),
            v1.SessionConfigSelectOption(value="large", name="Large"),
        ],
    ),
    v1.SessionConfigBoolean(id="verbose", name="Verbose", current_value=False),
]


@asynccontextmanager
async def session_with(agent: ScriptedAgent, cwd: Path) -> AsyncGenerator[tuple[Client, Session]]:
    async with tidy_loop(), Client.start(agent.connect()) as client:
        yield client, await client.new_session(cwd)


@asynccontextmanager
async def raw_client(agent: ScriptedAgent) -> AsyncGenerator[Peer]:
    """A client that does as little as possible of its own accord."""

    def refuse(method: str, params: object) -> bytes:
        raise MethodNotFound

    transport = agent.connect()
    async with Peer(transport, on_notification=lambda m, p: None, on_request=refuse) as peer:
        yield peer


async def call(peer: Peer, method: str, **params: object) -> Any:
    return msgspec.json.decode(await soon(peer.call(method, codec.encode(params))))


async def texts(session: Session, prompt: str = "go") -> list[str]:
    turn = session.prompt(prompt)
    return [event.text async for event in turn if isinstance(event, e.AgentMessage)]


async def finished(turn: Turn) -> Turn:
    return await turn


# ── scripts ───────────────────────────────────────────────────────────────────────────────────


async def test_steps_are_played_in_order(tmp_path: Path) -> None:
    agent = ScriptedAgent(
        [think("hm"), plan(("one", "pending")), say("a"), say("b"), stop("max_tokens")]
    )
    async with session_with(agent, tmp_path) as (_, session):
        turn = session.prompt("go")
        kinds = [type(event) async for event in turn]
        assert kinds[1:5] == [e.AgentThought, e.PlanUpdated, e.AgentMessage, e.AgentMessage]
        assert turn.stop_reason == "max_tokens"


async def test_steps_use_what_the_client_offers(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("AAA")
    agent = ScriptedAgent(
        [
            steps.read_file(str(path)),
            steps.write_file(str(path), "BBB"),
            run("printf", "%s", "CCC"),
            ask("t1", title="May I?", kind="edit"),
        ]
    )
    async with tidy_loop(), Client.start(agent.connect(), policy=Policy(yolo=True)) as client:
        session = await client.new_session(tmp_path)
        assert await texts(session) == ["AAA", "CCC", "allow"]
    assert path.read_text() == "BBB"


async def test_a_step_that_fails_is_the_prompts_error(tmp_path: Path) -> None:
    agent = ScriptedAgent([fail(InternalError("no", {"reason": "tired"}))])
    async with session_with(agent, tmp_path) as (_, session):
        with pytest.raises(InternalError, match="tired"):
            await session.prompt("go")


async def test_an_error_of_the_client_ends_the_turn_with_it(tmp_path: Path) -> None:
    agent = ScriptedAgent([steps.read_file(str(tmp_path / "missing"))])
    async with session_with(agent, tmp_path) as (_, session):
        with pytest.raises(ResourceNotFound):
            await session.prompt("go")


async def test_a_pause_ends_with_the_cancel(tmp_path: Path) -> None:
    async with session_with(ScriptedAgent([say("a"), pause(60)]), tmp_path) as (_, session):
        turn = session.prompt("go")
        async for event in turn:
            if isinstance(event, e.AgentMessage):
                await soon(session.cancel())
        assert turn.stop_reason == "cancelled"


async def test_a_cancel_right_behind_the_prompt_reaches_the_turn() -> None:
    agent = ScriptedAgent([wait_for_cancel()])
    async with tidy_loop(), raw_client(agent) as peer:
        await call(peer, "session/new", cwd="/", mcpServers=[])
        prompt = codec.encode({"sessionId": "session-1", "prompt": []})
        prompting = asyncio.ensure_future(peer.call("session/prompt", prompt))
        await asyncio.sleep(0)
        peer.notify("session/cancel", b'{"sessionId":"session-1"}')
        assert bytes(await soon(prompting)) == b'{"stopReason":"cancelled"}'


# ── sessions ──────────────────────────────────────────────────────────────────────────────────


async def test_load_tells_the_conversation_and_nothing_else(tmp_path: Path) -> None:
    agent = ScriptedAgent([think("hm"), say("hello"), steps.usage(1, 2)])
    async with session_with(agent, tmp_path) as (client, session):
        await session.prompt("hi")
        loaded = await client.load_session(session.id, tmp_path)
        assert [entry.text for entry in loaded.state.entries] == ["hi", "hm", "hello"]
        assert loaded.state.usage is None


async def test_a_fork_remembers_and_goes_its_own_way(tmp_path: Path) -> None:
    agent = ScriptedAgent([say("hello")], modes=MODES)
    async with session_with(agent, tmp_path) as (client, session):
        await session.set_mode("auto")
        await session.prompt("first")
        fork = await client.fork_session(session.id, tmp_path)
        await fork.prompt("second")
        assert fork.state.mode is not None
        assert fork.state.mode.id == "auto"
        loaded = await client.load_session(session.id, tmp_path)
        assert [entry.text for entry in loaded.state.entries] == ["first", "hello"]


async def test_a_list_comes_in_pages_by_folder(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    async with tidy_loop(), Client.start(ScriptedAgent().connect()) as client:
        made = [(await client.new_session(tmp_path)).id for _ in range(5)]
        await client.new_session(other)
        assert [info.id async for info in client.list_sessions(tmp_path)] == made
        assert len([info async for info in client.list_sessions()]) == 6


async def test_archived_sessions_are_listed_when_asked_for() -> None:
    async with tidy_loop(), raw_client(ScriptedAgent()) as peer:
        await call(peer, "session/new", cwd="/", mcpServers=[])
        await call(peer, "session/archive", sessionId="session-1")
        assert await call(peer, "session/list") == {"sessions": []}
        for wanted in ("include", "only"):
            listed = await call(peer, "session/list", archived=wanted)
            assert len(listed["sessions"]) == 1
        await call(peer, "session/unarchive", sessionId="session-1")
        assert await call(peer, "session/list", archived="only") == {"sessions": []}


async def test_a_session_has_a_title_and_a_status(tmp_path: Path) -> None:
    async with session_with(ScriptedAgent(), tmp_path) as (client, session):
        await session.set_title("  About dragons ")
        assert session.state.title == "About dragons"
        assert await client.session_status(session.id) == "open"
        await client.close_session(session.id)
        assert await client.session_status(session.id) == "saved"
        with pytest.raises(InvalidParams):
            await client.dialect.set_session_title(session.id, "  ")


async def test_a_closed_session_is_not_prompted() -> None:
    async with tidy_loop(), raw_client(ScriptedAgent([say("hi")])) as peer:
        await call(peer, "session/new", cwd="/", mcpServers=[])
        await call(peer, "session/close", sessionId="session-1")
        with pytest.raises(ResourceNotFound, match="not open"):
            await call(peer, "session/prompt", sessionId="session-1", prompt=[])


async def test_a_deleted_session_is_gone(tmp_path: Path) -> None:
    async with session_with(ScriptedAgent(), tmp_path) as (client, session):
        await client.delete_session(session.id)
        with pytest.raises(ResourceNotFound):
            await client.load_session(session.id, tmp_path)


async def test_an_id_is_given_once(tmp_path: Path) -> None:
    async with session_with(ScriptedAgent(), tmp_path) as (client, first):
        others = [await client.new_session(tmp_path) for _ in range(2)]
        await client.delete_session(first.id)
        last = await client.new_session(tmp_path)
        assert len({session.id for session in (first, *others, last)}) == 4


async def test_commands_come_behind_the_reply_that_names_the_session() -> None:
    heard: list[str] = []
    told = asyncio.Event()

    def on_notification(method: str, params: object) -> None:
        heard.append(method)
        told.set()

    agent = ScriptedAgent(commands=[v1.AvailableCommand(name="plan", description="Make a plan")])
    transport = agent.connect()
    async with (
        tidy_loop(),
        Peer(
            transport,
            on_notification=on_notification,
            on_request=lambda method, params: b"{}",
        ) as peer,
    ):
        params = codec.encode({"cwd": "/", "mcpServers": []})
        await peer.call("session/new", params, on_reply=lambda _: heard.append("reply"))
        await soon(told.wait())
    assert heard == ["reply", "session/update"]


# ── modes and options ─────────────────────────────────────────────────────────────────────────


async def test_modes_and_options_are_the_sessions_own(tmp_path: Path) -> None:
    agent = ScriptedAgent(modes=MODES, config_options=OPTIONS)
    async with session_with(agent, tmp_path) as (client, session):
        await session.set_mode("auto")
        await session.set_model("large")
        await session.set_config_option("verbose", True)
        other = await client.new_session(tmp_path)
        assert {o.id: o.value for o in session.state.config_options} == {
            "model": "large",
            "verbose": True,
        }
        assert {o.id: o.value for o in other.state.config_options} == {
            "model": "small",
            "verbose": False,
        }
        assert [mode.id for mode in MODES] == ["ask", "auto"]
        with pytest.raises(InvalidParams):
            await client.dialect.set_mode(session.id, "nope")


async def test_options_that_are_on_or_off_need_a_client_that_knows_them() -> None:
    async with tidy_loop(), raw_client(ScriptedAgent(config_options=OPTIONS)) as peer:
        await call(peer, "initialize", protocolVersion=1)
        made = await call(peer, "session/new", cwd="/", mcpServers=[])
        assert [option["id"] for option in made["configOptions"]] == ["model"]
        with pytest.raises(InvalidParams):
            await call(
                peer,
                "session/set_config_option",
                sessionId="session-1",
                configId="model",
                value="huge",
            )


# ── answers ───────────────────────────────────────────────────────────────────────────────────


async def test_what_is_not_advertised_is_not_offered() -> None:
    agent = ScriptedAgent(capabilities=v1.AgentCapabilities())
    async with tidy_loop(), raw_client(agent) as peer:
        for method in ("session/load", "session/fork", "session/list", "logout", "session/nope"):
            with pytest.raises(MethodNotFound):
                await call(peer, method)


async def test_params_that_do_not_fit_are_refused() -> None:
    async with tidy_loop(), raw_client(ScriptedAgent()) as peer:
        with pytest.raises(InvalidParams):
            await call(peer, "session/new", cwd=1)


async def test_answers_replace_the_agents_own(tmp_path: Path) -> None:
    agent = ScriptedAgent(
        answers={
            "session/new": AuthRequired("sign in first"),
            "session/load": None,
            "session/set_title": lambda params: {"title": params["title"].upper()},
        }
    )
    async with tidy_loop(), Client.start(agent.connect()) as client:
        with pytest.raises(AuthRequired):
            await client.new_session(tmp_path)
        session = await client.load_session("any", tmp_path)
        await session.set_title("loud")
        assert session.state.title == "LOUD"


async def test_a_method_may_never_be_answered() -> None:
    agent = ScriptedAgent(answers={"initialize": faults.NEVER})
    with pytest.raises(CallTimeout):
        async with Client.start(agent.connect(), timeouts=Timeouts(initialize=0.05)):
            pass


async def test_everything_that_came_in_is_on_record(tmp_path: Path) -> None:
    agent = ScriptedAgent([say("hi")])
    async with session_with(agent, tmp_path) as (_, session):
        await session.prompt("go")
    assert [method for method, _ in agent.received] == [
        "initialize",
        "session/new",
        "session/prompt",
    ]


# ── faults: the client stays usable ───────────────────────────────────────────────────────────

HARMLESS = {
    "odd lines": faults.lines(*faults.ODD_LINES),
    "a reply to nothing": faults.reply_to_nothing(),
    "an unknown notification": faults.unknown_notification(),
    "a tool call never announced": faults.update_unannounced(),
    "an update for another session": faults.update_elsewhere(),
    "a frame of a megabyte": faults.huge_frame(1 << 20),
    "a flood": faults.flood(2000),
    "an update behind the reply": faults.update_after_reply(),
}


@pytest.mark.parametrize("fault", HARMLESS.values(), ids=HARMLESS)
async def test_a_fault_does_not_end_the_turn(fault: steps.Step, tmp_path: Path) -> None:
    async with session_with(ScriptedAgent([fault, say("alive")]), tmp_path) as (_, session):
        for _ in range(2):
            assert (await texts(session))[-1] == "alive"


async def test_an_unknown_request_is_refused_and_the_turn_goes_on(tmp_path: Path) -> None:
    agent = ScriptedAgent([faults.unknown_request("_x/y")])
    async with session_with(agent, tmp_path) as (_, session):
        assert "-32601" in (await texts(session))[0]


async def test_a_prompt_answered_twice_ends_once(tmp_path: Path) -> None:
    agent = ScriptedAgent([faults.answer_twice(), say("late")])
    async with session_with(agent, tmp_path) as (_, session):
        turn = await session.prompt("go")
        assert turn.stop_reason == "end_turn"
        assert len(session.state.turns) == 1


async def test_an_error_that_is_a_text_ends_the_turn(tmp_path: Path) -> None:
    agent = ScriptedAgent([faults.answer_with_text()])
    async with session_with(agent, tmp_path) as (_, session):
        with pytest.raises(RemoteError, match="something went wrong"):
            await soon(finished(session.prompt("go")))


async def test_a_request_after_the_cancel_is_answered_cancelled(tmp_path: Path) -> None:
    agent = ScriptedAgent([say("a"), faults.ask_after_cancel()])
    async with session_with(agent, tmp_path) as (_, session):
        turn = session.prompt("go")
        async for event in turn:
            if event.text == "a":
                await soon(session.cancel())
        assert turn.stop_reason == "cancelled"


async def test_a_cancel_may_be_ignored(tmp_path: Path) -> None:
    agent = ScriptedAgent([say("a"), faults.ignore_cancel(60)])
    client = Client.start(agent.connect(), timeouts=Timeouts(cancel=0.05))
    async with tidy_loop(), client:
        session = await client.new_session(tmp_path)
        turn = session.prompt("go")
        async for event in turn:
            if isinstance(event, e.AgentMessage):
                break
        with pytest.raises(CancelIgnored):
            await soon(session.cancel())


CRASHES = {
    "a crash": faults.crash(),
    "half a frame": faults.half_frame(),
    "a question nobody answers": faults.ask_and_crash(),
}


@pytest.mark.parametrize("fault", CRASHES.values(), ids=CRASHES)
async def test_a_crash_ends_the_turn_with_an_error(fault: steps.Step, tmp_path: Path) -> None:
    async with session_with(ScriptedAgent([say("a"), fault]), tmp_path) as (_, session):
        with pytest.raises(ConnectionLost):
            async for _ in session.prompt("go"):
                pass
        assert session.state.pending == {}
        assert session.state.turns[0].error is not None


async def test_faults_of_a_process_need_a_process(tmp_path: Path) -> None:
    for fault in (faults.stop_reading(), faults.linger(), faults.ignore_term()):
        async with session_with(ScriptedAgent([fault]), tmp_path) as (_, session):
            with pytest.raises(InternalError):
                await session.prompt("go")


async def test_close_ends_the_connections(tmp_path: Path) -> None:
    agent = ScriptedAgent([wait_for_cancel()])
    async with session_with(agent, tmp_path) as (_, session):
        turn = session.prompt("go")
        agent.close()
        with pytest.raises(ConnectionLost):
            async for _ in turn:
                pass


async def test_a_script_sees_the_turn(tmp_path: Path) -> None:
    seen: list[object] = []

    async def script(turn: AgentTurn) -> None:
        seen.extend([turn.text, turn.cwd, turn.mode, turn.client.terminal, turn.agent.info.name])

    agent = ScriptedAgent(script, modes=MODES)
    async with session_with(agent, tmp_path) as (_, session):
        await session.prompt("hello")
    assert seen == ["hello", str(tmp_path), "ask", True, "scripted"]

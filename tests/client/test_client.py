"""Connecting: the handshake, what each side offers, signing in, and the end of it all."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.clients import gathered, next_of, opened, started, until
from support.fake_terminals import FakeTerminals
from support.peers import soon
from support.raw_agent import RawAgent, Refusal

import dragoman
from dragoman import (
    AgentCommand,
    Client,
    HostCapabilities,
    ModelProvider,
    Policy,
    Rule,
    Timeouts,
    load_settings,
)
from dragoman.agents.settings.settings_file import AgentSettings
from dragoman.client.capabilities import AgentInfo, AuthMethod
from dragoman.errors import (
    AuthRequired,
    CallTimeout,
    CommandNotFound,
    ConnectionClosed,
    InvalidMessage,
    NotAnAgent,
    RemoteError,
    SessionGone,
    UnknownAgent,
    Unsupported,
    VersionMismatch,
)
from dragoman.session import events as e
from dragoman.transport.transport import Transport

AUTH_METHODS = [
    {"id": "oauth", "name": "Sign in with a browser", "description": "opens a page"},
    {"id": "term", "name": "Sign in here", "type": "terminal", "args": ["login", "--now"]},
]


# ── the handshake ─────────────────────────────────────────────────────────────────────────────


async def test_entering_the_client_shakes_hands() -> None:
    agent = RawAgent(welcome={"authMethods": AUTH_METHODS})
    async with started(agent) as client:
        assert client.protocol_version == 1
        assert client.agent_info == AgentInfo("raw", "7")
        assert client.name == "raw"
        assert client.capabilities.load
        assert client.capabilities.set_title
        assert [method.id for method in client.auth_methods] == ["oauth", "term"]
        assert client.auth_methods[1] == AuthMethod(
            "term", "Sign in here", "terminal", args=["login", "--now"]
        )
    assert [message["method"] for message in agent.received] == ["initialize"]


async def test_we_say_who_we_are_and_what_we_offer() -> None:
    agent = RawAgent()
    async with started(agent):
        (params,) = agent.sent("initialize")
    assert params["protocolVersion"] == 1
    assert params["clientInfo"] == {
        "name": "dragoman",
        "title": "Dragoman",
        "version": dragoman.__version__,
    }
    offered = params["clientCapabilities"]
    assert offered["fs"] == {"readTextFile": True, "writeTextFile": True}
    assert offered["terminal"] is True
    assert offered["elicitation"] == {"form": {}, "url": {}}
    assert offered["session"] == {
        "compaction": {},
        "notices": {},
        "configOptions": {"boolean": {}},
    }
    assert offered["plan"] == {}
    assert offered["auth"] == {}


async def test_an_agent_that_says_nothing_of_itself_is_taken_as_it_is() -> None:
    agent = RawAgent(initialize={"protocolVersion": 1})
    async with started(agent) as client:
        assert client.agent_info == AgentInfo()
        assert client.capabilities.raw == {}
        assert not client.capabilities.load


async def test_capabilities_that_have_no_name_here_are_kept_as_told() -> None:
    agent = RawAgent({"loadSession": True, "_meta": {"goose": {"x": 1}}, "future": [1]})
    async with started(agent) as client:
        assert client.capabilities.raw["_meta"] == {"goose": {"x": 1}}
        assert client.capabilities.raw["future"] == [1]


async def test_capabilities_of_the_wrong_type_are_taken_as_not_offered() -> None:
    agent = RawAgent(welcome={"agentCapabilities": "all of them"})
    async with started(agent) as client:
        assert client.capabilities.raw == {}
        assert not client.capabilities.load


@pytest.mark.parametrize("version", [0, 2, 99])
async def test_another_version_of_the_protocol_is_refused(version: int) -> None:
    agent = RawAgent(welcome={"protocolVersion": version})
    with pytest.raises(VersionMismatch, match=f"version {version}") as caught:
        async with started(agent):
            pass
    assert caught.value.version == version


async def test_a_handshake_that_makes_no_sense_is_an_error() -> None:
    with pytest.raises(InvalidMessage):
        async with started(RawAgent(initialize={"protocolVersion": "one"})):
            pass


async def test_an_agent_that_refuses_the_handshake_is_an_error() -> None:
    def refuse(params: Any) -> Any:
        raise Refusal(-32603, "broken")

    with pytest.raises(RemoteError, match="broken"):
        async with started(RawAgent(initialize=refuse)):
            pass


async def test_an_agent_that_never_answers_is_given_up() -> None:
    timeouts = Timeouts(initialize=0.02)
    with pytest.raises(CallTimeout, match="initialize"):
        async with started(RawAgent(initialize=None), timeouts=timeouts):
            pass


async def test_an_agent_that_goes_away_in_the_handshake_is_an_error() -> None:
    agent = RawAgent(initialize=None)
    transport = agent.connect()
    await agent.vanish()
    with pytest.raises(ConnectionClosed):
        async with Client.start(transport):
            pass


async def test_nothing_can_be_done_before_entering(tmp_path: Path) -> None:
    client = Client.start(RawAgent().connect())
    with pytest.raises(ConnectionClosed, match="not connected"):
        await client.new_session(tmp_path)


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UnknownAgent, match="no agent 'nobody'; known agents: demo"):
        Client.start("nobody")


@pytest.mark.parametrize("odd", [5, None, load_settings, AgentSettings(name="a", url="ws://x")])
def test_what_is_no_agent_is_an_error_at_once(odd: Any) -> None:
    with pytest.raises(TypeError, match="expected the name or address of an agent"):
        Client.start(odd)


async def test_a_command_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(CommandNotFound, match="no-such-agent"):
        async with Client.start(AgentCommand("/no/such/no-such-agent")):
            pass


async def test_a_program_that_prints_a_banner_and_exits_is_no_agent() -> None:
    command = AgentCommand(sys.executable, ("-c", "print('This tool has moved.')"))
    with pytest.raises(NotAnAgent, match="ended before it spoke ACP") as caught:
        async with Client.start(command):
            pass
    assert "This tool has moved." in str(caught.value)


def test_a_client_is_called_what_it_is_started_with() -> None:
    assert Client.start("demo").name == "demo"
    assert Client.start(AgentCommand("/usr/bin/goose", ("acp",))).name == "goose"
    assert Client.start(AgentCommand("npx"), name="gemini").name == "gemini"


# ── what we offer ─────────────────────────────────────────────────────────────────────────────

SWITCHES = [
    ("read_files", "fs/read_text_file", {"path": "/x"}),
    ("write_files", "fs/write_text_file", {"path": "/x", "content": ""}),
    ("terminals", "terminal/create", {"command": "ls"}),
    ("terminals", "terminal/output", {"terminalId": "x"}),
    ("terminals", "terminal/wait_for_exit", {"terminalId": "x"}),
    ("terminals", "terminal/kill", {"terminalId": "x"}),
    ("terminals", "terminal/release", {"terminalId": "x"}),
    ("elicitation", "elicitation/create", {"message": "?", "mode": "form"}),
]


@pytest.mark.parametrize(("switch", "method", "params"), SWITCHES)
async def test_what_is_switched_off_is_neither_advertised_nor_served(
    switch: str, method: str, params: dict[str, Any], tmp_path: Path
) -> None:
    agent = RawAgent()
    capabilities = msgspec.structs.replace(HostCapabilities(), **{switch: False})
    async with opened(agent, tmp_path, capabilities=capabilities, policy=Policy(yolo=True)):
        answer = await agent.ask(method, {"sessionId": "s1", **params})
        assert answer["error"]["code"] == -32601
    offered = agent.sent("initialize")[0]["clientCapabilities"]
    fs = offered.get("fs", {})
    told = {
        "read_files": fs.get("readTextFile", False),
        "write_files": fs.get("writeTextFile", False),
        "terminals": offered.get("terminal", False),
        "elicitation": "elicitation" in offered,
    }
    assert told == {name: name != switch for name in told}


async def test_writing_is_offered_only_when_something_could_allow_it(tmp_path: Path) -> None:
    agent = RawAgent()
    never = Policy([Rule(effect="deny", operation="write")])
    async with opened(agent, tmp_path, policy=never):
        params = {"sessionId": "s1", "path": str(tmp_path / "a"), "content": ""}
        answer = await agent.ask("fs/write_text_file", params)
        assert answer["error"]["code"] == -32601
    offered = agent.sent("initialize")[0]["clientCapabilities"]
    assert offered["fs"] == {"readTextFile": True}


async def test_what_rules_deny_altogether_is_not_offered(tmp_path: Path) -> None:
    agent = RawAgent()
    never = Policy(
        [Rule(effect="deny", operation="execute"), Rule(effect="deny", operation="read")]
    )
    async with opened(agent, tmp_path, policy=never):
        answer = await agent.ask("terminal/create", {"sessionId": "s1", "command": "ls"})
        assert answer["error"]["code"] == -32601
    offered = agent.sent("initialize")[0]["clientCapabilities"]
    assert offered["fs"] == {"writeTextFile": True}
    assert not offered.get("terminal")


async def test_a_deny_rule_with_a_condition_leaves_the_rest_on_offer(tmp_path: Path) -> None:
    agent = RawAgent()
    some = [Rule(effect="deny", operation="execute", argv_prefix=("rm",))]
    async with opened(agent, tmp_path, policy=Policy(some)):
        pass
    assert agent.sent("initialize")[0]["clientCapabilities"]["terminal"] is True


async def test_signing_in_through_a_terminal_is_offered_when_asked_for() -> None:
    agent = RawAgent()
    async with started(agent, capabilities=HostCapabilities(terminal_sign_in=True, meta={"a": 1})):
        pass
    offered = agent.sent("initialize")[0]["clientCapabilities"]
    assert offered["auth"] == {"terminal": True}
    assert offered["_meta"] == {"terminal_output": True, "a": 1}


# ── what the agent offers ─────────────────────────────────────────────────────────────────────

NOT_OFFERED: list[tuple[str, list[Any]]] = [
    ("load_session", ["s", "."]),
    ("resume_session", ["s", "."]),
    ("fork_session", ["s", "."]),
    ("delete_session", ["s"]),
    ("archive_session", ["s"]),
    ("unarchive_session", ["s"]),
    ("session_status", ["s"]),
    ("logout", []),
    ("auth_status", []),
    ("list_providers", []),
    ("set_provider", ["p", "openai", "https://x"]),
    ("disable_provider", ["p"]),
]


@pytest.mark.parametrize(("name", "arguments"), NOT_OFFERED)
async def test_what_the_agent_does_not_offer_is_not_asked_for(
    name: str, arguments: list[Any]
) -> None:
    agent = RawAgent({})
    async with started(agent) as client:
        with pytest.raises(Unsupported, match="the agent does not support"):
            await getattr(client, name)(*arguments)
    assert len(agent.received) == 1


async def test_sessions_of_an_agent_that_has_no_list_are_not_asked_for() -> None:
    agent = RawAgent({})
    async with started(agent) as client:
        with pytest.raises(Unsupported, match="session/list"):
            async for _ in client.list_sessions():
                pass
    assert len(agent.received) == 1


# ── signing in ────────────────────────────────────────────────────────────────────────────────


async def test_signing_in_goes_through_authenticate() -> None:
    agent = RawAgent(welcome={"authMethods": AUTH_METHODS}, authenticate={})
    async with started(agent) as client:
        await client.authenticate("oauth")
    assert agent.sent("authenticate") == [{"methodId": "oauth"}]


@pytest.mark.parametrize(
    ("method", "why"),
    [("term", "in a terminal"), ("magic", "unknown sign-in method 'magic'.*oauth")],
)
async def test_other_methods_are_never_passed_to_authenticate(method: str, why: str) -> None:
    agent = RawAgent(welcome={"authMethods": AUTH_METHODS})
    async with started(agent) as client:
        with pytest.raises(ValueError, match=why):
            await client.authenticate(method)
    assert agent.sent("authenticate") == []


def wants_sign_in(params: Any) -> Any:
    raise Refusal(-32000, "Authentication required", {"hint": 1})


async def test_a_wanted_sign_in_names_the_methods_and_how_to_use_each(tmp_path: Path) -> None:
    agent = RawAgent(welcome={"authMethods": AUTH_METHODS}, session__new=wants_sign_in)
    async with started(agent) as client:
        with pytest.raises(AuthRequired) as caught:
            await client.new_session(tmp_path)
    sentence = str(caught.value)
    assert "Authentication required" in sentence
    assert "'oauth' (Sign in with a browser: opens a page), through authenticate" in sentence
    assert "'term' (Sign in here), by running the agent's command with 'login --now'" in sentence
    assert (caught.value.code, caught.value.data) == (-32000, {"hint": 1})


async def test_a_wanted_sign_in_without_methods_says_so(tmp_path: Path) -> None:
    async with started(RawAgent(session__fork=wants_sign_in)) as client:
        with pytest.raises(AuthRequired, match="it offers no sign-in method"):
            await client.fork_session("s", tmp_path)


async def test_a_session_that_wants_a_sign_in_is_not_taken_for_lost(tmp_path: Path) -> None:
    agent = RawAgent(session__load=wants_sign_in)
    async with started(agent) as client:
        with pytest.raises(AuthRequired):
            await client.ensure_session("s", tmp_path, allow_new=True)
    assert agent.sent("session/new") == []


async def test_a_turn_that_wants_a_sign_in_says_how(tmp_path: Path) -> None:
    agent = RawAgent(welcome={"authMethods": AUTH_METHODS}, session__prompt=wants_sign_in)
    async with opened(agent, tmp_path) as (_, session):
        with pytest.raises(AuthRequired, match="through authenticate"):
            await session.prompt("hi")


async def test_signing_out_and_asking_whether_one_is_signed_in() -> None:
    agent = RawAgent(logout={}, auth__status={"state": "authenticated"})
    async with started(agent) as client:
        await client.logout()
        assert await client.auth_status() == "authenticated"
    assert (agent.sent("logout"), agent.sent("auth/status")) == ([{}], [{}])


async def test_providers_are_listed_set_and_disabled() -> None:
    provider = {"providerId": "main", "supported": ["openai"], "required": False}
    agent = RawAgent(providers__list={"providers": [provider]})
    async with started(agent) as client:
        (told,) = await client.list_providers()
        assert told["providerId"] == "main"
        await client.set_provider("main", "openai", "https://x", {"h": "v"})
        await client.disable_provider("main")
    assert agent.sent("providers/set") == [
        {"providerId": "main", "apiType": "openai", "baseUrl": "https://x", "headers": {"h": "v"}}
    ]
    assert agent.sent("providers/disable") == [{"providerId": "main"}]


GATEWAY = ModelProvider(api_type="openai", base_url="https://x", headers={"h": "v"})
GATEWAY_SENT = {"apiType": "openai", "baseUrl": "https://x", "headers": {"h": "v"}}


async def test_providers_are_set_as_soon_as_the_agent_has_started(tmp_path: Path) -> None:
    agent = RawAgent()
    providers = {"main": GATEWAY, "other": None}
    async with opened(agent, tmp_path, model_providers=providers):
        assert agent.sent("providers/set") == [{"providerId": "main"} | GATEWAY_SENT]
        assert agent.sent("providers/disable") == [{"providerId": "other"}]
    methods = [each["method"] for each in agent.received if "method" in each]
    assert methods.index("providers/set") < methods.index("session/new")


async def test_an_agent_that_cannot_use_the_providers_that_are_set_does_not_start() -> None:
    agent = RawAgent({})
    with pytest.raises(Unsupported, match="the model providers that are set for it"):
        await Client.start(agent.connect(), model_providers={"main": GATEWAY}).__aenter__()
    assert agent.sent("providers/set") == []


# ── who listens in ────────────────────────────────────────────────────────────────────────────


async def test_the_tap_sees_every_frame_both_ways(tmp_path: Path) -> None:
    frames: list[tuple[str, dict[str, Any]]] = []
    agent = RawAgent()

    def tap(direction: str, frame: bytes) -> None:
        frames.append((direction, msgspec.json.decode(frame)))

    async with opened(agent, tmp_path, tap=tap):
        pass
    assert [message for direction, message in frames if direction == "sent"] == agent.received
    assert [direction for direction, _ in frames] == ["sent", "received"] * 2


async def test_a_listener_that_fails_does_not_break_the_conversation(tmp_path: Path) -> None:
    def listen(session: dragoman.Session, event: e.Event) -> None:
        raise OSError("disk full")

    agent = RawAgent(session__prompt={"stopReason": "end_turn"})
    async with opened(agent, tmp_path, listen=listen) as (_, session):
        turn = await session.prompt("hi")
    assert turn.stop_reason == "end_turn"


# ── the end ───────────────────────────────────────────────────────────────────────────────────


class Order(FakeTerminals):
    """A transport and a terminals provider that note when they are ended."""

    def __init__(self, transport: Transport) -> None:
        super().__init__()
        self._transport = transport

    async def receive(self) -> bytes:
        return await self._transport.receive()

    def send(self, data: bytes) -> None:
        self._transport.send(data)

    async def drain(self) -> None:
        await self._transport.drain()

    @property
    def pending(self) -> int:
        return self._transport.pending

    async def failure(self, *, spoke: bool, printed: str) -> Any:
        return await self._transport.failure(spoke=spoke, printed=printed)

    async def aclose(self) -> None:
        self.released.append("transport")
        await self._transport.aclose()


async def test_closing_ends_terminals_before_the_transport(tmp_path: Path) -> None:
    order = Order(RawAgent().connect())
    async with Client.start(order, terminals=order) as client:
        await client.new_session(tmp_path)
    assert order.released == ["all of s1", "transport"]


async def test_closing_the_client_ends_its_sessions(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (client, session):
        events = session.events()
        turn = session.prompt("hi")
        await agent.expect("session/prompt")
        await client.aclose()
        assert [type(event) for event in await gathered(events)] == [
            e.TurnStarted,
            e.TurnEnded,
            e.SessionClosed,
        ]
        with pytest.raises(ConnectionClosed, match="the client was closed"):
            await soon(turn)
        assert not session.state.open
        with pytest.raises(SessionGone):
            session.prompt("again")
        assert await gathered(session.events()) == []


async def test_an_agent_lost_between_turns_is_told_of(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (client, session):
        events = session.events()
        await agent.vanish()
        notice = await next_of(events, e.Notice)
        assert (notice.severity, notice.source) == ("error", "client")
        assert "closed the connection" in notice.text
        await until(lambda: client.connection_error is not None)
        with pytest.raises(ConnectionClosed):
            session.prompt("hi")
        assert session.state.open


async def test_a_closed_client_can_be_closed_again() -> None:
    async with started(RawAgent()) as client:
        await client.aclose()
        await client.aclose()

"""The beginning of a conversation: the handshake, a session, a prompt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from dragoman.conformance.check import Checks, Level, expect, page
from dragoman.conformance.client_stage.pretend_agent import SESSION, WELCOME
from dragoman.conformance.client_stage.stage import ClientStage, chunk, told
from dragoman.conformance.probing.loose_json import at, is_text, objects
from dragoman.conformance.probing.pretend_host import AgentRequest

checks: Checks[ClientStage] = Checks("client", page("initialization"))
_VERSIONS = page("initialization#version-negotiation")
_SETUP = page("session-setup#creating-a-session")
_PROMPT = page("prompt-turn#1-user-message")

Fault: TypeAlias = str | None
"""What is wrong with a request; None for nothing."""


def _request(
    key: str,
    says: str,
    method: str,
    fault: Callable[[AgentRequest], Fault],
    *,
    expects: str,
    page_: str = "",
    does: str = "",
    level: Level = "must",
) -> None:
    """The first request of this method has to be right."""
    add = checks.must if level == "must" else checks.should

    @add(key, says, page=page_, does=does or f"reads `{method}`", expects=expects)
    async def asks_rightly(stage: ClientStage) -> None:
        await stage.connect()
        asked = await stage.asked(method)
        wrong = fault(asked)
        expect(wrong is None, wrong or "", asked.frame)


# ── the handshake ─────────────────────────────────────────────────────────────────────────────


@checks.must(
    "initialize.first",
    "The first message of a client is `initialize`.",
    does="waits for the first message",
    expects="the request `initialize`",
)
async def introduces_itself_first(stage: ClientStage) -> None:
    await stage.prompted()
    first = stage.probe.received[0]
    expect(first.message.get("method") == "initialize", "it is not initialize", first.frame)


@checks.must(
    "initialize.once",
    "A connection is initialized once.",
    does="waits for the prompt",
    expects="one `initialize` request",
)
async def introduces_itself_once(stage: ClientStage) -> None:
    await stage.prompted()
    count = len(stage.agent.of("initialize"))
    expect(count == 1, f"initialize was sent {count} times")


def _version_fault(asked: AgentRequest) -> Fault:
    version = asked.params.get("protocolVersion")
    return None if type(version) is int else f"protocolVersion is {version!r}"


def _info_fault(asked: AgentRequest) -> Fault:
    for name in ("name", "version"):
        text = at(asked.params, "clientInfo", name)
        if not is_text(text):
            return f"clientInfo.{name} is {text!r}"
    return None


_FLAGS = (("fs", "readTextFile"), ("fs", "writeTextFile"), ("terminal",))


def _flags_fault(asked: AgentRequest) -> Fault:
    for path in _FLAGS:
        value = at(asked.params, "clientCapabilities", *path)
        if value is not None and not isinstance(value, bool):
            return f"{'.'.join(path)} is {value!r}"
    return None


_request(
    "initialize.version",
    "A client requests the latest protocol version that it supports, an integer.",
    "initialize",
    _version_fault,
    page_=_VERSIONS,
    expects="an integer `protocolVersion`",
)
_request(
    "initialize.client-info",
    "A client states its name and version.",
    "initialize",
    _info_fault,
    expects="`clientInfo` with the strings `name` and `version`",
    level="should",
)
_request(
    "initialize.flags",
    "The file and terminal capabilities of a client are booleans.",
    "initialize",
    _flags_fault,
    page_=page("initialization#client-capabilities"),
    expects="each is `true`, `false` or omitted",
)


@checks.must(
    "initialize.waits",
    "A client sends no other request before it knows the capabilities of the agent.",
    does="delays the response to `initialize` for a moment",
    expects="no other request before the response",
)
async def waits_for_the_answer(stage: ClientStage) -> None:
    stage.hold("initialize")
    await stage.connect()
    asked = await stage.asked("initialize")
    await stage.moment()
    for other in stage.agent.asked[1:]:
        expect(False, f"{other.method} was sent before the response to initialize", other.frame)
    stage.probe.grant(asked, WELCOME)


@checks.should(
    "initialize.unsupported",
    "A client that does not support the agent's version closes the connection.",
    page=_VERSIONS,
    does="responds to `initialize` with version 4242",
    expects="the client closes the connection, and creates no session",
)
async def leaves_a_stranger(stage: ClientStage) -> None:
    stage.agent.replies["initialize"] = {**WELCOME, "protocolVersion": 4242}
    await stage.connect()
    await stage.asked("initialize")
    await stage.over("a response with an unsupported version")
    expect(not stage.agent.of("session/new"), "it created a session anyway")


@checks.must(
    "initialize.minimal",
    "A capability that the agent omits is not supported.",
    page=page("initialization#agent-capabilities"),
    does="responds to `initialize` with only the version",
    expects="a session and a prompt",
)
async def takes_the_least(stage: ClientStage) -> None:
    stage.agent.replies["initialize"] = {"protocolVersion": 1}
    await stage.prompted()


@checks.must(
    "initialize.unknown-fields",
    "Unknown fields, unknown capabilities and `_meta` have no effect.",
    page=page("extensibility"),
    does="responds to `initialize` with unknown fields, unknown capabilities and `_meta`",
    expects="a session and a prompt",
)
async def ignores_unknown_fields(stage: ClientStage) -> None:
    more: Any = {**WELCOME["agentCapabilities"], "_conformance": {"a": [1]}}
    meta = {"conformance.example/a": None}
    await stage.prompted(welcome={"agentCapabilities": more, "_other": 1, "_meta": meta})


def _refused(key: str, method: str, next_: str, code: int, what: str) -> None:
    @checks.must(
        key,
        "A client that cannot continue gives up instead of waiting forever.",
        page=page("authentication") if code == -32000 else "",
        does=f"responds to `{method}` with {what}",
        expects=f"the client closes the connection, without `{next_}`",
    )
    async def leaves(stage: ClientStage) -> None:
        stage.fail(method, code)
        await stage.connect()
        await stage.asked(method)
        await stage.over(f"an error in response to {method}")
        expect(not stage.agent.of(next_), f"it sent {next_} anyway")


_refused("initialize.error", "initialize", "session/new", -32603, "an error")
_refused("session.error", "session/new", "session/prompt", -32603, "an error")
_refused(
    "session.sign-in",
    "session/new",
    "session/prompt",
    -32000,
    "the error that requires authentication",
)


# ── a session ─────────────────────────────────────────────────────────────────────────────────


def _folder_fault(asked: AgentRequest) -> Fault:
    folder = asked.params.get("cwd")
    return None if str(folder).startswith("/") else f"cwd is {folder!r}"


def _servers_fault(asked: AgentRequest) -> Fault:
    servers = asked.params.get("mcpServers")
    if not isinstance(servers, list):
        return f"mcpServers is {servers!r}"
    kinds = {each.get("type", "stdio") for each in objects(asked.params["mcpServers"])}
    return None if kinds <= {"stdio"} else "the agent did not advertise this kind of server"


_request(
    "session.folder",
    "The working directory of a session is an absolute path.",
    "session/new",
    _folder_fault,
    page_=_SETUP,
    expects="`cwd` is absolute",
)
_request(
    "session.mcp-servers",
    "A client lists the MCP servers of the session, even if there are none.",
    "session/new",
    _servers_fault,
    page_=page("session-setup#mcp-servers"),
    expects="`mcpServers`, a list of servers that the agent can connect to",
)

_ODD_ID = "Séance/☃ 1=?&"


@checks.must(
    "session.id",
    "Session ids are opaque strings to the client.",
    page=page("session-setup#session-id"),
    does=f"creates a session with the id `{_ODD_ID}`",
    expects="a prompt with exactly this id",
)
async def keeps_the_id(stage: ClientStage) -> None:
    stage.agent.replies["session/new"] = {"sessionId": _ODD_ID}
    asked = await stage.prompted()
    named = asked.params.get("sessionId")
    expect(named == _ODD_ID, f"the session id is {named!r}", asked.frame)


@checks.must(
    "session.advertised",
    "A client calls only methods that the agent advertises.",
    page=page("initialization#session-capabilities"),
    does="advertises nothing, and plays a turn",
    expects="only `initialize`, `session/new` and `session/prompt`",
)
async def asks_for_what_there_is(stage: ClientStage) -> None:
    await stage.prompted()
    stage.end()
    await stage.moment()
    for asked in stage.agent.asked:
        known = asked.method in ("initialize", "session/new", "session/prompt")
        own = asked.method.startswith("_")
        expect(known or own, f"{asked.method} was not advertised", asked.frame)


@checks.should(
    "session.early-update",
    "Updates of a session may arrive before the response to `session/new`.",
    page=page("prompt-turn#3-agent-reports-output"),
    does="sends an update of the session before the response to `session/new`",
    expects="a prompt",
)
async def takes_early_updates(stage: ClientStage) -> None:
    stage.hold("session/new")
    await stage.connect()
    asked = await stage.asked("session/new")
    stage.probe.send(told(chunk("early"), SESSION))
    stage.probe.grant(asked, {"sessionId": SESSION})
    await stage.asked("session/prompt")


# ── a prompt ──────────────────────────────────────────────────────────────────────────────────


def _blocks_fault(asked: AgentRequest) -> Fault:
    blocks = objects(asked.params.get("prompt"))
    if not blocks:
        return "the prompt is empty"
    return None if all(is_text(each.get("type")) for each in blocks) else "a block has no type"


def _baseline_fault(asked: AgentRequest) -> Fault:
    kinds = [each.get("type") for each in objects(asked.params.get("prompt"))]
    odd = [kind for kind in kinds if kind in ("image", "audio", "resource")]
    return f"it has a block of the type {odd[0]!r}" if odd else None


_request(
    "prompt.blocks",
    "A prompt is a list of content blocks, each with a type.",
    "session/prompt",
    _blocks_fault,
    page_=_PROMPT,
    expects="at least one block, each with a `type`",
)
_request(
    "prompt.baseline",
    "Images, audio and embedded resources are only sent to agents that advertise them.",
    "session/prompt",
    _baseline_fault,
    page_=_PROMPT,
    does="advertises none of them",
    expects="only text and resource links",
)

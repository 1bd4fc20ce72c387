"""The beginning of a conversation: the handshake, a session, a prompt."""

from __future__ import annotations

import asyncio
from typing import Any

from dragoman.conformance.check import Checks, expect, page
from dragoman.conformance.client_stage.pretend_agent import SESSION, WELCOME
from dragoman.conformance.client_stage.stage import ClientStage, chunk, told
from dragoman.conformance.loose_json import at, is_text, objects

checks: Checks[ClientStage] = Checks("client", page("initialization"))
_SETUP = page("session-setup#creating-a-session")
_PROMPT = page("prompt-turn#1-user-message")
_A_MOMENT = 0.3


@checks.must(
    "initialize.first",
    "A client introduces itself before it sends anything else.",
    does="waits for the first message",
    expects="the request `initialize`",
)
async def introduces_itself_first(stage: ClientStage) -> None:
    await stage.prompted()
    first = stage.probe.received[0]
    expect(first.message.get("method") == "initialize", "it is not initialize", first.frame)


@checks.must(
    "initialize.once",
    "A connection is introduced once.",
    does="waits for the prompt",
    expects="one `initialize`",
)
async def introduces_itself_once(stage: ClientStage) -> None:
    await stage.prompted()
    count = len(stage.agent.of("initialize"))
    expect(count == 1, f"initialize was sent {count} times")


@checks.must(
    "initialize.version",
    "A client says the latest version it supports, an integer.",
    page=page("initialization#version-negotiation"),
    does="looks at `initialize`",
    expects="an integer `protocolVersion`",
)
async def says_its_version(stage: ClientStage) -> None:
    await stage.connect()
    asked = await stage.asked("initialize")
    version = asked.params.get("protocolVersion")
    expect(type(version) is int, f"protocolVersion is {version!r}", asked.frame)


@checks.should(
    "initialize.client-info",
    "A client names itself and its version.",
    does="looks at `initialize`",
    expects="`clientInfo` with the texts `name` and `version`",
)
async def names_itself(stage: ClientStage) -> None:
    await stage.connect()
    asked = await stage.asked("initialize")
    for name in ("name", "version"):
        text = at(asked.params, "clientInfo", name)
        expect(is_text(text), f"clientInfo.{name} is {text!r}", asked.frame)


_FLAGS = (("fs", "readTextFile"), ("fs", "writeTextFile"), ("terminal",))


@checks.must(
    "initialize.flags",
    "Whether a client has files and terminals to offer is said with booleans.",
    page=page("initialization#client-capabilities"),
    does="looks at `clientCapabilities`",
    expects="`true`, `false` or nothing",
)
async def has_flags(stage: ClientStage) -> None:
    await stage.connect()
    asked = await stage.asked("initialize")
    for path in _FLAGS:
        value = at(asked.params, "clientCapabilities", *path)
        right = value is None or isinstance(value, bool)
        expect(right, f"{'.'.join(path)} is {value!r}", asked.frame)


@checks.must(
    "initialize.waits",
    "A client knows what the agent can do before it asks for anything.",
    does="answers `initialize` after a moment",
    expects="no other request before the answer",
)
async def waits_for_the_answer(stage: ClientStage) -> None:
    stage.hold("initialize")
    await stage.connect()
    asked = await stage.asked("initialize")
    await asyncio.sleep(_A_MOMENT)
    for other in stage.agent.asked[1:]:
        expect(False, f"{other.method} was sent before initialize was answered", other.frame)
    stage.probe.grant(asked, WELCOME)


@checks.should(
    "initialize.unsupported",
    "A client that does not support the agent's version does not continue in it.",
    page=page("initialization#version-negotiation"),
    does="answers `initialize` with version 4242",
    expects="the end of the connection, and no session",
)
async def leaves_a_stranger(stage: ClientStage) -> None:
    stage.agent.replies["initialize"] = {**WELCOME, "protocolVersion": 4242}
    await stage.connect()
    await stage.asked("initialize")
    await stage.over("an answer with an unsupported version")
    expect(not stage.agent.of("session/new"), "it made a session anyway")


@checks.must(
    "initialize.minimal",
    "A capability that an agent leaves out is one it does not have.",
    page=page("initialization#agent-capabilities"),
    does="answers `initialize` with nothing but the version",
    expects="a session, and a prompt",
)
async def takes_the_least(stage: ClientStage) -> None:
    stage.agent.replies["initialize"] = {"protocolVersion": 1}
    await stage.prompted()


@checks.must(
    "initialize.unknown-fields",
    "A capability that a client does not know changes nothing.",
    page=page("extensibility"),
    does="answers `initialize` with unknown fields, unknown capabilities and `_meta`",
    expects="a session, and a prompt",
)
async def ignores_unknown_fields(stage: ClientStage) -> None:
    more: Any = {**WELCOME["agentCapabilities"], "_conformance": {"a": [1]}}
    meta = {"conformance.example/a": None}
    await stage.prompted(welcome={"agentCapabilities": more, "_other": 1, "_meta": meta})


def _refused(key: str, method: str, next_: str, code: int, what: str) -> None:
    @checks.must(
        key,
        "A client that is refused what it needs ends, or says so; it does not wait forever.",
        page=page("authentication") if code == -32000 else "",
        does=f"answers `{method}` with {what}",
        expects=f"the end of the connection, and no `{next_}`",
    )
    async def leaves(stage: ClientStage) -> None:
        stage.fail(method, code)
        await stage.connect()
        await stage.asked(method)
        await stage.over(f"an error in answer to {method}")
        expect(not stage.agent.of(next_), f"it sent {next_} anyway")


_refused("initialize.error", "initialize", "session/new", -32603, "an error")
_refused("session.error", "session/new", "session/prompt", -32603, "an error")
_refused(
    "session.sign-in", "session/new", "session/prompt", -32000, "the error that asks for a sign-in"
)


@checks.must(
    "session.folder",
    "A session has a folder, which is an absolute path.",
    page=_SETUP,
    does="looks at `session/new`",
    expects="`cwd` begins with the root",
)
async def has_a_folder(stage: ClientStage) -> None:
    await stage.connect()
    asked = await stage.asked("session/new")
    folder = asked.params.get("cwd")
    expect(str(folder).startswith("/"), f"cwd is {folder!r}", asked.frame)


@checks.must(
    "session.mcp-servers",
    "A client lists the MCP servers for the session, even if the list is empty.",
    page=page("session-setup#mcp-servers"),
    does="looks at `session/new`",
    expects="`mcpServers`, a list of servers that the agent can reach",
)
async def names_mcp_servers(stage: ClientStage) -> None:
    await stage.connect()
    asked = await stage.asked("session/new")
    servers = asked.params.get("mcpServers")
    expect(isinstance(servers, list), f"mcpServers is {servers!r}", asked.frame)
    for server in objects(servers):
        reachable = server.get("type", "stdio") == "stdio"
        expect(reachable, "the agent did not advertise this kind of server", asked.frame)


_ODD_ID = "Séance/☃ 1=?&"


@checks.must(
    "session.id",
    "What an agent calls a session is a text, and means nothing to a client.",
    page=page("session-setup#session-id"),
    does=f"calls the session `{_ODD_ID}`",
    expects="a prompt with exactly this id",
)
async def keeps_the_id(stage: ClientStage) -> None:
    stage.agent.replies["session/new"] = {"sessionId": _ODD_ID}
    asked = await stage.prompted()
    named = asked.params.get("sessionId")
    expect(named == _ODD_ID, f"the session is {named!r}", asked.frame)


@checks.must(
    "session.advertised",
    "A client uses no method of an agent that it does not advertise.",
    page=page("initialization#session-capabilities"),
    does="advertises nothing, and plays a turn",
    expects="no request but `initialize`, `session/new` and `session/prompt`",
)
async def asks_for_what_there_is(stage: ClientStage) -> None:
    await stage.prompted()
    stage.end()
    await asyncio.sleep(_A_MOMENT)
    for asked in stage.agent.asked:
        known = asked.method in ("initialize", "session/new", "session/prompt")
        own = asked.method.startswith("_")
        expect(known or own, f"{asked.method} was not advertised", asked.frame)


@checks.should(
    "session.early-update",
    "Updates of a session may come before the answer that names it.",
    page=page("prompt-turn#3-agent-reports-output"),
    does="sends an update of the session before the answer to `session/new`",
    expects="a prompt",
)
async def takes_early_updates(stage: ClientStage) -> None:
    stage.hold("session/new")
    await stage.connect()
    asked = await stage.asked("session/new")
    stage.probe.send(told(chunk("early"), SESSION))
    stage.probe.grant(asked, {"sessionId": SESSION})
    await stage.asked("session/prompt")


@checks.must(
    "prompt.blocks",
    "A prompt is a list of blocks, each with a type.",
    page=_PROMPT,
    does="looks at `session/prompt`",
    expects="one block or more, each with a `type`",
)
async def prompts_in_blocks(stage: ClientStage) -> None:
    asked = await stage.prompted()
    blocks = objects(asked.params.get("prompt"))
    expect(blocks != [], "the prompt is empty", asked.frame)
    for block in blocks:
        expect(is_text(block.get("type")), "a block has no type", asked.frame)


@checks.must(
    "prompt.baseline",
    "Images, audio and embedded resources are for agents that advertise them.",
    page=page("initialization#prompt-capabilities"),
    does="advertises none of them",
    expects="text and links to resources alone",
)
async def prompts_with_what_is_known(stage: ClientStage) -> None:
    asked = await stage.prompted()
    for block in objects(asked.params.get("prompt")):
        kind = block.get("type")
        expect(kind not in ("image", "audio", "resource"), f"it has a block {kind!r}", asked.frame)

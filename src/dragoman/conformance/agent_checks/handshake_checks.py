"""`initialize`: versions, capabilities, and what the agent says of itself; signing in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from dragoman.conformance.check import Checks, expect, not_applicable, page
from dragoman.conformance.examination.agent_words import hello
from dragoman.conformance.examination.examinee import Examinee
from dragoman.conformance.probing.loose_json import Wire, at, is_text, items, obj, objects
from dragoman.conformance.probing.probe import error_code, error_text, is_error

checks: Checks[Examinee] = Checks("agent", page("initialization"))
_VERSIONS = page("initialization#version-negotiation")
_CAPABILITIES = page("initialization#agent-capabilities")
_AUTHENTICATION = page("authentication")


@checks.must(
    "initialize.answer",
    "The response to `initialize` contains the protocol version chosen by the agent, an integer.",
    does="sends `initialize`",
    expects="a result with an integer `protocolVersion`",
)
async def chooses_a_version(examinee: Examinee) -> None:
    chosen = (await examinee.welcome()).get("protocolVersion")
    expect(type(chosen) is int, f"protocolVersion is {chosen!r}, not an integer")


@checks.must(
    "initialize.same-version",
    "An agent that supports the requested version responds with that version.",
    page=_VERSIONS,
    does="requests version 1",
    expects="`protocolVersion` is 1",
)
async def keeps_the_version(examinee: Examinee) -> None:
    chosen = (await examinee.welcome()).get("protocolVersion")
    expect(chosen in (1, None), f"requested protocol version 1, got {chosen!r}")


# ── other ways to say hello ───────────────────────────────────────────────────────────────────

_IsRight: TypeAlias = Callable[[Any], bool]


def _negotiation(
    key: str, says: str, params: Wire, does: str, expects: str, is_right: _IsRight, page_: str
) -> None:
    """On a connection of its own, since a connection is initialized once."""

    @checks.must(key, says, page=page_, does=does, expects=expects)
    async def negotiates(examinee: Examinee) -> None:
        async with examinee.stranger() as probe:
            reply = await probe.call("initialize", params)
        expect(not is_error(reply), f"initialize failed: {error_text(reply)}")
        chosen = at(reply, "result", "protocolVersion")
        expect(is_right(chosen), f"the agent chose the version {chosen!r}")


def _is_integer(chosen: Any) -> bool:
    return type(chosen) is int


def _is_anything(chosen: Any) -> bool:
    return True


_negotiation(
    "initialize.newer-version",
    "An agent that does not support the requested version responds with the latest one that it "
    "supports.",
    # An agent finds the fields that it looks for, in either version.
    {**hello(), **hello(version=2), "protocolVersion": 65535},
    "requests version 65535",
    "a result with a lower `protocolVersion`",
    lambda chosen: type(chosen) is int and 0 < chosen < 65535,
    _VERSIONS,
)
_negotiation(
    "initialize.older-version",
    "A request for an older, unsupported version gets the agent's own version, and the client "
    "decides what to do.",
    hello(version=0),
    "requests version 0",
    "a result with a `protocolVersion`, not an error",
    _is_integer,
    _VERSIONS,
)
_negotiation(
    "initialize.unknown-fields",
    "Unknown fields, unknown capabilities and `_meta` have no effect.",
    {
        **hello({"_conformance": {"flag": True}, "fs": {"_conformance": 1}}),
        "_meta": {"conformance.example/a": [1]},
        "_other": None,
    },
    "sends `initialize` with unknown fields, unknown capabilities and `_meta`",
    "a result",
    _is_anything,
    page("extensibility"),
)
_negotiation(
    "initialize.no-capabilities",
    "A capability that the client omits is not supported.",
    {"protocolVersion": 1},
    "sends `initialize` with only the version",
    "a result",
    _is_anything,
    page("initialization#client-capabilities"),
)


# ── what the agent says of itself ─────────────────────────────────────────────────────────────


@checks.should(
    "initialize.agent-info",
    "An agent states its name and version.",
    does="sends `initialize`",
    expects="`agentInfo` with the strings `name` and `version`",
)
async def introduces_itself(examinee: Examinee) -> None:
    welcome = await examinee.welcome()
    for name in ("name", "version"):
        expect(is_text(at(welcome, "agentInfo", name)), f"agentInfo.{name} is missing")


_FLAGS = (
    ("loadSession",),
    ("promptCapabilities", "image"),
    ("promptCapabilities", "audio"),
    ("promptCapabilities", "embeddedContext"),
    ("mcpCapabilities", "http"),
    ("mcpCapabilities", "sse"),
)


@checks.must(
    "initialize.flags",
    "Capabilities that are either supported or not are booleans.",
    page=_CAPABILITIES,
    does="reads `agentCapabilities`",
    expects="`loadSession`, and the prompt and MCP capabilities, are `true`, `false` or omitted",
)
async def has_flags(examinee: Examinee) -> None:
    for path in _FLAGS:
        value = at(await examinee.welcome(), "agentCapabilities", *path)
        expect(value is None or isinstance(value, bool), f"{'.'.join(path)} is {value!r}")


@checks.must(
    "initialize.session-capabilities",
    "Each supported session capability is an object.",
    page=page("initialization#session-capabilities"),
    does="reads `agentCapabilities.sessionCapabilities`",
    expects="each capability is an object, or omitted",
)
async def has_session_capabilities(examinee: Examinee) -> None:
    offered = await examinee.offers("sessionCapabilities")
    for name, value in obj(offered).items():
        expect(
            name == "_meta" or value is None or isinstance(value, dict),
            f"sessionCapabilities.{name} is {value!r}, not an object",
        )


@checks.must(
    "initialize.auth-methods",
    "Each authentication method has a unique id and a name.",
    page=_AUTHENTICATION,
    does="reads `authMethods`",
    expects="a list of objects with unique `id`s, each with a `name`",
)
async def has_auth_methods(examinee: Examinee) -> None:
    listed: Any = (await examinee.welcome()).get("authMethods")
    methods = objects(listed)
    all_objects = listed is None or len(methods) == len(items(listed))
    expect(all_objects, "an authentication method is not an object")
    for method in methods:
        named = is_text(method.get("id")) and is_text(method.get("name"))
        expect(named, "an authentication method has no id or no name")
    ids = [method["id"] for method in methods]
    expect(len(set(ids)) == len(ids), f"two authentication methods have one id: {sorted(ids)}")


@checks.must(
    "authenticate.unknown-method",
    "Only an authentication method that the agent lists can be used.",
    page=_AUTHENTICATION,
    does="calls `authenticate` with an unknown method id",
    expects="an error",
)
async def rejects_unknown_sign_in(examinee: Examinee) -> None:
    probe = await examinee.probe()
    reply = await probe.call("authenticate", {"methodId": "conformance-no-such-method"})
    expect(is_error(reply), "the unknown authentication method got a result")


@checks.must(
    "advertised.logout",
    "An agent that advertises `logout` implements it.",
    page=_AUTHENTICATION,
    does="calls `logout`, if it is advertised and the agent lists no authentication method",
    expects="any response except the error for an unknown method",
)
async def offers_logout(examinee: Examinee) -> None:
    await examinee.needs("auth", "logout")
    if (await examinee.welcome()).get("authMethods"):
        not_applicable("it would log the agent out")
    probe = await examinee.probe()
    reply = await probe.call("logout", {})
    expect(error_code(reply) != -32601, "logout is advertised but not implemented")

"""`initialize`: versions, capabilities, and what the agent says of itself; signing in."""

from __future__ import annotations

from typing import Any

from dragoman.conformance.check import Checks, expect, not_applicable, page
from dragoman.conformance.examination.examinee import AgentProbe, Examinee, hello
from dragoman.conformance.loose_json import Wire, at, is_text, items, obj, objects
from dragoman.conformance.pretend_host import NOTHING
from dragoman.conformance.probe import error_code, error_text, is_error

checks: Checks[Examinee] = Checks("agent", page("initialization"))
_VERSIONS = page("initialization#version-negotiation")
_CAPABILITIES = page("initialization#agent-capabilities")
_AUTHENTICATION = page("authentication")


async def _welcomed(probe: AgentProbe, params: Any) -> Wire:
    reply = await probe.call("initialize", params)
    expect(not is_error(reply), f"initialize was answered with an error: {error_text(reply)}")
    return obj(reply.get("result"))


@checks.must(
    "initialize.answer",
    "An agent answers `initialize` with the version of the protocol it has chosen, an integer.",
    does="sends `initialize`",
    expects="a result with an integer `protocolVersion`",
)
async def chooses_a_version(examinee: Examinee) -> None:
    chosen = (await examinee.welcome()).get("protocolVersion")
    expect(type(chosen) is int, f"protocolVersion is {chosen!r}, not an integer")


@checks.must(
    "initialize.same-version",
    "An agent that supports the version the client asks for answers with that version.",
    page=_VERSIONS,
    does="asks for version 1",
    expects="`protocolVersion` is 1",
)
async def keeps_the_version(examinee: Examinee) -> None:
    async with examinee.stranger() as probe:
        chosen = (await _welcomed(probe, hello(NOTHING))).get("protocolVersion")
    expect(chosen in (1, None), f"asked for version 1, the agent chose {chosen!r}")


@checks.must(
    "initialize.newer-version",
    "An agent that does not support the version asked for answers with its own latest one.",
    page=_VERSIONS,
    does="asks for version 65535",
    expects="a result with a lower `protocolVersion`",
)
async def lowers_a_version(examinee: Examinee) -> None:
    async with examinee.stranger() as probe:
        # Whatever the agent makes of the version, it finds the fields that it looks for.
        params = {**hello(), **hello(version=2), "protocolVersion": 65535}
        chosen = (await _welcomed(probe, params)).get("protocolVersion")
    expect(
        type(chosen) is int and 0 < chosen < 65535,
        f"asked for version 65535, the agent chose {chosen!r}",
    )


@checks.must(
    "initialize.older-version",
    "An agent answers a version it has left behind with its own, and lets the client decide.",
    page=_VERSIONS,
    does="asks for version 0",
    expects="a result with a `protocolVersion`, not an error",
)
async def raises_a_version(examinee: Examinee) -> None:
    async with examinee.stranger() as probe:
        chosen = (await _welcomed(probe, hello(version=0))).get("protocolVersion")
    expect(type(chosen) is int, f"asked for version 0, the agent chose {chosen!r}")


@checks.should(
    "initialize.agent-info",
    "An agent names itself and its version.",
    does="sends `initialize`",
    expects="`agentInfo` with the texts `name` and `version`",
)
async def introduces_itself(examinee: Examinee) -> None:
    welcome = await examinee.welcome()
    for name in ("name", "version"):
        expect(is_text(at(welcome, "agentInfo", name)), f"agentInfo.{name} is not a text")


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
    "The capabilities that an agent has or has not are booleans.",
    page=_CAPABILITIES,
    does="looks at `agentCapabilities`",
    expects="`loadSession` and the flags of prompts and of MCP are `true`, `false` or left out",
)
async def has_flags(examinee: Examinee) -> None:
    for path in _FLAGS:
        value = at(await examinee.welcome(), "agentCapabilities", *path)
        expect(value is None or isinstance(value, bool), f"{'.'.join(path)} is {value!r}")


@checks.must(
    "initialize.session-capabilities",
    "Each session capability is an object, present if the agent has it.",
    page=page("initialization#session-capabilities"),
    does="looks at `agentCapabilities.sessionCapabilities`",
    expects="objects, or nothing",
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
    "Every way to sign in has an id of its own and a name.",
    page=_AUTHENTICATION,
    does="looks at `authMethods`",
    expects="a list of objects with different `id`s and a `name` each",
)
async def has_auth_methods(examinee: Examinee) -> None:
    listed: Any = (await examinee.welcome()).get("authMethods")
    methods = objects(listed)
    expect(
        listed is None or len(methods) == len(items(listed)), "a sign-in method is not an object"
    )
    for method in methods:
        named = is_text(method.get("id")) and is_text(method.get("name"))
        expect(named, "a sign-in method lacks its id or its name")
    ids = [method["id"] for method in methods]
    expect(len(set(ids)) == len(ids), f"two sign-in methods have one id: {sorted(ids)}")


@checks.must(
    "initialize.unknown-fields",
    "A capability that an agent does not know, and `_meta`, change nothing.",
    page=page("extensibility"),
    does="sends `initialize` with unknown fields, unknown capabilities and `_meta`",
    expects="a result",
)
async def ignores_unknown_fields(examinee: Examinee) -> None:
    params = hello({"_conformance": {"flag": True}, "fs": {"_conformance": 1}})
    async with examinee.stranger() as probe:
        await _welcomed(probe, {**params, "_meta": {"conformance.example/a": [1]}, "_other": None})


@checks.must(
    "initialize.no-capabilities",
    "A client capability that is left out is one the client does not have.",
    page=page("initialization#client-capabilities"),
    does="sends `initialize` with nothing but the version",
    expects="a result",
)
async def takes_the_least(examinee: Examinee) -> None:
    async with examinee.stranger() as probe:
        await _welcomed(probe, {"protocolVersion": 1})


@checks.must(
    "authenticate.unknown-method",
    "A client signs in with one of the methods that the agent has listed.",
    page=_AUTHENTICATION,
    does="sends `authenticate` with a method the agent has not",
    expects="an error",
)
async def refuses_unknown_sign_in(examinee: Examinee) -> None:
    probe = await examinee.probe()
    reply = await probe.call("authenticate", {"methodId": "conformance-no-such-method"})
    expect(is_error(reply), "an unknown sign-in method was answered with a result")


@checks.must(
    "advertised.logout",
    "An agent that advertises signing out offers it.",
    page=_AUTHENTICATION,
    does="sends `logout`, if the agent advertises it and has no way to sign in that would be lost",
    expects="anything but the error for an unknown method",
)
async def offers_logout(examinee: Examinee) -> None:
    await examinee.needs("auth", "logout")
    if (await examinee.welcome()).get("authMethods"):
        not_applicable("it would sign the agent out")
    probe = await examinee.probe()
    reply = await probe.call("logout", {})
    expect(error_code(reply) != -32601, "logout is advertised and missing")

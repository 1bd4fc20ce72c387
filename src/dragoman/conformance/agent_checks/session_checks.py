"""Sessions: created, listed, loaded, resumed, closed and deleted; their modes and options."""

from __future__ import annotations

from typing import Any

from dragoman.conformance.check import (
    JSON_RPC,
    CheckFailed,
    Checks,
    NotApplicable,
    expect,
    not_applicable,
    page,
)
from dragoman.conformance.examination.agent_words import ended, prompt
from dragoman.conformance.examination.examinee import AgentProbe, Examinee
from dragoman.conformance.probing.loose_json import Wire, is_text, obj, objects
from dragoman.conformance.probing.probe import error_code, error_text, is_error

checks: Checks[Examinee] = Checks("agent", page("session-setup"))
_IDS = page("session-setup#session-id")
_LOAD = page("session-setup#loading-sessions")
_LIST = page("session-list")
_MODES = page("session-modes")
_OPTIONS = page("session-config-options")
_CAPABILITIES = page("initialization#session-capabilities")
_FORK = "https://agentclientprotocol.com/rfds/session-fork"
_NOBODYS = "conformance-no-such-session"
_MOST_PAGES = 50


@checks.must(
    "session.new",
    "A new session has an id, a non-empty string.",
    page=_IDS,
    does="calls `session/new`",
    expects="`sessionId`, a non-empty string",
)
async def has_an_id(examinee: Examinee) -> None:
    key = (await examinee.opened(await examinee.probe(), "project")).get("sessionId")
    expect(is_text(key), f"sessionId is {key!r}")


@checks.must(
    "session.own-id",
    "Session ids are unique.",
    page=_IDS,
    does="creates two sessions on one connection",
    expects="two different ids",
)
async def has_an_own_id(examinee: Examinee) -> None:
    probe = await examinee.probe()
    first, second = await examinee.twins(probe)
    expect(first != second, "two sessions have the same id")


# ── sessions that do not exist ────────────────────────────────────────────────────────────────


async def _stray_prompt(examinee: Examinee) -> Wire:
    """The response to a prompt for a session that was never created."""
    probe = await examinee.probe()
    try:
        return await probe.call("session/prompt", prompt(_NOBODYS, examinee.prompts.short))
    except CheckFailed:
        if examinee.by_line or probe.over is None:
            raise
        # Over HTTP, a status that says so may end the connection.
        return {"error": {"code": None, "message": str(probe.over)}}


@checks.must(
    "session.unknown-prompt",
    "A prompt must name an existing session.",
    does="prompts a session that was never created",
    expects="an error",
)
async def rejects_a_stray_prompt(examinee: Examinee) -> None:
    reply = await _stray_prompt(examinee)
    expect(is_error(reply), "a prompt for an unknown session got a result")


@checks.should(
    "session.unknown-code",
    "An internal error means that the agent failed; an unknown session id is the client's mistake.",
    page=JSON_RPC,
    does="prompts a session that was never created",
    expects="an error other than -32603",
)
async def blames_the_client(examinee: Examinee) -> None:
    reply = await _stray_prompt(examinee)
    if not is_error(reply):
        not_applicable("a prompt for an unknown session got a result")
    expect(error_code(reply) != -32603, f"it got an internal error: {error_text(reply)}")


@checks.should(
    "session.unknown-cancel",
    "Cancelling a session that does not exist has no effect.",
    page=page("prompt-turn#cancellation"),
    does="sends `session/cancel` for a session that was never created",
    expects="the agent still responds to requests",
)
async def ignores_a_stray_cancel(examinee: Examinee) -> None:
    probe = await examinee.probe()
    probe.notify("session/cancel", {"sessionId": _NOBODYS})
    await probe.settle("a cancel of an unknown session")


# ── load and resume ───────────────────────────────────────────────────────────────────────────

_TALK = ("user_message_chunk", "agent_message_chunk", "tool_call", "tool_call_update")
_LOADS = "loads a session with one turn, on a new connection"


def _talk(updates: list[Wire]) -> list[str]:
    return [str(told["sessionUpdate"]) for told in updates if told.get("sessionUpdate") in _TALK]


async def _loaded(examinee: Examinee) -> tuple[list[str], list[str]]:
    """What was replayed before the response to `session/load`, and after it."""
    await examinee.needs("loadSession")
    seen = await examinee.reopening("session/load")
    return _talk(seen.before), _talk(seen.after)


@checks.must(
    "load.replays",
    "Loading a session replays its entire conversation.",
    page=_LOAD,
    does=_LOADS,
    expects="updates that contain the agent's message",
)
async def replays_it(examinee: Examinee) -> None:
    before, after = await _loaded(examinee)
    expect("agent_message_chunk" in before + after, "the agent's message was not replayed")


@checks.must(
    "load.replays-prompts",
    "A replayed conversation includes the user's prompts.",
    page=_LOAD,
    does=_LOADS,
    expects="`user_message_chunk` updates with the prompt, before the agent's message",
)
async def replays_prompts(examinee: Examinee) -> None:
    before, after = await _loaded(examinee)
    talk, spoken = before + after, "agent_message_chunk"
    expect("user_message_chunk" in talk, "the prompt was not replayed")
    late = spoken in talk and talk.index(spoken) < talk.index("user_message_chunk")
    expect(not late, "the agent's message was replayed before the prompt")


@checks.must(
    "load.answers-last",
    "The response to `session/load` comes after the whole conversation was replayed.",
    page=_LOAD,
    does=_LOADS,
    expects="no replayed messages or tool calls after the response",
)
async def answers_last(examinee: Examinee) -> None:
    _, late = await _loaded(examinee)
    expect(not late, f"{len(late)} updates of the conversation came after the response")


@checks.must(
    "load.unknown",
    "A session that does not exist cannot be loaded.",
    page=_LOAD,
    does="loads a session that was never created",
    expects="an error",
)
async def loads_no_stranger(examinee: Examinee) -> None:
    await examinee.needs("loadSession")
    probe = await examinee.probe()
    reply = await probe.call("session/load", examinee.where(_NOBODYS))
    expect(is_error(reply), "an unknown session was loaded")


@checks.must(
    "resume.no-replay",
    "Resuming a session does not replay its conversation.",
    does="resumes a session with one turn, on a new connection",
    expects="no messages or tool calls of the conversation",
)
async def resumes_in_silence(examinee: Examinee) -> None:
    await examinee.needs("sessionCapabilities", "resume")
    seen = await examinee.reopening("session/resume")
    told = _talk(seen.before + seen.after)
    expect(not told, f"{len(told)} updates of the conversation were replayed")


@checks.must(
    "resume.continues",
    "A resumed session accepts prompts.",
    does="resumes a session with one turn, on a new connection, and prompts it",
    expects="a response with a stop reason",
)
async def takes_prompts_after_resume(examinee: Examinee) -> None:
    await examinee.needs("sessionCapabilities", "resume")
    session_id = await examinee.first_turn(await examinee.probe())
    await examinee.drop()
    async with examinee.own() as probe:
        await probe.result("session/resume", examinee.where(session_id))
        ended(await probe.call("session/prompt", prompt(session_id, examinee.prompts.short)))


# ── list, close, delete ───────────────────────────────────────────────────────────────────────


async def _listed(probe: AgentProbe, params: Wire) -> list[Wire]:
    """All sessions of a list, page by page. Raises CheckFailed for a list without an end."""
    found: list[Wire] = []
    for _ in range(_MOST_PAGES):
        result = await probe.result("session/list", params)
        found += objects(result.get("sessions"))
        cursor = result.get("nextCursor")
        if cursor is None:
            return found
        if cursor == params.get("cursor"):
            raise CheckFailed("a page of the list has itself as the next page")
        params = {**params, "cursor": cursor}
    return found


def _ids(sessions: list[Wire]) -> list[Any]:
    return [each.get("sessionId") for each in sessions]


async def _kept(examinee: Examinee) -> tuple[AgentProbe, str]:
    """A session with one turn, of an agent that lists its sessions. Raises NotApplicable."""
    await examinee.needs("sessionCapabilities", "list")
    probe = await examinee.probe()
    return probe, await examinee.first_turn(probe)


@checks.should(
    "list.has-it",
    "The list contains the sessions that the agent has stored.",
    page=_LIST,
    does="lists the sessions after a turn in one",
    expects="that session is in the list",
)
async def lists_the_session(examinee: Examinee) -> None:
    probe, session_id = await _kept(examinee)
    expect(session_id in _ids(await _listed(probe, {})), "the session is not in the list")


@checks.must(
    "list.fields",
    "Each listed session has its id and its working directory, an absolute path.",
    page=_LIST,
    does="lists the sessions after a turn in one",
    expects="`sessionId`, and an absolute `cwd`, in each",
)
async def lists_with_folders(examinee: Examinee) -> None:
    probe, _ = await _kept(examinee)
    for each in await _listed(probe, {}):
        expect(isinstance(each.get("sessionId"), str), "a listed session has no id")
        folder = each.get("cwd")
        expect(str(folder).startswith("/"), f"its cwd is {folder!r}")


@checks.must(
    "list.pages",
    "Following `nextCursor` leads through all pages of the list, to the last one.",
    page=_LIST,
    does="follows `nextCursor` from page to page, after turns in three sessions",
    expects="each session once, and a last page",
)
async def lists_page_by_page(examinee: Examinee) -> None:
    probe, _ = [await _kept(examinee) for _ in range(3)][-1]
    ids = _ids(await _listed(probe, {"cwd": examinee.cwd}))
    expect(len(set(ids)) == len(ids), "a session is in the list twice")


@checks.must(
    "list.folder",
    "With `cwd`, the list contains only the sessions of that directory.",
    page=_LIST,
    does="lists the sessions of a directory that has none",
    expects="an empty list",
)
async def lists_by_folder(examinee: Examinee) -> None:
    probe, session_id = await _kept(examinee)
    listed = _ids(await _listed(probe, {"cwd": f"{examinee.cwd}/nowhere"}))
    expect(session_id not in listed, "a session of another directory is in the list")


@checks.should(
    "list.bad-cursor",
    "An invalid cursor is an error.",
    page=_LIST,
    does="lists the sessions with a cursor that the agent did not return",
    expects="an error",
)
async def rejects_odd_cursors(examinee: Examinee) -> None:
    await examinee.needs("sessionCapabilities", "list")
    probe = await examinee.probe()
    reply = await probe.call("session/list", {"cursor": "conformance: no such cursor"})
    expect(is_error(reply), "an invalid cursor got a page")


@checks.must(
    "close.ends",
    "A closed session accepts no prompts.",
    does="closes a session and prompts it",
    expects="an error",
)
async def closes(examinee: Examinee) -> None:
    await examinee.needs("sessionCapabilities", "close")
    probe = await examinee.probe()
    session_id = await examinee.first_turn(probe)
    await probe.result("session/close", {"sessionId": session_id})
    reply = await probe.call("session/prompt", prompt(session_id, examinee.prompts.short))
    expect(is_error(reply), "a closed session accepted a prompt")


@checks.must(
    "close.cancels",
    "Closing a session cancels its running turn.",
    does="closes a session during a turn",
    expects="a response to the prompt",
)
async def closes_in_a_turn(examinee: Examinee) -> None:
    await examinee.needs("sessionCapabilities", "close")
    probe = await examinee.probe()
    session_id = await examinee.session(probe)
    key = probe.begin("session/prompt", prompt(session_id, examinee.prompts.long))
    await probe.settle("a prompt")
    await probe.result("session/close", {"sessionId": session_id})
    await probe.reply_to(key, "the prompt of a closed session")


@checks.must(
    "delete.unlists",
    "A deleted session is no longer in the list.",
    page=page("session-delete"),
    does="deletes a session with one turn, and lists the sessions",
    expects="the session is not in the list",
)
async def deletes(examinee: Examinee) -> None:
    await examinee.needs("sessionCapabilities", "delete")
    probe, session_id = await _kept(examinee)
    await probe.result("session/delete", {"sessionId": session_id})
    expect(session_id not in _ids(await _listed(probe, {})), "the deleted session is in the list")


@checks.must(
    "fork.own-id",
    "A fork has its own session id.",
    page=_FORK,
    does="forks a session with one turn",
    expects="a different id",
)
async def forks(examinee: Examinee) -> None:
    await examinee.needs("sessionCapabilities", "fork")
    probe = await examinee.probe()
    session_id = await examinee.first_turn(probe)
    made = await probe.result("session/fork", examinee.where(session_id))
    expect(is_text(made.get("sessionId")), "the fork has no id")
    expect(made["sessionId"] != session_id, "the fork has the id of the original")


def _advertised(key: str, method: str, *path: str) -> None:
    @checks.must(
        f"advertised.{key}",
        "An agent implements every method whose capability it advertises.",
        page=_CAPABILITIES,
        does=f"calls `{method}` for a session that was never created, if it is advertised",
        expects="any response except the error for an unknown method",
    )
    async def has_the_method(examinee: Examinee) -> None:
        await examinee.needs(*path)
        probe = await examinee.probe()
        reply = await probe.call(method, examinee.where(f"{_NOBODYS}-either"))
        expect(error_code(reply) != -32601, f"{method} is advertised but not implemented")


_advertised("load", "session/load", "loadSession")
_advertised("resume", "session/resume", "sessionCapabilities", "resume")
_advertised("close", "session/close", "sessionCapabilities", "close")
_advertised("delete", "session/delete", "sessionCapabilities", "delete")
_advertised("fork", "session/fork", "sessionCapabilities", "fork")
_advertised("list", "session/list", "sessionCapabilities", "list")


# ── modes and options ─────────────────────────────────────────────────────────────────────────


async def _modes(examinee: Examinee) -> tuple[AgentProbe, Wire, Wire]:
    probe = await examinee.probe()
    made = await examinee.opened(probe)
    modes = obj(made.get("modes"))
    if not modes:
        not_applicable("the agent has no modes")
    return probe, made, modes


def _mode_ids(modes: Wire) -> list[Any]:
    return [each.get("id") for each in objects(modes.get("availableModes"))]


@checks.must(
    "modes.current",
    "The current mode is one of the available modes.",
    page=_MODES,
    does="reads the `modes` of a new session",
    expects="`availableModes` have unique ids, and `currentModeId` is one of them",
)
async def is_in_a_mode(examinee: Examinee) -> None:
    _, _, modes = await _modes(examinee)
    ids = _mode_ids(modes)
    expect(modes.get("currentModeId") in ids, f"{modes.get('currentModeId')!r} is not in {ids}")
    expect(len(set(ids)) == len(ids), f"two modes have the same id: {ids}")


@checks.must(
    "modes.set",
    "A client may switch to any available mode at any time.",
    page=_MODES,
    does="switches to another mode and back",
    expects="results",
)
async def changes_modes(examinee: Examinee) -> None:
    probe, made, modes = await _modes(examinee)
    current = modes.get("currentModeId")
    others = [each for each in _mode_ids(modes) if each != current]
    if not others:
        not_applicable("the agent has only one mode")
    for mode in (others[0], current):
        wanted = {"sessionId": made["sessionId"], "modeId": mode}
        await probe.result("session/set_mode", wanted)


@checks.should(
    "modes.unknown",
    "Only an available mode can be set.",
    page=_MODES,
    does="switches to a mode that the agent does not have",
    expects="an error",
)
async def rejects_odd_modes(examinee: Examinee) -> None:
    probe, made, _ = await _modes(examinee)
    wanted = {"sessionId": made["sessionId"], "modeId": "conformance-no-such-mode"}
    expect(is_error(await probe.call("session/set_mode", wanted)), "an unknown mode was set")


async def _options(examinee: Examinee) -> tuple[AgentProbe, str, list[Wire]]:
    probe = await examinee.probe()
    made = await examinee.opened(probe)
    options = objects(made.get("configOptions"))
    if not options:
        not_applicable("the agent has no config options")
    return probe, str(made["sessionId"]), options


def _values(option: Wire) -> list[Any]:
    """The values of a selection, in groups or not."""
    values: list[Any] = []
    for each in objects(option.get("options")):
        values += _values(each) if "options" in each else [each.get("value")]
    return values


@checks.must(
    "options.current",
    "Option ids are unique, and the value of a selection is one of its values.",
    page=_OPTIONS,
    does="reads the `configOptions` of a new session",
    expects="unique ids, and each `currentValue` is among the values of its selection",
)
async def has_known_values(examinee: Examinee) -> None:
    _, _, options = await _options(examinee)
    ids = [each.get("id") for each in options]
    expect(len(set(ids)) == len(ids), f"two options have the same id: {ids}")
    for option in options:
        if option.get("type") == "select":
            current, values = option.get("currentValue"), _values(option)
            expect(current in values, f"{option.get('id')}: {current!r} is not in {values}")


async def _selection(examinee: Examinee) -> tuple[AgentProbe, Wire, Any]:
    """A selection: the params to set it to another value, and the value that it has."""
    probe, session_id, options = await _options(examinee)
    for option in examinee.settable(options):
        others = [each for each in _values(option) if each != option.get("currentValue")]
        if option.get("type") == "select" and others:
            wanted = {"sessionId": session_id, "configId": option.get("id"), "value": others[0]}
            return probe, wanted, option.get("currentValue")
    raise NotApplicable("the agent has no option with two values")


@checks.must(
    "options.set",
    "The response to setting an option contains all options with their current values.",
    page=_OPTIONS,
    does="sets an option to another of its values and back",
    expects="`configOptions` with the new value",
)
async def changes_options(examinee: Examinee) -> None:
    probe, wanted, before = await _selection(examinee)
    value = wanted["value"]
    result = await probe.result("session/set_config_option", wanted)
    now = objects(result.get("configOptions"))
    expect(now != [], "the response has no configOptions")
    current = [each.get("currentValue") for each in now if each.get("id") == wanted["configId"]]
    expect(current == [value], f"after it was set to {value!r}, the option is {current}")
    # An agent may remember it for its other sessions.
    await probe.call("session/set_config_option", {**wanted, "value": before})


def _odd_setting(key: str, says: str, change: Wire, does: str) -> None:
    @checks.should(f"options.{key}", says, page=_OPTIONS, does=does, expects="an error")
    async def rejects_the_setting(examinee: Examinee) -> None:
        probe, wanted, _ = await _selection(examinee)
        reply = await probe.call("session/set_config_option", {**wanted, **change})
        expect(is_error(reply), "the option was set")


_odd_setting(
    "unknown",
    "Only an existing option can be set.",
    {"configId": "conformance-no-such-option"},
    "sets an option that the agent does not have",
)
_odd_setting(
    "bad-value",
    "A selection can be set only to one of its values.",
    {"value": "conformance-no-such-value"},
    "sets a selection to a value that it does not have",
)

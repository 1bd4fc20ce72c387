"""Sessions: made, listed, loaded, resumed, closed and deleted; their modes and options."""

from __future__ import annotations

import asyncio
from typing import Any

from dragoman.conformance.check import (
    CheckFailed,
    Checks,
    NotApplicable,
    expect,
    not_applicable,
    page,
)
from dragoman.conformance.examination.examinee import (
    LATE_SECONDS,
    AgentProbe,
    Examinee,
    ended,
    prompt,
    text_of,
)
from dragoman.conformance.loose_json import Wire, is_text, obj, objects
from dragoman.conformance.probe import error_code, error_text, is_error

checks: Checks[Examinee] = Checks("agent", page("session-setup"))
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
    "A new session has an id, which is a text.",
    page=page("session-setup#session-id"),
    does="sends `session/new`",
    expects="`sessionId`, a text that is not empty",
)
async def has_an_id(examinee: Examinee) -> None:
    key = (await examinee.opened(await examinee.probe(), "project")).get("sessionId")
    expect(is_text(key), f"sessionId is {key!r}")


@checks.must(
    "session.own-id",
    "Every session has an id of its own.",
    page=page("session-setup#session-id"),
    does="makes two sessions on one connection",
    expects="two ids",
)
async def has_an_own_id(examinee: Examinee) -> None:
    probe = await examinee.probe()
    first, second = await examinee.twins(probe)
    expect(first != second, "two sessions have one id")


@checks.must(
    "session.unknown-prompt",
    "A prompt names an existing session.",
    does="prompts a session that was never made",
    expects="an error",
)
async def refuses_a_stray_prompt(examinee: Examinee) -> None:
    probe = await examinee.probe()
    reply = await probe.call("session/prompt", prompt(_NOBODYS, examinee.prompts.short))
    expect(is_error(reply), "a prompt to an unknown session was answered with a result")


@checks.should(
    "session.unknown-cancel",
    "A cancel for a session that an agent does not have changes nothing.",
    page=page("prompt-turn#cancellation"),
    does="sends `session/cancel` for a session that was never made",
    expects="an agent that continues",
)
async def ignores_a_stray_cancel(examinee: Examinee) -> None:
    probe = await examinee.probe()
    probe.notify("session/cancel", {"sessionId": _NOBODYS})
    await probe.settle("a cancel of an unknown session")


# ── load and resume ───────────────────────────────────────────────────────────────────────────


def _where(examinee: Examinee, session_id: str) -> Wire:
    return {"sessionId": session_id, "cwd": examinee.cwd, "mcpServers": []}


async def _reopened(examinee: Examinee, method: str) -> tuple[list[Wire], list[Wire]]:
    """A session with one turn, opened again: the updates before the answer, and those after."""
    first = await examinee.probe()
    session_id = await examinee.first_turn(first)
    told = text_of(first.updates(session_id))
    if not told.strip():
        not_applicable("the agent said nothing that could be replayed")
    # Others can have it only when this connection is closed.
    await examinee.drop()
    async with examinee.own() as probe:
        await probe.result(method, _where(examinee, session_id))
        answered = probe.last_reply
        await asyncio.sleep(LATE_SECONDS)
        return probe.updates(session_id, end=answered), probe.updates(session_id, answered)


_TALK = ("user_message_chunk", "agent_message_chunk", "tool_call", "tool_call_update")


def _talk(updates: list[Wire]) -> list[str]:
    return [str(told["sessionUpdate"]) for told in updates if told.get("sessionUpdate") in _TALK]


@checks.must(
    "load.replays",
    "An agent that loads a session replays the whole conversation.",
    page=_LOAD,
    does="loads a session with one turn, on a new connection",
    expects="updates with what the agent said",
)
async def replays_it(examinee: Examinee) -> None:
    await examinee.needs("loadSession")
    before, after = await _reopened(examinee, "session/load")
    expect("agent_message_chunk" in _talk(before + after), "nothing the agent said was replayed")


@checks.must(
    "load.replays-prompts",
    "The conversation that is replayed has what the user said, too.",
    page=_LOAD,
    does="loads a session with one turn, on a new connection",
    expects="`user_message_chunk` updates with the prompt, before what the agent said",
)
async def replays_prompts(examinee: Examinee) -> None:
    await examinee.needs("loadSession")
    talk = _talk([each for part in await _reopened(examinee, "session/load") for each in part])
    expect("user_message_chunk" in talk, "the prompt was not replayed")
    spoken = "agent_message_chunk"
    behind = spoken in talk and talk.index(spoken) < talk.index("user_message_chunk")
    expect(not behind, "the answer was replayed before its prompt")


@checks.must(
    "load.answers-last",
    "Loading is answered when everything has been replayed.",
    page=_LOAD,
    does="loads a session with one turn, and waits a moment after the answer",
    expects="no piece of the conversation behind the answer",
)
async def answers_last(examinee: Examinee) -> None:
    await examinee.needs("loadSession")
    late = _talk((await _reopened(examinee, "session/load"))[1])
    expect(not late, f"{len(late)} pieces of the conversation came after the answer")


@checks.must(
    "load.unknown",
    "A session that does not exist cannot be loaded.",
    page=_LOAD,
    does="loads a session that was never made",
    expects="an error",
)
async def loads_no_stranger(examinee: Examinee) -> None:
    await examinee.needs("loadSession")
    probe = await examinee.probe()
    reply = await probe.call("session/load", _where(examinee, _NOBODYS))
    expect(is_error(reply), "an unknown session was loaded")


@checks.must(
    "resume.no-replay",
    "A session that is resumed continues, and its conversation is not replayed.",
    does="resumes a session with one turn, on a new connection",
    expects="no piece of the conversation",
)
async def resumes_in_silence(examinee: Examinee) -> None:
    await examinee.needs("sessionCapabilities", "resume")
    before, after = await _reopened(examinee, "session/resume")
    expect(not (told := _talk(before + after)), f"{len(told)} pieces were replayed")


@checks.must(
    "resume.continues",
    "A session that was resumed takes prompts.",
    does="resumes a session with one turn, on a new connection, and prompts it",
    expects="an answer with a stop reason",
)
async def takes_prompts_after_resume(examinee: Examinee) -> None:
    await examinee.needs("sessionCapabilities", "resume")
    session_id = await examinee.first_turn(await examinee.probe())
    await examinee.drop()
    async with examinee.own() as probe:
        await probe.result("session/resume", _where(examinee, session_id))
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
            raise CheckFailed("a page of the list leads to itself")
        params = {**params, "cursor": cursor}
    return found


def _ids(sessions: list[Wire]) -> list[Any]:
    return [each.get("sessionId") for each in sessions]


async def _kept(examinee: Examinee, probe: AgentProbe) -> str:
    await examinee.needs("sessionCapabilities", "list")
    return await examinee.first_turn(probe)


@checks.should(
    "list.has-it",
    "The list has the sessions that the agent knows.",
    page=_LIST,
    does="lists the sessions after a turn in one",
    expects="that session among them",
)
async def lists_the_session(examinee: Examinee) -> None:
    probe = await examinee.probe()
    session_id = await _kept(examinee, probe)
    expect(session_id in _ids(await _listed(probe, {})), "the session is not in the list")


@checks.must(
    "list.fields",
    "Each session in the list has its id and its folder, an absolute path.",
    page=_LIST,
    does="lists the sessions after a turn in one",
    expects="`sessionId` and an absolute `cwd` in each",
)
async def lists_with_folders(examinee: Examinee) -> None:
    probe = await examinee.probe()
    await _kept(examinee, probe)
    for each in await _listed(probe, {}):
        expect(isinstance(each.get("sessionId"), str), "a listed session has no id")
        folder = each.get("cwd")
        expect(str(folder).startswith("/"), f"its cwd is {folder!r}")


@checks.must(
    "list.pages",
    "The pages of the list follow each other by their cursors, to an end.",
    page=_LIST,
    does="follows `nextCursor` from page to page",
    expects="each session once, and a last page",
)
async def lists_page_by_page(examinee: Examinee) -> None:
    probe = await examinee.probe()
    for _ in range(3):
        await _kept(examinee, probe)
    ids = _ids(await _listed(probe, {"cwd": examinee.cwd}))
    expect(len(set(ids)) == len(ids), "a session is on two pages")


@checks.must(
    "list.folder",
    "With `cwd`, the list has the sessions of that folder alone.",
    page=_LIST,
    does="lists the sessions of a folder in which there are none",
    expects="an empty list",
)
async def lists_by_folder(examinee: Examinee) -> None:
    probe = await examinee.probe()
    session_id = await _kept(examinee, probe)
    listed = _ids(await _listed(probe, {"cwd": f"{examinee.cwd}/nowhere"}))
    expect(session_id not in listed, "a session of another folder is in the list")


@checks.should(
    "list.bad-cursor",
    "A cursor that the agent did not give out is an error.",
    page=_LIST,
    does="lists the sessions from an invented cursor on",
    expects="an error",
)
async def refuses_odd_cursors(examinee: Examinee) -> None:
    await examinee.needs("sessionCapabilities", "list")
    probe = await examinee.probe()
    reply = await probe.call("session/list", {"cursor": "conformance: no such cursor"})
    expect(is_error(reply), "an invented cursor was answered with a page")


@checks.must(
    "close.ends",
    "A session that is closed takes no prompts.",
    does="closes a session and prompts it",
    expects="an error",
)
async def closes(examinee: Examinee) -> None:
    await examinee.needs("sessionCapabilities", "close")
    probe = await examinee.probe()
    session_id = await examinee.first_turn(probe)
    await probe.result("session/close", {"sessionId": session_id})
    reply = await probe.call("session/prompt", prompt(session_id, examinee.prompts.short))
    expect(is_error(reply), "a closed session took a prompt")


@checks.must(
    "close.cancels",
    "Closing a session cancels its running turn.",
    does="closes a session in the middle of a turn",
    expects="an answer to the prompt",
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
    "A session that is deleted is no longer in the list.",
    page=page("session-delete"),
    does="deletes a session with one turn, and lists the sessions",
    expects="it is not among them",
)
async def deletes(examinee: Examinee) -> None:
    await examinee.needs("sessionCapabilities", "delete")
    probe = await examinee.probe()
    session_id = await _kept(examinee, probe)
    await probe.result("session/delete", {"sessionId": session_id})
    expect(session_id not in _ids(await _listed(probe, {})), "a deleted session is in the list")


@checks.must(
    "fork.own-id",
    "A fork is a session of its own.",
    page=_FORK,
    does="forks a session with one turn",
    expects="another id",
)
async def forks(examinee: Examinee) -> None:
    await examinee.needs("sessionCapabilities", "fork")
    probe = await examinee.probe()
    session_id = await examinee.first_turn(probe)
    made = await probe.result("session/fork", _where(examinee, session_id))
    expect(is_text(made.get("sessionId")), "the fork has no id")
    expect(made["sessionId"] != session_id, "the fork has the id of its original")


def _advertised(key: str, method: str, *path: str) -> None:
    @checks.must(
        f"advertised.{key}",
        "An agent has every method whose capability it advertises.",
        page=_CAPABILITIES,
        does=f"calls `{method}` for a session that was never made",
        expects="anything but the error for an unknown method",
    )
    async def has_the_method(examinee: Examinee) -> None:
        await examinee.needs(*path)
        probe = await examinee.probe()
        reply = await probe.call(method, _where(examinee, f"{_NOBODYS}-either"))
        expect(error_code(reply) != -32601, f"{method} is advertised and missing")


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
    does="looks at `modes` of a new session",
    expects="`currentModeId` among the ids of `availableModes`, which differ",
)
async def is_in_a_mode(examinee: Examinee) -> None:
    _, _, modes = await _modes(examinee)
    ids = _mode_ids(modes)
    expect(modes.get("currentModeId") in ids, f"{modes.get('currentModeId')!r} is not in {ids}")
    expect(len(set(ids)) == len(ids), f"two modes have one id: {ids}")


@checks.must(
    "modes.set",
    "A client may choose any of the modes, at any time.",
    page=_MODES,
    does="sets another mode, and the first one again",
    expects="results",
)
async def changes_modes(examinee: Examinee) -> None:
    probe, made, modes = await _modes(examinee)
    current = modes.get("currentModeId")
    others = [each for each in _mode_ids(modes) if each != current]
    if not others:
        not_applicable("the agent has one mode")
    for mode in (others[0], current):
        wanted = {"sessionId": made["sessionId"], "modeId": mode}
        await probe.result("session/set_mode", wanted)


@checks.should(
    "modes.unknown",
    "Only an available mode can be set.",
    page=_MODES,
    does="sets a mode the agent does not have",
    expects="an error",
)
async def refuses_odd_modes(examinee: Examinee) -> None:
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
    "The value of an option is one of its values, and options differ in their ids.",
    page=_OPTIONS,
    does="looks at `configOptions` of a new session",
    expects="ids that differ, and a known `currentValue` in each selection",
)
async def has_known_values(examinee: Examinee) -> None:
    _, _, options = await _options(examinee)
    ids = [each.get("id") for each in options]
    expect(len(set(ids)) == len(ids), f"two options have one id: {ids}")
    for option in options:
        if option.get("type") == "select":
            current, values = option.get("currentValue"), _values(option)
            expect(current in values, f"{option.get('id')}: {current!r} is not in {values}")


async def _selection(examinee: Examinee) -> tuple[AgentProbe, Wire, Any]:
    """A selection, the params to set it to another value, and that value."""
    probe, session_id, options = await _options(examinee)
    for option in options:
        others = [each for each in _values(option) if each != option.get("currentValue")]
        if option.get("type") == "select" and others:
            key = option.get("id")
            return probe, {"sessionId": session_id, "configId": key, "value": others[0]}, others[0]
    raise NotApplicable("the agent has no option with two values")


@checks.must(
    "options.set",
    "Setting an option is answered with all options and what they are now.",
    page=_OPTIONS,
    does="sets an option to another of its values",
    expects="`configOptions` with all of them, and the new value",
)
async def changes_options(examinee: Examinee) -> None:
    probe, wanted, value = await _selection(examinee)
    result = await probe.result("session/set_config_option", wanted)
    now = objects(result.get("configOptions"))
    expect(now != [], "the answer has no configOptions")
    current = [each.get("currentValue") for each in now if each.get("id") == wanted["configId"]]
    expect(current == [value], f"after it was set to {value!r}, the option is {current}")


@checks.should(
    "options.unknown",
    "Only an available option can be set.",
    page=_OPTIONS,
    does="sets an option the agent does not have",
    expects="an error",
)
async def refuses_odd_options(examinee: Examinee) -> None:
    probe, wanted, _ = await _selection(examinee)
    odd = {**wanted, "configId": "conformance-no-such-option"}
    reply = await probe.call("session/set_config_option", odd)
    expect(is_error(reply), "an unknown option was set")


@checks.should(
    "options.bad-value",
    "The value of a selection has to be one of its values.",
    page=_OPTIONS,
    does="sets an option to a value it does not have",
    expects="an error",
)
async def refuses_odd_values(examinee: Examinee) -> None:
    probe, wanted, _ = await _selection(examinee)
    odd = {**wanted, "value": "conformance-no-such-value"}
    reply = await probe.call("session/set_config_option", odd)
    expect(is_error(reply), f"an unknown value was set: {error_text(reply)}")

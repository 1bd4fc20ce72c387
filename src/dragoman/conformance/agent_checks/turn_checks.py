"""Turns: prompts and their answers, content of every kind, and cancelling in every state."""

from __future__ import annotations

import asyncio
from typing import Any

from dragoman.conformance.check import Checks, expect, not_applicable, page
from dragoman.conformance.examination.examinee import (
    STOP_REASONS,
    AgentProbe,
    Examinee,
    ended,
    prompt,
    text_of,
)
from dragoman.conformance.loose_json import Wire, at, obj
from dragoman.conformance.probe import error_code, is_error

checks: Checks[Examinee] = Checks("agent", page("prompt-turn"))
_CANCEL = page("prompt-turn#cancellation")
_CONTENT = page("content")
_STOPS = page("prompt-turn#stop-reasons")
_KINDS = frozenset(
    {
        "user_message_chunk",
        "agent_message_chunk",
        "agent_thought_chunk",
        "tool_call",
        "tool_call_update",
        "plan",
        "available_commands_update",
        "current_mode_update",
        "config_option_update",
        "session_info_update",
        "usage_update",
        "notice",
        "compaction_update",
        "compaction_summary_chunk",
    }
)


@checks.must(
    "prompt.stop-reason",
    "A turn ends with the answer to its prompt, which says why it ended.",
    page=_STOPS,
    does="sends a short prompt",
    expects="`stopReason`, one of the defined ones",
)
async def says_why_it_ended(examinee: Examinee) -> None:
    probe = await examinee.probe()
    session_id = await examinee.session(probe)
    why = ended(await probe.call("session/prompt", prompt(session_id, examinee.prompts.short)))
    expect(why in STOP_REASONS, f"stopReason is {why!r}")


@checks.should(
    "prompt.says-something",
    "What the model says is reported as it comes.",
    page=page("prompt-turn#3-agent-reports-output"),
    does="sends a short prompt",
    expects="an `agent_message_chunk` with text",
)
async def says_something(examinee: Examinee) -> None:
    probe = await examinee.probe()
    session_id = await examinee.first_turn(probe)
    expect(text_of(probe.updates(session_id)).strip() != "", "the agent said nothing")


@checks.must(
    "prompt.own-session",
    "Every update names a session that the client has opened.",
    page=page("prompt-turn#3-agent-reports-output"),
    does="opens one session on a new connection, and prompts it",
    expects="updates of that session alone",
)
async def names_its_session(examinee: Examinee) -> None:
    async with examinee.own() as probe:
        session_id = await examinee.first_turn(probe)
        for each in probe.received:
            if each.message.get("method") == "session/update":
                named = at(each.message, "params", "sessionId")
                expect(named == session_id, f"an update names {named!r}", each.frame)


@checks.must(
    "prompt.answer-last",
    "Everything a turn has to report comes before the answer to its prompt.",
    page=page("prompt-turn#4-check-for-completion"),
    does="has the agent use its tools, and waits a moment after the answer",
    expects="no message and no tool call behind the answer",
)
async def answers_last(examinee: Examinee) -> None:
    turn = await examinee.turn("allow")
    for each in turn.received[turn.before_reply :]:
        kind = at(each.message, "params", "update", "sessionUpdate")
        late = kind in ("agent_message_chunk", "tool_call", "tool_call_update")
        expect(not late, f"a {kind} came after the answer", each.frame)


@checks.must(
    "prompt.known-updates",
    "An update is of a defined kind, or its name begins with an underscore.",
    page=page("prompt-turn#3-agent-reports-output"),
    does="has the agent use its tools, and looks at every update",
    expects="known kinds",
)
async def sends_known_updates(examinee: Examinee) -> None:
    for told, frame in (await examinee.turn("allow")).updates:
        kind = str(told.get("sessionUpdate"))
        expect(kind in _KINDS or kind.startswith("_"), f"there is no update {kind!r}", frame)


@checks.must(
    "prompt.chunks",
    "A piece of a message is a block of content with a type.",
    page=_CONTENT,
    does="has the agent use its tools, and looks at every piece of a message",
    expects="`content` with a `type`, and a `text` where the type is that",
)
async def sends_blocks(examinee: Examinee) -> None:
    turn = await examinee.turn("allow")
    for told, frame in turn.of("agent_message_chunk", "agent_thought_chunk", "user_message_chunk"):
        content = obj(told.get("content"))
        kind = content.get("type")
        expect(isinstance(kind, str), "the content has no type", frame)
        is_text = kind != "text" or isinstance(content.get("text"), str)
        expect(is_text, "the text is missing", frame)


# ── content ───────────────────────────────────────────────────────────────────────────────────

_PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9"
    "awAAAABJRU5ErkJggg=="
)
_SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="


def _content(key: str, says: str, block: Wire, what: str, *path: str) -> None:
    @checks.must(
        f"content.{key}",
        says,
        page=page("initialization#prompt-capabilities"),
        does=f"sends a prompt with {what}",
        expects="an answer with a stop reason",
    )
    async def takes_the_block(examinee: Examinee) -> None:
        if path:
            await examinee.needs("promptCapabilities", *path)
        probe = await examinee.probe()
        session_id = await examinee.session(probe)
        ended(await probe.call("session/prompt", prompt(session_id, examinee.prompts.short, block)))


_content(
    "resource-link",
    "Every agent takes text and links to resources.",
    {"type": "resource_link", "uri": "file:///conformance/none.txt", "name": "none.txt"},
    "a link",
)
_content(
    "image",
    "An agent that advertises images takes them.",
    {"type": "image", "mimeType": "image/png", "data": _PIXEL},
    "an image",
    "image",
)
_content(
    "audio",
    "An agent that advertises audio takes it.",
    {"type": "audio", "mimeType": "audio/wav", "data": _SILENCE},
    "a sound",
    "audio",
)
_content(
    "embedded",
    "An agent that advertises embedded context takes resources with their text.",
    {
        "type": "resource",
        "resource": {"uri": "file:///conformance/a.txt", "text": "ready", "mimeType": "text/plain"},
    },
    "an embedded text",
    "embeddedContext",
)


@checks.should(
    "content.unknown",
    "A block of a type that an agent does not know does no harm.",
    page=_CONTENT,
    does="sends a prompt with a block of an unknown type",
    expects="an answer or an error, and an agent that continues",
)
async def survives_unknown_blocks(examinee: Examinee) -> None:
    probe = await examinee.probe()
    session_id = await examinee.session(probe)
    block = {"type": "_conformance.example/odd", "data": 1}
    await probe.call("session/prompt", prompt(session_id, examinee.prompts.short, block))
    await probe.settle("a block of an unknown type")


# ── one turn after the other, and at the same time ───────────────────────────────────────────


@checks.must(
    "prompt.again",
    "A session takes one prompt after the other.",
    does="sends two prompts to a session, one after the other",
    expects="two answers with a stop reason",
)
async def takes_prompts_again(examinee: Examinee) -> None:
    probe = await examinee.probe()
    session_id = await examinee.first_turn(probe)
    ended(await probe.call("session/prompt", prompt(session_id, examinee.prompts.short)))


@checks.must(
    "prompt.two-sessions",
    "One connection can have several sessions at once.",
    page=page("session-setup#session-id"),
    does="prompts two sessions at the same time",
    expects="two answers with a stop reason",
)
async def takes_two_at_once(examinee: Examinee) -> None:
    probe = await examinee.probe()
    ids = [await examinee.session(probe) for _ in range(2)]
    keys = [probe.begin("session/prompt", prompt(each, examinee.prompts.short)) for each in ids]
    for key in keys:
        ended(await probe.reply_to(key, "one of two prompts"))


# ── cancelling ────────────────────────────────────────────────────────────────────────────────


async def _cancelled(examinee: Examinee, probe: AgentProbe, session_id: str, times: int = 1) -> Any:
    """The id of a prompt that was cancelled once the agent had begun. Raises NotApplicable if it
    was over before."""
    mark = len(probe.received)
    key = probe.begin("session/prompt", prompt(session_id, examinee.prompts.long))
    await _begun(probe, session_id, key, mark)
    if probe.replies(key):
        not_applicable("the turn was over before it could be cancelled")
    for _ in range(times):
        probe.notify("session/cancel", {"sessionId": session_id})
    await probe.reply_to(key, "the cancelled prompt")
    return key


async def _begun(probe: AgentProbe, session_id: str, key: Any, mark: int) -> None:
    """Wait for a sign of life, though not for long: some say nothing before the end."""
    try:
        async with asyncio.timeout(_FIRST_SIGN_SECONDS):
            while not _spoke(probe.updates(session_id, mark)) and not probe.replies(key):
                await probe.change()
    except TimeoutError:
        pass


def _spoke(updates: list[Wire]) -> bool:
    """Commands, titles and the like do not show that it works."""
    return any(str(told.get("sessionUpdate")).startswith(_WORK) for told in updates)


_WORK = ("agent_", "tool_", "plan")
_FIRST_SIGN_SECONDS = 3.0


@checks.must(
    "cancel.stop-reason",
    "A turn that is cancelled ends with the stop reason `cancelled`, not with an error.",
    page=_CANCEL,
    does="cancels a long turn",
    expects="`cancelled`",
)
async def ends_as_cancelled(examinee: Examinee) -> None:
    probe = await examinee.probe()
    session_id = await examinee.session(probe)
    key = await _cancelled(examinee, probe, session_id)
    why = ended(await probe.reply_to(key))
    expect(why == "cancelled", f"the cancelled turn ended with {why!r}")


@checks.must(
    "cancel.early",
    "A turn may be cancelled before it has begun to say anything.",
    page=_CANCEL,
    does="sends a prompt and its cancel in one piece",
    expects="an answer that is not an error",
)
async def takes_an_early_cancel(examinee: Examinee) -> None:
    probe = await examinee.probe()
    session_id = await examinee.session(probe)
    key = probe.begin("session/prompt", prompt(session_id, examinee.prompts.long))
    probe.notify("session/cancel", {"sessionId": session_id})
    ended(await probe.reply_to(key, "a prompt that was cancelled at once"))


@checks.must(
    "cancel.twice",
    "A prompt has one answer, however often it is cancelled.",
    page=_CANCEL,
    does="cancels a long turn twice",
    expects="one answer",
)
async def answers_once(examinee: Examinee) -> None:
    probe = await examinee.probe()
    key = await _cancelled(examinee, probe, await examinee.session(probe), times=2)
    await probe.settle("two cancels")
    expect(len(probe.replies(key)) == 1, "the prompt was answered twice")


@checks.must(
    "cancel.continues",
    "A session takes prompts after a turn was cancelled.",
    page=_CANCEL,
    does="cancels a long turn and sends another prompt",
    expects="an answer with a stop reason other than `cancelled`",
)
async def goes_on(examinee: Examinee) -> None:
    probe = await examinee.probe()
    session_id = await examinee.session(probe)
    await _cancelled(examinee, probe, session_id)
    why = ended(await probe.call("session/prompt", prompt(session_id, examinee.prompts.short)))
    expect(why != "cancelled", "the turn after a cancelled one ended as cancelled")


@checks.must(
    "cancel.own-session",
    "A cancel is for one session.",
    page=_CANCEL,
    does="runs a turn in each of two sessions, and cancels that of one",
    expects="the other one ends by itself",
)
async def cancels_one_session(examinee: Examinee) -> None:
    probe = await examinee.probe()
    long, other = await examinee.session(probe), await examinee.session(probe)
    key = probe.begin("session/prompt", prompt(long, examinee.prompts.long))
    await _begun(probe, long, key, 0)
    short = probe.begin("session/prompt", prompt(other, examinee.prompts.short))
    probe.notify("session/cancel", {"sessionId": long})
    why = ended(await probe.reply_to(short, "the prompt of the other session"))
    expect(why != "cancelled", "the turn of another session was cancelled")
    await probe.reply_to(key, "the cancelled prompt")


@checks.should(
    "cancel.request",
    "A request that is withdrawn is answered, with a result or with the error −32800.",
    page=page("cancellation"),
    does="withdraws a prompt with `$/cancel_request`",
    expects="an answer",
)
async def answers_a_withdrawn_request(examinee: Examinee) -> None:
    probe = await examinee.probe()
    session_id = await examinee.session(probe)
    key = probe.begin("session/prompt", prompt(session_id, examinee.prompts.long), "to withdraw")
    await _begun(probe, session_id, key, 0)
    probe.notify("$/cancel_request", {"requestId": key})
    probe.notify("session/cancel", {"sessionId": session_id})
    reply = await probe.reply_to(key, "the withdrawn prompt")
    code = error_code(reply) if is_error(reply) else -32800
    expect(code == -32800, f"a withdrawn request was answered with the error {code!r}")

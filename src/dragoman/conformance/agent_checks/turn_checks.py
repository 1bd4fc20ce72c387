"""Turns: prompts and their responses, content of every kind, and cancelling in every state."""

from __future__ import annotations

from typing import Any

from dragoman.conformance.check import Checks, expect, not_applicable, page
from dragoman.conformance.examination.agent_words import (
    STOP_REASONS,
    ended,
    prompt,
    text_of,
)
from dragoman.conformance.examination.examinee import AgentProbe, Examinee
from dragoman.conformance.probing.loose_json import Wire, at, obj
from dragoman.conformance.probing.probe import error_code, is_error

checks: Checks[Examinee] = Checks("agent", page("prompt-turn"))
_CANCEL = page("prompt-turn#cancellation")
_CONTENT = page("content")
_STOPS = page("prompt-turn#stop-reasons")
_REPORTS = page("prompt-turn#3-agent-reports-output")
_SHORT = "sends a short prompt"
_WORKS = "has the agent use its tools"
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
    "A turn ends with the response to its prompt, which contains the stop reason.",
    page=_STOPS,
    does=_SHORT,
    expects="`stopReason` with a defined value",
)
async def says_why_it_ended(examinee: Examinee) -> None:
    why = ended((await examinee.short_turn()).reply)
    expect(why in STOP_REASONS, f"stopReason is {why!r}")


@checks.should(
    "prompt.says-something",
    "The output of the model is reported in updates.",
    page=_REPORTS,
    does=_SHORT,
    expects="an `agent_message_chunk` with text",
)
async def says_something(examinee: Examinee) -> None:
    turn = await examinee.short_turn()
    ended(turn.reply)
    expect(text_of(turn.updates).strip() != "", "the agent said nothing")


@checks.must(
    "prompt.own-session",
    "Every update has the id of a session that the client has opened.",
    page=_REPORTS,
    does="opens one session on a new connection, and prompts it",
    expects="every update has the id of that session",
)
async def names_its_session(examinee: Examinee) -> None:
    async with examinee.own() as probe:
        session_id = await examinee.first_turn(probe)
        for each in probe.received:
            if each.message.get("method") == "session/update":
                named = at(each.message, "params", "sessionId")
                expect(named == session_id, f"an update has the session id {named!r}", each.frame)


@checks.must(
    "prompt.answer-last",
    "All messages and tool calls of a turn are reported before the response to its prompt.",
    page=page("prompt-turn#4-check-for-completion"),
    does=f"{_WORKS}, and waits 0.3 s after the response",
    expects="no messages or tool calls after the response",
)
async def answers_last(examinee: Examinee) -> None:
    turn = await examinee.turn("allow")
    for each in turn.received[turn.before_reply :]:
        kind = at(each.message, "params", "update", "sessionUpdate")
        late = kind in ("agent_message_chunk", "tool_call", "tool_call_update")
        expect(not late, f"the update {kind} came after the response", each.frame)


@checks.must(
    "prompt.known-updates",
    "The kind of an update is defined by ACP, or starts with an underscore.",
    page=_REPORTS,
    does=_WORKS,
    expects="every `sessionUpdate` is such a kind",
)
async def sends_known_updates(examinee: Examinee) -> None:
    for told, frame in (await examinee.turn("allow")).updates:
        kind = str(told.get("sessionUpdate"))
        expect(kind in _KINDS or kind.startswith("_"), f"the kind of an update is {kind!r}", frame)


@checks.must(
    "prompt.chunks",
    "A message chunk contains a content block, which has a type.",
    page=_CONTENT,
    does=_WORKS,
    expects="`content` with a `type`, and with a `text` if the type is `text`",
)
async def sends_blocks(examinee: Examinee) -> None:
    turn = await examinee.turn("allow")
    for told, frame in turn.of("agent_message_chunk", "agent_thought_chunk", "user_message_chunk"):
        content = obj(told.get("content"))
        kind = content.get("type")
        expect(isinstance(kind, str), "the content block has no type", frame)
        has_text = kind != "text" or isinstance(content.get("text"), str)
        expect(has_text, "the content block has no text", frame)


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
        expects="a response with a stop reason",
    )
    async def takes_the_block(examinee: Examinee) -> None:
        if path:
            await examinee.needs("promptCapabilities", *path)
        probe = await examinee.probe()
        session_id = await examinee.session(probe)
        ended(await probe.call("session/prompt", prompt(session_id, examinee.prompts.short, block)))


_content(
    "resource-link",
    "Every agent accepts text and resource links.",
    {"type": "resource_link", "uri": "file:///conformance/none.txt", "name": "none.txt"},
    "a resource link",
)
_content(
    "image",
    "An agent that advertises images accepts them.",
    {"type": "image", "mimeType": "image/png", "data": _PIXEL},
    "an image",
    "image",
)
_content(
    "audio",
    "An agent that advertises audio accepts it.",
    {"type": "audio", "mimeType": "audio/wav", "data": _SILENCE},
    "an audio clip",
    "audio",
)
_content(
    "embedded",
    "An agent that advertises embedded context accepts embedded resources.",
    {
        "type": "resource",
        "resource": {"uri": "file:///conformance/a.txt", "text": "ready", "mimeType": "text/plain"},
    },
    "an embedded text resource",
    "embeddedContext",
)


@checks.should(
    "content.unknown",
    "A content block of an unknown type does not break the agent.",
    page=_CONTENT,
    does="sends a prompt with a content block of an unknown type",
    expects="a result or an error, and the agent still responds to requests",
)
async def survives_unknown_blocks(examinee: Examinee) -> None:
    probe = await examinee.probe()
    session_id = await examinee.session(probe)
    block = {"type": "_conformance.example/odd", "data": 1}
    await probe.call("session/prompt", prompt(session_id, examinee.prompts.short, block))
    await probe.settle("a content block of an unknown type")


# ── several turns ─────────────────────────────────────────────────────────────────────────────


@checks.must(
    "prompt.again",
    "A session accepts any number of prompts, one after another.",
    does="sends two prompts to a session, one after the other",
    expects="two responses with a stop reason",
)
async def takes_prompts_again(examinee: Examinee) -> None:
    probe = await examinee.probe()
    session_id = await examinee.first_turn(probe)
    ended(await probe.call("session/prompt", prompt(session_id, examinee.prompts.short)))


@checks.must(
    "prompt.two-sessions",
    "A connection can have several active sessions.",
    page=page("session-setup#session-id"),
    does="prompts two sessions at the same time",
    expects="two responses with a stop reason",
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
    wait = probe.limit.of(_FIRST_SIGN_SECONDS).wait()
    while not _spoke(probe.updates(session_id, mark)) and not probe.replies(key):
        if probe.over is not None or not await probe.change(wait):
            return


def _spoke(updates: list[Wire]) -> bool:
    """Commands, titles and the like do not show that it works."""
    return any(str(told.get("sessionUpdate")).startswith(_WORK) for told in updates)


_WORK = ("agent_", "tool_", "plan")
_FIRST_SIGN_SECONDS = 3.0


@checks.must(
    "cancel.stop-reason",
    "A cancelled turn ends with the stop reason `cancelled`, not with an error.",
    page=_CANCEL,
    does="cancels a long turn",
    expects="the stop reason `cancelled`",
)
async def ends_as_cancelled(examinee: Examinee) -> None:
    probe = await examinee.probe()
    session_id = await examinee.session(probe)
    key = await _cancelled(examinee, probe, session_id)
    why = ended(await probe.reply_to(key))
    expect(why == "cancelled", f"the cancelled turn ended with {why!r}")


@checks.must(
    "cancel.early",
    "A turn may be cancelled before the agent has started to respond.",
    page=_CANCEL,
    does="sends a prompt, and cancels it immediately",
    expects="a response that is not an error",
)
async def takes_an_early_cancel(examinee: Examinee) -> None:
    probe = await examinee.probe()
    session_id = await examinee.session(probe)
    key = probe.begin("session/prompt", prompt(session_id, examinee.prompts.long))
    probe.notify("session/cancel", {"sessionId": session_id})
    ended(await probe.reply_to(key, "a prompt that was cancelled immediately"))


@checks.must(
    "cancel.twice",
    "A prompt gets one response, no matter how often it is cancelled.",
    page=_CANCEL,
    does="cancels a long turn twice",
    expects="one response",
)
async def answers_once(examinee: Examinee) -> None:
    probe = await examinee.probe()
    key = await _cancelled(examinee, probe, await examinee.session(probe), times=2)
    await probe.settle("two cancels")
    expect(len(probe.replies(key)) == 1, "the prompt got two responses")


@checks.must(
    "cancel.continues",
    "A session accepts prompts after a cancelled turn.",
    page=_CANCEL,
    does="cancels a long turn, and sends another prompt",
    expects="a response with a stop reason other than `cancelled`",
)
async def goes_on(examinee: Examinee) -> None:
    probe = await examinee.probe()
    session_id = await examinee.session(probe)
    await _cancelled(examinee, probe, session_id)
    why = ended(await probe.call("session/prompt", prompt(session_id, examinee.prompts.short)))
    expect(why != "cancelled", "the turn after a cancelled one ended as cancelled")


@checks.must(
    "cancel.own-session",
    "A cancel affects only its own session.",
    page=_CANCEL,
    does="runs a turn in each of two sessions, and cancels one of them",
    expects="the other turn ends normally",
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
    "A cancelled request still gets a response, a result or the error -32800.",
    page=page("cancellation"),
    does="cancels a prompt with `$/cancel_request`",
    expects="a result, or the error -32800",
)
async def answers_a_withdrawn_request(examinee: Examinee) -> None:
    probe = await examinee.probe()
    session_id = await examinee.session(probe)
    key = probe.begin("session/prompt", prompt(session_id, examinee.prompts.long), "to withdraw")
    await _begun(probe, session_id, key, 0)
    probe.notify("$/cancel_request", {"requestId": key})
    probe.notify("session/cancel", {"sessionId": session_id})
    reply = await probe.reply_to(key, "the cancelled prompt")
    code = error_code(reply) if is_error(reply) else -32800
    expect(code == -32800, f"the cancelled request got the error {code!r}")

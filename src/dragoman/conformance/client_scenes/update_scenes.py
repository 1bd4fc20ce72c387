"""Updates: unknown ones, when they arrive, and what a client shows of them."""

from __future__ import annotations

from dragoman.conformance.check import CheckFailed, Checks, expect, not_applicable, page
from dragoman.conformance.client_stage.stage import ClientStage, chunk
from dragoman.conformance.probing.loose_json import Wire
from dragoman.conformance.probing.probe import PING

checks: Checks[ClientStage] = Checks("client", page("prompt-turn#3-agent-reports-output"))
_EXTENSIONS = page("extensibility")
_CALLS = page("tool-calls#updating")


def _survives(
    key: str, says: str, update: Wire, what: str, page_: str = "", session_id: str | None = None
) -> None:
    @checks.should(
        f"updates.{key}",
        says,
        page=page_,
        does=f"sends {what} during a turn",
        expects="the client still responds to requests",
    )
    async def survives_the_update(stage: ClientStage) -> None:
        await stage.prompted()
        stage.update(update, session_id)
        await stage.settle(what)


_survives(
    "unknown-kind",
    "An update of an unknown kind does not break the client.",
    {"sessionUpdate": "conformance_gossip", "text": "psst"},
    "an update of an unknown kind",
)
_survives(
    "unknown-field",
    "Unknown fields are ignored.",
    {**chunk("x"), "conformanceField": {"a": [1]}, "_meta": {"conformance.example/a": None}},
    "an update with unknown fields and `_meta`",
    _EXTENSIONS,
)
_survives(
    "unknown-content",
    "A content block of an unknown type does not break the client.",
    {"sessionUpdate": "agent_message_chunk", "content": {"type": "conformance_hologram"}},
    "a message with a content block of an unknown type",
    page("content"),
)
_survives(
    "unknown-tool-kind",
    "A tool call of an unknown kind does not break the client.",
    {
        "sessionUpdate": "tool_call",
        "toolCallId": "odd",
        "title": "Odd",
        "kind": "conformance_magic",
        "status": "pending",
    },
    "a tool call of an unknown kind",
    page("tool-calls#creating"),
)
_survives(
    "unannounced-call",
    "An update may be for a tool call that was never announced.",
    {"sessionUpdate": "tool_call_update", "toolCallId": "never seen", "status": "completed"},
    "an update for a tool call that was never announced",
    _CALLS,
)
_survives(
    "bad-shape",
    "One malformed update does not end the connection.",
    {"sessionUpdate": "tool_call", "toolCallId": 7, "title": None, "locations": "none"},
    "a tool call with fields of the wrong type",
    _CALLS,
)
_survives(
    "other-session",
    "An update for an unknown session does not break the client.",
    chunk("elsewhere"),
    "an update for another session",
    "",
    "conformance-other-session",
)


@checks.should(
    "updates.late",
    "An update may arrive after the turn has ended.",
    does="sends an update immediately after the response to the prompt",
    expects="the client still responds to requests, or exits with code 0",
)
async def takes_late_updates(stage: ClientStage) -> None:
    await stage.prompted()
    stage.end()
    stage.say("late")
    await _fine(stage, "an update after the turn")


@checks.should(
    "updates.stop-reason",
    "An unknown stop reason still ends the turn.",
    page=page("prompt-turn#stop-reasons"),
    does="ends the turn with an unknown stop reason",
    expects="the client still responds to requests, or closes the connection",
)
async def takes_any_stop_reason(stage: ClientStage) -> None:
    await stage.prompted()
    stage.end("conformance_tired")
    await _over_or_answers(stage, "an unknown stop reason")


async def _over_or_answers(stage: ClientStage, what: str) -> None:
    """It closes the connection, or it responds: anything but silence."""
    key = stage.probe.begin(PING, {})
    try:
        await stage.probe.reply_to(key, f"a request after {what}")
    except CheckFailed:
        if stage.probe.over is None:
            raise


async def _fine(stage: ClientStage, what: str) -> None:
    """It responds, or has exited in order."""
    await _over_or_answers(stage, what)
    if stage.probe.over is not None:
        code = await stage.exited(what)
        expect(code == 0, f"after {what}, the client exited with code {code}")


# ── what a person sees ────────────────────────────────────────────────────────────────────────


async def _shown(stage: ClientStage, *words: str) -> str:
    """What the client prints, if it prints what the agent says."""
    printed = await stage.printed()
    if not any(word in printed for word in words):
        not_applicable("the client does not print what the agent says")
    return printed


@checks.must(
    "shown.order",
    "The output of the agent is shown in order.",
    does="sends thirty words, one by one, and reads what the client prints",
    expects="all of them, in order",
)
async def shows_in_order(stage: ClientStage) -> None:
    await stage.prompted()
    words = [f"[w{number:02}]" for number in range(30)]
    for word in words:
        stage.say(f"{word} ")
    printed = await _shown(stage, *words)
    places = [printed.find(word) for word in words]
    expect(-1 not in places, f"{places.count(-1)} of thirty words are missing")
    expect(places == sorted(places), "the words are not in order")


@checks.must(
    "shown.complete",
    "Everything that arrives before the response to the prompt belongs to the turn.",
    does="sends a word and the response to the prompt in one write",
    expects="the client prints the word",
)
async def shows_the_end(stage: ClientStage) -> None:
    asked = await stage.prompted()
    stage.say("[begin] ")
    last = {"sessionId": stage.session_id, "update": chunk("[end]")}
    update = {"jsonrpc": "2.0", "method": "session/update", "params": last}
    stage.together(update, {"jsonrpc": "2.0", "id": asked.id, "result": {"stopReason": "end_turn"}})
    printed = await stage.printed_after_turn()
    if "[begin]" not in printed:
        not_applicable("the client does not print what the agent says")
    expect("[end]" in printed, "the last word of the turn is missing")


@checks.must(
    "shown.once",
    "The output of the agent is shown once.",
    does="sends three words, and reads what the client prints",
    expects="each of them once",
)
async def shows_once(stage: ClientStage) -> None:
    await stage.prompted()
    words = ("[one]", "[two]", "[three]")
    for word in words:
        stage.say(f"{word} ")
    printed = await _shown(stage, *words)
    counts = [printed.count(word) for word in words]
    expect(max(counts) <= 1, f"the words are shown {counts} times")


@checks.must(
    "shown.own-session",
    "The output of one session is not shown in another.",
    does="sends a word in the session, and one in another session",
    expects="the client prints only the first word",
)
async def shows_its_session(stage: ClientStage) -> None:
    await stage.prompted()
    stage.update(chunk("[foreign] "), "conformance-other-session")
    stage.say("[own] ")
    printed = await _shown(stage, "[own]")
    expect("[foreign]" not in printed, "the client shows the output of another session")

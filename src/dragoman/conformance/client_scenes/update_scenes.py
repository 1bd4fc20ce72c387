"""Updates: what is unknown in them, when they come, and what a client shows of them."""

from __future__ import annotations

from dragoman.conformance.check import CheckFailed, Checks, expect, not_applicable, page
from dragoman.conformance.client_stage.stage import ClientStage, chunk
from dragoman.conformance.loose_json import Wire
from dragoman.conformance.probe import PING

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
        does=f"sends {what} in a turn",
        expects="a client that still answers",
    )
    async def survives_the_update(stage: ClientStage) -> None:
        await stage.prompted()
        stage.update(update, session_id)
        await stage.settle(what)


_survives(
    "unknown-kind",
    "An update of a kind that a client does not know does no harm.",
    {"sessionUpdate": "conformance_gossip", "text": "psst"},
    "an update of an unknown kind",
)
_survives(
    "unknown-field",
    "A field that a client does not know changes nothing.",
    {**chunk("x"), "conformanceField": {"a": [1]}, "_meta": {"conformance.example/a": None}},
    "an update with unknown fields and `_meta`",
    _EXTENSIONS,
)
_survives(
    "unknown-content",
    "A block of a type that a client does not know does no harm.",
    {"sessionUpdate": "agent_message_chunk", "content": {"type": "conformance_hologram"}},
    "a message with a block of an unknown type",
    page("content"),
)
_survives(
    "unknown-tool-kind",
    "A kind of tool that a client does not know does no harm.",
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
    "An update may come for a tool call that was never announced.",
    {"sessionUpdate": "tool_call_update", "toolCallId": "never seen", "status": "completed"},
    "an update for a tool call that was never announced",
    _CALLS,
)
_survives(
    "bad-shape",
    "One update that cannot be read does not end the conversation.",
    {"sessionUpdate": "tool_call", "toolCallId": 7, "title": None, "locations": "none"},
    "a tool call with fields of the wrong type",
    _CALLS,
)
_survives(
    "other-session",
    "An update of a session that a client does not have does no harm.",
    chunk("elsewhere"),
    "an update of another session",
    "",
    "conformance-other-session",
)


@checks.should(
    "updates.late",
    "An update may come after the turn, and is not the end of the client.",
    does="sends an update right behind the answer to the prompt",
    expects="no failure: the client answers, or exits with 0",
)
async def takes_late_updates(stage: ClientStage) -> None:
    await stage.prompted()
    stage.end()
    stage.say("late")
    await _fine(stage, "an update after the turn")


@checks.should(
    "updates.stop-reason",
    "A stop reason that a client does not know still ends the turn.",
    page=page("prompt-turn#stop-reasons"),
    does="ends the turn with an unknown stop reason",
    expects="a client that answers, or ends the connection",
)
async def takes_any_stop_reason(stage: ClientStage) -> None:
    await stage.prompted()
    stage.end("conformance_tired")
    await _over_or_answers(stage, "an unknown stop reason")


async def _over_or_answers(stage: ClientStage, what: str) -> None:
    """It ends the connection, or it answers: anything but silence."""
    key = stage.probe.begin(PING, {})
    try:
        await stage.probe.reply_to(key, f"a question after {what}")
    except CheckFailed:
        if stage.probe.over is None:
            raise


async def _fine(stage: ClientStage, what: str) -> None:
    """It answers, or has exited in order."""
    await _over_or_answers(stage, what)
    if stage.probe.over is not None:
        code = await stage.exited(what)
        expect(code == 0, f"after {what}, the client exited with {code}")


# ── what a person sees ────────────────────────────────────────────────────────────────────────


async def _shown(stage: ClientStage, *words: str) -> str:
    """What the client prints, if it prints what the agent says."""
    printed = await stage.printed()
    if not any(word in printed for word in words):
        not_applicable("the client prints nothing of what the agent says")
    return printed


@checks.must(
    "shown.order",
    "What an agent says is shown in the order in which it says it.",
    does="says thirty words, one by one, and looks at what the client prints",
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
    "A turn is over when it is answered, and everything before that belongs to it.",
    does="says a word, and answers the prompt in the same piece of bytes",
    expects="the word among what the client prints",
)
async def shows_the_end(stage: ClientStage) -> None:
    asked = await stage.prompted()
    stage.say("[begin] ")
    last = {"sessionId": stage.session_id, "update": chunk("[end]")}
    update = {"jsonrpc": "2.0", "method": "session/update", "params": last}
    stage.together(update, {"jsonrpc": "2.0", "id": asked.id, "result": {"stopReason": "end_turn"}})
    printed = await stage.printed_after_turn()
    if "[begin]" not in printed:
        not_applicable("the client prints nothing of what the agent says")
    expect("[end]" in printed, "the last word of the turn is missing")


@checks.must(
    "shown.once",
    "What an agent says once is shown once.",
    does="says three words, and looks at what the client prints",
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
    "What is said in another session is not part of this one.",
    does="says a word in the session and one in another",
    expects="the first word alone among what the client prints",
)
async def shows_its_session(stage: ClientStage) -> None:
    await stage.prompted()
    stage.update(chunk("[foreign] "), "conformance-other-session")
    stage.say("[own] ")
    printed = await _shown(stage, "[own]")
    expect("[foreign]" not in printed, "it shows what was said in another session")

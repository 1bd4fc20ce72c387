"""Questions to a person: permissions, cancelling, and sessions that are loaded.

What only a person can do is done by the commands of `--answer`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from dragoman.conformance.check import Checks, expect, not_applicable, page
from dragoman.conformance.client_stage.pretend_agent import HELD, SESSION
from dragoman.conformance.client_stage.stage import ClientStage, chosen, chunk, told
from dragoman.conformance.loose_json import Wire, at
from dragoman.conformance.pretend_host import AgentRequest

checks: Checks[ClientStage] = Checks("client", page("tool-calls#requesting-permission"))
_CANCEL = page("prompt-turn#cancellation")
_LOAD = page("session-setup#loading-sessions")
_PERMISSION = "session/request_permission"
_OPTIONS = (
    ("yes", "Yes", "allow_once"),
    ("always", "Always", "allow_always"),
    ("no", "No", "reject_once"),
    ("never", "Never", "reject_always"),
)


def _question(stage: ClientStage, key: str = "ask", more: Wire | None = None) -> Wire:
    options = [{"optionId": id_, "name": name, "kind": kind} for id_, name, kind in _OPTIONS]
    call = {
        "toolCallId": key,
        "title": "Run echo ready",
        "kind": "execute",
        "status": "pending",
        "rawInput": {"command": "echo ready"},
    }
    whole = {"sessionId": stage.session_id, "toolCall": call, "options": options}
    return {**whole, **(more or {})}


async def _answered(stage: ClientStage, key: str = "ask", more: Wire | None = None) -> Wire:
    return await stage.ask(_PERMISSION, _question(stage, key, more))


@checks.must(
    "permission.offered",
    "A client answers with one of the options that it was offered, or with `cancelled`.",
    does="asks for permission",
    expects="the `optionId` of an option, or `cancelled`",
)
async def chooses_an_option(stage: ClientStage) -> None:
    await stage.prompted()
    reply = await _answered(stage, "offered")
    outcome = at(reply, "result", "outcome", "outcome")
    known = [key for key, _, _ in _OPTIONS]
    right = outcome == "cancelled" or (outcome == "selected" and chosen(reply) in known)
    expect(right, f"the answer is {outcome!r}, {chosen(reply)!r}")


@checks.must(
    "permission.not-cancelled",
    "`cancelled` says that the turn is cancelled; a refusal is one of the options.",
    does="asks for permission in a turn that nobody cancels",
    expects="no `cancelled`",
)
async def refuses_with_an_option(stage: ClientStage) -> None:
    await stage.prompted()
    outcome = at(await _answered(stage, "not-cancelled"), "result", "outcome", "outcome")
    expect(outcome != "cancelled", "the answer is cancelled, and the turn was not")


@checks.must(
    "permission.unannounced",
    "Permission may be asked for a tool call that was never announced.",
    does="asks for permission for one",
    expects="an answer that is not an error",
)
async def answers_for_unannounced_calls(stage: ClientStage) -> None:
    await stage.prompted()
    chosen(await _answered(stage, more={"toolCall": {"toolCallId": "never seen"}}))


@checks.should(
    "permission.unknown-kind",
    "An option of a kind that a client does not know does no harm.",
    does="asks for permission with one more option, of an unknown kind",
    expects="an answer that is not an error, and is not this option",
)
async def survives_unknown_kinds(stage: ClientStage) -> None:
    await stage.prompted()
    options = [*_question(stage)["options"]]
    odd = {"optionId": "odd", "name": "Perhaps", "kind": "conformance_perhaps"}
    option = chosen(await _answered(stage, more={"options": [odd, *options]}))
    expect(option != "odd", "it chose an option whose meaning it cannot know")


@checks.must(
    "permission.allowed",
    "A person who allows a call selects an option that says so.",
    does="asks for permission, with `--answer allow`",
    expects="an option of a kind that allows",
)
async def allows(stage: ClientStage) -> None:
    await _by_hand(stage, "allow", ("yes", "always"))


@checks.must(
    "permission.refused",
    "A person who refuses a call selects an option that says so.",
    does="asks for permission, with `--answer reject`",
    expects="an option of a kind that rejects",
)
async def rejects(stage: ClientStage) -> None:
    await _by_hand(stage, "reject", ("no", "never"))


async def _by_hand(stage: ClientStage, hand: str, wanted: tuple[str, ...]) -> None:
    stage.needs(hand)
    await stage.prompted(hand=hand)
    key = stage.probe.begin(_PERMISSION, _question(stage, hand))
    if not stage.client.starts(hand):
        await stage.running.lend(hand)
    option = chosen(await stage.probe.reply_to(key, "the question"))
    expect(option in wanted, f"it chose {option!r}")


@checks.should(
    "permission.both-open",
    "Questions may be open at the same time, and updates come in meanwhile.",
    does="asks twice for permission, and sends updates in between",
    expects="an answer to each",
)
async def answers_two_questions(stage: ClientStage) -> None:
    await stage.prompted()
    first = stage.probe.begin(_PERMISSION, _question(stage))
    stage.say("meanwhile")
    second = stage.probe.begin(_PERMISSION, _question(stage, "second"))
    for key in (first, second):
        await stage.probe.reply_to(key, "one of two questions")


# ── cancelling ────────────────────────────────────────────────────────────────────────────────


async def _cancelled(stage: ClientStage, *, question: bool = False) -> Any:
    """Have the turn cancelled by hand; the id of a question that was open, if there was one."""
    stage.needs("cancel")
    await stage.prompted(hand="cancel" if stage.client.starts("cancel") else "")
    stage.say("working")
    await stage.settle("an update")
    key = stage.probe.begin(_PERMISSION, _question(stage, "open")) if question else None
    if question:
        await asyncio.sleep(_A_MOMENT)
        if stage.probe.replies(key):
            not_applicable("the client answers the question by itself")
    if not stage.client.starts("cancel"):
        await stage.running.lend("cancel")
    await stage.probe.until(lambda each: each.get("method") == "session/cancel", "session/cancel")
    return key


_A_MOMENT = 0.5


@checks.must(
    "cancel.notifies",
    "A turn is cancelled with the notification `session/cancel`, which names its session.",
    page=_CANCEL,
    does="has the turn cancelled, with `--answer cancel`",
    expects="`session/cancel` without an id, for this session",
)
async def cancels(stage: ClientStage) -> None:
    await _cancelled(stage)
    for each in stage.probe.received:
        if each.message.get("method") == "session/cancel":
            expect("id" not in each.message, "it is a request", each.frame)
            named = at(each.message, "params", "sessionId")
            expect(named == stage.session_id, f"it names {named!r}", each.frame)


@checks.must(
    "cancel.question",
    "A client that cancels a turn answers its open questions with `cancelled`.",
    page=_CANCEL,
    does="has the turn cancelled while a question is open, with `--answer cancel`",
    expects="`cancelled`",
)
async def cancels_the_question(stage: ClientStage) -> None:
    key = await _cancelled(stage, question=True)
    reply = await stage.probe.reply_to(key, "the question of a cancelled turn")
    outcome = at(reply, "result", "outcome", "outcome")
    expect(outcome == "cancelled", f"the question was answered with {outcome!r}")


@checks.should(
    "cancel.late-question",
    "A question that comes after the cancel is answered with `cancelled`.",
    page=_CANCEL,
    does="asks for permission after the cancel, with `--answer cancel`",
    expects="`cancelled`",
)
async def cancels_late_questions(stage: ClientStage) -> None:
    await _cancelled(stage)
    outcome = at(await _answered(stage, "late"), "result", "outcome", "outcome")
    expect(outcome == "cancelled", f"the question was answered with {outcome!r}")


@checks.must(
    "cancel.waits",
    "A cancelled turn continues until its prompt is answered; its updates are still taken.",
    page=_CANCEL,
    does="sends updates after the cancel, then the answer, with `--answer cancel`",
    expects="the connection stays until the answer",
)
async def waits_for_the_answer(stage: ClientStage) -> None:
    await _cancelled(stage)
    stage.say("winding up")
    await stage.settle("a cancel")
    stage.end("cancelled")
    await asyncio.sleep(0)


# ── sessions that are loaded ──────────────────────────────────────────────────────────────────


def _replayed(stage: ClientStage) -> None:
    """Has the agent load sessions, and keep its first prompt waiting."""

    def load(asked: AgentRequest) -> Wire:
        key = str(asked.params.get("sessionId"))
        question = {"type": "text", "text": "[asked] before"}
        past = {"sessionUpdate": "user_message_chunk", "content": question}
        stage.together(told(past, key), told(chunk("[said] before"), key))
        return {}

    stage.agent.replies["session/load"] = load
    stage.agent.replies["session/prompt"] = HELD


_LOADS: Wire = {
    "agentCapabilities": {"loadSession": True, "promptCapabilities": {}},
}


@checks.must(
    "load.waits",
    "A session takes prompts when it has been loaded.",
    page=_LOAD,
    does="replays a conversation, with `--answer load`, before it answers",
    expects="`session/load` with the id, and the prompt after its answer",
)
async def waits_for_the_load(stage: ClientStage) -> None:
    stage.needs("load")
    _replayed(stage)
    await stage.prompted(welcome=_LOADS, hand="load")
    loads = stage.agent.of("session/load")
    expect(loads != [], "the session was not loaded")
    named = loads[0].params.get("sessionId")
    expect(named == SESSION, f"it loads {named!r}", loads[0].frame)


@checks.must(
    "load.shown-once",
    "What is replayed is what was, not what is: a client does not have it twice.",
    page=_LOAD,
    does="replays a conversation and says a word, with `--answer load`",
    expects="what was said before at most once among what the client prints",
)
async def shows_replays_once(stage: ClientStage) -> None:
    stage.needs("load")
    _replayed(stage)
    await stage.prompted(welcome=_LOADS, hand="load")
    stage.say("[now]")
    printed = await stage.printed()
    if "[now]" not in printed:
        not_applicable("the client prints nothing of what the agent says")
    counts = [printed.count(word) for word in ("[said]", "[now]")]
    expect(max(counts) <= 1, f"old and new words are shown {counts} times")

"""Questions to a person: permissions, cancelling, and loaded sessions.

What only a person can do is done by the commands of `--answer`.
"""

from __future__ import annotations

from typing import Any

from dragoman.conformance.check import Checks, NoResponse, expect, not_applicable, page
from dragoman.conformance.client_stage.pretend_agent import HELD, SESSION
from dragoman.conformance.client_stage.stage import ClientStage, chosen, chunk, told
from dragoman.conformance.probing.loose_json import Wire, at
from dragoman.conformance.probing.pretend_host import AgentRequest

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
    """The response of a client that decides by itself. Raises NotApplicable for one that asks a
    person, as it seems: it only keeps the question open."""
    try:
        return await stage.ask(_PERMISSION, _question(stage, key, more))
    except NoResponse:
        if stage.probe.over is not None:
            raise
        await stage.settle("a permission request")
        not_applicable("the client asks a person")


@checks.must(
    "permission.offered",
    "The response to a permission request is one of its options, or `cancelled`.",
    does="requests permission",
    expects="the `optionId` of an option, or `cancelled`",
)
async def chooses_an_option(stage: ClientStage) -> None:
    await stage.prompted()
    reply = await _answered(stage, "offered")
    outcome = at(reply, "result", "outcome", "outcome")
    known = [key for key, _, _ in _OPTIONS]
    right = outcome == "cancelled" or (outcome == "selected" and chosen(reply) in known)
    expect(right, f"the outcome is {outcome!r} with the option {chosen(reply)!r}")


@checks.must(
    "permission.not-cancelled",
    "`cancelled` means that the turn was cancelled; a rejection is one of the options.",
    does="requests permission in a turn that is not cancelled",
    expects="an outcome other than `cancelled`",
)
async def refuses_with_an_option(stage: ClientStage) -> None:
    await stage.prompted()
    outcome = at(await _answered(stage, "not-cancelled"), "result", "outcome", "outcome")
    expect(outcome != "cancelled", "the outcome is cancelled, but the turn was not cancelled")


@checks.must(
    "permission.unannounced",
    "A permission request may be for a tool call that was never announced.",
    does="requests permission for one",
    expects="a result",
)
async def answers_for_unannounced_calls(stage: ClientStage) -> None:
    await stage.prompted()
    chosen(await _answered(stage, more={"toolCall": {"toolCallId": "never seen"}}))


@checks.should(
    "permission.unknown-kind",
    "An option of an unknown kind does not break the client.",
    does="requests permission with an additional option of an unknown kind",
    expects="a result that does not select this option",
)
async def survives_unknown_kinds(stage: ClientStage) -> None:
    await stage.prompted()
    options = [*_question(stage)["options"]]
    odd = {"optionId": "odd", "name": "Perhaps", "kind": "conformance_perhaps"}
    option = chosen(await _answered(stage, more={"options": [odd, *options]}))
    expect(option != "odd", "it selected an option of an unknown kind")


@checks.must(
    "permission.allowed",
    "Allowing a tool call selects an option that allows it.",
    does="requests permission, with `--answer allow`",
    expects="an option whose kind is `allow_once` or `allow_always`",
)
async def allows(stage: ClientStage) -> None:
    await _by_hand(stage, "allow", ("yes", "always"))


@checks.must(
    "permission.refused",
    "Rejecting a tool call selects an option that rejects it.",
    does="requests permission, with `--answer reject`",
    expects="an option whose kind is `reject_once` or `reject_always`",
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
    expect(option in wanted, f"the selected option is {option!r}")


@checks.should(
    "permission.both-open",
    "Several permission requests may be pending while updates arrive.",
    does="requests permission twice, with an update in between",
    expects="a response to each",
)
async def answers_two_questions(stage: ClientStage) -> None:
    await stage.prompted()
    second = stage.probe.begin(_PERMISSION, _question(stage, "second"))
    stage.say("meanwhile")
    await _answered(stage)
    await stage.probe.reply_to(second, "one of two permission requests")


# ── cancelling ────────────────────────────────────────────────────────────────────────────────


async def _cancelled(stage: ClientStage, *, question: bool = False) -> Any:
    """Have the turn cancelled by hand; the id of a question that was open, if there was one."""
    stage.needs("cancel")
    await stage.prompted(hand="cancel" if stage.client.starts("cancel") else "")
    stage.say("working")
    await stage.settle("an update")
    key = stage.probe.begin(_PERMISSION, _question(stage, "open")) if question else None
    if question:
        await stage.moment()
        if stage.probe.replies(key):
            not_applicable("the client responds without asking a person")
    if not stage.client.starts("cancel"):
        await stage.running.lend("cancel")
    await stage.probe.until(lambda each: each.get("method") == "session/cancel", "session/cancel")
    return key


@checks.must(
    "cancel.notifies",
    "A client cancels a turn with the notification `session/cancel`, which has the session id.",
    page=_CANCEL,
    does="has the turn cancelled, with `--answer cancel`",
    expects="`session/cancel` for this session, without a request id",
)
async def cancels(stage: ClientStage) -> None:
    await _cancelled(stage)
    for each in stage.probe.received:
        if each.message.get("method") == "session/cancel":
            expect("id" not in each.message, "it is a request", each.frame)
            named = at(each.message, "params", "sessionId")
            expect(named == stage.session_id, f"the session id is {named!r}", each.frame)


@checks.must(
    "cancel.question",
    "A client that cancels a turn responds to its pending permission requests with `cancelled`.",
    page=_CANCEL,
    does="has the turn cancelled during a permission request, with `--answer cancel`",
    expects="`cancelled`",
)
async def cancels_the_question(stage: ClientStage) -> None:
    key = await _cancelled(stage, question=True)
    reply = await stage.probe.reply_to(key, "the question of a cancelled turn")
    outcome = at(reply, "result", "outcome", "outcome")
    expect(outcome == "cancelled", f"the outcome is {outcome!r}")


@checks.should(
    "cancel.late-question",
    "A permission request that arrives after the cancel gets `cancelled`.",
    page=_CANCEL,
    does="requests permission after the cancel, with `--answer cancel`",
    expects="`cancelled`",
)
async def cancels_late_questions(stage: ClientStage) -> None:
    await _cancelled(stage)
    reply = await stage.ask(_PERMISSION, _question(stage, "late"))
    outcome = at(reply, "result", "outcome", "outcome")
    expect(outcome == "cancelled", f"the outcome is {outcome!r}")


@checks.must(
    "cancel.waits",
    "A cancelled turn continues until the response to its prompt; updates still arrive.",
    page=_CANCEL,
    does="sends an update after the cancel, then the response, with `--answer cancel`",
    expects="the client keeps the connection open until the response",
)
async def waits_for_the_answer(stage: ClientStage) -> None:
    await _cancelled(stage)
    stage.say("winding up")
    await stage.settle("a cancel")
    stage.end("cancelled")


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
    "A client waits until a session is loaded before it sends a prompt.",
    page=_LOAD,
    does="replays a conversation before the response to `session/load`, with `--answer load`",
    expects="`session/load` with the id, and the prompt after its response",
)
async def waits_for_the_load(stage: ClientStage) -> None:
    stage.needs("load")
    _replayed(stage)
    await stage.prompted(welcome=_LOADS, hand="load")
    loads = stage.agent.of("session/load")
    expect(loads != [], "the session was not loaded")
    named = loads[0].params.get("sessionId")
    expect(named == SESSION, f"the session id is {named!r}", loads[0].frame)


@checks.must(
    "load.shown-once",
    "A replayed conversation is not shown twice.",
    page=_LOAD,
    does="replays a conversation and sends a new word, with `--answer load`",
    expects="the client prints replayed words at most once",
)
async def shows_replays_once(stage: ClientStage) -> None:
    stage.needs("load")
    _replayed(stage)
    await stage.prompted(welcome=_LOADS, hand="load")
    stage.say("[now]")
    printed = await stage.printed()
    if "[now]" not in printed:
        not_applicable("the client does not print what the agent says")
    counts = [printed.count(word) for word in ("[said]", "[now]")]
    expect(max(counts) <= 1, f"replayed and new words are shown {counts} times")

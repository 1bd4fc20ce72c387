"""What rules decide about a request, and about all the calls that it is for."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.clients import opened, until
from support.peers import soon
from support.permission_scene import CANCELLED, OPTIONS, question, scene, selected
from support.raw_agent import Json, RawAgent

from dragoman import Policy, Rule
from dragoman.client.sessions.session import Session
from dragoman.host.claims.claim_reader import MOST_CALLS
from dragoman.session.content import Diff, UnknownItem
from dragoman.session.state import PendingPermission

# ── rules decide ──────────────────────────────────────────────────────────────────────────────


async def test_yolo_answers_with_the_option_for_once(tmp_path: Path) -> None:
    options = [("always", "allow_always"), ("once", "allow_once"), ("no", "reject_once")]
    async with scene(tmp_path, policy=Policy(yolo=True)) as s:
        assert (await soon(s.ask_permission(question(options))))["result"] == selected("once")
        assert s.effect == ("allow", "--yolo allows it")
        assert s.settlements[0].decision.rule is not None
        assert s.requests == []


QUESTIONS = [
    [("a", "allow_once"), ("b", "allow_once"), ("no", "reject_once")],
    [("x", "allow_once"), ("x", "reject_once")],
    [("yes", "allow_once"), ("plan", "edit_the_plan")],
]


@pytest.mark.parametrize("options", QUESTIONS)
async def test_options_that_differ_in_more_than_yes_and_no_are_never_picked_automatically(
    options: list[tuple[str, str]], tmp_path: Path
) -> None:
    async with scene(tmp_path, policy=Policy(yolo=True)) as s:
        await s.begin()
        asking = s.ask_permission(question(options))
        await s.answer(options[0][0])
        assert (await soon(asking))["result"] == selected(options[0][0])


async def test_yes_once_is_narrower_than_any_yes_for_longer(tmp_path: Path) -> None:
    offered = [("ever", "allow_always"), ("session", "allow_always"), ("once", "allow_once")]
    async with scene(tmp_path, policy=Policy(yolo=True)) as s:
        await s.begin()
        asking = s.ask_permission(question(offered))
        assert (await soon(asking))["result"] == selected("once")


async def test_an_id_that_means_yes_and_no_is_no_yes(tmp_path: Path) -> None:
    call = {"content": [{"type": "diff", "path": str(tmp_path / "a.txt"), "newText": "new"}]}
    async with scene(tmp_path) as s:
        await s.begin()
        asking = s.ask_permission(question([("x", "allow_once"), ("x", "reject_once")], call=call))
        await s.answer("x")
        await soon(asking)
        assert s.effect[0] == "answered"
        writing = asyncio.create_task(s.write("new"))
        await s.answer("reject")
        assert "error" in await soon(writing)


async def test_a_question_about_the_mode_goes_to_a_person_even_under_yolo(tmp_path: Path) -> None:
    async with scene(tmp_path, policy=Policy(yolo=True)) as s:
        await s.begin()
        asking = s.ask_permission(question(kind="switch_mode"))
        await s.answer("no")
        assert (await soon(asking))["result"] == selected("no")


OPENHANDS = {"agentInfo": {"name": "OpenHands CLI ACP Agent", "version": "1"}}
TWO_WAYS = [
    {"optionId": "yes", "name": "Yes, proceed", "kind": "allow_once"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
    {"optionId": "risky", "name": "Auto-confirm low risk", "kind": "allow_once"},
]


@pytest.mark.parametrize(
    ("call", "welcome", "chosen"),
    [
        ({"kind": "execute", "rawInput": {"command": "make"}}, None, "yes"),
        ({"kind": "edit", "locations": [{"path": "x.py"}]}, None, "yes"),
        ({"kind": "other", "title": "Which colour?"}, None, None),
        ({"rawInput": {"question": "Which?", "options": ["src/a.py", "src/b.py"]}}, None, None),
        ({"kind": "other", "title": "Confirm Agent Actions"}, None, None),
        ({"kind": "other", "title": "Confirm Agent Actions"}, OPENHANDS, "yes"),
        ({"kind": "other", "title": "Which colour?"}, OPENHANDS, None),
    ],
)
@pytest.mark.parametrize("options", [TWO_WAYS, TWO_WAYS[::-1]])
async def test_of_two_ways_to_say_yes_to_an_action_the_narrower_is_taken(
    tmp_path: Path, call: Json, welcome: Json | None, chosen: str | None, options: list[Json]
) -> None:
    """Without an action it is a question, for a person."""
    agent = RawAgent(welcome=welcome)
    async with opened(agent, tmp_path, policy=Policy(yolo=True)) as (_, session):
        session.prompt("go")
        await agent.expect("session/prompt")
        tool_call = {"toolCallId": "t", **call}
        params = {"sessionId": "s1", "toolCall": tool_call, "options": options}
        asking = asyncio.create_task(agent.ask("session/request_permission", params))
        if chosen is None:
            await until(lambda: session.state.pending)
            await session.answer(next(iter(session.state.pending)), "no")
            chosen = "no"
        answer = await soon(asking)
        assert answer["result"]["outcome"] == {"outcome": "selected", "optionId": chosen}


def edits(path: str, call_id: str = "e", **more: Any) -> Json:
    """As OpenHands tells of its editor."""
    raw = {"command": "create", "path": path, "file_text": "AAA", "kind": "FileEditorAction"}
    call = {"toolCallId": call_id, "title": f"Editing {path}", "kind": "edit", "rawInput": raw}
    return call | {"status": "in_progress", "locations": [{"path": path}]} | more


RUNS: Json = {
    "toolCallId": "r",
    "title": "$ make",
    "kind": "execute",
    "status": "in_progress",
    "rawInput": {"command": "make", "is_input": False},
}
CONFIRM: Json = {"title": "Confirm Agent Actions", "kind": "other", "status": "pending"}


@pytest.mark.parametrize(
    ("calls", "flags", "chosen"),
    [
        ([edits("a.txt")], {"write": True}, "yes"),
        ([edits("a.txt"), edits("b.txt", "e2")], {"write": True}, "yes"),
        ([edits("a.txt", status="completed"), edits("b.txt", "e2")], {"write": True}, "yes"),
        ([edits("a.txt", rawInput={"command": "rm a.txt"})], {"write": True}, "no"),
        ([edits("a.txt"), RUNS], {"write": True}, "no"),
        ([edits("a.txt"), RUNS], {"write": True, "execute": True}, "yes"),
        ([edits("a.txt"), RUNS], {"yolo": True}, "yes"),
        ([edits("a.txt"), edits("/etc/x", "e2")], {"yolo": True}, "no"),
        ([RUNS], {"write": True}, "no"),
        ([RUNS], {"execute": True}, "yes"),
        ([], {"write": True}, "no"),
    ],
)
async def test_a_request_for_all_that_is_pending_is_about_just_that(
    tmp_path: Path, calls: list[Json], flags: dict[str, Any], chosen: str
) -> None:
    """OpenHands asks once for all its pending actions, and its request names none of them."""
    agent = RawAgent(welcome=OPENHANDS)
    async with opened(agent, tmp_path, policy=Policy(**flags)) as (_, session):
        session.prompt("go")
        await agent.expect("session/prompt")
        for call in calls:
            agent.update("tool_call", **call)
        params = {"toolCall": {"toolCallId": "confirmation-s1", **CONFIRM}, "options": TWO_WAYS}
        asking = agent.ask("session/request_permission", {"sessionId": "s1", **params})
        answer = asyncio.create_task(asking)
        await until(lambda: answer.done() or session.state.pending)
        if session.state.pending:
            await session.answer(next(iter(session.state.pending)), "no")
        assert (await soon(answer))["result"] == selected(chosen)


READS: Json = {
    "toolCallId": "l",
    "title": "Read a.txt",
    "kind": "read",
    "status": "in_progress",
    "rawInput": {"path": "a.txt"},
}
PASSWD = {"type": "diff", "path": "/etc/passwd", "newText": "x"}


async def outcome(
    agent: RawAgent, session: Session, own: Json, *others: Json
) -> tuple[str, PendingPermission | None]:
    """The answer to a request for `own`, with `others` open, and the question if it was one."""
    session.prompt("go")
    await agent.expect("session/prompt")
    for call in others:
        agent.update("tool_call", **call)
    params = {"sessionId": "s1", "toolCall": {"toolCallId": "c", **own}, "options": TWO_WAYS}
    answer = asyncio.create_task(agent.ask("session/request_permission", params))
    await until(lambda: answer.done() or session.state.pending)
    asked = next(iter(session.state.pending.values()), None)
    assert asked is None or isinstance(asked, PendingPermission)
    if asked is not None:
        await session.answer(asked.id, "no")
    return (await soon(answer))["result"]["outcome"]["optionId"], asked


@pytest.mark.parametrize(
    "own",
    [
        {"kind": "execute", "rawInput": {"command": "rm -rf ~"}},
        {"rawInput": {"command": "rm -rf ~"}},
        {"rawInput": {"actions": [{"input": '{"cmd": "rm -rf ~"}'}]}},
        {"kind": "execute"},
        {"kind": "edit", "locations": [{"path": "/etc/passwd"}]},
        {"kind": "delete"},
        {"kind": "fetch", "rawInput": {"url": "https://evil.example"}},
        {"kind": "read", "rawInput": {"path": "/etc/passwd"}},
        {"kind": "a kind of its own"},
        {"locations": [{"path": "/etc/passwd"}]},
        {"content": [PASSWD]},
        {"content": [{"type": "diff"}]},
        {"rawInput": "an input that is only text"},
    ],
)
async def test_a_request_for_all_that_is_pending_is_judged_by_its_own_call_too(
    tmp_path: Path, own: Json
) -> None:
    """Any agent may call itself OpenHands and have a harmless call open."""
    agent = RawAgent(welcome=OPENHANDS)
    async with opened(agent, tmp_path) as (_, session):
        chosen, asked = await outcome(agent, session, CONFIRM | own, READS)
        assert chosen == "no"
        if asked is not None:
            assert asked.title == "Confirm Agent Actions; Read a.txt"
            command = own.get("rawInput", {})
            assert "rm -rf" not in str(command) or asked.argv == ["rm -rf ~"]


async def test_control_a_request_that_says_nothing_is_about_what_is_open(tmp_path: Path) -> None:
    agent = RawAgent(welcome=OPENHANDS)
    async with opened(agent, tmp_path) as (_, session):
        silent: Json = {"rawInput": {}, "content": [], "locations": []}
        assert await outcome(agent, session, CONFIRM | silent, READS) == ("yes", None)


def runs(call_id: str, folder: str, line: str = "npm test") -> Json:
    raw = {"command": line, "cwd": folder}
    return {"toolCallId": call_id, "title": line, "kind": "execute", "rawInput": raw}


NPM = Rule(effect="allow", operation="execute", argv=("npm", "test"), cwd="a")
ANY = Rule(effect="allow", operation="execute")


@pytest.mark.parametrize(
    ("rules", "calls", "chosen"),
    [
        ([NPM], [runs("1", "a"), runs("2", "a")], "yes"),
        ([NPM], [runs("1", "a"), runs("2", "evil")], "no"),
        ([NPM], [runs("1", "evil"), runs("2", "a")], "no"),
        ([NPM], [runs("1", "a"), runs("2", "a", "npm run evil")], "no"),
        ([NPM], [runs("1", "a"), READS], "yes"),
        ([NPM], [runs("1", "a"), edits("a.txt")], "no"),
        ([ANY], [runs("1", "a"), runs("2", "evil")], "yes"),
        ([ANY], [runs("1", "a"), runs("2", "/")], "no"),
        ([ANY, Rule(effect="deny", cwd="evil")], [runs("1", "a"), runs("2", "evil")], "no"),
        ([ANY, Rule(effect="ask", cwd="evil")], [runs("1", "evil"), runs("2", "a")], "no"),
        (
            [ANY, Rule(effect="allow", operation="write"), Rule(effect="deny", path="b.txt")],
            [runs("1", "a"), edits("a.txt"), edits("b.txt", "e2")],
            "no",
        ),
    ],
)
async def test_each_of_several_calls_is_judged_alone(
    tmp_path: Path, rules: list[Rule], calls: list[Json], chosen: str
) -> None:
    for name in ("a", "evil"):
        (tmp_path / name).mkdir()
    agent = RawAgent(welcome=OPENHANDS)
    async with opened(agent, tmp_path, policy=Policy(rules)) as (_, session):
        assert (await outcome(agent, session, CONFIRM, *calls))[0] == chosen


async def test_commands_in_several_folders_are_shown_and_remembered_with_them(
    tmp_path: Path,
) -> None:
    agent = RawAgent(welcome=OPENHANDS)
    always = [{"optionId": "always", "name": "Always", "kind": "allow_always"}, *TWO_WAYS]
    policy = Policy()
    async with opened(agent, tmp_path, policy=policy) as (_, session):
        session.prompt("go")
        await agent.expect("session/prompt")
        for call in (runs("1", "a"), runs("2", "e vil"), runs("3", "a", "make")):
            agent.update("tool_call", **call)
        params = {"sessionId": "s1", "toolCall": {"toolCallId": "c", **CONFIRM}, "options": always}
        answer = asyncio.create_task(agent.ask("session/request_permission", params))
        await until(lambda: session.state.pending)
        [asked] = session.state.pending.values()
        assert isinstance(asked, PendingPermission)
        here = tmp_path
        assert asked.argv is not None
        assert asked.argv[0].splitlines() == [
            f"cd {here}/a && npm test",
            f"cd '{here}/e vil' && npm test",
            f"cd {here}/a && make",
        ]
        assert asked.cwd is None
        told = [option.consequence for option in asked.options if option.kind == "allow_always"]
        assert "from now on: allow each of these commands by itself" in str(told)
        await session.answer(asked.id, "always")
        assert (await soon(answer))["result"] == selected("always")
        assert [(rule.argv, rule.cwd) for rule in policy.rules] == [
            (("npm", "test"), f"{here}/a"),
            (("npm", "test"), f"{here}/e vil"),
            (("make",), f"{here}/a"),
        ]


async def test_more_calls_than_can_be_shown_are_a_question_that_says_so(tmp_path: Path) -> None:
    agent = RawAgent(welcome=OPENHANDS)
    calls = [READS | {"toolCallId": str(at)} for at in range(MOST_CALLS + 2)]
    async with opened(agent, tmp_path, policy=Policy(yolo=True)) as (_, session):
        chosen, asked = await outcome(agent, session, CONFIRM, *calls)
        assert chosen == "no"
        assert asked is not None
        unread = [item.raw for item in asked.content if isinstance(item, UnknownItem)]
        assert unread == ["2 tool calls more: too many to be shown"]


async def test_whoever_is_asked_for_all_that_is_pending_sees_what_that_is(tmp_path: Path) -> None:
    agent = RawAgent(welcome=OPENHANDS)
    async with opened(agent, tmp_path) as (_, session):
        session.prompt("go")
        await agent.expect("session/prompt")
        diff = {"type": "diff", "path": "a.txt", "newText": "AAA"}
        for call in (edits("a.txt", content=[diff]), RUNS):
            agent.update("tool_call", **call)
        params = {"toolCall": {"toolCallId": "confirmation-s1", **CONFIRM}, "options": TWO_WAYS}
        asking = agent.ask("session/request_permission", {"sessionId": "s1", **params})
        answer = asyncio.create_task(asking)
        await until(lambda: session.state.pending)
        [pending] = session.state.pending.values()
        assert isinstance(pending, PendingPermission)
        assert pending.title == "Editing a.txt; $ make"
        assert [item.new_text for item in pending.content if isinstance(item, Diff)] == ["AAA"]
        await session.answer(pending.id, "no")
        await soon(answer)


CLINE = {"agentInfo": {"name": "cline", "version": "3.0.65"}}


def patch(*lines: str, title: str = "apply_patch: {...") -> Json:
    """As Cline asks for it."""
    text = "\n".join(("*** Begin Patch", *lines, "*** End Patch", ""))
    return question(title=title, kind="other", rawInput={"input": text})


@pytest.mark.parametrize(
    ("params", "welcome", "chosen"),
    [
        (patch("*** Add File: a.txt", "+AAA"), CLINE, "once"),
        (patch("*** Update File: a.txt", "*** Move to: b.txt", "@@", "-x"), CLINE, "once"),
        (patch("*** Add File: a.txt", "+A", "*** Add File: /etc/x", "+B"), CLINE, "no"),
        (patch("*** Update File: a.txt", "*** Move to: ../x"), CLINE, "no"),
        (patch("*** Delete File: .git/config"), CLINE, "no"),
        (patch("+AAA"), CLINE, "no"),
        (patch("*** Add File: a.txt", title="other_tool: {"), CLINE, "no"),
        (patch("*** Add File: a.txt"), None, "no"),
    ],
)
async def test_write_allows_the_patches_of_cline_inside_the_workspace(
    tmp_path: Path, params: Json, welcome: Json | None, chosen: str
) -> None:
    """With most models it edits by a tool that it calls `other`."""
    agent = RawAgent(welcome=welcome)
    async with opened(agent, tmp_path, policy=Policy(write=True)) as (_, session):
        session.prompt("go")
        await agent.expect("session/prompt")
        answer = asyncio.create_task(agent.ask("session/request_permission", params))
        await until(lambda: answer.done() or session.state.pending)
        if session.state.pending:
            await session.answer(next(iter(session.state.pending)), "no")
        assert (await soon(answer))["result"] == selected(chosen)


async def test_only_always_on_offer_is_asked_even_under_yolo(tmp_path: Path) -> None:
    async with scene(tmp_path, policy=Policy(yolo=True)) as s:
        await s.begin()
        asking = s.ask_permission(question([("always", "allow_always"), ("no", "reject_once")]))
        await s.answer("no")
        await soon(asking)


@pytest.mark.parametrize(
    ("options", "expected"), [(OPTIONS, selected("no")), ([("once", "allow_once")], CANCELLED)]
)
async def test_what_a_rule_denies_is_refused_without_asking(
    options: list[tuple[str, str]], expected: Json, tmp_path: Path
) -> None:
    policy = Policy([Rule(effect="deny", operation="execute")], yolo=True)
    params = question(options, rawInput={"command": "rm -rf /"})
    async with scene(tmp_path, policy=policy) as s:
        assert (await soon(s.ask_permission(params)))["result"] == expected
        effect, reason = s.effect
        assert effect == "deny"
        assert ("offers no way to refuse" in reason) == (expected == CANCELLED)


# ── what was said before ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("folder", [".", ".."])
async def test_a_request_is_judged_by_what_the_call_said_before_it_too(
    folder: str, tmp_path: Path
) -> None:
    async with scene(tmp_path, policy=Policy(execute=True)) as s:
        await s.begin()
        told = {"command": "ls", "workdir": str(tmp_path / folder)}
        s.agent.update("tool_call", toolCallId="t", title="ls", kind="execute", rawInput=told)
        params = question(call={"kind": "execute", "rawInput": {"command": "ls"}})
        answer = await s.result("session/request_permission", params)
        assert answer["result"] == selected("once" if folder == "." else "no")

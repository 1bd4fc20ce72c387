"""`-o result` and `-o events`: what programs read of a run."""

from __future__ import annotations

import io
import json
import re
import subprocess
from typing import Any

from support.command import Dragoman, Json, refused

from dragoman.cli.render.json_output import (
    LONGEST_ANSWER,
    MOST_DECISIONS,
    EventLines,
    ResultView,
)
from dragoman.safe_text import escaped_json
from dragoman.session import events as e
from dragoman.session.content import Text
from dragoman.session.facts import Decision
from dragoman.session.reduce import reduce
from dragoman.session.state import SessionState
from dragoman.store.archive import read_archive
from dragoman.store.records import SessionRecord


def result(done: Any) -> Json:
    """The one line of standard output."""
    assert done.out.endswith("}\n"), done
    [line] = done.lines
    return json.loads(line)


NASTY = "\x1b]0;P\x07 \x9b2J \x7f \u202e \u2028 \U000e0041 \u00e4 \U0001f600"
ACTING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u2028\U000e0041]")


def test_json_does_not_act_on_a_terminal_and_says_the_same(dragoman: Dragoman) -> None:
    """A terminal may take U+009B for the beginning of a command, and JSON has no escape for it."""
    prompt = f"/think {NASTY[12:]}"
    ran = dragoman("-a", "demo", "-o", "events", "--yolo", "--session", "odd", prompt)
    [listed] = json.loads(dragoman("sessions", "list", "--json").out)
    printed = [
        ran.out,
        dragoman("-a", "demo", "-o", "result", "--yolo", prompt).out,
        dragoman("sessions", "list", "--json").out,
        dragoman("sessions", "show", listed["id"], "--json").out,
        dragoman("sessions", "export", listed["id"]).out,
        dragoman("watch", listed["id"], "--json", "--all", "--until-idle").out,
    ]
    for text in printed:
        assert ACTING.search(text) is None
    assert "ä" in printed[0]
    said = [json.loads(line) for line in ran.lines]
    assert prompt in [
        each["content"][0]["text"] for each in said if each.get("type") == "turn_started"
    ]


def test_every_character_survives_in_json() -> None:
    text = json.dumps(NASTY, ensure_ascii=False)
    escaped = escaped_json(text)
    assert json.loads(escaped) == NASTY
    assert ACTING.search(escaped) is None
    assert escaped.endswith('\u00e4 \U0001f600"')
    assert escaped_json('"plain"') == '"plain"'


# ── the result ────────────────────────────────────────────────────────────────────────────────


def test_a_turn_is_one_document_with_what_changed_and_what_was_decided(
    dragoman: Dragoman,
) -> None:
    found = result(dragoman("-a", "demo", "-o", "result", "--session", "fix", "--yolo", "begin"))
    assert (found["version"], found["exitCode"], found["stopReason"]) == (1, 0, "end_turn")
    assert (found["agent"], found["name"], found["cwd"]) == (
        "demo",
        "fix",
        str(dragoman.workspace),
    )
    [listed] = json.loads(dragoman("sessions", "list", "--json").out)
    assert found["sessionId"] == listed["id"]
    assert found["agentSessionId"] == listed["agentSessionId"]
    assert found["answer"].startswith("I am Dragoman's demo agent")
    assert found["answer"].endswith("```")
    assert found["usage"]["output"] > 0
    assert found["cost"]["currency"] == "USD"
    [changed] = found["changes"]
    assert changed == {
        "path": str(dragoman.workspace / "dragoman-demo.txt"),
        "status": "added",
        "by": ["host"],
        "added": 1,
        "removed": 0,
    }
    decided = {(each["operation"], each["decision"]["effect"]) for each in found["decisions"]}
    assert decided == {("write", "allow"), ("execute", "allow")}


def test_a_failure_is_a_document_too(dragoman: Dragoman) -> None:
    done = dragoman("-a", "demo", "-o", "result", "/fail")
    found = result(done)
    assert (done.code, found["exitCode"]) == (1, 1)
    assert done.err == f"dragoman: {found['error']}\n"
    assert found["sessionId"].startswith("s-")
    done = dragoman("-o", "result", "--agent-command", "false", "hi")
    found = result(done)
    assert (found["sessionId"], found["exitCode"]) == (None, 1)
    assert found["error"] in done.err


def test_a_refusal_is_told_with_its_reason(dragoman: Dragoman) -> None:
    done = dragoman("-a", "demo", "-o", "result", "begin")
    found = result(done)
    assert (done.code, found["exitCode"]) == (5, 5)
    refusals = [each for each in found["decisions"] if each["decision"]["effect"] == "deny"]
    assert refusals
    assert all("there is nobody to ask" in each["decision"]["reason"] for each in refusals)
    assert found["changes"] == []


def test_a_mistake_before_the_run_has_no_document(dragoman: Dragoman) -> None:
    refused(dragoman("-o", "result", "-a", "nobody", "hi"), "there is no agent 'nobody'")


def test_a_turn_in_another_process_is_told_the_same_way(user: Dragoman) -> None:
    words = ("--session", "s", "-o", "result", "two")
    with user.started("--session", "s", "work") as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"working\n"
        with user.started(*words, stdin=subprocess.DEVNULL) as other:
            assert other.stderr is not None
            assert b"queued" in other.stderr.readline()
            (user.workspace / "go").touch()
            out, _ = other.communicate(timeout=60)
    found = json.loads(out)
    assert (found["answer"], found["exitCode"], found["name"]) == ("2. two", 0, "s")


def view_of(*events: e.Event, longest: int = LONGEST_ANSWER) -> ResultView:
    view, state = ResultView(longest), SessionState()
    for number, event in enumerate(events, 1):
        event.seq = number
        reduce(state, event)
        view.show(event, state)
    return view


def test_messages_are_apart_and_one_that_is_replaced_counts_once() -> None:
    view = view_of(
        e.TurnStarted("t", [Text("go")]),
        e.AgentMessage(Text("first\n\n"), "a"),
        e.AgentThought(Text("hm"), "b"),
        e.AgentMessage(Text("secnod"), "c"),
        e.AgentMessage(Text("second"), "c", replaces=True),
    )
    assert json.loads(view.document(0, None))["answer"] == "first\n\nsecond"


def test_what_is_kept_is_bounded() -> None:
    allowed = e.AccessDecided("read", Decision("allow", "a rule", by="rule"), ["/x"])
    view = view_of(
        e.TurnStarted("t", [Text("go")]),
        e.AgentMessage(Text("1234"), "a"),
        e.AgentMessage(Text("5678"), "a"),
        e.AgentMessage(Text("9"), "a"),
        *[allowed] * (MOST_DECISIONS + 1),
        longest=6,
    )
    found = json.loads(view.document(0, None))
    assert (found["answer"], found["answerCut"]) == ("123456", True)
    assert len(found["decisions"]) == MOST_DECISIONS


# ── the events ────────────────────────────────────────────────────────────────────────────────


def test_events_are_the_lines_of_an_export(user: Dragoman) -> None:
    done = user("--session", "fix", "-o", "events", "one")
    header, *events = done.frames
    assert header["session"]["name"] == "fix"
    exported = [json.loads(line) for line in user("sessions", "export", "fix").lines]
    assert events == exported[1 : len(events) + 1]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[-1]["type"] == "turn_ended"
    again = user("--session", "fix", "-o", "events", "two").frames
    assert again[0]["session"]["lastSeq"] == again[1]["seq"] - 1


def test_the_lines_can_be_read_as_an_export() -> None:
    out = io.BytesIO()
    lines = EventLines(out)
    record = SessionRecord(id="s-1", agent="demo", cwd="/", created_at=1.0, updated_at=1.0)
    lines.begin(record, 0)
    state = SessionState()
    for number, event in enumerate((e.TurnStarted("t", [Text("go")]), e.TurnEnded("t")), 1):
        event.seq = number
        reduce(state, event)
        lines.show(event, state)
    archive = read_archive(out.getvalue().splitlines(keepends=True))
    assert archive.record.id == "s-1"
    assert len(archive.events) == 2

"""A turn as a terminal shows it: calls, plans, output and usage."""

from __future__ import annotations

import pytest
from support.shown_views import Shown, shown

from dragoman.cli.render.event_text import tool_output
from dragoman.cli.render.style import Style
from dragoman.cli.render.terminal_view import painted_diff
from dragoman.session import events as e
from dragoman.session import facts as f
from dragoman.session.content import (
    ContentItem,
    Diff,
    Image,
    Text,
    ToolContent,
    UnknownItem,
)
from dragoman.session.state import ToolCall


async def test_a_tool_call_leaves_one_line_behind() -> None:
    view = Shown("terminal", colour=False)
    calls = [e.ToolCallUpdated("c", title="Read it", status=s) for s in ("pending", "in_progress")]
    assert view.show(e.TurnStarted("t", []), *calls) == ""
    assert view.show(e.ToolCallUpdated("c", status="completed")) == "✓ Read it\n"
    assert view.show(e.ToolCallUpdated("c", status="completed")) == "✓ Read it\n"


async def test_the_end_of_what_a_tool_call_brought_back_stands_below_it() -> None:
    view = Shown("terminal", colour=False)
    text = ContentItem(Text("\n".join(f"line {at}" for at in range(10))))
    call = e.ToolCallUpdated("c", title="Read it", status="completed", content=[text])
    shown = view.show(e.TurnStarted("t", []), call)
    assert shown == "✓ Read it\n  … 2 earlier lines\n" + "".join(
        f"  line {at}\n" for at in range(2, 10)
    )


@pytest.mark.parametrize(
    ("raw", "content", "shown"),
    [
        ("plain", [], "plain"),
        ({"output": "x"}, [], ""),
        ("raw", [ContentItem(Text("told"))], "told"),
        (None, [ContentItem(Text("```sh\nls\na b\n```\n"))], "ls\na b"),
        (None, [ContentItem(Text("```\none\n```\nand\n```\ntwo\n```"))], None),
        (None, [ContentItem(Text("~~~~\n```\na~~~~"))], "```\na"),
        (None, [ContentItem(Text("```a`b\nx\n```"))], None),
        (None, [ContentItem(Text("```\n```"))], ""),
        # Looked at twice, and not once for each mark in it.
        (None, [ContentItem(Text("`" * 40_000 + "\n" + ("`" * 39_999 + "x") * 10))], None),
        (None, [Diff("x", "new")], ""),
        # What is not text is named, so that it does not go unseen.
        (None, [ContentItem(Image(mime_type="image/png", data=""))], "[image/png]"),
        ("raw", [ContentItem(Image(mime_type="image/png", data=""))], "[image/png]\nraw"),
        (None, [UnknownItem("chart", "{}")], "content that cannot be shown: chart"),
    ],
)
def test_the_output_of_a_tool_call_is_its_text(
    raw: object, content: list[ToolContent], shown: str | None
) -> None:
    call = ToolCall(id="c", raw_output=raw, content=content)
    assert tool_output(call) == ("".join(c.text for c in content) if shown is None else shown)


async def test_what_a_rule_allowed_is_told_once() -> None:
    view = Shown("terminal", colour=False)
    decision = f.Decision("allow", "--yolo allows it")
    asked = e.AccessDecided("write", decision, ["/w/x"], title="Edit x", option_id="allow")
    done = e.AccessDecided("write", decision, ["/w/x"])
    shown = view.show(e.TurnStarted("t", []), asked, done)
    assert shown == "· write /w/x: allowed (--yolo allows it)\n"


async def test_a_tool_call_that_is_open_at_the_end_is_not_forgotten() -> None:
    view = Shown("terminal", colour=False)
    started = e.ToolCallUpdated("c", title="Read it", status="in_progress")
    assert view.show(e.TurnStarted("t", []), started, e.TurnEnded("t", "end_turn")) == "◐ Read it\n"


async def test_a_change_that_was_told_and_written_is_shown_once() -> None:
    view = Shown("terminal", colour=False)
    told = e.ToolCallUpdated("c", title="Edit", content=[Diff("/link/x.py", "b\n", "a\n")])
    written = e.FileWritten("/real/x.py", "b\n", "a\n")
    out = view.show(
        e.TurnStarted("t", []), told, written, e.ToolCallUpdated("c", status="completed")
    )
    assert out == "✓ Edit\n  /link/x.py\n  @@ -1 +1 @@\n  -a\n  +b\n"


async def test_a_plan_is_shown_whole_and_then_by_what_changed() -> None:
    def plan(*statuses: str) -> e.PlanUpdated:
        return e.PlanUpdated(
            [f.PlanStep(content=f"step {i}", status=s) for i, s in enumerate(statuses)]
        )

    view = Shown("terminal", colour=False)
    first = view.show(plan("in_progress", "pending"))
    assert first == "plan 0/2\n  ◐ step 0\n  ○ step 1\n"
    assert view.show(plan("in_progress", "pending")) == first
    second = view.show(plan("completed", "pending"))
    assert second.removeprefix(first) == "plan 1/2\n  ✓ step 0\n"


async def test_in_a_pipe_a_plan_is_told_by_what_changed_and_a_call_by_its_ends() -> None:
    def plan(*statuses: str) -> e.PlanUpdated:
        return e.PlanUpdated(
            [f.PlanStep(content=f"step {i}", status=s) for i, s in enumerate(statuses)]
        )

    view = Shown("plain")
    view.show(plan("in_progress", "pending"))
    view.show(plan("in_progress", "pending"))
    out = view.show(plan("completed", "pending"))
    assert out == (
        "[plan] 0/2\n[plan]   [>] step 0\n[plan]   [ ] step 1\n[plan] 1/2\n[plan]   [x] step 0\n"
    )
    view = Shown("plain")
    for status in ("pending", "in_progress", "pending", "in_progress", "completed"):
        out = view.show(e.ToolCallUpdated("c", title="Read it", status=status))
    assert out == "[tool] Read it (pending)\n[tool] Read it (completed)\n"


async def test_code_in_a_plan_is_painted_and_not_marked() -> None:
    view = Shown("terminal")
    out = view.show(e.PlanUpdated([f.PlanStep(content="run `make` now", status="pending")]))
    assert out.endswith(" run \x1b[36mmake\x1b[0m now\n")
    out = Shown("terminal").show(e.PlanUpdated(markdown="first\n```text\nls\n```\n"))
    assert "```" not in out
    assert out.endswith("plan\n  first\n  \x1b[2mtext\x1b[0m\n  \x1b[36mls\x1b[0m\n")


async def test_a_step_that_is_too_long_goes_on_below_its_beginning() -> None:
    step = f.PlanStep(content="word " * 30, status="pending")
    out = Shown("terminal", colour=False).show(e.PlanUpdated([step]))
    _, first, *more, _ = out.split("\n")
    assert first.startswith("  ○ word")
    assert more
    assert all(line.startswith("    word") for line in more)


async def test_the_output_of_a_command_is_folded_to_its_tail() -> None:
    view = Shown("terminal", colour=False)
    out = view.show(
        e.TerminalStarted("t", ["make", "all of it"]),
        e.TerminalOutput("t", "".join(f"line {n}\r\n" for n in range(20))),
        e.TerminalExited("t", 2),
    )
    lines = [f"  line {n}" for n in range(12, 20)]
    assert out.split("\n")[:-1] == [
        "  $ make 'all of it'",
        "  … 12 earlier lines",
        *lines,
        "  ended with code 2",
    ]


async def test_usage_and_cost_stand_at_the_end() -> None:
    used = "context 5 of 10 tokens (50 %), 0.25 EUR so far\n"
    tokens = "tokens as reported by the agent: 1 in, 2 out\n"
    assert end_of_turn("terminal") == f"Done.\n{used}{tokens}"
    assert end_of_turn("chat") == f"Done.\n{tokens}"  # the rest stands in its bar


def end_of_turn(kind: str) -> str:
    return Shown(kind, colour=False).show(
        e.TurnStarted("t", []),
        e.UsageChanged(5, 10, f.Cost(amount=0.25, currency="EUR")),
        e.AgentMessage(Text("Done.")),
        e.TurnEnded("t", "end_turn", f.TokenUsage(total=3, input=1, output=2)),
    )


async def test_a_context_of_unknown_size_is_not_one_of_zero() -> None:
    told = e.UsageChanged(1234, 0)
    assert shown("plain", told) == "[usage] context 1234 tokens, size unknown\n"


async def test_a_turn_of_which_nothing_is_known_shows_no_usage() -> None:
    assert "tokens" not in shown("plain", e.TurnStarted("t", []), e.TurnEnded("t", "end_turn"))


def drawn(lines: list[str], width: int) -> list[str]:
    return list(painted_diff(lines, Style(colour=False), 80, width))


def both(old: str, new: str) -> str:
    return f"  {old:<57} │ {new}".rstrip()


def test_a_change_is_drawn_side_by_side_in_a_wide_terminal() -> None:
    lines = ["@@ -1,4 +1,4 @@", " first", "-old", "+new", "+and more", " last", "-gone", " end"]
    assert drawn(lines, 119) == [f"  {line}" for line in lines]
    assert drawn(lines, 120) == [
        "  @@ -1,4 +1,4 @@",
        both(" first", " first"),
        both("-old", "+new"),
        both("", "+and more"),
        both(" last", " last"),
        both("-gone", ""),
        both(" end", " end"),
    ]


def test_a_change_with_one_side_has_the_whole_width() -> None:
    lines = ["@@ -0,0 +1,2 @@", "+one", "+two"]
    assert drawn(lines, 120) == [f"  {line}" for line in lines]


def test_what_is_too_long_for_its_side_continues_below() -> None:
    wide = "-" + "名" * 40  # of two columns each
    assert drawn([wide, "+short", "\\ No newline at end of file"], 120) == [
        f"  -{'名' * 28} │ +short",
        f"  {'名' * 12}{' ' * 33} │",
        both("", "\\ No newline at end of file"),
    ]


def test_changes_without_a_line_between_them_are_not_mixed() -> None:
    assert drawn(["-a", "+b", "-c", "+d"], 120) == [both("-a", "+b"), both("-c", "+d")]

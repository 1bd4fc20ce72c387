"""The fold, continued: facts, what waits for an answer, terminals and the queue."""

from __future__ import annotations

import pytest
from support.folding import fold

from dragoman.session import events as e
from dragoman.session.content import Content, Diff, Text
from dragoman.session.facts import (
    Command,
    ConfigOption,
    ContextUsage,
    Cost,
    Decision,
    Mode,
    Modes,
    PermissionOption,
    SubagentState,
)
from dragoman.session.state import (
    TERMINAL_TAIL,
    PendingElicitation,
    PendingPermission,
    QueuedPrompt,
    SessionState,
    Subagent,
)
from dragoman.session.state_limits import LIMITS

# ── facts ─────────────────────────────────────────────────────────────────────────────────────


def test_commands_and_options_are_replaced_as_a_whole() -> None:
    options = [ConfigOption("fast", "Fast", True)]
    state = fold(
        e.CommandsChanged([Command("old")]),
        e.CommandsChanged([Command("new")]),
        e.ConfigChanged([]),
        e.ConfigChanged(options),
    )
    assert state.commands == [Command("new")]
    assert state.config_options == options


def test_the_mode_changes_and_the_choice_stays() -> None:
    modes = [Mode("ask", "Ask"), Mode("code", "Code")]
    state = fold(e.ModeChanged("ask", modes), e.ModeChanged("code"))
    assert state.modes == Modes("code", modes)
    assert state.mode == modes[1]


def test_a_mode_nobody_announced_is_current_all_the_same() -> None:
    state = fold(e.ModeChanged("odd"))
    assert state.modes == Modes("odd", [])
    assert state.mode is None


def test_the_title_changes_and_clears() -> None:
    state = fold(e.InfoChanged(title="A", updated_at="now"), e.InfoChanged(updated_at=None))
    assert (state.title, state.updated_at) == ("A", None)
    fold(e.InfoChanged(title=None), onto=state)
    assert state.title is None


def test_context_usage_is_the_last_one_told() -> None:
    cost = Cost(0.5, "EUR")
    state = fold(e.UsageChanged(10, 100, cost), e.UsageChanged(20, 100))
    assert state.usage == ContextUsage(20, 100)


def test_a_subagent_is_patched() -> None:
    state = fold(
        e.SubagentUpdated("child", title="Search", cwd="/x", state=SubagentState("running")),
        e.SubagentUpdated("child", cwd=None, description="finds things"),
    )
    expected = Subagent("child", "Search", "finds things", SubagentState("running"), seq=1)
    assert state.subagents == {"child": expected}


# ── what waits for an answer ──────────────────────────────────────────────────────────────────


def test_a_permission_waits_until_it_is_settled() -> None:
    options = [PermissionOption("y", "Yes", "allow_once")]
    diff = Diff("/a", "new")
    state = fold(
        e.PermissionRequested(
            "p",
            options,
            title="Edit",
            tool_call_id="t",
            operation="write",
            paths=["/a"],
            argv=None,
            content=[diff],
            always="allow writing /a",
        )
    )
    pending = PendingPermission(
        "p", options, "Edit", "t", "write", ["/a"], None, [diff], "allow writing /a"
    )
    assert state.pending == {"p": pending}
    fold(e.PermissionSettled("p", "y", Decision("allow", "answered")), onto=state)
    assert state.pending == {}


def test_a_turn_waits_until_everything_is_settled() -> None:
    state = fold(
        e.TurnStarted("t1", [Text("go")]),
        e.PermissionRequested("p", []),
        e.ElicitationRequested("q", "Which?", "form", {"type": "object"}),
        e.PermissionSettled("p", None, Decision("cancelled", "gone")),
    )
    assert state.turn is not None
    assert state.turn.status == "waiting"
    assert state.pending == {"q": PendingElicitation("q", "Which?", "form", {"type": "object"})}
    fold(e.ElicitationSettled("q", "accept"), onto=state)
    assert state.turn.status == "streaming"


def test_settling_twice_changes_nothing() -> None:
    settled = e.PermissionSettled("p", "y", Decision("allow", "answered"))
    assert fold(e.PermissionRequested("p", []), settled, settled).pending == {}


@pytest.mark.parametrize(
    "event", [e.AccessDecided("read", Decision("allow", "rule")), e.FileWritten("/a", "x")]
)
def test_records_for_people_leave_the_state_as_it_is(event: e.Event) -> None:
    assert fold(event) == SessionState(last_seq=1)


# ── terminals and the queue ───────────────────────────────────────────────────────────────────


def test_a_terminal_prints_ends_and_stays_on_screen() -> None:
    state = fold(
        e.TerminalStarted("x", ["echo", "hi"], "/project"),
        e.TerminalOutput("x", "h"),
        e.TerminalOutput("x", "i\n"),
        e.TerminalExited("x", exit_code=0),
        e.TerminalReleased("x"),
    )
    terminal = state.terminals["x"]
    assert (terminal.argv, terminal.cwd, terminal.output) == (["echo", "hi"], "/project", "hi\n")
    assert (terminal.running, terminal.exit_code, terminal.released) == (False, 0, True)
    assert terminal.ours


def test_a_terminal_that_we_run_is_the_last_to_make_room() -> None:
    told = [e.TerminalStarted(f"own {number}", [], "/") for number in range(2 * LIMITS.others)]
    ours = [e.TerminalStarted(name, ["make"], "/") for name in ("ended", "runs")]
    state = fold(*ours, e.TerminalExited("ended", 0), *told)
    assert len(state.terminals) == LIMITS.others
    assert "ended" not in state.terminals
    assert state.terminals["runs"].ours


def test_a_terminal_we_never_started_is_the_agents_own() -> None:
    state = fold(e.TerminalOutput("x", "told"), e.TerminalExited("x", signal="SIGKILL"))
    terminal = state.terminals["x"]
    assert not terminal.ours
    assert (terminal.output, terminal.signal, terminal.running) == ("told", "SIGKILL", False)


def test_of_a_long_output_the_end_is_kept() -> None:
    block = "x" * (TERMINAL_TAIL // 2)
    state = fold(*(e.TerminalOutput("x", block) for _ in range(9)), e.TerminalOutput("x", "END"))
    terminal = state.terminals["x"]
    assert len(terminal.output) == TERMINAL_TAIL
    assert terminal.output.endswith("xEND")
    assert sum(map(len, terminal.pieces)) <= 2 * TERMINAL_TAIL


def test_queued_prompts_wait_in_order_until_they_are_sent_or_dropped() -> None:
    first: list[Content] = [Text("one")]
    second: list[Content] = [Text("two")]
    state = fold(e.PromptQueued("q1", first), e.PromptQueued("q2", second))
    assert state.queue == [QueuedPrompt("q1", first), QueuedPrompt("q2", second)]
    fold(e.PromptUnqueued("q1"), e.PromptUnqueued("unknown"), onto=state)
    assert state.queue == [QueuedPrompt("q2", second)]

"""A turn on a terminal, for people: colour, marks, diffs, a checklist; nothing is drawn twice.

The status below shows what is going on; a line remains when it is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest

from dragoman.cli.render.event_text import (
    Asides,
    Permissions,
    change_key,
    changed_steps,
    command_line,
    diff_lines,
    ending_words,
    last_lines,
    short_path,
    shown,
    token_words,
    tool_output,
    usage_words,
)
from dragoman.cli.render.markdown.markdown_stream import MarkdownStream
from dragoman.cli.render.status_line import UNANSWERED, Status
from dragoman.cli.render.style import BLUE, BOLD, CYAN, DIM, GREEN, ITALIC, RED, YELLOW, Style
from dragoman.cli.render.view import SubagentLines
from dragoman.cli.render.wrap import broken, folded
from dragoman.cli.standard_streams import terminal_width
from dragoman.safe_text import Sanitiser, columns, reveal, sanitise, single_line
from dragoman.session import events as e
from dragoman.session.content import Diff
from dragoman.session.facts import PlanStep
from dragoman.session.state import OPEN_STATUSES, SessionState, Terminal, ToolCall

OUTPUT_LINES = 8
"""Of a command or a tool call, the last ones; `sessions show --full` and `/output` have all."""
_DIFF_LINES = 80
SIDE_BY_SIDE = 120
"""Columns of a terminal in which what was changed is drawn next to what it was."""
MARKS = {
    "pending": ("○", DIM),
    "in_progress": ("◐", BLUE),
    "completed": ("✓", GREEN),
    "failed": ("✗", RED),
    "cancelled": ("⊘", YELLOW),
}


class TerminalView:
    """Shows events as they come, below what is there already.

    `output_lines` of what commands and tool calls brought back are shown, with None all of them.
    A view that is `in_chat` shows a plan when it is done, or its turn is over: until then, the chat
    draws `held_plan`. The chat's bar shows how full the context is.
    """

    def __init__(
        self,
        status: Status,
        style: Style,
        output_lines: int | None = OUTPUT_LINES,
        *,
        in_chat: bool = False,
    ) -> None:
        self._status = status
        self._style = style
        self._output_lines = output_lines
        self._permissions = Permissions()
        self._subagents = SubagentLines()
        self._answer = MarkdownStream(style, terminal_width)
        self._thought = MarkdownStream(style, terminal_width, (DIM, ITALIC))
        self._safe = Sanitiser()
        self._flow: MarkdownStream | None = None
        self._message: str | None = None
        self._blank = True
        self._at_start = True
        self._asides = Asides()
        self._calls: dict[str, str] = {}
        self._diffs: set[tuple[str, ...]] = set()
        self._untold: dict[str, list[tuple[Diff, list[str]]]] = {}
        self._steps: dict[str, list[PlanStep]] = {}
        self._in_chat = in_chat
        self._held: str | None = None
        self._usage: e.UsageChanged | None = None
        self._last_mode = ""
        status.on_quiet = self._pause

    def show(self, event: e.Event, state: SessionState) -> None:
        match event:
            case e.TurnStarted():
                self._blank = True  # right below what was asked
            case e.AgentMessage():
                self._stream(self._answer, event)
            case e.AgentThought():
                self._stream(self._thought, event)
            case e.PlanUpdated():
                self._plan(event)
            case e.ToolCallUpdated():
                self._tool_call(event, state)
            case e.FileWritten():
                self._written(Diff(event.path, event.after, event.before), state)
            case e.TerminalExited():
                self._terminal(state.terminals[event.terminal_id])
            case e.ModeChanged(available=None):
                self._mode(event.mode_id)
            case e.UsageChanged():
                self._usage = event
            case e.PermissionRequested() | e.ElicitationRequested():
                self._end_flow()
            case e.TurnEnded():
                self._ended(event, state)
            case _:
                pass
        self._subagent(event, state)
        self._permission(event)
        self._aside(event)
        self._tell_status(event, state)

    def close(self) -> None:
        self._end_flow()

    # ── text that flows ───────────────────────────────────────────────────────────────────────

    def _stream(self, flow: MarkdownStream, event: e.AgentMessage | e.AgentThought) -> None:
        text = shown(event.content)
        if self._flow is not flow or self._message != event.message_id or event.replaces:
            self._end_flow()
            text = text.lstrip("\r\n")  # there is room above it already
            if not text:
                return
            self._paragraph()
            self._flow, self._message = flow, event.message_id
        self._write(flow.feed(self._safe.feed(text)))

    def _pause(self) -> None:
        """Nothing comes for a while: a word that is not over is better than none."""
        if self._flow is not None:
            self._write(self._flow.pause())

    def _end_flow(self) -> None:
        if self._flow is not None:
            self._write(self._flow.feed(self._safe.flush()) + self._flow.flush())
            self._flow = None
        if not self._at_start:
            self._write("\n")

    def _paragraph(self) -> None:
        """Room between the answer and the lines around it."""
        if not self._blank:
            self._write("\n")

    def _write(self, text: str) -> None:
        if text:
            self._status.write(text)
            self._blank = text.endswith("\n\n") or (text == "\n" and self._at_start)
            self._at_start = text.endswith("\n")

    def _line(self, text: str) -> None:
        if self._flow is not None:
            self._end_flow()
            self._paragraph()
        self._write(f"{text}\n")

    def _lines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._line(line)

    def _prose(self, text: str, prefix: str, colour: str) -> None:
        self._lines(self._style(line, colour) for line in folded(text, prefix))

    # ── the rest ──────────────────────────────────────────────────────────────────────────────

    def _permission(self, event: e.Event) -> None:
        """What a rule allowed; a refusal is an aside, and a person knows what they answered."""
        line = self._permissions.line(event)
        if line is not None and isinstance(event, e.AccessDecided) and _allows(event):
            self._prose(sanitise(line, newlines=False), "· ", DIM)

    def _subagent(self, event: e.Event, state: SessionState) -> None:
        for name, line in self._subagents.after(event, state):
            self._prose(sanitise(f"{name}: {line}", newlines=False), "│ ", DIM)

    def _aside(self, event: e.Event) -> None:
        sentence = self._asides.sentence(event)
        if sentence is not None:
            self._prose(sanitise(sentence, newlines=False), "! ", YELLOW)

    def _mode(self, mode_id: str) -> None:
        """Agents tell it as the answer to a switch, and once more on their own."""
        if mode_id != self._last_mode:
            self._last_mode = mode_id
            self._line(self._style(f"mode: {single_line(mode_id, 60)}", DIM))

    def _plan(self, event: e.PlanUpdated) -> None:
        """The whole list when it is new, then only the steps that changed."""
        if not event.steps:
            stream = MarkdownStream(self._style, lambda: terminal_width() - 2)
            painted = stream.feed(sanitise(event.text or event.uri or "")) + stream.flush()
            lines = painted.rstrip("\n").split("\n")
            self._lines(["plan", *(f"  {line}".rstrip() for line in lines)])
            return
        before = self._steps.get(event.plan_id, [])
        self._steps[event.plan_id] = event.steps
        if self._in_chat:
            self._hold(event.plan_id, before)
        elif changed := changed_steps(before, event.steps):
            self._steps_of(event.steps, changed)

    def _steps_of(self, steps: list[PlanStep], shown_ones: list[PlanStep]) -> None:
        self._line(self._style(_plan_words(steps), BOLD))
        for step in shown_ones:
            self._step(step)

    def _hold(self, plan_id: str, before: list[PlanStep]) -> None:
        steps = self._steps[plan_id]
        if self._held not in (None, plan_id):
            self._release()
        if before != steps:
            self._held = plan_id
        if all(step.status == "completed" for step in steps):
            self._release()
        self._status.heard()

    def _release(self) -> None:
        """Show the plan that is held, as it is now."""
        if self._held is not None:
            steps = self._steps[self._held]
            self._held = None
            self._steps_of(steps, steps)

    def held_plan(self, rows: int) -> list[str]:
        """The plan that is being worked on, in at most so many painted lines."""
        steps = [] if self._held is None else self._steps[self._held]
        room = rows - 1
        if not steps or room < 1:
            return []
        current = next((at for at, step in enumerate(steps) if step.status != "completed"), 0)
        first = max(0, min(current - 1, len(steps) - room))
        lines = [self._style(_plan_words(steps), BOLD)]
        for step in steps[first : first + room]:
            mark, colour = MARKS.get(step.status, ("○", DIM))
            words = single_line(step.content, terminal_width() - 5)
            codes = (DIM,) if step.status == "completed" else ()
            lines.append(f"  {self._style(mark, colour)} {self._style(words, *codes)}")
        return lines

    def _step(self, step: PlanStep) -> None:
        mark, colour = MARKS.get(step.status, ("○", DIM))
        words = MarkdownStream(self._style, terminal_width)
        content = words.sentence(sanitise(step.content, newlines=False), 4)
        self._lines(f"  {self._style(mark, colour)} {content}".split("\n"))

    def _tool_call(self, event: e.ToolCallUpdated, state: SessionState) -> None:
        """A line and what it changes when it is over; until then the status tells."""
        call = state.tool_call(event.tool_call_id)
        if call is None:
            return
        if isinstance(event.content, list) or event.more:
            self._untold[call.id] = [(diff, diff_lines(diff)) for diff in call.diffs]
        if call.status not in OPEN_STATUSES:
            self._tool_line(call)
            self._show_diffs(self._untold.pop(call.id, []), state)

    def _tool_line(self, call: ToolCall) -> None:
        if self._calls.get(call.id) == call.status:
            return
        self._calls[call.id] = call.status
        mark, colour = MARKS.get(call.status, ("•", DIM))
        self._line(f"{self._style(mark, colour)} {_title(call, terminal_width() - 3)}")
        self._lines(self._tail(tool_output(call), RED if call.status == "failed" else DIM))

    def _written(self, diff: Diff, state: SessionState) -> None:
        """What we wrote, unless a tool call is still to tell the same."""
        change = (diff, diff_lines(diff))
        untold = [change_key(*each) for changes in self._untold.values() for each in changes]
        if change_key(*change) not in untold:
            self._show_diffs([change], state)

    def asked(self, diffs: Iterable[Diff]) -> None:
        """A question is on the terminal, and in it these changes."""
        self._diffs |= {change_key(diff, diff_lines(diff)) for diff in diffs}
        self._blank = False

    def _show_diffs(self, changes: list[tuple[Diff, list[str]]], state: SessionState) -> None:
        for diff, lines in changes:
            if not lines or (key := change_key(diff, lines)) in self._diffs:
                continue
            self._diffs.add(key)
            self._line(self._style(f"  {reveal(short_path(diff.path, state.cwd))}", BOLD))
            self._lines(painted_diff(lines[2:], self._style, _DIFF_LINES, terminal_width()))

    def _terminal(self, terminal: Terminal) -> None:
        """The tail of what a command printed, once it has ended."""
        if command := command_line(terminal.argv) or terminal.command:
            self._line(self._style(f"  $ {reveal(command)}", CYAN))
        self._lines(self._tail(terminal.output, DIM))
        if terminal.exit_code != 0:
            how = ending_words(terminal.exit_code, terminal.signal)
            self._line(self._style(f"  {single_line(how, 60)}", RED))

    def _tail(self, text: str, colour: str) -> Iterable[str]:
        left_out, lines = last_lines(sanitise(text), self._output_lines)
        if left_out:
            yield self._style(f"  … {left_out} earlier lines", DIM)
        for line in lines:
            shown_line = single_line(line.expandtabs(4), terminal_width() - 3)
            yield self._style(f"  {shown_line}", colour)

    def _ended(self, event: e.TurnEnded, state: SessionState) -> None:
        self._end_flow()
        self._release()
        for call in state.tool_calls.values():
            if call.turn_id == event.turn_id:
                self._tool_line(call)
                self._show_diffs(self._untold.pop(call.id, []), state)
        words: list[str] = []
        if self._usage is not None and not self._in_chat:
            words.append(usage_words(self._usage.used, self._usage.size, self._usage.cost))
        if event.usage is not None:
            words.append(token_words(event.usage))
        self._usage = None
        for word in words:
            self._prose(sanitise(word, newlines=False), "", DIM)

    def _tell_status(self, event: e.Event, state: SessionState) -> None:
        if isinstance(event, e.AgentMessage | e.AgentThought):
            self._status.heard()
        self._status.follow(event)
        self._status.doing(_doing(state))


def _allows(event: e.AccessDecided) -> bool:
    return event.decision.effect == "allow"


def painted_diff(lines: list[str], style: Style, limit: int, width: int) -> Iterator[str]:
    """The hunks of a diff, for a terminal of this width: side by side if that is wide enough and
    there is something on both sides. Beyond `limit` lines only how many more there are."""
    if is_side_by_side(lines, width):
        yield from diff_rows(lines[:limit], style, width)
    else:
        yield from (painted_line(line, style) for line in lines[:limit])
    if len(lines) > limit:
        yield style(f"  … {len(lines) - limit} more lines", DIM)


def painted_line(line: str, style: Style) -> str:
    """One line of a diff."""
    return "  " + style(_visible(line), _line_colour(line))


def is_side_by_side(lines: list[str], width: int) -> bool:
    return width >= SIDE_BY_SIDE and {"-", "+"} <= {line[:1] for line in lines}


def diff_rows(lines: list[str], style: Style, width: int, indent: int = 0) -> Iterator[str]:
    """The same as rows that all fit the width, with an indent that is not in them."""
    if is_side_by_side(lines, width):
        room = (width - indent - 6) // 2
        for old, new in _sides(lines):
            if old is not None and old[:1] == "@":
                yield painted_line(old, style)
            else:
                yield from _row(old, new, style, room)
    else:
        for line in lines:
            for part in broken(_visible(line), width - indent - 3):
                yield "  " + style(part, _line_colour(line))


def _visible(line: str) -> str:
    return reveal(line, newlines=True).expandtabs(4)


def _line_colour(line: str) -> str:
    return {"+": GREEN, "-": RED, "@": CYAN}.get(line[:1], DIM)


def _sides(lines: Iterable[str]) -> Iterator[tuple[str | None, str | None]]:
    """Removed and added lines next to each other; None where there is nothing."""
    old: list[str] = []
    new: list[str] = []
    for line in [*lines, ""]:
        mark = line[:1]
        if mark == "+" or (mark == "\\" and new):
            new.append(line)
        elif (mark == "-" and not new) or (mark == "\\" and old):
            old.append(line)
        else:
            yield from zip_longest(old, new)
            old, new = ([line], []) if mark == "-" else ([], [])
            if mark == " ":
                yield line, line
            elif line and mark != "-":
                yield line, None


def _row(old: str | None, new: str | None, style: Style, room: int) -> Iterator[str]:
    left, right = (broken(_visible(line or ""), room) for line in (old, new))
    for part, other in zip_longest(left, right, fillvalue=""):
        cell = style(part, _line_colour(old or "")) + " " * (room - columns(part))
        line = f"  {cell} {style('│', DIM)} {style(other, _line_colour(new or ''))}"
        yield line.rstrip()


def _plan_words(steps: list[PlanStep]) -> str:
    done = sum(step.status == "completed" for step in steps)
    return f"plan {done}/{len(steps)}"


def _title(call: ToolCall, width: int) -> str:
    return single_line(call.title or call.name or call.id, width)


def _doing(state: SessionState) -> str:
    """What is happening now, in a few words."""
    if state.turn is None:
        return ""
    if state.pending:
        return UNANSWERED
    if state.turn.status == "cancelling":
        return "cancelling"
    running = [t for t in state.terminals.values() if t.running and t.argv and not t.released]
    if running:
        return f"$ {single_line(command_line(running[-1].argv), 60)}"
    # Only the last few: a session may have thousands of tool calls.
    last = (entry for entry in reversed(state.entries[-20:]) if isinstance(entry, ToolCall))
    call = next((call for call in last if call.status in OPEN_STATUSES), None)
    return "working" if call is None else _title(call, 60)

"""A turn as plain text, for pipes and files: the answer, and a tagged line for everything else."""

from __future__ import annotations

from dragoman.cli.render import event_text
from dragoman.cli.render.view import SubagentLines, Writer
from dragoman.safe_text import Sanitiser, reveal, sanitise, single_line
from dragoman.session import events as e
from dragoman.session.content import Diff
from dragoman.session.facts import PlanStep
from dragoman.session.state import OPEN_STATUSES, SessionState, ToolCall

_TITLE_COLUMNS = 200
OUTPUT_LINES = 40
"""Of a tool call, the last ones; `sessions show --full` has all."""


class SimpleView:
    """The answer alone; messages that something is between begin on a new line.

    `on_screen`: a person looks at it, so characters that hide are shown as marks.
    """

    def __init__(self, out: Writer, *, on_screen: bool) -> None:
        self._out = out
        self._safe = Sanitiser(keep_hidden=not on_screen)
        self._at_start = True
        self._entry: int | None = None

    def show(self, event: e.Event, state: SessionState) -> None:
        if isinstance(event, e.AgentMessage) and not event.replay:
            last = state.entries[-1].seq if state.entries else None
            if last != self._entry:
                self._end_line()
                self._entry = last
            self._write(self._safe.feed(event_text.shown(event.content)))

    def close(self) -> None:
        self._end_line()

    def _end_line(self) -> None:
        self._write(self._safe.flush())
        if not self._at_start:
            self._write("\n")

    def _write(self, text: str) -> None:
        if text:
            self._out.write(text)
            self._at_start = text.endswith("\n")


class PlainView:
    """Everything, in order: text as it arrives, the rest in lines that begin with their kind.

    Only what an agent says of its state waits for the end of the sentence it would cut in two.
    `output_lines` of what a tool call brought back are shown, with None all of them.
    """

    def __init__(self, out: Writer, output_lines: int | None = OUTPUT_LINES) -> None:
        self._out = out
        self._output_lines = output_lines
        self._permissions = event_text.Permissions()
        self._subagents = SubagentLines()
        self._safe = Sanitiser()
        self._flow: tuple[str, str | None] | None = None
        self._at_start = True
        self._waiting: dict[str, str] = {}
        self._calls: dict[str, str] = {}
        self._steps: dict[str, list[PlanStep]] = {}
        self._diffs: set[tuple[str, ...]] = set()

    def show(self, event: e.Event, state: SessionState) -> None:
        if isinstance(event, e.AgentMessage | e.AgentThought) and event.replaces:
            self._end_flow()  # printed text cannot be withdrawn: it is printed again
        match event:
            case e.AgentMessage():
                self._stream("", event.message_id, event_text.shown(event.content))
            case e.AgentThought():
                self._stream("[thought]", event.message_id, event_text.shown(event.content))
            case e.TerminalOutput():
                self._stream("[terminal]", event.terminal_id, event.data)
            case e.PlanUpdated():
                self._plan(event)
            case e.ToolCallUpdated():
                self._tool_call(event, state)
            case e.FileWritten():
                self._diff(Diff(event.path, event.after, event.before))
            case e.TerminalStarted():
                self._terminal_started(event)
            case e.TerminalExited():
                self._line("[terminal]", event_text.ending_words(event.exit_code, event.signal))
            case e.TurnEnded():
                self._ended(event)
            case e.PermissionRequested() | e.PermissionSettled() | e.AccessDecided():
                self._permission(event)
            case _:
                self._fact(event)
        self._subagent(event, state)

    def _terminal_started(self, event: e.TerminalStarted) -> None:
        """One without a command is the agent's own: its tool call says what it runs."""
        if command := event_text.command_line(event.argv) or event.command:
            self._line("[terminal]", f"$ {command}")

    def close(self) -> None:
        self._end_flow()

    # ── text that flows ───────────────────────────────────────────────────────────────────────

    def _stream(self, tag: str, source: str | None, text: str) -> None:
        """Text that comes in pieces: a tag at the start of each line, if it has one."""
        if self._flow != (tag, source):
            self._end_flow()
            self._flow = (tag, source)
        self._tagged(tag, self._safe.feed(text))

    def _tagged(self, tag: str, text: str) -> None:
        if not tag or not text:
            self._write(text)
            return
        first, *others = text.split("\n")
        lines = [_tagged(tag, first) if self._at_start and text else first]
        lines += [_tagged(tag, line) for line in others[:-1]]
        if others:
            # What follows the last line feed is a line only once there is something in it.
            lines.append(_tagged(tag, others[-1]) if others[-1] else "")
        self._write("\n".join(lines))

    def _end_flow(self) -> None:
        self._tagged(self._flow[0] if self._flow else "", self._safe.flush())
        if not self._at_start:
            self._write("\n")
        self._flow = None
        for tag, text in self._waiting.items():
            self._write_line(tag, text)
        self._waiting.clear()

    # ── lines ─────────────────────────────────────────────────────────────────────────────────

    def _line(self, tag: str, text: str) -> None:
        self._end_flow()
        self._write_line(tag, text)

    def _write_line(self, tag: str, text: str) -> None:
        self._write(f"{tag} {sanitise(text, newlines=False)}".rstrip() + "\n")

    def _fact(self, event: e.Event) -> None:
        match event:
            case e.CommandsChanged():
                fact = "[commands]", ", ".join(f"/{command.name}" for command in event.commands)
            case e.ModeChanged(available=None):
                fact = "[mode]", event.mode_id
            case e.UsageChanged():
                fact = "[usage]", event_text.usage_words(event.used, event.size, event.cost)
            case _:
                return
        if self._flow is None:
            self._write_line(*fact)
        else:
            self._waiting[fact[0]] = fact[1]

    def _plan(self, event: e.PlanUpdated) -> None:
        if not event.steps:
            for line in (event.text or event.uri or "").split("\n"):
                self._line("[plan]", line)
            return
        done = sum(step.status == "completed" for step in event.steps)
        marks = {"completed": "x", "in_progress": ">"}
        changed = event_text.changed_steps(self._steps.get(event.plan_id, []), event.steps)
        self._steps[event.plan_id] = event.steps
        if changed:
            self._line("[plan]", f"{done}/{len(event.steps)}")
        for step in changed:
            self._line("[plan]", f"  [{marks.get(step.status, ' ')}] {step.content}")

    def _tool_call(self, event: e.ToolCallUpdated, state: SessionState) -> None:
        call = state.tool_call(event.tool_call_id)
        if call is None or event.replay:
            return
        title = call.title or call.name or call.id
        line = f"{single_line(title, _TITLE_COLUMNS)} ({sanitise(call.status, newlines=False)})"
        is_open = call.status in OPEN_STATUSES
        # Once when it begins and once when it is over, whatever it is called in between.
        if self._calls.get(call.id) != ("" if is_open else line):
            self._calls[call.id] = "" if is_open else line
            self._line("[tool]", line)
            if not is_open:
                self._output(call)
        for diff in call.diffs:
            self._diff(diff)

    def _output(self, call: ToolCall) -> None:
        """What it brought back; why it failed, as far as the agent says."""
        left_out, lines = event_text.last_lines(
            sanitise(event_text.tool_output(call)), self._output_lines
        )
        if left_out:
            self._line("[tool]", f"  … {left_out} earlier lines")
        for line in lines:
            self._line("[tool]", f"  {line}")

    def _subagent(self, event: e.Event, state: SessionState) -> None:
        for name, line in self._subagents.after(event, state):
            self._line("[subagent]", f"{name}: {line}")

    def _permission(self, event: e.Event) -> None:
        if (line := self._permissions.line(event)) is not None:
            self._line("[permission]", line)

    def _diff(self, diff: Diff) -> None:
        """A change, once: the agent tells it, and perhaps has us write it as well."""
        lines = event_text.diff_lines(diff)
        if (key := event_text.change_key(diff, lines)) not in self._diffs:
            self._diffs.add(key)
            self._end_flow()
            for line in lines:
                self._write(f"[diff] {reveal(line, newlines=True)}".rstrip() + "\n")

    def _ended(self, event: e.TurnEnded) -> None:
        self._end_flow()
        if event.usage is not None:
            self._line("[usage]", event_text.token_words(event.usage))

    def _write(self, text: str) -> None:
        if text:
            self._out.write(text)
            self._at_start = text.endswith("\n")


def _tagged(tag: str, line: str) -> str:
    return f"{tag} {line}" if line else tag

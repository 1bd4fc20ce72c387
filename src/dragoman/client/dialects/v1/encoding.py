"""Events as updates of ACP v1; what both versions say alike is in `dialects/encoding`. Pure."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from msgspec import UNSET

from dragoman.agents.extensions import TERMINAL_EXIT, TERMINAL_INFO, TERMINAL_OUTPUTS, said
from dragoman.client.dialects import encoding as shared
from dragoman.client.dialects.encoding import Shows, UpdateEncoder, patched_meta
from dragoman.host.terminals.provider import is_terminal_id
from dragoman.schema import v1
from dragoman.session import content as c
from dragoman.session import events as e
from dragoman.session import facts as f
from dragoman.session.content import Text
from dragoman.session.state import SessionState, Terminal
from dragoman.session.state_limits import LIMITS, drop_oldest

_SHOWN_TAIL = 16 * 1024
"""Characters of a terminal's output for a client that cannot show terminals."""


class EncoderV1(UpdateEncoder):
    """The updates of one session in version 1.

    A terminal that the client did not start is shown in `_meta`, as several agents do; for a client
    that cannot show that, its output is text.
    """

    schema = v1

    def __init__(self, shows: Shows, own_terminals: Container[str] = ()) -> None:
        super().__init__(shows)
        self.own_terminals = own_terminals
        """Those that the client runs: it shows them by itself."""
        self._said_in_meta: dict[str, None] = {}
        """Terminals of which the agent itself speaks in `_meta`, which passes as it came."""
        self._shown_by: dict[str, str] = {}
        """By terminal, the tool call that shows it."""

    def message(self, kind: type[Any], part: c.Content, message_id: str | None) -> Any:
        return kind(content=shared.block(part, v1), message_id=message_id)

    # ── tool calls ────────────────────────────────────────────────────────────────────────────

    def tool_call(self, event: e.ToolCallUpdated, before: SessionState) -> list[Any]:
        """As new where it is; what it shows of terminals follows."""
        self._note_meta(event.meta)
        known = before.tool_call(event.tool_call_id)
        items = event.content
        if event.more:
            base = items if isinstance(items, list) else [] if known is None else known.content
            unread = all(isinstance(each, c.UnknownItem) for each in event.more)
            items = items if unread else [*base, *event.more]
        fields: dict[str, Any] = {
            "title": "" if event.title is None else event.title,
            "name": event.name,
            "kind": event.kind,
            "status": event.status,
            "content": self.content([] if items is None else items, before),
            "locations": shared.locations([] if event.locations is None else event.locations, v1),
            "raw_input": event.raw_input,
            "raw_output": event.raw_output,
            "meta": patched_meta(event),
        }
        wire = _as_new(event.tool_call_id, fields) if known is None else None
        if wire is None:
            wire = v1.SessionToolCallUpdate(tool_call_id=event.tool_call_id, **fields)
        return [wire, *self._newly_shown(event.tool_call_id, items, before)]

    def content(self, items: Any, known: SessionState) -> Any:
        """What a tool call shows, as far as the client can."""
        if items is UNSET:
            return UNSET
        shown = [self._shown(item, known) for item in items]
        return shared.tool_content(shown, v1, _diff)

    def _shown(self, item: c.ToolContent, known: SessionState) -> c.ToolContent:
        match item:
            case c.TerminalItem(terminal_id=terminal_id) if not self._can_show(terminal_id):
                return c.ContentItem(Text(_printed(known.terminals.get(terminal_id))))
            case c.TerminalItem(terminal_id=terminal_id):
                return c.TerminalItem(self._name(terminal_id), item.meta)
            case c.Diff(operation=str()):
                return c.ContentItem(Text(_patch(item)))
            case _:
                return item

    # ── terminals ─────────────────────────────────────────────────────────────────────────────

    def _can_show(self, terminal_id: str) -> bool:
        is_its = terminal_id in self.own_terminals or terminal_id in self._said_in_meta
        return is_its or self.shows.terminals

    def _name(self, terminal_id: str) -> str:
        """What the client knows a terminal by. One that runs here has another name there: a client
        that is Dragoman, too, would take it for its own."""
        is_its = terminal_id in self.own_terminals
        return f"shown_{terminal_id}" if is_terminal_id(terminal_id) and not is_its else terminal_id

    def _note_meta(self, meta: dict[str, Any] | None) -> None:
        if meta is None:
            return
        for extension in (TERMINAL_INFO, *TERMINAL_OUTPUTS, TERMINAL_EXIT):
            match said(meta, extension):
                case {"terminal_id": str(terminal_id)}:
                    self._said_in_meta[terminal_id] = None
                    drop_oldest(self._said_in_meta, LIMITS.others)
                case _:
                    pass

    def _newly_shown(self, call_id: str, items: Any, known: SessionState) -> list[Any]:
        found: list[Any] = []
        for item in items or ():
            if isinstance(item, c.TerminalItem) and self._is_ours_to_tell(item.terminal_id):
                if item.terminal_id in self._shown_by:
                    continue
                self._shown_by[item.terminal_id] = call_id
                drop_oldest(self._shown_by, LIMITS.others)
                found += self._so_far(call_id, item.terminal_id, known)
        return found

    def _is_ours_to_tell(self, terminal_id: str) -> bool:
        return terminal_id not in self.own_terminals and terminal_id not in self._said_in_meta

    def _so_far(self, call_id: str, terminal_id: str, known: SessionState) -> list[Any]:
        terminal = known.terminals.get(terminal_id)
        if not self.shows.terminals or terminal is None:
            return []
        name = self._name(terminal_id)
        info = {"terminal_id": name, "cwd": terminal.cwd}
        found = [_with_meta(call_id, TERMINAL_INFO.path[0], info)]
        if terminal.output:
            said_so_far = {"terminal_id": name, "data": terminal.output}
            found.append(_with_meta(call_id, TERMINAL_OUTPUTS[0].path[0], said_so_far))
        if not terminal.running:
            found.append(_exit(call_id, name, terminal.exit_code, terminal.signal))
        return found

    def printed(self, event: e.TerminalOutput, before: SessionState) -> list[Any]:
        call_id = self._shown_by.get(event.terminal_id)
        if call_id is None or not self.shows.terminals or not event.data:
            return []
        output = {"terminal_id": self._name(event.terminal_id), "data": event.data}
        return [_with_meta(call_id, TERMINAL_OUTPUTS[0].path[0], output)]

    def exited(self, event: e.TerminalExited, before: SessionState) -> list[Any]:
        call_id = self._shown_by.get(event.terminal_id)
        if call_id is None:
            return []
        if self.shows.terminals:
            name = self._name(event.terminal_id)
            return [_exit(call_id, name, event.exit_code, event.signal)]
        call = before.tool_call(call_id)
        if call is None:
            return []
        content = self.content(call.content, before)
        return [v1.SessionToolCallUpdate(tool_call_id=call_id, content=content)]


def _as_new(call_id: str, fields: dict[str, Any]) -> v1.ToolCall | None:
    """A tool call that is seen for the first time, if it can be sent as one."""
    if fields["title"] is UNSET or fields["content"] == [] or fields["locations"] == []:
        return None
    given = {name: value for name, value in fields.items() if value is not UNSET}
    return v1.ToolCall(tool_call_id=call_id, **given)


def _diff(item: c.Diff) -> v1.Diff:
    return v1.Diff(path=item.path, new_text=item.new_text, old_text=item.old_text, meta=item.meta)


def _patch(item: c.Diff) -> str:
    """A change without the text of its files, in words."""
    paths = " → ".join(item.paths)
    return f"{item.operation} {paths}" + (f"\n```diff\n{item.patch}```" if item.patch else "")


def _printed(terminal: Terminal | None) -> str:
    output = "" if terminal is None else terminal.output[-_SHOWN_TAIL:]
    return f"```\n{output}\n```"


def _with_meta(call_id: str, name: str, value: dict[str, Any]) -> v1.SessionToolCallUpdate:
    return v1.SessionToolCallUpdate(tool_call_id=call_id, meta={name: value})


def _exit(call_id: str, terminal_id: str, code: int | None, signal: str | None) -> Any:
    ended = {"terminal_id": terminal_id, "exit_code": code, "signal": signal}
    return _with_meta(call_id, TERMINAL_EXIT.path[0], ended)


# ── the rest ──────────────────────────────────────────────────────────────────────────────────


def _turn_started(encoder: EncoderV1, event: e.TurnStarted, before: SessionState) -> list[Any]:
    return shared.told(encoder, event.content, event.turn_id)


def _steered(encoder: EncoderV1, event: e.Steered, before: SessionState) -> list[Any]:
    return shared.told(encoder, event.content, event.queue_id)


def _turn_ended(encoder: EncoderV1, event: e.TurnEnded, before: SessionState) -> list[Any]:
    if event.error is None:
        return []
    return encoder.remark(e.Notice(event.error, "error", source="client", seq=event.seq))


def _plan(encoder: EncoderV1, event: e.PlanUpdated, before: SessionState) -> list[Any]:
    is_list = event.markdown is None and event.uri is None
    if is_list and not event.plan_id:
        return [v1.Plan(entries=shared.plan_entries(v1, event.steps), meta=event.meta)]
    if encoder.shows.plans:
        return [shared.plan_update(v1, event, event.plan_id)]
    steps = event.steps if is_list else [f.PlanStep(event.text or event.uri or "")]
    return [v1.Plan(entries=shared.plan_entries(v1, steps), meta=event.meta)]


def _commands(encoder: EncoderV1, event: e.CommandsChanged, before: SessionState) -> list[Any]:
    commands = [command(each) for each in event.commands]
    return [v1.AvailableCommandsUpdate(available_commands=commands, meta=event.meta)]


def command(known: f.Command) -> v1.AvailableCommand:
    hint = None if known.hint is None else v1.UnstructuredCommandInput(hint=known.hint)
    return v1.AvailableCommand(
        name=known.name, description=known.description, input=hint, meta=known.meta
    )


def _mode(encoder: EncoderV1, event: e.ModeChanged, before: SessionState) -> list[Any]:
    return [v1.CurrentModeUpdate(current_mode_id=event.mode_id, meta=event.meta)]


def modes(known: f.Modes | None) -> v1.SessionModeState | None:
    """All modes, for the reply that opens a session."""
    if known is None:
        return None
    available = [
        v1.SessionMode(id=mode.id, name=mode.name, description=mode.description, meta=mode.meta)
        for mode in known.available
    ]
    return v1.SessionModeState(current_mode_id=known.current, available_modes=available)


EncoderV1.table = shared.shared_updates(v1) | {
    e.TurnStarted: _turn_started,
    e.Steered: _steered,
    e.TurnEnded: _turn_ended,
    e.ToolCallUpdated: EncoderV1.tool_call,
    e.TerminalOutput: EncoderV1.printed,
    e.TerminalExited: EncoderV1.exited,
    e.PlanUpdated: _plan,
    e.CommandsChanged: _commands,
    e.ModeChanged: _mode,
}

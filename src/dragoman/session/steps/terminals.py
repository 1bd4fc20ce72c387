"""The terminals of a session, with the last output of each.

All of them share one limit; one that is over makes room before one that runs. Pure.
"""

from __future__ import annotations

from dragoman.session import events as e
from dragoman.session.state import SessionState, Terminal
from dragoman.session.state_limits import ID, WORD, Limits, fitted
from dragoman.session.thread import join


def terminal_started(state: SessionState, event: e.TerminalStarted, limits: Limits) -> None:
    terminal = _terminal(state, event.terminal_id, limits)
    room = limits.fact // 8
    terminal.argv = fitted(event.argv, room)[0]
    terminal.cwd = fitted(event.cwd, room)[0]
    terminal.command = fitted(event.command, room)[0]
    terminal.cancellable = event.cancellable
    terminal.subagent = event.subagent
    terminal.running = True
    terminal.exit_code = terminal.signal = None


def terminal_output(state: SessionState, event: e.TerminalOutput, limits: Limits) -> None:
    terminal = _terminal(state, event.terminal_id, limits)
    if event.replaces:
        _trim(state, terminal, 0)
    join(terminal.pieces, event.data)
    terminal.size += len(event.data)
    state.printed += len(event.data)
    # Trimmed when twice too long, so that the copying is paid for by what was printed.
    if terminal.size > 2 * limits.tail:
        _trim(state, terminal, limits.tail)
    if state.printed > limits.tails:
        _trim_others(state, terminal, limits)


def terminal_exited(state: SessionState, event: e.TerminalExited, limits: Limits) -> None:
    terminal = _terminal(state, event.terminal_id, limits)
    terminal.running = terminal.cancellable = False
    terminal.exit_code = event.exit_code
    terminal.signal = None if event.signal is None else event.signal[:WORD]


def terminal_released(state: SessionState, event: e.TerminalReleased, limits: Limits) -> None:
    _terminal(state, event.terminal_id, limits).released = True


def _terminal(state: SessionState, terminal_id: str, limits: Limits) -> Terminal:
    key, terminals = terminal_id[:ID], state.terminals
    if (terminal := terminals.get(key)) is not None:
        return terminal
    if len(terminals) >= limits.others:
        # One that we run is the last to go: at most so many of those run at a time.
        oldest = min(terminals.values(), key=lambda each: (each.running, each.ours))
        _trim(state, oldest, 0)
        del terminals[oldest.id]
    terminal = terminals[key] = Terminal(key)
    return terminal


def _trim(state: SessionState, terminal: Terminal, length: int) -> None:
    """Keep the last of what it printed."""
    if terminal.size > length:
        text = "".join(terminal.pieces)[-length:] if length else ""
        state.printed -= terminal.size - length
        terminal.pieces, terminal.size = [], length
        join(terminal.pieces, text)


def _trim_others(state: SessionState, printing: Terminal, limits: Limits) -> None:
    """Those that have ended first, the oldest of them first."""
    for terminal in sorted(state.terminals.values(), key=lambda each: each.running):
        if state.printed <= limits.tails // 2:
            return
        if terminal is not printing:
            _trim(state, terminal, limits.line)

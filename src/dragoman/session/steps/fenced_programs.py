"""What really ran inside a fence: the newest of it. Pure."""

from __future__ import annotations

import msgspec

from dragoman.session import events as e
from dragoman.session.facts import ProgramRun
from dragoman.session.state import SessionState
from dragoman.session.state_limits import ID, WORD, Limits
from dragoman.session.thread import cut_line


def programs_ran(state: SessionState, event: e.ProgramsRan, limits: Limits) -> None:
    known = {program.id: program for program in state.programs}
    for end in event.ended:
        if (program := known.get(end.id[:ID])) is not None:
            program.exit_code, program.signal = end.exit_code, cut_line(end.signal, limits)
    state.programs += [_fitted(each, limits) for each in event.programs]
    if (more := len(state.programs) - limits.programs) > 0:
        state.programs_before += sum(program.count for program in state.programs[:more])
        del state.programs[:more]
    state.programs_before += event.left_out


def _fitted(program: ProgramRun, limits: Limits) -> ProgramRun:
    return msgspec.structs.replace(
        program,
        id=program.id[:ID],
        argv=[word[: limits.line] for word in program.argv[: limits.words]],
        cwd=program.cwd[: limits.line],
        parents=[name[:WORD] for name in program.parents[: limits.words]],
        signal=cut_line(program.signal, limits),
        refused=cut_line(program.refused, limits),
        meta=None,
    )

"""What a request for permission is about: which tool calls it means, what they claim, and where.

The claim of each is read by `claims.read_claim`, off the event loop: an agent chooses how much
there is to read and to look up. Nothing is decided here.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from dragoman.host.permissions.always_rules import is_question
from dragoman.host.permissions.claims import (
    MOST_CALLS,
    MOST_PATHS,
    Habits,
    claimed_path,
    read_claim,
    together,
)
from dragoman.host.permissions.raw_input import whole_file
from dragoman.host.permissions.request import NO_SUBJECT, Subject
from dragoman.host.permissions.wording import plain_options
from dragoman.host.rules.access import Access
from dragoman.host.rules.globs import is_within
from dragoman.host.serial_worker import Lane
from dragoman.host.workspace.jail import real_roots
from dragoman.host.workspace.reach import Reach
from dragoman.host.workspace.roots import Workspace
from dragoman.session.content import UNREAD, Diff, ToolContent, UnknownItem
from dragoman.session.facts import PermissionOption
from dragoman.session.state import OPEN_STATUSES, SessionState, ToolCall

Places: TypeAlias = Mapping[str, str]
"""The real path of each file that a question shows a change of, as it was when it was asked."""


class Claim(msgspec.Struct, frozen=True):
    """What an agent asks permission for, as it was when it asked."""

    access: Access
    title: str
    content: tuple[ToolContent, ...]
    places: Places
    weight: int
    """What the tool calls weigh that it is about."""


class ClaimReader:
    """Reads what the agent of one session asks for."""

    def __init__(
        self, workspace: Workspace, *, agent: str, habits: Habits, state: SessionState
    ) -> None:
        self._workspace = workspace
        self._agent = agent
        self._habits = habits
        self._state = state
        self._lane = Lane()

    async def read(
        self,
        call_id: str | None,
        options: Sequence[PermissionOption],
        subject: Subject,
        turn_id: str | None,
    ) -> Claim:
        known = None if call_id is None else self._state.tool_call(call_id)
        # As they are now: the calls may change while the claim is read.
        for_several, calls = self._is_for_several(known), self._meant(known, subject, turn_id)
        titles = filter(None, (call.title for call in calls[:MOST_CALLS]))
        title = subject.title or "; ".join(titles)
        content = _all_shown(calls)
        weight = sum(call.size for call in calls[:MOST_CALLS])
        is_understood = _is_understood(calls, subject) and len(calls) <= MOST_CALLS

        def as_asked(access: Access) -> Access:
            action = access.action or for_several
            question = not is_understood or is_question(plain_options(options), names_action=action)
            return msgspec.structs.replace(
                access, action=action, question=access.question or question
            )

        reading = self._reading(calls, subject, as_asked)
        access, places = await self._lane.run(lambda: (reading(), self._places(content)))
        return Claim(access, title, content, places, weight)

    def is_inside(self, real: str) -> bool:
        return any(is_within(real, root) for root in self._real_roots)

    def _meant(
        self, call: ToolCall | None, subject: Subject, turn_id: str | None
    ) -> list[ToolCall]:
        """What a request is about: its own call, and all of the turn that are not over yet, where
        an agent is known to ask for them together. Its own is left out only if it says nothing."""
        if call is None:
            return []
        if not self._is_for_several(call):
            return [call]
        calls = self._state.tool_calls.values()
        mine = [each for each in calls if each.turn_id == turn_id and each.status in OPEN_STATUSES]
        others = [each for each in mine if each.id != call.id]
        is_silent = _names_nothing(call) and subject.command is None
        return others if others and is_silent else [call, *others]

    def _is_for_several(self, call: ToolCall | None) -> bool:
        return call is not None and call.title in self._habits.permission_titles

    def _reading(
        self, calls: Sequence[ToolCall], subject: Subject, as_asked: Callable[[Access], Access]
    ) -> Callable[[], Access]:
        """What is left to do about a claim, with the calls as they are now."""
        asked: Sequence[ToolCall | None] = calls[:MOST_CALLS] or (None,)
        # What the request says by itself is about its own call, which is the first.
        subjects = (subject, *[NO_SUBJECT] * (len(asked) - 1))
        readings = list(map(self._reading_one, asked, subjects))

        def job() -> Access:
            claims = [as_asked(reading()) for reading in readings]
            _ = [claim.protection for claim in claims]  # may be long too; it is kept
            return together(claims)

        return job

    def _reading_one(self, call: ToolCall | None, subject: Subject) -> Callable[[], Access]:
        home = os.path.expanduser("~")
        roots = self._real_roots
        content = () if call is None else tuple(call.content)
        locations = () if call is None else tuple(call.locations)
        reading = functools.partial(
            read_claim,
            None if call is None else self._habits.kind_of(call.kind, call.title),
            _raw_input(call, subject),
            agent=self._agent,
            cwd=self._workspace.cwd,
            roots=roots,
            home=home,
            look=Reach((*roots, home)).look,
            name=None if call is None else call.name,
            verbs=self._habits.edit_verbs,
        )
        return lambda: reading(
            diff_paths=[path for diff in diffs_in(content) for path in diff.paths],
            locations=[place.path for place in locations],
        )

    def _places(self, content: Sequence[ToolContent]) -> Places:
        """Where the files of its diffs really are: a yes is for these, whatever the paths lead to
        once it is given."""
        paths = [diff.path for diff in diffs_in(content)][:MOST_PATHS]
        found = ((path, self._real(path)) for path in dict.fromkeys(paths))
        return {path: real for path, real in found if real is not None}

    def _real(self, path: str) -> str | None:
        """What a relative path means is the session's folder, not ours."""
        home = os.path.expanduser("~")
        # Only where it is: that needs no look for links that lead there.
        return claimed_path(path, cwd=self._workspace.cwd, home=home, look=Reach(()).look)

    @property
    def _real_roots(self) -> tuple[str, ...]:
        return real_roots(self._workspace)


def diffs_in(content: Sequence[ToolContent]) -> list[Diff]:
    return [item for item in content if isinstance(item, Diff)]


def _names_nothing(call: ToolCall) -> bool:
    """Whether there is nothing to judge in it but its title."""
    told = call.raw_input or call.content or call.locations or call.name or call.cut
    return call.kind == "other" and not told


def _all_shown(calls: Sequence[ToolCall]) -> tuple[ToolContent, ...]:
    """What they show, and that there are more than can be shown."""
    shown = [item for call in calls[:MOST_CALLS] for item in _shown(call)]
    more = len(calls) - MOST_CALLS
    if more > 0:
        shown.append(UnknownItem(UNREAD, f"{more} tool calls more: too many to be shown"))
    return tuple(shown)


def _shown(call: ToolCall) -> tuple[ToolContent, ...]:
    """What the call shows. Some agents tell a whole file in their raw input alone: as a diff it can
    be read by the person who is asked, and a yes covers it."""
    told = None if call.diffs or call.cut else whole_file(call.raw_input)
    shown = tuple(call.content) if told is None else (*call.content, Diff(*told))
    if not call.cut:
        return shown
    return (*shown, UnknownItem(UNREAD, f"{call.cut} characters more: too much to be shown"))


def _is_understood(calls: Sequence[ToolCall], subject: Subject) -> bool:
    """Whether it is known what is asked for. No rule may allow something with a part that nobody
    here can read, whatever the rest of it says."""
    if any(call.cut or any(isinstance(i, UnknownItem) for i in call.content) for call in calls):
        return False
    return bool(calls) if subject.command is None else bool(subject.command.strip())


def _raw_input(call: ToolCall | None, subject: Subject) -> Any:
    """What is read for a claim: the call's own input, and the command that is asked for."""
    told = None if call is None else call.raw_input
    if subject.command is None:
        return told
    where = {"cwd": subject.cwd} if subject.cwd else {}
    return [{"command": subject.command, **where}, told]

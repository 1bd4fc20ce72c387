"""Events as text, the same in every view. Pure; nothing here is sanitised yet.

To decide about a text, a person must see how it ends, not only its beginning: the lines left out
are in the middle, and are counted. `web/src/core/text/excerpt.ts` does the same for the page; a
test holds the two together.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TypeAlias

import msgspec

from dragoman.lazy_pattern import lazy_pattern
from dragoman.session import events as e
from dragoman.session.content import (
    Audio,
    Content,
    ContentItem,
    Diff,
    Image,
    Resource,
    ResourceLink,
    ToolContent,
    UnknownContent,
    UnknownItem,
)
from dragoman.session.facts import (
    Cost,
    Decision,
    PermissionOption,
    PlanStep,
    TokenUsage,
)
from dragoman.session.permission_options import as_shown
from dragoman.session.state import ToolCall


def shown(content: Content) -> str:
    """Content as text; other content is named, so that it does not go unseen."""
    match content:
        case ResourceLink():
            return f"<{content.uri}>"
        case Image() | Audio():
            return f"[{content.mime_type or 'an attachment'}]"
        case Resource() if content.content is None:
            return f"<{content.uri}>"
        case UnknownContent():
            return f"[{content.kind}]"
        case _:
            return content.text


def diff_text(diff: Diff, *, whole: bool = False) -> str:
    """The change as a unified diff; unless it is to be `whole`, one of bounded size."""
    if diff.operation is not None:
        return _told_change(diff, diff.operation)
    from dragoman.host.workspace.diffs import (  # most turns show none: it has difflib
        MAX_LINES,
        unified_diff,
    )

    old = "/dev/null" if diff.old_text is None and not diff.replaces else diff.path
    most = None if whole else MAX_LINES
    return unified_diff(diff.old_text or "", diff.new_text, old, diff.path, most=most)


def _told_change(diff: Diff, operation: str) -> str:
    """As the agent tells it; without a patch, what is done to the file is all there is to show."""
    old = "/dev/null" if operation == "add" else diff.old_path or diff.path
    new = "/dev/null" if operation == "delete" else diff.path
    _, mark, hunks = f"\n{diff.patch or ''}".partition("\n@@")
    what = ", ".join(word for word in (operation, diff.file_type) if word)
    # What is not a patch is shown as it came: it is all there is to judge.
    rest = diff.patch or f" ({what})\n"
    # Nor may the name of a second file be left out.
    is_one = mark and f"\n{diff.patch}".count("\ndiff --git ") <= 1
    return f"--- {old}\n+++ {new}\n" + (f"@@{hunks}" if is_one else rest)


def diff_lines(diff: Diff, *, whole: bool = False) -> list[str]:
    """The lines of the unified diff; none when nothing changes."""
    # Only a line feed ends a line: anything else is part of the file.
    text = diff_text(diff, whole=whole).removesuffix("\n")
    return text.split("\n") if text else []


def change_key(diff: Diff, lines: list[str]) -> tuple[str, ...]:
    """The same for a change the agent tells and for that change written by us, whose path is the
    real one."""
    return (os.path.basename(diff.path), *lines[2:])


def changed_steps(before: list[PlanStep], now: list[PlanStep]) -> list[PlanStep]:
    """The steps that changed since; all of them when the plan is another one."""
    if [step.content for step in before] != [step.content for step in now]:
        return now
    return [step for step, old in zip(now, before, strict=True) if step.status != old.status]


_fence = lazy_pattern(r"`{3,}|~{3,}")


def item_text(item: ToolContent) -> str:
    """A part of a tool call as text; "" for a diff or a terminal, which are drawn as such."""
    match item:
        case ContentItem():
            return shown(item.content)
        case UnknownItem():
            return f"content that cannot be shown: {item.kind}"
        case _:
            return ""


def tool_output(call: ToolCall) -> str:
    """The text of a tool call's result. A fence around all of it is taken off: agents put the
    output of a command in one."""
    parts = [text for item in call.content if (text := item_text(item))]
    if isinstance(call.raw_output, str) and not any(item.text for item in call.content):
        parts.append(call.raw_output)
    return _unfenced("\n".join(parts))


def _unfenced(text: str) -> str:
    first, _, rest = text.strip().partition("\n")
    fence = _fence.match(first)
    if fence is None or "`" in first[fence.end() :] or not rest.endswith(fence[0]):
        return text
    inside = rest.removesuffix(fence[0])
    return text if fence[0] in inside else inside.removesuffix("\n")


def last_lines(text: str, limit: int | None) -> tuple[int, list[str]]:
    """How many lines were left out in front, and the rest; with None, all of them."""
    lines = text.strip("\n").split("\n") if text.strip() else []
    left_out = 0 if limit is None else max(0, len(lines) - limit)
    return left_out, lines[left_out:]


def command_line(argv: list[str] | tuple[str, ...]) -> str:
    """A command as one would type it; a single word is a whole line of shell already."""
    return argv[0] if len(argv) == 1 else shlex.join(argv)


def usage_words(used: int, size: int, cost: Cost | None) -> str:
    money = f", {cost_words(cost)} so far" if cost is not None else ""
    if not size:  # an agent that does not know it has no other way to say so
        return f"context {used} tokens, size unknown{money}"
    return f"context {used} of {size} tokens ({used * 100 // size} %){money}"


def cost_words(cost: Cost) -> str:
    return f"{_amount(cost.amount)} {cost.currency}"


def _amount(amount: float) -> str:
    """To a hundredth of a cent, or to the first digits of what is less."""
    digits = 4 if amount >= 0.01 else 6
    return f"{amount:.{digits}f}".rstrip("0").rstrip(".")


def token_words(usage: TokenUsage) -> str:
    return f"tokens as reported by the agent: {usage.input} in, {usage.output} out"


def ending_words(exit_code: int | None, signal: str | None) -> str:
    if signal is not None:
        return f"ended by {signal}"
    return "ended" if exit_code is None else f"ended with code {exit_code}"


def outcome_words(event: e.TurnEnded) -> str | None:
    """How a turn ended, where it did not come to its end."""
    if event.error is not None:
        return f"the turn failed: {event.error}"
    return "the turn was cancelled" if event.stop_reason == "cancelled" else None


def short_path(path: str, cwd: str) -> str:
    """The path as seen from the workspace, if it is inside."""
    folder = f"{cwd.rstrip('/')}/"
    return path.removeprefix(folder) if cwd else path


def called(name: str | None, title: str | None) -> str:
    """A session as people call it: its name in brackets and its title, as far as it has them."""
    return f"[{name}] {title or ''}".rstrip() if name else title or ""


def answered_elsewhere(options: Iterable[PermissionOption], option_id: str | None) -> str:
    """A question was taken back because it was answered in another window."""
    name = next((option.words for option in as_shown(options) if option.id == option_id), "")
    return f"answered in another window: {name}" if name else "answered in another window"


def notice_words(notice: e.Notice) -> str | None:
    """None for a limit that ends the turn: the error of the turn says the same."""
    if isinstance(notice, e.TurnLimited) and notice.parked is None:
        return None
    return notice.text if notice.source == "client" else f"agent note: {notice.text}"


_SEEN = (
    e.AgentMessage,
    e.AgentThought,
    e.ToolCallUpdated,
    e.PlanUpdated,
    e.FileWritten,
    e.TerminalStarted,
    e.TerminalOutput,
    e.Notice,
    e.PermissionRequested,
    e.ElicitationRequested,
)
"""What leaves something on the screen."""


class Asides:
    """What should be known about a turn but is not part of the answer, a sentence each.

    `of_silence`: also that nothing came at all, which looks like a fault of ours otherwise.
    """

    def __init__(self, *, of_silence: bool = True) -> None:
        self._of_silence = of_silence
        self._asked: dict[str, e.PermissionRequested] = {}
        self._cancelling = False
        self._silent = False

    def sentence(self, event: e.Event) -> str | None:
        if isinstance(event, _SEEN):
            self._silent = False
        match event:
            case e.TurnStarted():
                self._silent = self._of_silence
                return None
            case e.SessionOpened(continuity="reset"):
                return "the agent has forgotten this session and starts with an empty one"
            case e.Notice():
                return notice_words(event)
            case e.PermissionRequested():
                self._asked[event.request_id] = event
                return None
            case e.PermissionSettled():
                return self._settled(event)
            case e.AccessDecided() if event.decision.effect == "deny":
                what = _what(event.operation, event.paths, event.argv, event.title, event.host)
                return f"refused {what}: {event.decision.reason}"
            case e.CompactionUpdated(status="in_progress"):
                return "the agent is compacting its context"
            case e.TurnCancelling():
                self._cancelling = True
                return None
            case e.TurnEnded():
                return self._ended(event.stop_reason)
            case _:
                return None

    def _ended(self, reason: str | None) -> str | None:
        cancelling, self._cancelling = self._cancelling, False
        if reason is None or cancelling:
            return None
        if reason != "end_turn":
            return f"the turn ended early: {reason}"
        return "the agent ended the turn without an answer" if self._silent else None

    def _settled(self, event: e.PermissionSettled) -> str | None:
        asked = self._asked.pop(event.request_id, None)
        refused = event.decision.effect in ("deny", "cancelled")
        # A person who was asked knows what they answered.
        answered = event.decision.by == "person"
        if asked is None or not refused or answered or self._cancelling:
            return None
        what = _what(asked.operation, asked.paths, asked.argv, asked.title)
        return f"refused {what}: {event.decision.reason}"


class Permissions:
    """What needed permission and how it was decided, a line each; the same thing is shown once when
    an agent first asks and then has us do it."""

    def __init__(self) -> None:
        self._asked: dict[str, e.PermissionRequested] = {}
        self._last = ""

    def line(self, event: e.Event) -> str | None:
        match event:
            case e.PermissionRequested():
                self._asked[event.request_id] = event
                return None
            case e.PermissionSettled():
                asked = self._asked.pop(event.request_id, None)
                return None if asked is None else self._decided(asked, event.decision)
            case e.AccessDecided():
                return self._decided(event, event.decision)
            case _:
                return None

    def _decided(
        self, asked: e.PermissionRequested | e.AccessDecided, decision: Decision
    ) -> str | None:
        host = asked.host if isinstance(asked, e.AccessDecided) else None
        what = _what(asked.operation, asked.paths, asked.argv, asked.title, host)
        what = what.removeprefix("to ")
        line = f"{what}: {_OUTCOMES.get(decision.effect, decision.effect)} ({decision.reason})"
        if line == self._last:
            return None
        self._last = line
        return line


def fenced(how: str, network: Sequence[str] | None) -> str:
    """How a session is fenced, and what its agent reaches."""
    hosts = "all" if network is None else ", ".join(network) or "none"
    return f"fenced ({how}), network: {hosts}"


_OUTCOMES = {"allow": "allowed", "deny": "refused"}

OPERATIONS = {
    "read": "read",
    "write": "write",
    "execute": "run",
    "fetch": "fetch",
    "mcp": "use an MCP tool",
    "other": "do",
}


def _what(
    operation: str, paths: list[str], argv: list[str] | None, title: str, host: str | None = None
) -> str:
    """What was not done; where nothing is known but its name, that, as the agent gives it."""
    if host is not None:
        return f"to connect to {title}"
    subject = command_line(argv) if argv else ", ".join(paths)
    if title and (operation == "other" or not subject):
        return f'"{title}"'
    return f"to {OPERATIONS.get(operation, operation)} {subject or 'it'}"


ALL_REFUSED = "every permission request was refused"


class Tally:
    """Counts decisions; an answer to a question other than a permission does not count."""

    def __init__(self) -> None:
        self._allowed = 0
        self._refused = 0
        self.unruled = False
        """Something was refused only because no rule or flag allows it."""
        self.unoffered = False
        """A write was refused because writing is switched off."""
        self.limited = False
        """A limit stopped the turn, or kept its prompt from being sent."""

    def count(self, event: e.Event) -> None:
        if isinstance(event, e.PermissionSettled | e.AccessDecided) and (
            event.decision.by != "fence"  # it is about what programs try, not what was asked
        ):
            self._allowed += event.decision.effect == "allow"
            self._refused += event.decision.effect in ("deny", "cancelled")
            self.unruled |= event.decision.by == "default"
        if isinstance(event, e.LimitReached):
            self.limited |= event.limit.ends_turn
        if isinstance(event, e.AccessDecided) and event.operation == "write":
            self.unoffered |= event.decision.by == "offer"

    @property
    def all_refused(self) -> bool:
        """Whether something needed permission, and nothing got it."""
        return self._refused > 0 and not self._allowed


EMPTY_RUN = 3
LONG_LINE, LINE_START, LINE_END = 2000, 1200, 600
_blanks = lazy_pattern(r"[ \t]{100,}")
_nothing = lazy_pattern(r"[ \t\r]*")


class Left(msgspec.Struct, frozen=True):
    """So many lines that are not shown; `empty` ones have nothing to show but their `mark`."""

    lines: int
    empty: bool = False
    mark: str = ""


Row: TypeAlias = str | Left


def excerpt(
    lines: Sequence[str],
    first: int,
    last: int,
    mark: Callable[[str], str] = lambda line: "",
) -> list[Row]:
    """The first and the last lines, runs of empty ones as one row.

    `mark` starts a line but is not part of the text, as in a diff.
    """
    rows = list(_without_runs(lines, mark))
    if len(rows) <= first + last + 1:
        return rows
    between = sum(row.lines if isinstance(row, Left) else 1 for row in rows[first:-last])
    return [*rows[:first], Left(between), *rows[-last:]]


def _without_runs(lines: Sequence[str], mark: Callable[[str], str]) -> Iterator[Row]:
    def emptiness(line: str) -> str | None:
        begun = mark(line)
        return begun if _nothing.fullmatch(line, len(begun)) else None

    for begun, found in groupby(lines, emptiness):
        run = list(found)
        if begun is not None and len(run) >= EMPTY_RUN:
            yield Left(len(run), empty=True, mark=begun)
        else:
            yield from run


def both_ends(line: str, *, whole: bool = False) -> str:
    """A line with long runs of blanks told in words and, unless it is to be `whole`, without the
    middle of a very long one."""
    line = _blanks.sub(lambda run: f"⟨{len(run.group())} blanks⟩", line)
    if whole or len(line) <= LONG_LINE:
        return line
    between = len(line) - LINE_START - LINE_END
    return f"{line[:LINE_START]} ⟨{between} characters omitted⟩ {line[-LINE_END:]}"


def left_words(left: Left) -> str:
    """What is not shown, in words."""
    if not left.empty:
        return f"{left.lines} lines omitted"
    what = {"+": " added", "-": " removed"}.get(left.mark, "")
    return f"{left.lines} empty lines{what}"

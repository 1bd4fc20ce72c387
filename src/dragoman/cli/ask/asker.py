"""Asks the person at the terminal: permissions, forms, and which sign-in method to use."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from dragoman.cli.ask.form_input import Field, form_fields
from dragoman.cli.exit_codes import UsageError
from dragoman.cli.render.event_text import (
    OPERATIONS,
    Left,
    both_ends,
    command_line,
    diff_lines,
    excerpt,
    item_text,
    left_words,
)
from dragoman.cli.render.style import BOLD, CYAN, DIM, YELLOW, Style
from dragoman.cli.render.wrap import folded
from dragoman.host.forms.elicitation import ElicitationAnswer, ElicitationRequest
from dragoman.host.permissions.questions import PermissionRequest
from dragoman.safe_text import reveal, sanitise, single_line
from dragoman.session.content import ContentItem, Diff, UnknownItem
from dragoman.session.events import PermissionRequested
from dragoman.session.permission_options import Shown, as_shown
from dragoman.session.state import PendingPermission

if TYPE_CHECKING:
    from dragoman.cli.render.console import Console
    from dragoman.cli.render.status_line import Status

_FIRST, _LAST = 30, 15
"""Lines of a command, a change or a list of paths that are shown of a long one."""
_WORDING = 200
"""Columns of the agent's own wording."""
_MORE = "m"


class Choice(msgspec.Struct, frozen=True):
    """The option or offer that a person chose, and whether twice."""

    option_id: str
    confirmed: bool = False


class Tty:
    """The terminal this process belongs to, even when standard input is a pipe."""

    def __init__(self) -> None:
        try:
            self._descriptor = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError as error:
            raise UsageError("--on-ask prompt needs a terminal") from error

    def write(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        while data:
            data = data[os.write(self._descriptor, data) :]

    def forget_typed(self) -> None:
        """Discard what was typed before the question was shown: it does not answer it."""
        import termios

        with contextlib.suppress(termios.error):
            termios.tcflush(self._descriptor, termios.TCIFLUSH)

    def close(self) -> None:
        """For good: what is asked from now on ends with an OSError."""
        closed, self._descriptor = self._descriptor, -1
        os.close(closed)

    async def line(self) -> str | None:
        """A line typed by the person; None at the end of input. Can be cancelled."""
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self._descriptor, lambda: ready.done() or ready.set_result(None))
        try:
            await ready
        finally:
            loop.remove_reader(self._descriptor)
        try:
            # A terminal in its ordinary mode is readable once a whole line is there.
            data = os.read(self._descriptor, 65536)
        except OSError:
            return None  # it was closed
        return data.decode("utf-8", "replace").rstrip("\n") if data else None


class TerminalAsker:
    """A permissions and an elicitation provider; one question at a time, in the order asked.

    While a question is open nothing else is written by way of `status`.
    """

    def __init__(self, tty: Tty, style: Style, status: Status) -> None:
        self._tty = tty
        self._style = style
        self._status = status
        self._awaited = False
        self.on_asked: Callable[[list[Diff]], None] = lambda diffs: None
        """Told which changes a question shows."""

    async def request_permission(self, request: PermissionRequest) -> Choice | None:
        """What was chosen; None when the terminal has gone away."""
        options = as_shown(request.options)
        asked = question(request, self._style)
        whole = question(request, self._style, whole=True)
        letters = (_MORE,) if request.offers else ()
        keys = _keys(options)
        async with self._asking():
            self._tty.write(asked)
            self.on_asked(diffs_of(request))
            while True:
                shown = None if asked == whole else whole
                answer = await self._chosen(len(options), shown, letters, keys)
                if isinstance(answer, int):
                    return Choice(options[answer].id)
                if answer is None:
                    return None
                if (choice := await self._offered(request)) is not None:
                    return choice

    async def _offered(self, request: PermissionRequest) -> Choice | None:
        """One of our offers: first what is allowed, then for how long. None to go back."""
        offers = request.offers
        subjects = list(dict.fromkeys(offer.subject for offer in offers))
        what = await self._listed("what", subjects)
        if what is None:
            return None
        of_it = [offer for offer in offers if offer.subject == subjects[what]]
        scopes = [offer.words.removeprefix(f"Allow {offer.subject} ") for offer in of_it]
        how_long = await self._listed("how long", scopes)
        if how_long is None:
            return None
        offer = of_it[how_long]
        lines = folded(f"from now on: {reveal(offer.consequence)}", "  ")
        self._tty.write("".join(f"{self._style(line, DIM)}\n" for line in lines))
        if not offer.confirm:
            return Choice(offer.id)
        self._tty.write(self._style(f"! {reveal(request.danger or '')}", BOLD, YELLOW) + "\n")
        answer = await self._line("type yes to allow it from now on: ")
        return Choice(offer.id, confirmed=True) if (answer or "").strip() == "yes" else None

    async def _listed(self, title: str, choices: Sequence[str]) -> int | None:
        """The number of the chosen one, from 0; None to go back."""
        lines = [f"  {number}. {reveal(choice)}" for number, choice in enumerate(choices, 1)]
        self._tty.write("\n".join([*lines, ""]))
        while True:
            answer = await self._line(f"{title}? {_numbers(len(choices))}, Enter to go back: ")
            if not (answer or "").strip():
                return None
            if (number := _number_in(answer or "", len(choices))) is not None:
                return number
            self._tty.write(f"expected a number from 1 to {len(choices)}\n")

    async def choose(self, title: str, choices: Sequence[str]) -> int | None:
        """The number of the chosen one, from 0; None when the terminal has gone away."""
        async with self._asking():
            lines = [f"  {number}. {choice}" for number, choice in enumerate(choices, 1)]
            self._tty.write("\n".join(["", self._style(f"? {title}", BOLD, YELLOW), *lines, ""]))
            answer = await self._chosen(len(choices))
            return answer if isinstance(answer, int) else None

    def leave(self) -> None:
        """The person has gone, with the terminal."""
        self._tty.close()

    async def create_elicitation(self, request: ElicitationRequest) -> ElicitationAnswer:
        async with self._asking():
            message = sanitise(request.message).replace("\n", "\n  ")
            self._tty.write("\n" + self._style(f"? {message}", BOLD, YELLOW) + "\n")
            if request.asked_by is not None:
                who = single_line(request.asked_by, _WORDING)
                self._tty.write(self._style(f"  asked by {who} (a subagent)", DIM) + "\n")
            if request.mode == "url":
                return await self._visit(request)
            return await self._fill_in(request)

    async def _visit(self, request: ElicitationRequest) -> ElicitationAnswer:
        self._tty.write(f"  open {reveal(request.url or '')}\n")
        return await self._agreed("  done? [y/N] ")

    async def _agreed(self, prompt: str) -> ElicitationAnswer:
        answer = await self._line(prompt)
        agreed = (answer or "").strip().lower() in ("y", "yes")
        return ElicitationAnswer("accept" if agreed else "decline")

    async def _fill_in(self, request: ElicitationRequest) -> ElicitationAnswer:
        fields = form_fields(request.schema)
        if not fields:
            return await self._agreed("  agreed? [y/N] ")
        self._tty.write(self._style("  Ctrl-D declines", DIM) + "\n")
        content: dict[str, object] = {}
        for field in fields:
            self._tty.write("".join(f"{self._style(line, DIM)}\n" for line in _about(field)))
            try:
                value = await self._value(field)
            except EOFError:
                return ElicitationAnswer("decline")
            if value is not None:
                content[field.name] = value
        return ElicitationAnswer("accept", content)

    async def _value(self, field: Field) -> object:
        """What was filled in; None for nothing. Raises EOFError at the end of input."""
        while True:
            text = await self._line(f"  {field.label}: ")
            if text is None:
                raise EOFError
            value = field.parsed(text.strip()) if text.strip() else field.default
            if value is not None or not (text.strip() or field.required):
                return value
            expected = f"expected {field.expected}" if text.strip() else "required"
            self._tty.write(f"  {expected}\n")

    # ── the terminal ──────────────────────────────────────────────────────────────────────────

    @contextlib.asynccontextmanager
    async def _asking(self) -> AsyncGenerator[None]:
        async with self._status.floor:
            self._status.doing("")
            self._status.fresh_line()
            self._tty.forget_typed()
            try:
                yield
            except asyncio.CancelledError:
                self.leave_line()  # nobody needs the answer
                raise

    def leave_line(self) -> None:
        """Continue below the line on which an answer is awaited, if one is."""
        if self._awaited:
            self._awaited = False
            self._tty.write("\n")

    async def _chosen(
        self,
        count: int,
        whole: str | None = None,
        letters: Sequence[str] = (),
        keys: Mapping[str, int] = MappingProxyType({}),
    ) -> int | str | None:
        """A number from 0, or one of the letters; `whole` is all that is asked, where not all of it
        was shown; `keys` are short for numbers."""
        more = "" if whole is None else ", v to show everything"
        while True:
            answer = await self._line(f"choose {_numbers(count)}{more}: ")
            if answer is None:
                return None
            if (number := _number_in(answer, count)) is not None:
                return number
            letter = answer.strip().lower()
            if letter in keys:
                return keys[letter]
            if letter in letters:
                return letter
            wrong = f"expected {' or '.join((f'a number from 1 to {count}', *letters))}\n"
            self._tty.write(whole if whole is not None and letter == "v" else wrong)

    async def _line(self, prompt: str) -> str | None:
        self._tty.write(prompt)
        self._awaited = True
        answer = await self._tty.line()
        self._awaited = False
        return answer


def _numbers(count: int) -> str:
    return "1" if count == 1 else f"1-{count}"


def _keys(options: Sequence[Shown]) -> dict[str, int]:
    """`y`, `a` and `n`, where it is clear which answer that is."""
    kinds = [option.kind for option in options]
    return {
        key: kinds.index(kind)
        for key, kind in (("y", "allow_once"), ("a", "allow_always"), ("n", "reject_once"))
        if kinds.count(kind) == 1 and not options[kinds.index(kind)].warns
    }


def _number_in(answer: str, count: int) -> int | None:
    """The number that was typed, from 0; None for anything else."""
    typed = answer.strip()
    return int(typed) - 1 if typed.isdecimal() and 0 < int(typed) <= count else None


def asker_on(console: Console) -> TerminalAsker:
    """The asker of a person who looks at this console. Raises UsageError without a terminal."""
    asker = TerminalAsker(Tty(), console.style, console.status)
    if console.terminal_view is not None:
        asker.on_asked = console.terminal_view.asked
    return asker


def request_of(
    asked: PermissionRequested | PendingPermission,
    request_id: str,
    *,
    session_id: str,
    agent: str,
) -> PermissionRequest:
    """The request of a session that another process runs, from what is on the record."""
    # What the agent asks for is a claim; what we ask ourselves is about to be done.
    claimed = asked.claimed or asked.tool_call_id is not None
    return asked.as_kind(
        PermissionRequest,
        request_id=request_id,
        session_id=session_id,
        agent=agent,
        claimed=claimed,
    )


def question(request: PermissionRequest, style: Style, *, whole: bool = False) -> str:
    """What is asked: what will really happen first, the agent's wording last.

    What is long is shown from both ends, unless it is to be `whole`.
    """
    lines = ["", *asked(request, style, whole=whole)]
    for number, option in enumerate(as_shown(request.options), 1):
        lines += answer_lines(option, f"{number}. ", style)
    if request.offers:
        lines.append(f"  {_MORE}. Allow more than this once …")
    return "\n".join([*lines, ""])


def asked(request: PermissionRequest, style: Style, *, whole: bool) -> list[str]:
    """The question without its answers."""
    subjects = list(_subjects(request, style, whole))
    wish = _wish(request, whole) + (":" if subjects else "")
    lines = [style(line, BOLD, YELLOW) for line in folded(wish, "? ")]
    lines += subjects
    if request.danger is not None:
        lines += [style(line, BOLD, YELLOW) for line in folded(f"! {reveal(request.danger)}", "  ")]
    lines += [style(line, DIM) for line in _wording(request, whole)]
    for item in request.content:
        match item:
            case Diff():
                lines += _change(item, style, whole)
            case ContentItem():
                lines += _prose(item_text(item), style, whole)
            case UnknownItem():
                lines.append(style(f"  {single_line(item_text(item), 100)}", YELLOW))
            case _:
                pass  # a terminal: its output is not part of the question
    return lines


def answer_lines(option: Shown, mark: str, style: Style) -> list[str]:
    """An answer in our words; what the agent calls it comes second."""
    room = "     "
    lines = [f"  {mark}{_told(option)}"]
    if option.remark and option.warns:
        lines += [style(line, BOLD, YELLOW) for line in folded(f"! {option.remark}", room)]
    elif option.remark:
        lines += [style(line, DIM) for line in folded(option.remark, room)]
    if option.consequence:
        lines += [style(line, DIM) for line in folded(reveal(option.consequence), room)]
    return lines


def _told(option: Shown) -> str:
    """An answer that counts once is not called always."""
    if not option.counts_once:
        return option.words
    once = "Allow once" if option.kind.startswith("allow") else "Reject"
    return f"{once}, the agent's “{option.words}”"


def _subjects(request: PermissionRequest, style: Style, whole: bool) -> Iterator[str]:
    """The paths and the command, line by line."""

    def path(line: str) -> str:
        return style(f"    {reveal(line)}", CYAN)

    def command(line: str) -> str:
        return style(f"    $ {reveal(both_ends(line, whole=whole))}", CYAN)

    def variable(name: str) -> str:
        return style(f"    with the variable {reveal(shlex.quote(name))} set", CYAN)

    yield from _ends(request.paths, path, style, whole)
    if request.argv is not None:
        yield from _ends(command_line(request.argv).split("\n"), command, style, whole)
    yield from _ends(request.env, variable, style, whole)
    if request.cwd is not None:
        yield style(f"    in {reveal(request.cwd)}", CYAN)


def _change(diff: Diff, style: Style, whole: bool) -> Iterator[str]:
    yield style(f"  {_change_words(diff)}:", DIM)
    if diff.replaces:
        yield from (style(line, YELLOW) for line in folded(f"! it replaces {diff.replaces}", "  "))

    def line(text: str) -> str:
        from dragoman.cli.render.terminal_view import painted_line

        return painted_line(both_ends(text, whole=whole), style)

    yield from _ends(diff_lines(diff, whole=True)[2:], line, style, whole, mark=_first_letter)


def _change_words(diff: Diff) -> str:
    is_new = diff.old_text is None and not diff.replaces and diff.operation in (None, "add")
    return f"new file {reveal(diff.path)}" if is_new else f"change of {reveal(diff.path)}"


def _prose(text: str, style: Style, whole: bool) -> Iterator[str]:
    """What else the agent shows: its words, marked at the edge as such."""

    def line(text: str) -> str:
        return style(f"  | {reveal(both_ends(text, whole=whole), newlines=True)}", DIM)

    yield from _ends(sanitise(text).strip("\n").split("\n"), line, style, whole)


def _ends(
    lines: Sequence[str],
    paint: Callable[[str], str],
    style: Style,
    whole: bool,
    mark: Callable[[str], str] = lambda line: "",
) -> Iterator[str]:
    for row in excerpt(lines, len(lines) if whole else _FIRST, _LAST, mark):
        yield style(f"    … {left_words(row)}", YELLOW) if isinstance(row, Left) else paint(row)


def _first_letter(line: str) -> str:
    return line[:1]


def diffs_of(request: PermissionRequest) -> list[Diff]:
    return [item for item in request.content if isinstance(item, Diff)]


def _wish(request: PermissionRequest, whole: bool) -> str:
    """Who wants what, without the paths and the command it is about."""
    who = reveal(request.agent) or "the agent"
    if request.asked_by is not None:
        who = f"{single_line(request.asked_by, _WORDING)} (a subagent of {who})"
    if request.operation == "other":
        named = f'"{_words(request.title, whole)}"' if request.title else "something unnamed"
        on = ", on" if request.paths or request.argv else ""
        return f"{who} wants permission for {named}{on}"
    # What is claimed may be something else in the end; what we do ourselves is as shown.
    wants = "says it wants to" if request.claimed else "wants us to"
    return f"{who} {wants} {OPERATIONS.get(request.operation, reveal(request.operation))}"


def _wording(request: PermissionRequest, whole: bool) -> list[str]:
    """The agent's own words for it; our own only where they say more than is there already."""
    if request.claimed:
        line = command_line(request.argv) if request.argv else None
        repeats = line is not None and _is_in(line, request.title)
        title = "" if request.operation == "other" or repeats else request.title
        words = [_words(text, whole) for text in (title, request.explanation) if text]
        return folded(f"in its words: {': '.join(words)}", "  ") if words else []
    line = command_line(request.argv) if request.argv is not None else "".join(request.paths)
    _, _, said = request.title.partition(" ")
    more = said.removeprefix(line).removeprefix(f" in {request.cwd}")
    more = more.removesuffix(f" with {', '.join(request.env)} set").strip()
    more = more if said.startswith(line) else request.title
    return folded(_words(more, whole), "  ") if more and request.operation != "other" else []


def _is_in(line: str, title: str) -> bool:
    """Whether the command is in the title; perhaps cut short, after the name of the tool."""
    begun = title.removesuffix("…").removesuffix("...").rstrip()  # Goose puts both at its end
    told = begun.partition(" · ")[2] or begun
    return line in title or (begun != title and " ".join(line.split()).startswith(told))


def _words(text: str, whole: bool) -> str:
    return reveal(text) if whole else single_line(text, _WORDING)


def _about(field: Field) -> list[str]:
    """What is to be read before a field is filled in."""
    about = folded(field.description, "  ") if field.description else []
    return about + [line for choice in field.told for line in folded(choice, "    ")]

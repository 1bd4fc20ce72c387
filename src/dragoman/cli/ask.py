"""Asking the person at the terminal: permissions, elicitations, and which way to sign in."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TYPE_CHECKING

from dragoman.cli.form import Field, fields_of
from dragoman.cli.guard import UsageError
from dragoman.cli.style import BOLD, CYAN, DIM, YELLOW, Style
from dragoman.cli.terminal import painted_diff
from dragoman.cli.words import OPERATIONS, command_line, diff_lines
from dragoman.cli.wrap import folded
from dragoman.host.elicitation import ElicitationAnswer, ElicitationRequest
from dragoman.host.permissions import PermissionRequest
from dragoman.safe_text import reveal, sanitise, single_line
from dragoman.session.content import Diff
from dragoman.session.facts import PermissionOption
from dragoman.session.options import in_order, plain_name

if TYPE_CHECKING:
    from dragoman.cli.status import Status

_DIFF_LINES = 60


class Tty:
    """The terminal this process belongs to, even when standard input is a pipe."""

    def __init__(self) -> None:
        try:
            self._descriptor = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError as error:
            raise UsageError("--on-ask prompt needs a terminal, and there is none") from error

    def write(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        while data:
            data = data[os.write(self._descriptor, data) :]

    def forget_typed(self) -> None:
        """What was typed before a question was there to read is no answer to it."""
        import termios

        with contextlib.suppress(termios.error):
            termios.tcflush(self._descriptor, termios.TCIFLUSH)

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

    async def request_permission(self, request: PermissionRequest) -> str | None:
        """The chosen option; None when the terminal has gone away."""
        async with self._asking():
            self._tty.write(question(request, self._style))
            self.on_asked(diffs_of(request))
            number = await self._number(len(request.options))
        return None if number is None else in_order(request.options)[number].id

    async def choose(self, title: str, choices: Sequence[str]) -> int | None:
        """The number of the chosen one, from 0; None when the terminal has gone away."""
        async with self._asking():
            lines = [f"  {number}. {choice}" for number, choice in enumerate(choices, 1)]
            self._tty.write("\n".join(["", self._style(f"? {title}", BOLD, YELLOW), *lines, ""]))
            return await self._number(len(choices))

    async def create_elicitation(self, request: ElicitationRequest) -> ElicitationAnswer:
        async with self._asking():
            message = sanitise(request.message).replace("\n", "\n  ")
            self._tty.write("\n" + self._style(f"? {message}", BOLD, YELLOW) + "\n")
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
        fields = fields_of(request.schema)
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
            expected = f"expected {field.expected}" if text.strip() else "this one is needed"
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
                self.leave_line()  # nobody needs the answer any more
                raise

    def leave_line(self) -> None:
        """Go on below the line on which an answer is awaited, if one is."""
        if self._awaited:
            self._awaited = False
            self._tty.write("\n")

    async def _number(self, count: int) -> int | None:
        while True:
            answer = await self._line(f"choose 1-{count}: ")
            if answer is None:
                return None
            if answer.strip().isdecimal() and 0 < int(answer) <= count:
                return int(answer) - 1
            self._tty.write(f"expected a number, from 1 to {count}\n")

    async def _line(self, prompt: str) -> str | None:
        self._tty.write(prompt)
        self._awaited = True
        answer = await self._tty.line()
        self._awaited = False
        return answer


def question(request: PermissionRequest, style: Style) -> str:
    """What is asked: what will really happen first, the agent's wording last."""
    subjects = [reveal(path) for path in request.paths]
    if request.argv is not None:
        subjects += [f"$ {reveal(line)}" for line in command_line(request.argv).split("\n")]
    mark = ":" if subjects else ""
    lines = ["", *(style(f"{line}", BOLD, YELLOW) for line in folded(_wish(request) + mark, "? "))]
    lines += [style(f"    {subject}", CYAN) for subject in subjects]
    lines += [style(line, DIM) for line in _wording(request)]
    for diff in diffs_of(request):
        lines.append(style(f"  change of {reveal(diff.path)}:", DIM))
        lines += painted_diff(diff_lines(diff)[2:], style, _DIFF_LINES)
    for number, option in enumerate(in_order(request.options), 1):
        lines.append(f"  {number}. {_option(option)}")
        if option.consequence:
            lines += [style(line, DIM) for line in folded(reveal(option.consequence), "     ")]
    return "\n".join([*lines, ""])


def diffs_of(request: PermissionRequest) -> list[Diff]:
    return [item for item in request.content if isinstance(item, Diff)]


def _wish(request: PermissionRequest) -> str:
    """Who wants what, without the paths and the command it is about."""
    who = reveal(request.agent) or "the agent"
    if request.operation == "other":
        return f"{who} wants permission for {_named(request)}" + (
            ", on" if request.paths or request.argv else ""
        )
    # What is claimed may be something else in the end; what we do ourselves is as shown.
    wants = "says it wants to" if request.claimed else "wants us to"
    return f"{who} {wants} {OPERATIONS.get(request.operation, reveal(request.operation))}"


def _named(request: PermissionRequest) -> str:
    """What only the agent has a name for."""
    return f'"{single_line(request.title, 200)}"' if request.title else "something without a name"


def _wording(request: PermissionRequest) -> list[str]:
    """The agent's own words for it; our own only where they say more than stands there already."""
    if request.claimed:
        title = "" if request.operation == "other" else request.title
        words = [single_line(text, 200) for text in (title, request.explanation) if text]
        return folded(f"in its words: {': '.join(words)}", "  ") if words else []
    line = command_line(request.argv) if request.argv is not None else "".join(request.paths)
    _, _, said = request.title.partition(" ")
    return [] if said in ("", line) else folded(reveal(request.title), "  ")


def _option(option: PermissionOption) -> str:
    """Its name, and what it means where the name does not say."""
    name = single_line(plain_name(option), 80)
    kind = single_line(option.kind.replace("_", " "), 40)
    return name if kind.partition(" ")[0] in name.lower() else f"{name} ({kind})"


def _about(field: Field) -> list[str]:
    """What is to be read before a field is filled in."""
    about = folded(field.description, "  ") if field.description else []
    return about + [line for choice in field.told for line in folded(choice, "    ")]

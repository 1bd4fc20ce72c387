"""A person at a terminal: runs a command on a PTY and answers what it asks."""

from __future__ import annotations

import asyncio
import os
import pty
import re
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

_NUMBER = re.compile(r"choose 1-(\d+): $")
_FIELD = re.compile(r"\((?:one|any) of ([^,)]+).*\): $")
_OPTIONAL = re.compile(r"\(optional\): $")
_OPTION = re.compile(r"^  (\d+)\. ((?:.*\n)(?:     .*\n)*)", re.MULTILINE)
"""Its number, and its name with what is said below it."""
_ALWAYS = ("from now on", "counts once only")
"""The line below an option that means always."""
_ESCAPES = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07|[=>])")


class Typed(msgspec.Struct):
    """How it ended, what was on the screen, and how often the person was asked."""

    code: int
    screen: str
    questions: int


async def run_typed(
    command: Sequence[str], *, env: Mapping[str, str], cwd: Path, lasting: bool = False
) -> Typed:
    """Run it to its end, allowing all that it asks for: once, or from now on where that is offered.
    Cancelled, it is killed."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(ours, (50, 200))
    process = await asyncio.create_subprocess_exec(
        *command, env=dict(env), cwd=cwd, preexec_fn=lambda: os.login_tty(theirs)
    )
    os.close(theirs)
    try:
        screen, questions = await _answered(ours, lasting)
        return Typed(await process.wait(), screen, questions)
    finally:
        os.close(ours)
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _answered(terminal: int, lasting: bool) -> tuple[str, int]:
    screen, questions = "", 0
    while data := await _read(terminal):
        screen += _ESCAPES.sub("", data.decode("utf-8", "replace")).replace("\r", "")
        if (answer := _answer(screen, lasting)) is not None:
            questions += bool(answer)
            os.write(terminal, f"{answer}\n".encode())
            screen += "\n"
    return screen, questions


async def _read(terminal: int) -> bytes:
    """What was printed next; nothing when the command has ended."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(terminal, lambda: ready.done() or ready.set_result(None))
    try:
        await ready
        return os.read(terminal, 65536)
    except OSError:
        return b""
    finally:
        loop.remove_reader(terminal)


def _answer(screen: str, lasting: bool) -> str | None:
    """What the person types, if something is asked."""
    if _NUMBER.search(screen):
        asked = screen[screen.rfind("? ") :]
        return _choice(_OPTION.findall(asked), lasting)
    if found := _FIELD.search(screen):
        return found[1]
    return "" if _OPTIONAL.search(screen) else None


def _choice(options: list[tuple[str, str]], lasting: bool) -> str:
    """Once, or else it would hold for the trials to come, here or with the agent."""
    fitting = [(number, text.lower()) for number, text in options if "allow" in text.lower()]
    assert fitting, f"no option to allow among {options}"
    marks = _ALWAYS[:1] if lasting else _ALWAYS
    wanted = [number for number, text in fitting if lasting == any(mark in text for mark in marks)]
    return wanted[0] if wanted else fitting[0][0]

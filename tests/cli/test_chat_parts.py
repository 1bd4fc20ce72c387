"""The parts of a chat that need no terminal: commands, completion, the screen, answers."""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import sys
import termios
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from io import StringIO
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import PipeInput, create_input, create_pipe_input
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.output import DummyOutput

from dragoman.cli.commands.chat import prompt as chat_prompt
from dragoman.cli.commands.chat.call_viewer import CallViewer
from dragoman.cli.commands.chat.completions import Completions
from dragoman.cli.commands.chat.notifier import Notifier, Notify, sequence
from dragoman.cli.commands.chat.pasted_blocks import PastedBlocks
from dragoman.cli.commands.chat.prompt import ChatPrompt, breaks_lines
from dragoman.cli.commands.chat.screen import Screen
from dragoman.cli.commands.chat.slash_commands import OWN, LineRoute, route
from dragoman.cli.render.style import Style
from dragoman.session import events as e
from dragoman.session.content import Text
from dragoman.session.facts import Command, ConfigChoice, ConfigOption, Mode, Modes
from dragoman.session.state import SessionState, ToolCall

# ── whose command it is ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("/help", LineRoute("us", "", "help")),
        ("/mode  plan ", LineRoute("us", "plan", "mode")),
        (":help", LineRoute("us", "", "help")),
        (":review", LineRoute("agent", ":review")),
        ("/review it", LineRoute("agent", "/review it")),
        ("/new", LineRoute("agent", "/new")),  # the agent has one of that name
        (":new", LineRoute("us", "", "new")),
        ("//help", LineRoute("agent", "/help")),
        ("//new now", LineRoute("agent", "/new now")),
        ("/etc/hosts, what is it?", LineRoute("agent", "/etc/hosts, what is it?")),
        ("/helpful", LineRoute("agent", "/helpful")),
        (":drop 2", LineRoute("us", "2", "drop")),
        ("what is /help?", LineRoute("agent", "what is /help?")),
        ("", LineRoute("agent", "")),
        (" exit ", LineRoute("us", "", "quit")),
        ("exit now", LineRoute("agent", "exit now")),
    ],
)
def test_a_command_is_the_agents_where_it_has_one(typed: str, expected: LineRoute) -> None:
    assert route(typed, {"new", "review"}) == expected


def test_help_is_ours_even_where_the_agent_has_one() -> None:
    assert route("/help", {"help"}) == LineRoute("us", "", "help")
    assert route("//help", {"help"}) == LineRoute("agent", "/help")


# ── completion ────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def completions(tmp_path: Path) -> Completions:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "app.py").touch()
    (tmp_path / "a file.txt").touch()
    (tmp_path / ".hidden").touch()
    (tmp_path / "bad\x1bname").touch()
    made = Completions(OWN)
    made.cwd = str(tmp_path)
    made.state = SessionState(
        commands=[Command("new", "theirs"), Command("review", "look")],
        modes=Modes("ask", [Mode("ask", "Ask"), Mode("auto", "Auto")]),
        config_options=[
            ConfigOption("brain", "Model", "s", [ConfigChoice("s", "S"), ConfigChoice("l", "L")]),
            ConfigOption("loud", "Loud", False),
        ],
    )
    made.state.config_options[0].category = "model"
    return made


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("/re", ["/revert", "/resume", "/review"]),
        ("/n", ["/new"]),
        (":re", [":revert", ":resume"]),
        ("/mode a", ["ask", "auto"]),
        ("/model ", ["s", "l"]),
        ("/set l", ["loud=true", "loud=false"]),
        ("see @sr", ["src/"]),
        ("see @src/", ["src/app.py"]),
        ("see @a", ['"a file.txt"', "src/app.py"]),
        ("see @spp", ["src/app.py"]),
        ('see @"app', ['"src/app.py"']),
        ('see @"a', ['"a file.txt"', '"src/app.py"']),
        ("see @.h", [".hidden"]),
        ("see @b", []),
        ("mail me@sr", []),
        ("no /re", []),
        ("see @nowhere/", []),
    ],
)
def test_what_is_offered(completions: Completions, typed: str, expected: list[str]) -> None:
    found = completions.get_completions(Document(typed), CompleteEvent())
    assert [completion.text for completion in found] == expected


def test_a_completion_replaces_what_was_typed(completions: Completions) -> None:
    for typed, result in (
        ("/revi", "/review"),
        ("@src/a", "@src/app.py"),
        ('@"a f', '@"a file.txt"'),
    ):
        found = next(iter(completions.get_completions(Document(typed), CompleteEvent())))
        assert typed[: len(typed) + found.start_position] + found.text == result


def test_an_agents_command_hides_ours_of_the_same_name(completions: Completions) -> None:
    (found,) = completions.get_completions(Document("/new"), CompleteEvent())
    assert found.display_meta_text == "theirs"


# ── what is pasted ────────────────────────────────────────────────────────────────────────────


def test_a_long_paste_is_a_mark_until_it_is_sent() -> None:
    pasted = PastedBlocks()
    assert pasted.fold("short\nand two") == "short\nand two"
    lines, line = "\n".join("abcdefghi"), "x" * 1001
    assert pasted.fold(lines) == "[pasted 1: 9 lines]"
    assert pasted.fold(line) == "[pasted 2: 1001 characters]"
    typed = "see [pasted 2: 1001 characters] and [pasted 1: 9 lines]"
    assert pasted.mark_before(typed) == len("[pasted 1: 9 lines]")
    assert pasted.mark_before(typed[:-1]) == 0
    assert pasted.expand(typed) == f"see {line} and {lines}"
    assert pasted.expand("[pasted 3: 9 lines]") == "[pasted 3: 9 lines]"


# ── notifications ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("off", ""),
        ("bell", "\a"),
        ("osc9", "\x1b]9;Dragoman: a, b⟨ESC⟩\x1b\\"),
        ("osc777", "\x1b]777;notify;Dragoman;a, b⟨ESC⟩\x1b\\"),
    ],
)
def test_a_notification_cannot_be_ended_by_its_words(how: Notify, expected: str) -> None:
    shown = sequence(how, "a; b\x1b\\")
    assert shown.count("\x1b") == expected.count("\x1b")
    assert shown.count(";") == expected.count(";")


def test_a_question_and_the_end_of_a_long_turn_are_notified(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = StringIO()
    monkeypatch.setattr("sys.__stdout__", out)
    for after, expected in ((0.0, "\a\a"), (3600.0, "\a")):
        notifier = Notifier("bell", "demo", after=after)
        notifier.asked()
        notifier.see(e.TurnStarted("t", []))
        notifier.see(e.AgentMessage(Text("hello")))
        notifier.see(e.TurnEnded("t", "end_turn"))
        assert out.getvalue() == expected
        out.truncate(0)
        out.seek(0)


# ── the screen ────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr("dragoman.cli.commands.chat.screen._print", lines.append)
    return lines


async def test_only_whole_lines_are_printed(printed: list[str]) -> None:
    screen = Screen()
    for piece in ("one ", "two\nthr", "ee\nfo"):
        screen.write(piece)
    await screen.settle()
    assert "".join(printed) == "one two\nthree\n"
    assert screen.tail == "fo"
    screen.line("between")
    screen.write("ur\n")
    await screen.settle()
    assert "".join(printed[1:]) == "between\nfour\n"


async def test_paint_does_not_leak_from_a_line_and_is_not_lost_on_the_next(
    printed: list[str],
) -> None:
    screen = Screen()
    screen.write("\x1b[2;3mfirst\nsecond")
    await screen.settle()
    assert printed == ["\x1b[2;3mfirst\x1b[0m\n"]
    assert screen.tail == "\x1b[2;3msecond"
    screen.write("\x1b[0m\nthird")
    await screen.settle()
    assert printed[1:] == ["\x1b[2;3msecond\x1b[0m\n"]
    assert screen.tail == "third"


# ── answers ───────────────────────────────────────────────────────────────────────────────────


class Typist:
    """A prompt, and somebody who types."""

    def __init__(self, pipe: PipeInput, prompt: ChatPrompt, screen: Screen) -> None:
        self.pipe = pipe
        self.prompt = prompt
        self.screen = screen

    async def types(self, text: str) -> None:
        """Type it, and see it at the prompt."""
        self.pipe.send_text(text)
        for _ in range(2000):
            if self.prompt.typed.endswith(text):
                return
            await asyncio.sleep(0.005)
        raise AssertionError(f"{text!r} never arrived")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))


@asynccontextmanager
async def typing() -> AsyncGenerator[Typist]:
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        screen = Screen()
        prompt = ChatPrompt(
            screen,
            Style(colour=False),
            completions=Completions({}),
            pasted=PastedBlocks(),
            keys=KeyBindings(),
            toolbar=lambda: "",
            above=lambda rows: [],
            on_asked=lambda: None,
        )
        yield Typist(pipe, prompt, screen)


async def test_a_question_interrupts_reading_and_the_draft_comes_back(printed: list[str]) -> None:
    async with typing() as typist:
        prompt = typist.prompt
        reading = asyncio.create_task(prompt.read())
        await typist.types("my draft")
        prompt.tty.forget_typed()
        prompt.tty.asked_at -= 10  # it was asked long ago
        asking = asyncio.create_task(prompt.tty.line())
        assert await reading is None
        answering = asyncio.create_task(prompt.answer())
        typist.pipe.send_text("2\r")
        assert await asking == "2"
        await answering
        reading = asyncio.create_task(prompt.read())
        typist.pipe.send_text(" goes on\x1b\r")  # Esc Enter is PTK's own way to send
        assert await reading == "my draft goes on"


async def test_what_was_typed_for_something_else_is_no_answer(
    printed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.cli.commands.chat.prompt.READING_SECONDS", 3600.0)
    assert chat_prompt.READING_SECONDS > 0
    async with typing() as typist:
        prompt = typist.prompt
        reading = asyncio.create_task(prompt.read())
        await typist.types("step ")
        prompt.tty.forget_typed()
        asking = asyncio.create_task(prompt.tty.line())
        assert await reading is None
        typist.pipe.send_text("1\r")
        await prompt.answer()
        assert not asking.done()
        asking.cancel()


async def test_a_question_that_is_withdrawn_ends_the_answer(printed: list[str]) -> None:
    async with typing() as typist:
        prompt = typist.prompt
        asking = asyncio.create_task(prompt.tty.line())
        await asyncio.sleep(0)
        answering = asyncio.create_task(prompt.answer())
        await typist.types("1")
        asking.cancel()
        await answering
        assert not prompt.is_asking


async def test_the_end_of_input_is_no_answer(printed: list[str]) -> None:
    async with typing() as typist:
        prompt = typist.prompt
        asking = asyncio.create_task(prompt.tty.line())
        await asyncio.sleep(0)
        answering = asyncio.create_task(prompt.answer())
        typist.pipe.send_text("\x04")
        assert await asking is None
        await answering


# ── drawing ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, True),
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "xterm", "XTERM_VERSION": "XTerm(390)"}, False),
        ({"TERM": "screen", "STY": "1.pts-0.host"}, False),
        ({"TERM": "rxvt-unicode-256color"}, False),
        ({"TERM": "screen", "TMUX": "/tmp/tmux", "XTERM_VERSION": "XTerm(390)"}, True),
    ],
)
def test_which_terminals_break_lines_that_no_longer_fit(
    env: dict[str, str], expected: bool
) -> None:
    assert breaks_lines(env) is expected


# ── the screen of tool calls ──────────────────────────────────────────────────────────────────


async def test_the_prompt_takes_no_esc_from_the_screen_of_tool_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For a moment after a key the prompt, though it is suspended, still waits for an Esc."""
    terminal, other_end = os.openpty()
    with os.fdopen(terminal, "wb", 0) as keyboard, os.fdopen(other_end) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        of_the_prompt = create_input(always_prefer_tty=True)
        with create_app_session(input=of_the_prompt, output=DummyOutput()):
            viewer = CallViewer(SessionState(entries=[ToolCall(id="c")]), Style(colour=False))
            looking = asyncio.create_task(viewer.run())
            await asyncio.sleep(0)  # it has the terminal now
            keyboard.write(b"\x1b")
            async with asyncio.timeout(60):
                while _unread(stdin.fileno()):  # noqa: ASYNC110 - the terminal tells nobody
                    await asyncio.sleep(0)
                assert of_the_prompt.flush_keys() == []
                await looking


def _unread(terminal: int) -> int:
    return struct.unpack("i", fcntl.ioctl(terminal, termios.FIONREAD, b"\0" * 4))[0]

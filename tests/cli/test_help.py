"""`--help`: complete, and quick because it imports next to nothing."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import Dragoman

from dragoman.cli.commands.completion import commands
from dragoman.cli.parsers import COMMANDS

HEAVY = ("asyncio", "msgspec", "prompt_toolkit", "dragoman.client", "dragoman.testing", "ssl")


PROGRAM = """
import sys
from dragoman.cli.main import main
from dragoman.cli.parsers import COMMANDS
for words in [[], *([name] for name in COMMANDS)]:
    try:
        main([*words, "--help"])
    except SystemExit as end:
        assert end.code == 0
print([name for name in HEAVY if name in sys.modules], file=sys.stderr)
"""


def test_no_help_imports_anything_that_takes_long() -> None:
    program = PROGRAM.replace("HEAVY", repr(HEAVY))
    done = subprocess.run(
        (sys.executable, "-c", program), check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stderr == "[]\n"
    assert done.stdout.count("usage: dragoman") == len(COMMANDS) + 1


def test_the_help_names_every_command(dragoman: Dragoman) -> None:
    done = dragoman("--help")
    assert done.code == 0
    for name, about in COMMANDS.items():
        assert f"  {name:<12} {about}\n" in done.out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("agents", "list", "--loud"), "no such option: --loud"),
        (("--wirte", "hi"), "no such option: --wirte; did you mean --write?"),
        (("--agnet=x", "hi"), "no such option: --agnet; did you mean --agent?"),
        (("completion", "csh"), "csh"),
        (("replay", "x", "--speed", "-1"), "--speed"),
        (("chat", "hello", "you"), "put the prompt in quotes"),
        (("policy",), "ACTION; see dragoman policy --help"),
        (("policy", "check"), "FILE; see dragoman policy check --help"),
        (("-o", "xml", "x"), "-o/--output/--outputmode: invalid choice: 'xml'"),
        (("--timeout", "0", "x"), "--timeout: expected a number of seconds above 0, not 0"),
        (("two", "prompts"), "put the prompt in quotes, it is one argument; see dragoman --help"),
        (("sessions", "lst"), "did you mean list? see dragoman sessions --help"),
        (("agents", "docter"), "did you mean doctor? see dragoman agents --help"),
        (("sessoins", "list"), "'list': did you mean the command sessions? see dragoman --help"),
    ],
)
def test_a_command_that_cannot_be_understood_is_one_line(
    dragoman: Dragoman, words: tuple[str, ...], complaint: str
) -> None:
    done = dragoman(*words)
    assert done.code == 2
    assert done.err.startswith("dragoman: ")
    assert complaint in done.err
    assert done.err.count("\n") == 1


# ── a command that was typed wrong ────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("sessoins",), "'sessoins': did you mean dragoman sessions?"),
        (("chatt",), "'chatt': did you mean dragoman chat?"),
        (("--no-store", "sessions"), "options go after the command: dragoman sessions …"),
        (("-a", "demo", "chat"), "options go after the command: dragoman chat …"),
        (("-a", "demo", "sessions", "list"), "options go after the command: dragoman sessions …"),
        (("help",), "'help': did you mean dragoman --help?"),
        (("version",), "'version': did you mean dragoman --version?"),
        (("doctor",), "'doctor': did you mean dragoman agents doctor?"),
        (("login",), "'login': did you mean dragoman agents login?"),
        (("HELP",), "'HELP': did you mean dragoman --help?"),
        (("Login",), "'Login': did you mean dragoman agents login?"),
        (("Sessoins",), "'Sessoins': did you mean dragoman sessions?"),
        (("-a", "demo", "Chat"), "options go after the command: dragoman chat …"),
    ],
)
def test_a_word_that_must_be_a_command_is_not_sent_as_a_prompt(
    dragoman: Dragoman, words: tuple[str, ...], complaint: str
) -> None:
    done = dragoman(*words, env={"DRAGOMAN_SETTINGS": str(quiet(dragoman))})
    assert (done.code, done.out) == (2, "")
    assert complaint in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("word", ["chat", "Chat", "SESSIONS", "Demo-Agent", "Run"])
def test_a_command_is_known_in_any_case(dragoman: Dragoman, word: str) -> None:
    assert dragoman(word, "--help").out == dragoman(word.lower(), "--help").out
    refused = dragoman(word, "--no-such-option")
    assert (refused.code, refused.out) == (2, "")
    assert refused == dragoman(word.lower(), "--no-such-option")


@pytest.mark.parametrize(
    "words",
    [
        ("--", "sessoins"),
        ("--", "Chat"),
        ("run", "Chat"),
        ("run", "chat"),
        ("surprise",),
        ("see",),
        ("list my sessoins",),
        ("--", "help"),
    ],
)
def test_any_word_can_be_sent(dragoman: Dragoman, words: tuple[str, ...]) -> None:
    done = dragoman(*words, env={"DRAGOMAN_SETTINGS": str(quiet(dragoman))})
    assert (done.code, done.out, done.err) == (0, "nothing needed permission\n", "")


def quiet(dragoman: Dragoman) -> Path:
    """Settings with an agent that needs no permission."""
    command, *args = shlex.split(dragoman.agent("quiet"))
    return dragoman.write_settings({"agent_servers": {"quiet": {"command": command, "args": args}}})


def test_what_compares_words_is_imported_for_few_of_them() -> None:
    program = (
        "import sys; from dragoman.cli import parsers;"
        "[parsers.refuse_command(words) for words in (None, '', 'fix', 'see the test')];"
        "assert 'difflib' not in sys.modules;"
        "parsers.refuse_command('paint'); assert 'difflib' in sys.modules"
    )
    subprocess.run((sys.executable, "-c", program), check=True, timeout=60)


# ── how it is laid out ────────────────────────────────────────────────────────────────────────


def test_no_example_is_wider_than_a_terminal() -> None:
    every = [each for command in commands() for each in command.all()]
    wide = [line for each in every for line in each.notes.split("\n") if len(line) > 80]
    assert wide == []


def test_a_long_description_is_wrapped(dragoman: Dragoman) -> None:
    printed = dragoman("agents", "doctor", "--help", env={"COLUMNS": "60"}).out
    about = printed.split("\n\n")[1].split("\n")
    assert about[0].startswith("Start an agent in a temporary directory")
    assert len(about) > 1
    assert max(map(len, about)) <= 60


def test_a_store_is_recorded_in_by_those_who_run_sessions_alone() -> None:
    every = [each for command in commands() for each in command.all()]
    words = {each.words: o.help for each in every for o in each.options if "--store" in o.flags}
    records = {name for name, text in words.items() if text.startswith("record in this ")}
    assert records == {(), ("chat",), ("serve",), ("acp",), ("proxy",)}
    assert {text.partition(" this ")[0] for text in words.values()} == {
        *("record in", "use the store in")
    }


@pytest.mark.parametrize("command", ["agents", "sessions"])
def test_a_command_for_lists_that_is_given_nothing_lists(dragoman: Dragoman, command: str) -> None:
    listed = dragoman(command, "list")
    assert listed.code == 0
    assert dragoman(command).out == listed.out

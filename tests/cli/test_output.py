"""`text` and `simple`: what stands on standard output, in which order, and what beside it."""

from __future__ import annotations

import re
import subprocess

import pytest
from cli.programs.agents import HEBREW
from support.command import Done, Dragoman

WHOLE_TURN = """\
[commands] /test, /explain
[thought] hmm
[thought]
[thought] let me see
[plan] 0/2
[plan]   [>] look
[plan]   [ ] leap
Hello.
[usage] context 20 of 100 tokens (20 %)
[tool] Read notes (pending)
[tool] Read notes (completed)
[tool] Edit notes (in_progress)
[diff] --- {workspace}/notes.txt
[diff] +++ {workspace}/notes.txt
[diff] @@ -1 +1,2 @@
[diff]  \tnotes
[diff] +more
[permission] write {workspace}/notes.txt: allowed (--write allows it)
[tool] Edit notes (completed)
[permission] run echo 'from the command': allowed (--exec allows it)
[terminal] $ echo 'from the command'
[terminal] from the command
[terminal] ended with code 0
[mode] ask
[plan] 2/2
[plan]   [x] look
[plan]   [x] leap
Done.
[usage] context 30 of 100 tokens (30 %), 0.5 USD so far
[usage] tokens as reported by the agent: 3 in, 4 out
"""

FORBIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
)

CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def whole_turn(dragoman: Dragoman, *words: str) -> Done:
    (dragoman.workspace / "notes.txt").write_text("\tnotes\n")
    return dragoman("--write", "--exec", *words, "go", agent="whole")


def test_text_is_the_answer_and_a_tagged_line_for_all_else_in_order(dragoman: Dragoman) -> None:
    done = whole_turn(dragoman)
    assert done.out == WHOLE_TURN.format(workspace=dragoman.workspace)
    assert done.err == ""
    assert done.code == 0


def test_a_turn_without_a_word_says_so(dragoman: Dragoman) -> None:
    done = dragoman("hello", agent="wordless")
    assert (done.code, done.out) == (0, "[usage] context 20 of 100 tokens (20 %)\n")
    assert done.err == "dragoman: the agent ended the turn without an answer\n"


def test_simple_has_nothing_to_say_of_a_turn_without_a_word(dragoman: Dragoman) -> None:
    done = dragoman("-o", "simple", "hello", agent="wordless")
    assert (done.code, done.out, done.err) == (0, "", "")


def test_a_command_alone_is_a_word(dragoman: Dragoman) -> None:
    assert dragoman("hello", agent="only_a_tool").err == ""


def test_simple_is_the_answer_alone(dragoman: Dragoman) -> None:
    done = whole_turn(dragoman, "-o", "simple")
    assert done.out == "Hello.\nDone.\n"
    assert done.err == ""


def test_outputmode_is_another_name_of_output(dragoman: Dragoman) -> None:
    assert dragoman("--outputmode", "simple", "x", agent="quiet").out == (
        "nothing needed permission\n"
    )


def test_messages_with_something_between_them_are_lines_of_their_own(dragoman: Dragoman) -> None:
    assert dragoman("-o", "simple", "x", agent="two_messages").out == "one\ntwo words\n"
    assert dragoman("x", agent="two_messages").lines == [
        "one",
        "[tool] Between (pending)",
        "two words",
    ]


def test_why_a_tool_failed_is_shown(dragoman: Dragoman) -> None:
    done = dragoman("x", agent="failing_tool")
    assert done.lines == ["[tool] Break it (failed)", "[tool]   no such thing", "[tool]   really"]


def test_what_a_tool_brought_back_is_shown_to_its_end_and_whole_when_asked_for(
    dragoman: Dragoman,
) -> None:
    done = dragoman("--session", "search", "x", agent="talkative_tool")
    hits = [f"[tool]   hit {at}" for at in range(50)]
    assert done.lines == [
        "[tool] Search (completed)",
        "[tool]   … 10 earlier lines",
        *hits[10:],
    ]
    assert hits[10:] == [
        line for line in dragoman("sessions", "show", "search").lines if "hit" in line
    ]
    whole = dragoman("sessions", "show", "search", "--full").lines
    assert hits == [line for line in whole if "hit" in line]
    assert not [line for line in whole if "earlier" in line]


def test_content_that_is_no_text_is_named(dragoman: Dragoman) -> None:
    assert dragoman("-o", "simple", "x", agent="pictures").out == "[image/png]<file:///x>\n"


@pytest.mark.parametrize(
    ("agent", "said", "reason"),
    [("early_stop", "cut", "max_tokens"), ("declining", "I would rather not.", "refusal")],
)
def test_an_early_end_is_told_on_standard_error_and_has_its_own_code(
    dragoman: Dragoman, agent: str, said: str, reason: str
) -> None:
    done = dragoman("x", agent=agent)
    assert (done.code, done.out) == (7, f"{said}\n")
    assert done.err == f"dragoman: the turn ended early: {reason}\n"


@pytest.mark.parametrize(
    "words",
    [
        ("x",),
        ("-o", "simple", "x"),
        ("--list-caps", "--list-modes", "--list-commands"),
        ("--mode", "none of them", "x"),
    ],
)
def test_nothing_an_agent_says_can_drive_the_terminal_or_lie(
    dragoman: Dragoman, words: tuple[str, ...]
) -> None:
    done = dragoman(*words, agent="nasty")
    assert "evil" in done.out + done.err
    # The answer alone, into a pipe, keeps what only hides: see the next test.
    assert not (CONTROLS if "simple" in words else FORBIDDEN).search(done.out)
    assert not FORBIDDEN.search(done.err)
    assert not re.search(r"(?m)^forged", done.out) or "-o" in words or words == ("x",)


def test_the_answer_is_not_altered_on_its_way_into_a_file(dragoman: Dragoman) -> None:
    done = dragoman("-o", "simple", "x", agent="hebrew")
    assert done.out == f"{HEBREW}\n"


def test_an_error_of_the_agent_is_sanitised_too(dragoman: Dragoman) -> None:
    done = dragoman("x", agent="nasty_failing")
    assert done.code == 1
    assert "evil" in done.err
    assert not FORBIDDEN.search(done.err)


@pytest.mark.parametrize("output", ["text", "simple", "jsonl"])
def test_a_reader_who_has_seen_enough_ends_it_quietly(dragoman: Dragoman, output: str) -> None:
    with dragoman.started("-o", output, "x", agent="endless", stdin=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.wait(120) == 0
        assert process.stderr.read() == b""


@pytest.mark.parametrize("words", ["--help", "--version", "--list-caps"])
def test_a_reader_who_is_gone_already_is_no_trouble(dragoman: Dragoman, words: str) -> None:
    agent = "many" if words == "--list-caps" else None
    with dragoman.started(words, agent=agent, stdin=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.wait(120) == 0
        assert process.stderr.read() == b""


def test_a_full_disk_is_one_line(dragoman: Dragoman) -> None:
    with (
        open("/dev/full", "wb") as full,
        dragoman.started("x", agent="many", stdin=subprocess.DEVNULL, stdout=full) as process,
    ):
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert err == b"dragoman: no space left on device\n"


def test_streams_that_are_closed_do_no_harm(dragoman: Dragoman) -> None:
    shell = 'exec "$@" <&- >&- 2>&-'
    command = ["sh", "-c", shell, "sh", *dragoman.command("x", agent="many")]
    done = subprocess.run(command, env=dragoman.env, timeout=120, check=False)
    assert done.returncode == 0


def test_a_terminal_that_lacks_a_character_gets_another(dragoman: Dragoman) -> None:
    done = dragoman("x", agent="telling", env={"PYTHONIOENCODING": "ascii"}, stdin="")
    assert done.code == 0


def test_each_piece_is_there_as_soon_as_it_came(dragoman: Dragoman) -> None:
    with dragoman.started("-o", "simple", "x", agent="cancellable") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"started\n"  # and the agent waits for a cancel
        assert process.poll() is None

"""What a chat offers besides talking: plans, tool calls, programs, files, other sessions."""

from __future__ import annotations

import re
import sys

import pytest
from cli.test_chat import chat, with_partner
from support.command import Dragoman
from support.screen import needs_tmux

pytestmark = needs_tmux
WIDTHS = pytest.mark.parametrize("width", [40, 80, 120])
GREETED = "A Partner 1"


@WIDTHS
def test_a_plan_is_one_block_above_the_prompt_until_its_turn_ends(
    dragoman: Dragoman, width: int
) -> None:
    with with_partner(dragoman, width=width) as terminal:
        terminal.wait_for(GREETED)
        terminal.enter("plan")
        drawn = terminal.wait_for("planned\nplan 0/2\n  ◐ look\n  ○ leap\n›")
        assert drawn.count("○ leap") == 1
        (dragoman.workspace / "told").touch()
        drawn = terminal.wait_for("planned\nplan 1/2\n  ✓ look\n  ◐ leap\n")
        terminal.enter("more")
        drawn = terminal.wait_for("heard 'more'")
        assert drawn.count("leap") == 1
        assert "plan 0/2" not in drawn


@WIDTHS
def test_calls_are_unfolded_on_a_screen_of_their_own(dragoman: Dragoman, width: int) -> None:
    with with_partner(dragoman, width=width) as terminal:
        terminal.wait_for(GREETED)
        terminal.enter("call")
        before = terminal.wait_for("called")
        assert "Second 1." not in before
        terminal.type("a draft")
        terminal.wait_for("› a draft")
        terminal.press("C-o")
        assert "▸ ✓ First call\n› ▸ ✓ Second call\n" in terminal.wait_for("call 2 of 2")
        terminal.press("Enter")
        shown = terminal.wait_for("Second 1.")
        assert "› ▾ ✓ Second call\n      Second 0.\n" in shown
        assert "First 1." not in shown
        terminal.press("k", "a")
        assert "› ▾ ✓ First call\n      First 0.\n" in terminal.wait_for("First 1.")
        terminal.press("q")
        shown = terminal.wait_until_gone("call 1 of 2")
        assert "Second 1." not in shown
        terminal.press("C-o")
        terminal.wait_for("call 2 of 2")
        terminal.press("Escape")  # at once: the prompt could still have been waiting for one
        terminal.wait_until_gone("call 2 of 2")
        terminal.wait_for("› a draft")
        terminal.enter(" more")
        terminal.wait_for("heard 'a draft more'")


def test_a_question_waits_while_the_terminal_is_used_otherwise(dragoman: Dragoman) -> None:
    with with_partner(dragoman) as terminal:
        terminal.wait_for(GREETED)
        terminal.enter("call")
        terminal.wait_for("called")
        terminal.enter("ask when told")
        terminal.wait_for("half a line")
        terminal.press("C-o")
        terminal.wait_for("call 2 of 2")
        (dragoman.workspace / "told").touch()
        terminal.press("k")
        terminal.wait_for("call 1 of 2")
        terminal.press("q")
        terminal.wait_for("choose 1-")


def test_a_line_is_run_in_the_shell_and_not_sent(dragoman: Dragoman) -> None:
    with with_partner(dragoman) as terminal:
        terminal.wait_for(GREETED)
        terminal.enter("!echo from $PWD; exit 3")
        drawn = terminal.wait_for("exit code 3")
        assert f"from {dragoman.workspace}" in drawn.replace("\n", "")
        terminal.enter("!echo ready; read line; echo got $line")
        terminal.wait_for(re.compile(r"^ready", re.MULTILINE))
        terminal.enter("words")
        terminal.wait_for("got words")
        terminal.enter("!echo begun; sleep 600")
        terminal.wait_for(re.compile(r"^begun", re.MULTILINE))
        terminal.press("C-c")
        terminal.wait_for("exit code 130")
        terminal.enter("still here")
        assert "heard '!" not in terminal.wait_for("heard 'still here'")


def test_a_prompt_is_written_in_an_editor(dragoman: Dragoman) -> None:
    program = dragoman.workspace / "editor.py"
    program.write_text(
        "import sys, pathlib; p = pathlib.Path(sys.argv[1]); p.write_text(p.read_text() + ' more')"
    )
    with with_partner(dragoman, EDITOR=f"{sys.executable} {program}") as terminal:
        terminal.wait_for(GREETED)
        terminal.type("a draft")
        terminal.wait_for("› a draft")
        terminal.press("C-x", "C-e")
        terminal.wait_for("› a draft more")
        terminal.press("Enter")
        terminal.wait_for("heard 'a draft more'")
        terminal.enter("/editor anew")
        terminal.wait_for("› anew more")
        terminal.press("Enter")
        terminal.wait_for("heard 'anew more'")


def test_files_go_in_and_answers_come_out(dragoman: Dragoman) -> None:
    (dragoman.workspace / "notes.txt").write_text("notes\n")
    with with_partner(dragoman) as terminal:
        terminal.wait_for(GREETED)
        terminal.enter("/attach nowhere.txt")
        terminal.wait_for("nowhere.txt cannot be read: no such file")
        terminal.enter("/attach notes.txt")
        terminal.wait_for("with the next prompt: notes.txt")
        terminal.enter("what came")
        terminal.wait_for("came: TextContent, ResourceLink")
        terminal.enter("what came")
        terminal.wait_for(re.compile(r"^came: TextContent$", re.MULTILINE))
        terminal.enter("/copy 1")
        terminal.wait_for("copied 31 bytes")
        assert terminal.clipboard() == "came: TextContent, ResourceLink"
        terminal.enter("/export story.md")
        terminal.wait_for("written to")
        terminal.enter("/export story.md")
        terminal.wait_for("file exists")
        terminal.enter("exit")
        assert terminal.exit_code() == 0
    story = (dragoman.workspace / "story.md").read_text()
    assert "## › what came\n" in story
    assert "\ncame: TextContent, ResourceLink\n" in story


def test_another_session_is_continued_without_leaving(user: Dragoman) -> None:
    assert user("-a", "memo", "--session", "one", "hello").code == 0
    assert user("-a", "lethe", "--session", "two", "hello").code == 0
    with chat(user, "-a", "memo") as terminal:
        terminal.wait_for("/help lists the commands")
        terminal.enter("/sessions")
        drawn = terminal.wait_for("[one] hello")
        assert "[two]" not in drawn
        terminal.enter("/resume two")
        terminal.wait_for(re.compile(r"is\s+one\s+of\s+lethe"))
        terminal.enter("/resume one")
        terminal.wait_for("continues, 1 turn so far")
        terminal.enter("again")
        terminal.wait_for(re.compile(r"^2\. again", re.MULTILINE))
        terminal.enter("/resume one")
        terminal.wait_for("this is session s-")
        terminal.press("C-d")
        assert terminal.exit_code() == 0
    shown = user("sessions", "show", "one").out
    assert "› hello" in shown
    assert "› again" in shown

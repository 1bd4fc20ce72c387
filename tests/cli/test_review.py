"""`dragoman review`: each change is decided on, and what is to be said becomes one prompt."""

from __future__ import annotations

import json
import re
import sys

import pytest
from support.command import COMMAND, Dragoman, refused
from support.screen import needs_tmux, on_screen

from dragoman.cli.commands.review.review_walk import Item, Stroll, fitting, items_of, span
from dragoman.cli.render.style import Style
from dragoman.host.snapshots.folder_changes import ChangedFile, FolderChanges
from dragoman.host.snapshots.line_history import Hunk, Label, Version, compared
from dragoman.review import PutBack, Review, ReviewComment, review_prompt

PLAIN = Style(colour=False)


def hunks_of(old: str, new: str) -> list[Hunk]:
    versions = [Version(old, Label("other")), Version(new, Label("agent", "t"))]
    return compared(versions, "a.py", 1_000_000).hunks


def numbered(last: int, **changed: str) -> str:
    lines = {str(number): f"{number}\n" for number in range(1, last + 1)}
    lines |= {name.removeprefix("l"): text for name, text in changed.items()}
    return "".join(lines.values())


TWO = hunks_of(numbered(40), numbered(40, l5="five\nfive and a half\n", l30=""))
CHANGES = FolderChanges(
    files=[
        ChangedFile(path="/w/src/a.py", status="modified", by=["agent"], hunks=TWO),
        ChangedFile(path="/w/image.png", status="added", by=["agent"], binary=True),
    ]
)


class Typed:
    """A terminal at which these lines are typed, and then nothing more."""

    def __init__(self, *lines: str) -> None:
        self._lines = list(lines)
        self.shown = ""

    def write(self, text: str) -> None:
        self.shown += text

    async def line(self) -> str | None:
        return self._lines.pop(0) if self._lines else None


async def strolled(*lines: str) -> tuple[Stroll, Typed]:
    typed = Typed(*lines)
    stroll = Stroll(typed, PLAIN, CHANGES, "/w")
    await stroll.go()
    return stroll, typed


async def test_each_change_is_kept_or_put_back() -> None:
    stroll, typed = await strolled("k", "b", "B")
    first, second, image = items_of(CHANGES)
    assert stroll.choices.put_back == [second, image]
    assert (stroll.choices.kept, first.hunk) == (1, TWO[0])
    assert "src/a.py line 2 (1 of 3, by the agent itself)\n" in typed.shown
    assert "image.png (3 of 3, by the agent itself)\n  Binary files" in typed.shown


async def test_a_comment_has_the_lines_it_is_about() -> None:
    stroll, _ = await strolled("c", "Why two?", "One is enough.", "", "k", "c", "", "q")
    assert stroll.choices.comments == [
        ReviewComment(
            path="src/a.py",
            text="Why two?\nOne is enough.",
            start=5,
            end=6,
            lines=TWO[0].lines,
        )
    ]
    assert stroll.choices.kept == 3  # what was not looked at stays too


async def test_other_keys_are_explained_and_decide_nothing() -> None:
    stroll, typed = await strolled("", "x", "k", "v", "k", "k")
    assert typed.shown.count("  b  put it back") == 2
    assert all(len(row) < 80 for row in typed.shown.splitlines() if row.startswith("  "))
    assert stroll.choices.kept == 3


async def test_without_an_answer_nothing_is_decided() -> None:
    with pytest.raises(EOFError):
        await strolled("b")


def test_lines_are_numbered_as_they_are_now_or_as_they_were() -> None:
    first, second = TWO
    assert span(first) == ("new", 5, 6)
    assert span(second) == ("old", 30, 30)
    file = CHANGES.files[0]
    assert Item(file, first).undone("/w") == PutBack(path="src/a.py", start=5, end=6)
    assert Item(file, second).undone("/w").path == "src/a.py"
    assert Item(CHANGES.files[1]).undone("/elsewhere") == PutBack(path="/w/image.png")


def test_no_more_lines_are_shown_than_there_are_rows_for() -> None:
    lines = ["+" + "x" * 100, *(["+y"] * 40)]
    assert [*fitting(lines, 80, 18)] == lines[:17]
    assert [*fitting(lines, 80, 1)] == lines[:4]


def test_without_a_terminal_one_line_says_so(dragoman: Dragoman) -> None:
    refused(dragoman("review", "fix"), "review needs a terminal", "sessions changes fix")


@needs_tmux
def test_a_review_puts_back_and_is_sent_as_one_prompt(user: Dragoman) -> None:
    file = user.workspace / "dragoman-demo.txt"
    assert user("-a", "demo", "--session", "fix", "--yolo", "please begin").code == 0
    command = [str(COMMAND), "review", "fix", "--yolo"]
    with on_screen(command, env=user.env, cwd=user.workspace, width=80, height=24) as screen:
        screen.wait_for("? help:")
        screen.enter("c")
        screen.wait_for("comment:")
        screen.enter("Is @this.file needed?")
        screen.wait_for("  >")
        screen.enter("")
        screen.wait_for(re.compile(r"help: c\n(.|\n)*help:"))
        screen.enter("b")
        shown = screen.wait_for("anything else for the agent?")
        assert "put back: dragoman-demo.txt" in shown
        assert not file.exists()
        screen.enter("")
        screen.wait_for("send the review? [Y/n]")
        screen.enter("")
        assert screen.exit_code() == 0
    begun = json.loads(user("sessions", "show", "fix", "--json").out)
    [asked] = [each for each in begun["entries"] if each["type"] == "user"][1:]
    comment = ReviewComment(
        path="dragoman-demo.txt",
        text="Is @this.file needed?",
        start=1,
        end=1,
        lines=["+You asked: please begin"],
    )
    put_back = PutBack(path="dragoman-demo.txt", start=1, end=1)
    text = review_prompt(Review(comments=[comment], put_back=[put_back]))
    assert asked["pieces"] == [text]
    assert file.exists()  # the demo wrote it again


FORGETFUL = """
from pathlib import Path
from dragoman.testing import AgentTurn, ScriptedAgent

async def script(turn: AgentTurn) -> None:
    Path(turn.cwd, "empty").touch()
    turn.say("Done.")

def agent() -> ScriptedAgent:
    return ScriptedAgent(script)
"""


@needs_tmux
def test_a_review_that_could_not_be_sent_need_not_be_typed_again(user: Dragoman) -> None:
    """Its agent does not remember the session."""
    program = user.workspace.parent / "forgetful.py"
    program.write_text(FORGETFUL)
    agent = f"{sys.executable} -m dragoman.testing.serve {program}:agent"
    assert user("--agent-command", agent, "--session", "fix", "begin").code == 0
    assert "New empty file" in user("sessions", "changes", "fix").out
    command = [str(COMMAND), "review", "fix", "--agent-command", agent]
    with on_screen(command, env=user.env, cwd=user.workspace, width=80, height=40) as screen:
        for typed in ("c", "What is it for?", "", "k", "", ""):
            screen.wait_for(re.compile(r"(help:|comment:|  >|agent\?|\[y/N\]|\[Y/n\])\s*$"))
            screen.enter(typed)
        assert screen.exit_code() == 4
        shown = screen.wait_for("cannot be continued")
    assert "your review, in case the agent has not received it:" in shown
    assert shown.count("What is it for?") == 2

"""On a real terminal: what a person sees, and what their answers do."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager

import pytest
from support.command import Dragoman
from support.screen import Screen, needs_tmux, on_screen, wait_for_file

pytestmark = needs_tmux


def screen(
    dragoman: Dragoman, agent: str, *words: str, width: int = 80, height: int = 40, **env: str
) -> AbstractContextManager[Screen]:
    command = dragoman.command(*words, "go", agent=agent)
    environ = dragoman.env | env
    return on_screen(command, env=environ, cwd=dragoman.workspace, width=width, height=height)


def test_a_permission_question_shows_all_and_the_answer_counts(dragoman: Dragoman) -> None:
    notes = dragoman.workspace / "notes.txt"
    notes.write_text("old\n")
    with screen(dragoman, "editing") as shown:
        asked = shown.wait_for("choose 1-3:")
        assert "I will change one file." in asked
        assert "says it wants to write:" in asked
        assert f"    {notes}" in asked
        assert "in its words: Edit notes" in asked
        assert "  -old\n  +new\n" in asked
        assert (
            "  1. Allow once\n  2. Always allow\n     from now on: allow writing this file" in asked
        )
        assert "  3. Reject\n" in asked
        assert notes.read_text() == "old\n"
        shown.enter("7")  # no such option: asked again
        shown.enter("1")
        ended = shown.wait_for("exit code 0")
        assert ended.count("choose 1-3:") == 2
        assert "✓ Edit notes" in ended
        assert "chosen=allow" in ended
        assert ended.count("  +new\n") == 1  # what was shown in the question is not shown again
        assert notes.read_text() == "new\n"


def test_all_answers_are_on_a_small_screen_and_the_command_is_said_once(
    dragoman: Dragoman,
) -> None:
    with screen(dragoman, "demanding", height=24) as shown:
        asked = shown.wait_for("choose 1-4:")
        assert asked.replace("\n", "").count("feature/39:release/39") == 1
        seen = shown.visible()
        assert "  ! git push rewrites or deletes what others have\n" in seen
        assert "  1. Allow once\n  2. Allow once, the agent's “Always allow”\n" in seen
        assert "  3. Reject\n  4. Always reject\n" in seen
        assert "  m. Allow more than this once …\nchoose 1-4:" in seen
        shown.enter("1")  # which counts for all three
        shown.wait_for("choose 1-4, v to show everything:")
        seen = shown.visible()
        assert "  +line 199\n  1. Allow once\n  2. Always allow\n" in seen
        assert "  3. Reject\n  4. Always reject\n" in seen
        assert "  m. Allow more than this once …\nchoose 1-4, v" in seen
        shown.enter("3")
        ended = shown.wait_for("exit code").replace("\n", "")
        assert "chosen=['allow_once', 'allow_once', 'allow_once', 'reject_once']" in ended


def test_always_is_remembered_in_the_next_run(dragoman: Dragoman) -> None:
    with screen(dragoman, "editing") as shown:
        shown.wait_for("choose 1-3:")
        shown.enter("2")
        shown.wait_for("exit code 0")
    done = dragoman("go", agent="editing")
    assert done.code == 0
    assert "chosen=allow" in done.out


def test_always_counts_once_where_it_cannot_be_stored(dragoman: Dragoman) -> None:
    with screen(dragoman, "asking", "--no-store", DRAGOMAN_HOME="/proc/nothing") as shown:
        shown.wait_for("choose 1-3:")
        shown.enter("2")
        ended = shown.wait_for("exit code 0")
        assert "chosen=allow" in ended  # which the agent does not remember either
        assert "! the answer counts once only: it could not be stored" in ended


def test_a_refusal_by_a_person_is_five(dragoman: Dragoman) -> None:
    with screen(dragoman, "editing") as shown:
        shown.wait_for("choose 1-3:")
        shown.enter("3")
        assert "chosen=reject" in shown.wait_for("exit code 5")


def test_ctrl_c_at_a_question_cancels(dragoman: Dragoman) -> None:
    with screen(dragoman, "asking") as shown:
        asked = shown.wait_for("choose 1-3:")
        assert "says it wants to run:\n    $ make test\n" in asked
        shown.press("C-c")
        ended = shown.wait_for("exit code 130")
        assert "choose 1-3: ^C\ndragoman: cancelling; Ctrl-C again ends the agent" in ended


def test_on_ask_reject_asks_nobody(dragoman: Dragoman) -> None:
    with screen(dragoman, "asking", "--on-ask", "reject") as shown:
        ended = shown.wait_for("exit code 5")
        assert "choose" not in ended
        assert "chosen=reject" in ended


def test_a_form_is_filled_in(dragoman: Dragoman) -> None:
    with screen(dragoman, "eliciting") as shown:
        shown.wait_for("? Who are you?")
        shown.wait_for("Your name:")
        shown.enter("Ada")
        shown.wait_for("age (a whole number, optional):")
        shown.enter("old")
        shown.wait_for("expected a whole number")
        shown.enter("36")
        shown.wait_for("fruit (one of apple, pear, optional):")
        shown.press("Enter")
        ended = shown.wait_for("exit code 0")
        assert "'name': 'Ada', 'age': 36" in ended.replace("\n", " ")


def test_signing_in_by_choosing_a_way(dragoman: Dragoman) -> None:
    with screen(dragoman, "opening_in_time") as shown:
        shown.wait_for("requires you to sign in first:\n  1. 'oauth' (Log in)\n  2. Give up\n")
        shown.enter("1")
        assert "signed in" in shown.wait_for("exit code 0")


def test_progress_is_shown_while_nothing_comes_and_leaves_no_trace(dragoman: Dragoman) -> None:
    with screen(dragoman, "pausing") as shown:
        waiting = shown.wait_for("working ·")
        assert "Hello wor\n" in waiting  # the word that is not over is not kept back for ever
        ended = shown.wait_for("exit code 0")
        assert "Hello world, all is said.\ndragoman: this session: 1 turn" in ended
        assert "working" not in ended


def test_a_slow_start_and_a_slow_end_are_shown(dragoman: Dragoman) -> None:
    command = dragoman.command("--agent-command", "sleep 600", "go")
    with on_screen(command, env=dragoman.env, cwd=dragoman.workspace) as shown:
        shown.wait_for("starting sleep")
        shown.press("C-c")
        shown.wait_for("ending sleep")
        shown.press("C-c")
        ended = shown.wait_for("exit code 130")
        assert "starting" not in ended
        assert "ending" not in ended


def test_a_whole_turn_at_forty_columns_breaks_no_word(dragoman: Dragoman) -> None:
    (dragoman.workspace / "notes.txt").write_text("notes\n")
    with screen(dragoman, "whole", "--yolo", width=40) as shown:
        ended = shown.wait_for("exit code 0")
        for line in (
            "plan 0/2\n  ◐ look\n  ○ leap\n",
            "✓ Read notes\n",
            "✓ Edit notes\n  notes.txt\n  @@ -1 +1,2 @@\n   notes\n  +more\n",
            "  $ echo 'from the command'\n  from the command\n",
            "mode: ask\nplan 2/2\n  ✓ look\n  ✓ leap\n",
            "\nDone.\ncontext 30 of 100 tokens (30 %), 0.5\nUSD so far\n",
        ):
            assert line in ended
        assert max(len(line) for line in ended.split("\n")) <= 40


@pytest.mark.parametrize(
    ("env", "colour", "marks"),
    [({}, True, "✓"), ({"NO_COLOR": "1"}, False, "✓"), ({"TERM": "dumb"}, False, "[tool]")],
)
def test_colour_only_where_it_is_wanted(
    dragoman: Dragoman, env: dict[str, str], colour: bool, marks: str
) -> None:
    (dragoman.workspace / "notes.txt").write_text("notes\n")
    command = dragoman.command("--yolo", "go", agent="whole")
    if "TERM" in env:
        command = ["env", f"TERM={env['TERM']}", *command]
    with on_screen(command, env=dragoman.env | env, cwd=dragoman.workspace) as shown:
        assert marks in shown.wait_for("exit code 0")
        assert ("\x1b[" in shown.text(painted=True)) == colour


def test_nothing_an_agent_says_reaches_the_terminal_raw(dragoman: Dragoman) -> None:
    with screen(dragoman, "nasty") as shown:
        shown.wait_for("choose 1-3:")
        shown.enter("3")
        ended = shown.wait_for("exit code 5")
        assert "evil" in ended
        assert not set("\u202e\u2066\u200b\ufeff\x07") & set(ended)


def test_where_someone_can_be_asked_writes_and_forms_are_offered(dragoman: Dragoman) -> None:
    with screen(dragoman, "telling", "-o", "simple", width=300) as shown:
        ended = shown.wait_for("exit code 0")
        assert "write_text_file=True" in ended
        assert "elicitation=ElicitationCapabilities(" in ended


def test_the_prompt_may_come_by_a_pipe_and_the_answer_from_the_terminal(
    dragoman: Dragoman,
) -> None:
    command = dragoman.command("--on-ask", "prompt", "-o", "simple", agent="asking")
    piped = ["sh", "-c", 'echo go | "$@" > answer.txt', "sh", *command]
    with on_screen(piped, env=dragoman.env, cwd=dragoman.workspace) as shown:
        shown.wait_for("choose 1-3:")
        shown.enter("1")
        shown.wait_for("exit code 0")
    assert (dragoman.workspace / "answer.txt").read_text() == "chosen=allow\n"


def test_progress_is_shown_on_the_terminal_when_the_answer_goes_to_a_file(
    dragoman: Dragoman,
) -> None:
    command = ["sh", "-c", '"$@" > answer.txt', "sh", *dragoman.command("go", agent="pausing")]
    with on_screen(command, env=dragoman.env, cwd=dragoman.workspace) as shown:
        shown.wait_for("waiting for the agent ·")
        assert "waiting" not in shown.wait_for("exit code 0")
    assert (dragoman.workspace / "answer.txt").read_text() == "Hello world, all is said.\n"


def test_a_question_is_asked_while_the_answer_goes_to_a_file(dragoman: Dragoman) -> None:
    asking = dragoman.command("-o", "simple", "go", agent="asking")
    command = ["sh", "-c", '"$@" > answer.txt', "sh", *asking]
    with on_screen(command, env=dragoman.env, cwd=dragoman.workspace) as shown:
        shown.wait_for("choose 1-3:")
        shown.enter("1")
        shown.wait_for("exit code 0")
    assert (dragoman.workspace / "answer.txt").read_text() == "chosen=allow\n"


def words_of_refusal(dragoman: Dragoman, width: int) -> list[str]:
    with screen(dragoman, "asking", "--on-ask", "reject", width=width) as shown:
        ended = shown.wait_for("exit code 5")
    return ended.partition("dragoman:")[2].partition("dragoman: this session:")[0].split()


def test_a_run_ends_with_how_to_continue_its_session(dragoman: Dragoman) -> None:
    for words, said in (
        ((), r"dragoman: to continue: dragoman --resume s-[0-9a-f]{16} …\n"),
        (("--session", "a b"), r"dragoman: to continue: dragoman --session 'a b' …\n"),
        (("--no-store",), None),
        (("-o", "simple"), r"dragoman: to continue: dragoman --resume s-[0-9a-f]{16} …\n"),
        (("-o", "result"), None),
    ):
        with screen(dragoman, "hebrew", *words) as shown:
            ended = shown.wait_for("exit code 0")
        assert bool(re.search(said or "to continue", ended)) is (said is not None)


def test_who_gets_the_demo_agent_by_default_is_told_of_others(dragoman: Dragoman) -> None:
    (dragoman.workspace / "goose").write_text("#!/bin/sh\n")
    (dragoman.workspace / "goose").chmod(0o755)
    env = dragoman.env | {"PATH": f"{dragoman.workspace}:{dragoman.env['PATH']}"}
    said = "this is the built-in demo agent"
    for words, is_told in ((("/think",), True), (("-a", "demo", "/think"), False)):
        command = dragoman.command(*words)
        with on_screen(command, env=env, cwd=dragoman.workspace, width=200) as shown:
            ended = shown.wait_for("exit code 0")
        assert (said in ended) is is_told
        assert ("installed: goose (use `-a goose`, or" in ended) is is_told


def test_a_message_on_a_terminal_breaks_no_word(dragoman: Dragoman) -> None:
    words = words_of_refusal(dragoman, 300)
    assert words[:3] == ["every", "permission", "request"]
    for width in (33, 37, 40):
        assert words_of_refusal(dragoman, width) == words


def test_what_was_typed_before_the_question_is_no_answer(dragoman: Dragoman) -> None:
    with screen(dragoman, "late_asking") as shown:
        shown.wait_for("not yet")
        shown.enter("1")
        shown.wait_for("1\n")
        (dragoman.workspace / "go").touch()
        shown.wait_for("choose 1-3:")
        shown.enter("3")
        assert "chosen=reject" in shown.wait_for("exit code 5")


def test_nothing_is_written_over_an_open_question(dragoman: Dragoman) -> None:
    with screen(dragoman, "speaking_while_asking") as shown:
        shown.wait_for("choose 1-3:")
        (dragoman.workspace / "go").touch()
        wait_for_file(dragoman.workspace / "said")
        shown.enter("1")
        assert "choose 1-3: 1\n\nmeanwhile\nchosen=allow\n" in shown.wait_for("exit code 0")


def test_an_agent_started_by_hand_says_how_to_talk_to_it(dragoman: Dragoman) -> None:
    command = dragoman.command("demo-agent")
    with on_screen(command, env=dragoman.env, cwd=dragoman.workspace, width=120) as shown:
        shown.wait_for("an ACP client on standard input; to talk to it, run: dragoman -a")
        shown.press("C-c")
        shown.wait_for("exit code 0")

"""`dragoman chat` on a real terminal: tmux draws it, we type and look."""

from __future__ import annotations

import json
import re
import shlex
import stat
import time
from contextlib import AbstractContextManager

import pytest
from support.command import COMMAND, Dragoman
from support.screen import Screen, needs_tmux, on_screen

from dragoman.cli.commands.chat.prompt import READING_SECONDS
from dragoman.cli.commands.chat.slash_commands import OWN


def chat(
    dragoman: Dragoman, *words: str, width: int = 100, **env: str
) -> AbstractContextManager[Screen]:
    command = [str(COMMAND), "chat", *words]
    return on_screen(command, env=dragoman.env | env, cwd=dragoman.workspace, width=width)


def with_partner(
    dragoman: Dragoman, *words: str, width: int = 100, **env: str
) -> AbstractContextManager[Screen]:
    partner = dragoman.agent("partner", "partner.py")
    return chat(dragoman, "--agent-command", partner, *words, width=width, **env)


@needs_tmux
def test_a_whole_turn_with_its_questions_and_a_crash(dragoman: Dragoman) -> None:
    (dragoman.workspace / "README.md").write_text("# Hello\n")
    with chat(dragoman) as terminal:
        terminal.wait_for(re.compile(r"Dragoman's demo agent \S+ in "))
        terminal.enter("please begin")
        # The line to type in is drawn by itself, and may be there first.
        drawn = terminal.wait_for(re.compile(r"  3\. Reject\n(?:.*\n)*choose 1-3:"))
        file = dragoman.workspace / "dragoman-demo.txt"
        # The real path, the change itself, every option, and what always would mean.
        assert f"? demo says it wants to write:\n    {file}\n" in drawn
        assert "  +You asked: please begin" in drawn
        assert "  1. Allow once\n  2. Always allow" in drawn
        assert "allow writing this file" in drawn
        assert "  3. Reject" in drawn
        assert not file.exists()
        terminal.enter("1")
        drawn = terminal.wait_for(re.compile(r"  4\. .*\n(?:.*\n)*choose 1-4:"))
        assert "? demo wants us to run:\n    $ wc -l dragoman-demo.txt\n" in drawn
        terminal.enter("nonsense")
        expected = "expected a number from 1 to 4 or m"
        terminal.wait_for(re.compile(rf"choose 1-4: nonsense\n{expected}\nchoose 1-4:"))
        terminal.wait_for("waiting for your answer")
        terminal.enter("1")
        drawn = terminal.wait_for("plan 4/4")
        assert "1 dragoman-demo.txt" in drawn
        assert file.read_text() == "You asked: please begin\n"
        terminal.enter(":changes")
        assert "+++ b/dragoman-demo.txt" in terminal.wait_for(re.compile(r"\+\+\+ b/"))
        terminal.enter(":revert")
        terminal.wait_for("was deleted, because it was new")
        assert not file.exists()
        terminal.enter("/crash")
        terminal.wait_for("the agent 'demo' exited with code 3")
        terminal.enter("/think about it")
        terminal.wait_for("the agent was restarted, and the session continues")
        terminal.wait_for("I have thought about")
        terminal.press("C-d")
        assert terminal.exit_code() == 0
        assert "Traceback" not in terminal.text()
    history = dragoman.state / "history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert "please begin" in history.read_text()


@needs_tmux
def test_what_another_process_wrote_for_the_session_is_shown_and_undone(
    dragoman: Dragoman,
) -> None:
    assert dragoman("--session", "s", "--yolo", "please begin").code == 0
    file = dragoman.workspace / "dragoman-demo.txt"
    assert file.exists()
    with chat(dragoman, "--session", "s") as terminal:
        terminal.wait_for(re.compile(r"Dragoman's demo agent \S+ in "))
        terminal.enter(":changes")
        terminal.wait_for("+++ b/dragoman-demo.txt")
        terminal.enter(":revert other.txt")
        terminal.wait_for("nothing to revert")
        assert file.exists()
        terminal.enter(":revert dragoman-demo.txt")
        terminal.wait_for("was deleted, because it was new")
        assert not file.exists()


@needs_tmux
def test_all_of_what_a_tool_brought_back_is_shown_when_asked_for(dragoman: Dragoman) -> None:
    with chat(dragoman, "--agent-command", dragoman.agent("talkative_tool")) as terminal:
        terminal.enter("search")
        drawn = terminal.wait_for("… 42 earlier lines")
        assert "  hit 49\n" in drawn
        assert "  hit 41\n" not in drawn
        terminal.enter("/output")
        terminal.wait_for(re.compile(r"Search\n  hit 0\n(?:.*\n)*  hit 49\n"))
        terminal.enter("/output 1")
        terminal.wait_for("no such output")


@needs_tmux
def test_prompts_queue_and_a_cancel_withdraws_a_question(dragoman: Dragoman) -> None:
    with with_partner(dragoman) as terminal:
        terminal.wait_for("A Partner 1 in ")
        terminal.enter("wait")
        terminal.enter("second")
        terminal.wait_for("queued: 1 waiting; /drop withdraws it")
        terminal.enter("third")
        terminal.wait_for("queued: 2 waiting")
        terminal.enter(":queue")
        assert "  1. second\n  2. third\n" in terminal.wait_for(re.compile(r"2\. third"))
        terminal.enter(":drop 2")
        terminal.wait_for("dropped; 1 left in the queue")
        terminal.press("Escape")
        drawn = terminal.wait_for("heard 'second' in code")
        assert re.search(r"cancelled\n(?:.*\n)*› second\n(?:.*\n)*heard 'second'", drawn)
        assert "heard 'third'" not in drawn
        terminal.enter("ask")
        terminal.wait_for("choose 1-3:")
        terminal.press("C-c")
        terminal.wait_for(re.compile(r"choose 1-3:(?:.*\n)*the turn was cancelled"))
        terminal.enter("go on")
        terminal.wait_for("heard 'go on' in code")


@needs_tmux
def test_a_question_takes_the_prompt_over_and_gives_back_what_was_typed(
    dragoman: Dragoman,
) -> None:
    with with_partner(dragoman) as terminal:
        terminal.wait_for("A Partner 1 in ")
        terminal.enter("ask when told")
        # What streams in is drawn above the prompt, also while the line is not over.
        terminal.wait_for(re.compile(r"half a line, then\s*\n›"))
        terminal.type("my draft")
        terminal.wait_for("› my draft")
        (dragoman.workspace / "told").touch()
        drawn = terminal.wait_for("choose 1-3:")
        assert re.search(r"\? python3? says it wants to run:\n    \$ make\n", drawn)
        terminal.wait_until_gone("› my draft")
        time.sleep(READING_SECONDS)  # what is typed sooner is not taken for an answer
        terminal.enter("3")
        terminal.wait_for(re.compile(r"choose 1-3: 3\n(?:.*\n)*a question: reject"))
        terminal.wait_for("› my draft")
        terminal.press("Enter")
        terminal.wait_for("heard 'my draft' in code")


@needs_tmux
def test_a_form_asks_again_for_what_is_needed_and_can_be_declined(dragoman: Dragoman) -> None:
    with with_partner(dragoman) as terminal:
        terminal.wait_for("A Partner 1 in ")
        terminal.enter("form")
        drawn = terminal.wait_for("Size (one of A, B):")
        assert "? Which one?\n  Ctrl-D declines\n    A  Alpha: first\n    B  the other\n" in drawn
        terminal.wait_for("waiting for your answer")
        terminal.press("Enter")
        terminal.wait_for("  required\n  Size (one of A, B):")
        terminal.enter("Alpha")
        terminal.wait_for(re.compile(r"filled in: \{.*'size': 'A'"))
        terminal.enter("form")
        terminal.wait_for(re.compile(r"filled in(?:.*\n)*.*Size \(one of A, B\):"))
        terminal.press("C-d")
        terminal.wait_for("filled in: {'action': 'decline'}")
        terminal.enter("see @nothing.txt")
        terminal.wait_for("! @nothing.txt: no such file; sent as a link anyway")
        terminal.wait_for("heard 'see @nothing.txt' in code")


@needs_tmux
def test_the_time_of_a_turn_goes_on_while_its_answer_streams(dragoman: Dragoman) -> None:
    with with_partner(dragoman) as terminal:
        terminal.wait_for("A Partner 1 in ")
        terminal.enter("stream")
        terminal.wait_for(re.compile(r"working · (?:[2-9] s|\d\d+ s|\d+ min)"))
        terminal.press("C-c")
        terminal.wait_for("cancelled")


@needs_tmux
def test_nobody_is_asked_when_told_so(dragoman: Dragoman) -> None:
    with with_partner(dragoman, "--on-ask", "reject", "--mode", "ask") as terminal:
        terminal.wait_for("A Partner 1 in ")
        terminal.enter("ask")
        drawn = terminal.wait_for("a question: reject")
        assert "choose" not in drawn


@needs_tmux
def test_commands_of_ours_never_hide_the_agents(dragoman: Dragoman) -> None:
    with with_partner(dragoman) as terminal:
        terminal.wait_for("A Partner 1 in ")
        terminal.enter("/new")
        terminal.wait_for("heard '/new' in code")
        terminal.enter("//quit")
        terminal.wait_for("heard '/quit' in code")
        terminal.enter(":new")
        terminal.wait_for("a new session")
        terminal.enter("/help")
        drawn = terminal.wait_for("//name")
        assert re.search(r"  :new\s+start a new session", drawn)
        assert re.search(r"  /mode\s+show the modes", drawn)
        assert re.search(r"  /help\s+list commands and keys", drawn)
        assert re.search(r"  /review\s+look at it", drawn)
        assert re.search(r"  //help\s+the agent's own help", drawn)
        # What they do begins in one column, however long a name is.
        rows = re.findall(r"^  (?:/review|/look-at-it-closely) +", drawn, re.MULTILINE)
        assert [len(row) for row in rows] == [len("  /look-at-it-closely ")] * 2
        terminal.enter("//help")
        terminal.wait_for("heard '/help' in code")
        terminal.enter("/quit")
        assert terminal.exit_code() == 0


@needs_tmux
def test_modes_lines_and_completions(dragoman: Dragoman) -> None:
    (dragoman.workspace / "a file.txt").touch()
    with with_partner(dragoman) as terminal:
        terminal.wait_for("A Partner 1 in ")
        terminal.type("/mode a")
        terminal.wait_for(re.compile(r"ask\s+Ask"))
        terminal.press("Tab")
        terminal.wait_for("› /mode ask")
        terminal.press("Enter")
        terminal.wait_for("mode: ask")
        terminal.enter("one\\")
        terminal.type("two")
        terminal.press("Escape", "Enter")
        terminal.enter("three")
        terminal.wait_for(r"heard 'one\ntwo\nthree' in ask")
        terminal.enter("/mode nonsense")
        terminal.wait_for("dragoman: there is no mode 'nonsense'; there are: code, ask")
        terminal.type("see @a")
        terminal.wait_for("a file.txt")
        terminal.press("Tab")
        terminal.wait_for('› see @"a file.txt"')
        terminal.press("Enter")
        terminal.wait_for(r"""heard 'see @"a file.txt"' in ask""")
        terminal.press("Up")
        terminal.wait_for(re.compile(r'› see @"a file.txt"\s*\n(?:.*\n)*› see @'))


@needs_tmux
def test_help_on_a_narrow_terminal_breaks_no_word(dragoman: Dragoman) -> None:
    with with_partner(dragoman, width=44) as terminal:
        terminal.wait_for("A Partner 1 in ")
        terminal.enter("/help")
        drawn = terminal.wait_for("//name")
        assert re.search(r"  /revert     undo those writes;.*\n {14}\S", drawn)
        words = {word for about in OWN.values() for word in about.split()}
        assert words <= set(drawn.split())
        terminal.enter("/set")
        terminal.wait_for("  loud = false  (true, false)")
        terminal.enter("/set loud")
        terminal.wait_for("dragoman: expected OPTION=VALUE, not 'loud'")


@needs_tmux
def test_a_paste_that_is_higher_than_the_window_stands_there_once_and_whole(
    dragoman: Dragoman,
) -> None:
    with with_partner(dragoman) as terminal:
        # Before its prompt stands there, the chat does not tell the terminal that it takes pastes.
        terminal.wait_for(re.compile(r"^›", re.MULTILINE))
        terminal.paste("\n".join(f"pasted {number}." for number in range(150)))
        assert "pasted 1." not in terminal.wait_for("› [pasted 1: 150 lines]")
        terminal.press("Enter")
        drawn = terminal.wait_for("in code")
        typed = drawn.partition("heard '")[0]
        expected = ["› pasted 0.", *(f"  pasted {number}." for number in range(1, 150))]
        assert typed.rstrip().split("\n")[-150:] == expected
        assert typed.count("pasted") == 150


@needs_tmux
def test_nothing_stands_twice_when_the_window_is_made_narrower(dragoman: Dragoman) -> None:
    with with_partner(dragoman) as terminal:
        terminal.wait_for("A Partner 1 in ")
        terminal.enter("a long line")
        terminal.wait_for("is not over before")
        draft = "a draft that is also too long for a window that is narrow"
        terminal.type(draft)
        terminal.wait_for(f"› {draft}")
        terminal.resize(40)
        terminal.wait_for(f"› {draft[:38]}\n  {draft[38:]}\n")
        (dragoman.workspace / "told").touch()
        # The line is there before the prompt is drawn again below it.
        drawn = terminal.wait_for(re.compile(r"somebody\s+says\s+so(?:.|\n)*› a draft"))
        drawn = " ".join(drawn.split())
        assert drawn.count("a line that is as long as") == 1
        assert drawn.count("› a draft that is") == 1


@needs_tmux
def test_a_window_is_made_narrower_before_the_chat_hears_of_it(dragoman: Dragoman) -> None:
    with with_partner(dragoman) as terminal:
        terminal.wait_for("A Partner 1 in ")
        terminal.enter("a long line")
        terminal.wait_for("is not over before")
        draft = "a draft that is also too long for a window that is narrow"
        terminal.type(draft)
        terminal.wait_for(f"› {draft}")
        with terminal.stopped() as tty:
            terminal.resize(40)
            tty.write("\x1b[40G")  # where drawing for the wider window leaves the cursor
        drawn = terminal.wait_for(f"› {draft[:38]}\n  {draft[38:]}\n")
        assert " ".join(drawn.split()).count("a line that is") == 1
        assert drawn.count("› a draft that is") == 1


@needs_tmux
def test_what_is_typed_meanwhile_is_queued_or_said_into_the_turn(dragoman: Dragoman) -> None:
    steered = dragoman.agent("steered", "partner.py")
    with chat(dragoman, "--agent-command", steered, width=80) as terminal:
        terminal.wait_for("A Steered Partner 1 in ")
        terminal.enter("wait")
        terminal.wait_for("Enter queues, Alt-Enter steers")
        terminal.type("rather blue")
        terminal.press("M-Enter")
        drawn = terminal.wait_for("delivered to the running turn")
        assert drawn.count("rather blue") == 1
        terminal.enter("and then")
        terminal.wait_for("queued: 1 waiting")
        terminal.press("Escape")
        terminal.wait_for("heard 'and then'")


@needs_tmux
def test_the_settings_exchange_the_keys(dragoman: Dragoman) -> None:
    command, *args = shlex.split(dragoman.agent("partner", "partner.py"))
    servers = {"it": {"command": command, "args": args}}
    dragoman.write_settings({"agent_servers": servers, "enter": "steer"})
    with chat(dragoman, width=80) as terminal:
        terminal.wait_for("A Partner 1 in ")
        terminal.enter("wait")
        terminal.wait_for("Enter steers, Alt-Enter queues")
        terminal.enter("rather blue")  # an agent that takes no steers
        terminal.wait_for("queued: it is the next prompt")
        terminal.press("Escape")
        terminal.wait_for("heard 'rather blue'")


@needs_tmux
def test_a_narrow_window_shows_what_goes_on(dragoman: Dragoman) -> None:
    with with_partner(dragoman, width=40) as terminal:
        terminal.wait_for("A Partner 1 in ")
        terminal.enter("wait")
        terminal.enter("second")
        terminal.wait_for(re.compile(r"^working · \d+ s · 1 queued · ", re.MULTILINE))
        terminal.press("Escape")
        terminal.wait_for("heard 'second'")
        terminal.enter("ask")
        terminal.wait_for(re.compile(r"^waiting for your answer · ", re.MULTILINE))


@needs_tmux
def test_an_empty_prompt_leaves_no_trace(dragoman: Dragoman) -> None:
    with with_partner(dragoman) as terminal:
        terminal.wait_for("A Partner 1 in ")
        terminal.press("Enter")
        terminal.enter("begin a line")
        terminal.wait_for("half a line")
        terminal.press("C-d")
        assert terminal.exit_code() == 0
        assert re.findall(r"^›.*", terminal.text(), re.MULTILINE) == ["› begin a line"]


@needs_tmux
def test_what_was_said_last_is_painted_as_it_was(dragoman: Dragoman) -> None:
    assert dragoman("--session", "s", "please begin").code == 5
    with chat(dragoman, "--session", "s") as terminal:
        drawn = terminal.wait_for("/help lists")
        assert "  What I did\n" in drawn
        assert "so dragoman-demo.txt is as it was." in drawn  # without its backticks


@needs_tmux
def test_what_was_typed_before_can_be_looked_for(dragoman: Dragoman) -> None:
    with with_partner(dragoman) as terminal:
        terminal.wait_for("A Partner 1 in ")
        terminal.enter("the first thing")
        terminal.wait_for("heard 'the first thing'")
        terminal.press("C-r")
        terminal.type("first")
        terminal.wait_for("I-search backward: first")
        terminal.press("C-c")  # ends the search, and no more
        terminal.wait_until_gone("I-search")
        terminal.press("C-r")
        terminal.type("first")
        terminal.wait_for("I-search backward: first")
        terminal.press("Enter")
        terminal.wait_until_gone("I-search")
        terminal.press("C-e")
        terminal.enter(" again")
        drawn = terminal.wait_for("heard 'the first thing again' in code")
        assert "leaves" not in drawn.partition("heard")[2]


@needs_tmux
def test_ctrl_c_clears_then_warns_then_leaves(dragoman: Dragoman) -> None:
    with with_partner(dragoman, NO_COLOR="1") as terminal:
        terminal.wait_for("A Partner 1 in ")
        terminal.type("never mind")
        terminal.wait_for("› never mind")
        terminal.press("C-c")
        terminal.wait_until_gone("never mind")
        terminal.enter("hello")
        terminal.wait_for("heard 'hello' in code")
        assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", terminal.text(painted=True))
        warned = 0
        while "exit code" not in terminal.text():
            # Where a machine is slow the second press may come too late, and be the first again.
            warned += 1
            terminal.press("C-c")
            again = rf"exit code|(?:Ctrl-C again, or Ctrl-D, quits(?:.*\n)*?){{{warned}}}"
            terminal.wait_for(re.compile(again))
        assert warned > 1
        assert terminal.exit_code() == 0


@needs_tmux
def test_an_agent_that_does_not_stop_is_ended_by_the_second_ctrl_c(dragoman: Dragoman) -> None:
    with with_partner(dragoman) as terminal:
        terminal.wait_for("A Partner 1 in ")
        terminal.enter("never stop")
        terminal.wait_for("whatever is said")  # a prompt that is not sent yet is just withdrawn
        terminal.press("C-c")
        terminal.wait_for("cancelling; Ctrl-C again ends the agent")
        terminal.press("C-c")
        assert terminal.exit_code() == 130
        assert "Traceback" not in terminal.text()


@needs_tmux
def test_a_history_that_cannot_be_kept_is_no_obstacle(dragoman: Dragoman) -> None:
    with with_partner(dragoman, "--no-store", DRAGOMAN_HOME="/proc/nothing") as terminal:
        terminal.wait_for("dragoman: prompt history is not saved: /proc/nothing: ")
        terminal.wait_for("A Partner 1 in ")
        terminal.enter("hello")
        terminal.wait_for("heard 'hello' in code")


@needs_tmux
def test_ctrl_c_before_the_agent_has_started_ends_it(dragoman: Dragoman) -> None:
    with chat(dragoman, "--agent-command", "sleep 600") as terminal:
        terminal.wait_for("starting sleep")
        terminal.press("C-c")
        terminal.wait_for("ending sleep")
        terminal.press("C-c")
        assert terminal.exit_code() == 130
        assert "ending" not in terminal.text()


@needs_tmux
def test_an_agent_that_cannot_be_started_is_one_line(dragoman: Dragoman) -> None:
    with chat(dragoman, "--agent-command", "/no/such/agent") as terminal:
        assert terminal.exit_code() == 1
        assert "dragoman: could not start '/no/such/agent'" in terminal.text()


def test_without_a_terminal_chat_says_what_to_do_instead(dragoman: Dragoman) -> None:
    done = dragoman("chat")
    assert done.code == 2
    assert done.err == 'dragoman: chat needs a terminal; for one turn, use dragoman "…"\n'


@needs_tmux
def test_a_new_session_is_set_up_as_the_first_one_was(dragoman: Dragoman) -> None:
    with with_partner(dragoman, "--mode", "ask") as terminal:
        terminal.wait_for("A Partner 1 in ")
        terminal.enter(":new")
        terminal.wait_for("a new session")
        terminal.enter("hello")
        terminal.wait_for("heard 'hello' in ask")


@needs_tmux
@pytest.mark.parametrize("way", ["new", "quit"])
def test_whoever_leaves_a_session_leaves_nothing_to_go_on_there(
    dragoman: Dragoman, way: str
) -> None:
    with with_partner(dragoman) as terminal:
        terminal.wait_for("A Partner 1 in ")
        terminal.enter("begin a line")
        terminal.wait_for("half a line")
        terminal.enter("later")
        terminal.wait_for("queued: 1 waiting")
        terminal.enter(f":{way}")
        left = "half a line\nnot sent: later\nthe running turn is cancelled\n"
        drawn = terminal.wait_for("the running turn is cancelled")
        assert left in re.sub(r" +\n", "\n", drawn)
        if way == "new":
            terminal.enter("hello")
            assert "\nheard 'hello' in code" in terminal.wait_for("heard 'hello' in code")
            terminal.enter("/quit")
        assert terminal.exit_code() == 0
    shown = dragoman("sessions", "list", "--json").out
    session = next(x["id"] for x in json.loads(shown) if x["title"] == "begin a line")
    state = json.loads(dragoman("sessions", "show", session, "--json").out)
    assert (state["turns"][-1]["stopReason"], state.get("queue", [])) == ("cancelled", [])


@needs_tmux
def test_a_prompt_that_waits_from_before_is_told(user: Dragoman) -> None:
    with chat(user, "--session", "fix") as terminal:
        terminal.wait_for("/help lists")
        terminal.enter("wait")
        terminal.wait_for("started")
        terminal.enter("later")
        terminal.wait_for("queued: 1 waiting")
        terminal.kill()
    with chat(user, "--session", "fix") as terminal:
        drawn = terminal.wait_for("/help lists")
        assert "\na prompt waits from before, to be sent before your next prompt\n" in drawn
        terminal.enter("now")
        drawn = terminal.wait_for("3. now")
        assert drawn.index("2. later") < drawn.index("3. now")


@needs_tmux
def test_a_chat_is_recorded_and_goes_on_where_it_was(user: Dragoman) -> None:
    with chat(user, "--session", "fix") as terminal:
        terminal.wait_for("/help lists")
        terminal.enter("one")
        terminal.wait_for("1. one")
        terminal.enter("/new")
        shown = terminal.wait_for("is kept as s-")
        kept = re.search(r"the previous session is kept as (s-\w+)", shown)
        terminal.enter("another")
        terminal.wait_for("1. another")
        terminal.press("C-d")
        assert terminal.exit_code() == 0
        again = re.search(r"to continue this session:\n  dragoman (.*)", terminal.text())
    assert kept is not None
    assert again is not None
    named, second = kept[1], again[1].split()
    with chat(user, *second[1:]) as terminal:
        drawn = terminal.wait_for("/help lists")
        assert f"session {second[-1]} continues, 1 turn so far: another\n" in drawn
        assert "› another\n  1. another\n/help lists" in drawn
        terminal.enter("more")
        terminal.wait_for("2. more")
        terminal.press("C-d")
        assert terminal.exit_code() == 0
    done = user("--session", "fix", "-o", "simple", "two")
    assert done.out == "2. two\n"
    assert user("sessions", "show", named).lines[0] == f"{named}  [fix] one"


@needs_tmux
def test_another_window_asks_in_a_chat(user: Dragoman) -> None:
    with chat(user, "--session", "fix") as terminal:
        terminal.wait_for("/help lists")
        terminal.enter("work")
        terminal.wait_for("working")
        refused = user("chat", "--session", "fix")
        assert refused.code == 2  # it needs a terminal
        with user.started("--session", "fix", "-o", "simple", "from outside") as other:
            terminal.wait_for("1 queued")
            terminal.enter(":queue")
            terminal.wait_for("1. from outside")
            (user.workspace / "go").touch()
            out, _ = other.communicate(b"", timeout=60)
            assert (other.returncode, out) == (0, b"2. from outside\n")
            terminal.wait_for(re.compile(r"^› from outside\n2\. from outside$", re.MULTILINE))
        terminal.press("C-d")
        assert terminal.exit_code() == 0


@needs_tmux
def test_a_chat_without_a_record_leaves_none(user: Dragoman) -> None:
    with chat(user, "--no-store") as terminal:
        terminal.wait_for("/help lists")
        terminal.enter("one")
        terminal.wait_for("1. one")
        terminal.press("C-d")
        assert terminal.exit_code() == 0
        assert "to continue" not in terminal.text()
    assert [path.name for path in user.state.iterdir()] == ["history"]

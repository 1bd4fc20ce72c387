from __future__ import annotations

import pytest

from dragoman.host.permissions.grants import Grants, are_harmless
from dragoman.host.rules.access import Access, Command
from dragoman.session.content import Diff

CWD = "/ws"
PATH = "/ws/a.txt"


def running(command: Command, *, env: bool = False, cwd: str = CWD) -> Access:
    return Access(operation="execute", commands=(command,), env=env, cwd=cwd, roots=(CWD,))


def covers(shown: Command, asked: Access) -> bool:
    grants = Grants()
    grants.add(running(shown), [])
    return grants.take_command(asked)


def writes(diff: Diff, content: str, current: str | None) -> bool:
    grants = Grants()
    grants.add(Access(operation="write", paths=(PATH,), roots=(CWD,)), [(PATH, diff)])
    return grants.take_write(PATH, content, current)


# ── commands ──────────────────────────────────────────────────────────────────────────────────

SHELLS = ("bash", "/bin/bash", "/usr/bin/bash", "sh", "/bin/sh", "/usr/bin/sh")
FLAGS = ("-c", "-lc")


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("shown", ["npm test", ("npm", "test")])
def test_plain_words_are_covered_in_any_shell(shown: Command, shell: str, flag: str) -> None:
    assert covers(shown, running((shell, flag, "npm test")))
    assert covers((shell, flag, "npm test"), running(shown))


@pytest.mark.parametrize("flag", FLAGS)
def test_a_line_is_covered_in_the_shell_that_runs_lines(flag: str) -> None:
    line = "cd sub && npm test > log"
    assert covers(line, running(("bash", flag, line)))
    assert covers(("bash", "-lc", line), running(line))
    assert not covers(line, running(("sh", flag, line)))


@pytest.mark.parametrize(
    "asked",
    [
        ("bash", "-c", "npm test; rm x"),
        ("bash", "-c", "npm test", "rm"),
        ("bash", "-x", "-c", "npm test"),
        ("bash", "-ic", "npm test"),
        ("bash", "--rcfile=x", "npm test"),
        ("bash", "npm test"),
        ("./bash", "-c", "npm test"),
        ("/ws/bin/sh", "-c", "npm test"),
        ("zsh", "-c", "npm test"),
        ("bash", "-c", "bash -c 'npm test'"),
        ("env", "npm", "test"),
        ("npm test",),
        ("npm", "test", ""),
        "npm test x",
        "npm test\n",
    ],
)
def test_what_is_not_exactly_what_was_shown_is_not_covered(asked: Command) -> None:
    assert not covers("npm test", running(asked))


@pytest.mark.parametrize("asked", ["npm test", ("bash", "-c", "npm test")])
def test_variables_and_another_folder_are_not_what_was_shown(asked: Command) -> None:
    assert covers("npm test", running(asked))
    assert not covers("npm test", running(asked, env=True))
    assert not covers("npm test", running(asked, cwd="/ws/sub"))


@pytest.mark.parametrize(
    ("shown", "asked", "cwd"),
    [
        ("npm test", "cd /ws && npm test", "/ws"),
        ("npm test", ("/bin/bash", "-c", "cd '/ws' && npm test"), "/ws"),
        ("npm test", ("sh", "-c", "cd /ws/ && npm test"), "/ws"),
        ("npm test", ("bash", "-c", "cd /ws && npm test"), "/ws/sub"),
        ("a && b | c", ("bash", "-c", "cd /ws && a && b | c"), "/ws/sub"),
        ("a; b $x", ("bash", "-c", "cd /ws && a; b $x"), "/ws"),
        ("cd sub && a", ("bash", "-c", "cd /ws && cd sub && a"), "/ws"),
    ],
)
def test_a_command_is_the_same_after_a_cd_to_where_it_runs(
    shown: Command, asked: Command, cwd: str
) -> None:
    assert covers(shown, running(asked, cwd=cwd))


def test_a_cd_by_another_name_of_the_folder_is_one_to_it() -> None:
    asked = Access(
        operation="execute",
        commands=(("bash", "-c", "cd /link && npm test"),),
        cwd=CWD,
        cwd_aliases=("/link",),
        roots=(CWD,),
    )
    assert covers("npm test", asked)


@pytest.mark.parametrize(
    ("shown", "asked", "cwd"),
    [
        ("npm test", "cd /ws/sub && npm test", "/ws"),
        ("npm test", "cd /ws/sub && npm test", "/ws/sub"),
        ("npm test", "cd sub && npm test", "/ws"),
        ("npm test", "cd /ws; npm test", "/ws"),
        ("npm test", "cd /ws || npm test", "/ws"),
        ("npm test", "cd '/ws' x && npm test", "/ws"),
        ("npm test", "cd /ws/$x && npm test", "/ws"),
        ("npm test", "cd /ws && npm test; rm x", "/ws"),
        ("a; b", ("bash", "-c", "cd /ws && a; b"), "/ws/sub"),
        ("a $x", ("bash", "-c", "cd /ws && a $x"), "/ws/sub"),
        ("a | b", ("sh", "-c", "cd /ws && a | b"), "/ws"),
        ("npm test", ("bash", "-x", "cd /ws && npm test"), "/ws"),
        ("npm test", ("zsh", "-c", "cd /ws && npm test"), "/ws"),
    ],
)
def test_a_cd_that_may_lead_elsewhere_is_not_what_was_shown(
    shown: Command, asked: Command, cwd: str
) -> None:
    assert not covers(shown, running(asked, cwd=cwd))


@pytest.mark.parametrize(
    ("variables", "harmless"),
    [
        ({}, True),
        ({"NO_COLOR": "1", "TERM": "dumb", "GIT_TERMINAL_PROMPT": "0", "SHELL": "/bin/bash"}, True),
        ({"SHELL": "/usr/bin/zsh"}, True),
        ({"SHELL": "/tmp/bash"}, False),
        ({"SHELL": "/bin/bash -x"}, False),
        ({"TERM": "../x"}, False),
        ({"NO_COLOR": "1", "PATH": "/x"}, False),
    ],
)
def test_variables_that_agents_set_for_every_command_are_known(
    variables: dict[str, str], harmless: bool
) -> None:
    assert are_harmless(variables) is harmless


def test_a_yes_is_used_up_however_it_is_used() -> None:
    grants = Grants()
    grants.add(running("npm test"), [])
    assert grants.take_command(running(("bash", "-lc", "npm test")))
    assert not grants.take_command(running("npm test"))


def test_a_yes_to_several_commands_covers_none_of_them() -> None:
    grants = Grants()
    grants.add(Access(operation="execute", commands=("a", "b"), cwd=CWD, roots=(CWD,)), [])
    assert not grants.take_command(running("a"))


# ── writes ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("diff", "content", "current"),
    [
        (Diff(PATH, "new"), "new", None),
        (Diff(PATH, "new", ""), "new", None),
        (Diff(PATH, "new", ""), "new", ""),
        (Diff(PATH, "new", "old"), "new", "old"),
        (Diff(PATH, "2", "two"), "one 2 three", "one two three"),
        (Diff(PATH, "", "old"), "", "old"),
    ],
)
def test_the_whole_text_or_the_one_change_is_covered(
    diff: Diff, content: str, current: str | None
) -> None:
    assert writes(diff, content, current)


@pytest.mark.parametrize(
    ("diff", "content", "current"),
    [
        # Shown as the change of one word: all the rest would be lost.
        (Diff(PATH, "2", "two"), "2", "one two three"),
        # Shown as new, or as empty before.
        (Diff(PATH, "new"), "new", "old"),
        (Diff(PATH, "new"), "new", ""),
        (Diff(PATH, "new", ""), "new", "old"),
        # Shown without what it replaces.
        (Diff(PATH, "new", replaces="what cannot be shown"), "new", None),
        (Diff(PATH, "", operation="add", patch="@@ -0,0 +1 @@"), "", "old"),
        (Diff(PATH, "", operation="add", patch="@@ -0,0 +1 @@"), "", None),
        # Shown as a change of something that is not there.
        (Diff(PATH, "new", "old"), "new", "older than old"),
        (Diff(PATH, "new", "old"), "new", None),
        (Diff(PATH, "new"), "newer", None),
    ],
)
def test_what_would_become_of_the_file_was_not_shown(
    diff: Diff, content: str, current: str | None
) -> None:
    assert not writes(diff, content, current)

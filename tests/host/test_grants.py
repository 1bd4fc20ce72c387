from __future__ import annotations

import pytest

from dragoman.host.permissions.grants import Grants
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

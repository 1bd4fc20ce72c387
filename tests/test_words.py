"""The word list of `make check` finds habits, leaves code alone, and the repository is clean."""

from __future__ import annotations

import ast
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "scripts" / "check_words.py"


def checked(*files: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def test_the_text_of_the_repository_is_clean() -> None:
    done = checked()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_every_page_is_covered() -> None:
    covered = set(runpy.run_path(str(SCRIPT))["covered"]())
    assert {*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")} <= covered


@pytest.mark.parametrize(
    ("name", "text", "line", "words"),
    [
        ("a.py", '"""First.\n\nIt is\ntold again.\n"""\n', 3, "is told: is notified"),
        ("a.py", "x = 1  # for ever\n", 1, "for ever: forever"),
        ("a.py", 'x = f"{1} is no number"\n', 1, "is no number: is not a …"),
        ("a.md", "one\n\nWhoever comes.\n", 3, "Whoever: the person"),
        ("a.md", "```\nanew\n```\n\nread anew\n", 5, "anew: again"),
        ("a.md", "Somebody asks.\n", 1, "Somebody: someone"),
        ("a.md", "The turn goes\non later.\n", 1, "goes on: continue"),
        ("a.py", "# It stands in the list.\n", 1, "stands in: is"),
        ("a.sh", "# again and again\n", 1, "again and again: repeatedly"),
        ("a.ts", "const a = 1\n// beside it\n", 2, "beside: next to"),
    ],
)
def test_a_habit_is_reported_with_its_place_and_better_words(
    tmp_path: Path, name: str, text: str, line: int, words: str
) -> None:
    file = tmp_path / name
    file.write_text(text)
    done = checked(file)
    [found] = done.stdout.splitlines()
    assert done.returncode == 1
    assert found.startswith(f"{file}:{line}: {words}")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", "anew = whoever = 1\n"),
        ("a.py", '"""There is no file, it is no longer read, and besides, for every one."""\n'),
        ("a.md", "Say `beside`.\n\n```sh\nanew\n```\n"),
        ("a.md", "It goes on record, and on the wire it goes on the stream. It stands for you.\n"),
    ],
)
def test_names_code_and_good_words_are_left_alone(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    assert checked(file).returncode == 0


def cut(source: str) -> bool:
    """Whether the first line of the module's docstring stops in mid-sentence, or there is none."""
    first, *rest = (ast.get_docstring(ast.parse(source)) or "").split("\n")
    return not first.endswith((".", "?")) or (rest != [] and rest[0] != "")


def test_the_first_line_of_every_module_is_whole() -> None:
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "scripts").rglob("*.py")]
    assert [str(file.relative_to(ROOT)) for file in files if cut(file.read_text())] == []


@pytest.mark.parametrize("source", ["x = 1", '"""One\ntwo."""', '"""One.\nTwo."""', '"""One"""'])
def test_control_a_first_line_that_is_cut_is_noticed(source: str) -> None:
    assert cut(source)

"""Type checkers know what `ask` returns: pyright with `make check`, mypy here, both strictly."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PROGRAM = HERE / "typed_results.py"
WRONG = "    number: str = dragoman.ask('x', output=Point)\n"


def checked(file: Path, cache: Path) -> str:
    """What mypy finds wrong in a file. What it imports is not looked at for faults of its own."""
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"]
    done = subprocess.run(
        [*command, "--no-error-summary", "--cache-dir", str(cache), str(file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.stdout + done.stderr


def test_the_flows_are_typed(tmp_path: Path) -> None:
    for name in ("plan_implement_review.py", "issue_to_branch.py"):
        assert checked(ROOT / "examples" / name, tmp_path / "cache") == ""


def test_mypy_knows_what_ask_returns(tmp_path: Path) -> None:
    assert checked(PROGRAM, tmp_path / "cache") == ""
    wrong = tmp_path / "wrong.py"
    wrong.write_text(PROGRAM.read_text() + f"\n\ndef wrong() -> None:\n{WRONG}")
    assert 'expression has type "Point", variable has type "str"' in checked(
        wrong, tmp_path / "cache"
    )

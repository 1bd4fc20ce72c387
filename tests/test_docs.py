"""The examples in the documentation run as they are printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", "docs/library.md", "docs/proxies.md"]
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _examples() -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for page in PAGES:
        blocks = _BLOCK.findall((ROOT / page).read_text())
        found += [(f"{page} {number}", block) for number, block in enumerate(blocks, 1)]
    return found


def test_there_are_examples() -> None:
    assert len(_examples()) >= 5


@pytest.mark.parametrize("code", [code for _, code in _examples()], ids=[i for i, _ in _examples()])
def test_an_example_runs_as_printed(code: str, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# A project\n\nIt does one thing.\n")
    if "import dragoman" not in code:
        code = f"import dragoman\n{code}"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "DRAGOMAN_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""

"""What the page shares with Python is generated, and a drift is reported."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = Path("scripts") / "gen_page_types.py"
GENERATED = Path("web") / "src" / "core" / "generated"


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A folder with the script and what it wrote, free to be changed."""
    (tmp_path / SCRIPT).parent.mkdir(parents=True)
    shutil.copy(ROOT / SCRIPT, tmp_path / SCRIPT)
    shutil.copytree(ROOT / GENERATED, tmp_path / GENERATED)
    return tmp_path


def run(folder: Path, *options: str) -> tuple[int, str]:
    done = subprocess.run(
        (sys.executable, str(SCRIPT), *options),
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stderr


def test_the_generated_files_are_fresh() -> None:
    assert run(ROOT, "--check") == (0, "")


DRIFTS = {
    "characters.ts": ("[0x1fffe, 0x1ffff], ", ""),
    "events.ts": ("stopReason?: string | null", "stopReason: string"),
    "limits.ts": ("tail: 1_048_576", "tail: 1024"),
    "permission_words.ts": ("'Allow once'", "'Sure'"),
    "responses.ts": ("lastEnding: Ending | null", "lastEnding: string"),
    "state.ts": ("kind: 'other'", "kind: 'read'"),
}


def test_every_drift_is_reported_and_mended(copied: Path) -> None:
    fresh = {name: (copied / GENERATED / name).read_text() for name in DRIFTS}
    for name, (now, drifted) in DRIFTS.items():
        assert now in fresh[name]
        (copied / GENERATED / name).write_text(fresh[name].replace(now, drifted))
    stale = f"web/src/core/generated is stale ({', '.join(DRIFTS)}): run make gen\n"
    assert run(copied, "--check") == (1, stale)
    assert run(copied) == (0, "")
    assert {name: (copied / GENERATED / name).read_text() for name in DRIFTS} == fresh


def test_a_file_too_many_and_one_too_few_are_reported(copied: Path) -> None:
    (copied / GENERATED / "facts.ts").rename(copied / GENERATED / "old_facts.ts")
    code, message = run(copied, "--check")
    assert (code, "facts.ts, old_facts.ts" in message) == (1, True)
    run(copied)
    assert run(copied, "--check") == (0, "")


def test_each_file_says_on_its_first_line_that_it_is_generated() -> None:
    for path in (ROOT / GENERATED).iterdir():
        assert path.read_text().startswith("// Generated from src/dragoman/"), path.name


def test_a_type_extends_only_what_its_file_has() -> None:
    for path in (ROOT / GENERATED).iterdir():
        text = path.read_text()
        bases = set(re.findall(r"^export interface \w+ extends (\w+) ", text, re.MULTILINE))
        assert bases <= set(re.findall(r"^export interface (\w+) ", text, re.MULTILINE)), path.name

"""Nothing of the user's own is read or written: agents and shells find an empty home."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the demo agent keeps its sessions."""
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / "home"


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    """A workspace with something to read in it."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "README.md").write_text("# Dragons\n\nThey breathe fire. They fly.\n\n## Eggs\n\nx\n")
    return folder

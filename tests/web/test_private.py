"""What a server keeps can be read by nobody else, whatever the umask."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from support.server_process import PreparedProcess


@pytest.mark.parametrize("umask", ["000", "022"])
def test_everything_in_the_data_directory_is_private(tmp_path: Path, umask: str) -> None:
    process = PreparedProcess(tmp_path, f"umask {umask}", "--write")
    with closing(process) as server, server.http as http:
        (server.workspace / "a.txt").write_text("a")
        kept = http.post(
            "/api/uploads?name=a.txt", content=b"text", headers={"content-type": "text/plain"}
        ).json()
        session = {"agent": "steady", "cwd": str(server.workspace)}
        session_id = http.post("/api/sessions", json=session).json()["id"]
        content = [{"type": "upload", "uri": kept["uri"]}]
        path = f"/api/sessions/{session_id}"
        assert http.post(f"{path}/prompt", json={"text": "3 10", "content": content}).is_success
        http.post("/api/policies", json={"effect": "allow", "operation": "read", "path": "/x"})
        loose = _loose(tmp_path / "state")  # while it runs
        assert server.end() == 0
    assert loose + _loose(tmp_path / "state") == []


def _loose(folder: Path) -> list[str]:
    """What others may read, write or enter."""
    assert len(list(folder.rglob("*"))) > 5
    return [
        f"{path.relative_to(folder)} {path.stat().st_mode & 0o777:o}"
        for path in (folder, *folder.rglob("*"))
        # What git keeps is read-only.
        if path.stat().st_mode & 0o777 not in ((0o700,) if path.is_dir() else (0o600, 0o400))
    ]

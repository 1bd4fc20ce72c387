"""The fence of a client: when there is one, when there is none, and what is left of it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from dragoman.errors import FenceError
from dragoman.host.fence import fence as module
from dragoman.host.fence.fence import Fence, PrivateFolder, Support, sockets_of_others
from dragoman.host.fence.floor import FencePlace, Floor

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a fence needs Linux")


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "data"))
    return tmp_path / "data"


def floor(roots: Sequence[str]) -> Floor:
    return Floor(places=tuple(FencePlace(root, "write", "the workspace") for root in roots))


def has(monkeypatch: pytest.MonkeyPatch, found: Support) -> None:
    async def support(_folder: str) -> Support:
        return found

    monkeypatch.setattr(module, "support", support)


async def test_a_required_fence_that_cannot_be_built_starts_nothing(
    monkeypatch: pytest.MonkeyPatch, data: Path
) -> None:
    has(monkeypatch, Support(None, "no namespaces"))
    with pytest.raises(FenceError, match="no namespaces; nothing was started"):
        await Fence("require", ["/ws"], floor).open("agent")
    assert list((data / "fences").iterdir()) == []


async def test_a_wanted_fence_that_cannot_be_built_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    has(monkeypatch, Support(None, "no namespaces"))
    fence = Fence("on", ["/ws"], floor)
    assert await fence.open("agent") is None
    assert fence.problem == "no namespaces"
    assert fence.holds("/anywhere")
    assert fence.environment({"SSH_AUTH_SOCK": "x"}) == {"SSH_AUTH_SOCK": "x"}


async def test_its_temporary_folder_is_private_and_goes_with_it(
    monkeypatch: pytest.MonkeyPatch, data: Path
) -> None:
    has(monkeypatch, Support("namespaces"))
    fence = Fence("on", ["/ws"], floor)
    plan = await fence.open("agent")
    assert plan is not None
    assert fence.folder is not None
    assert os.stat(fence.folder).st_mode & 0o777 == 0o700
    env = fence.environment({"TMPDIR": "/tmp", "DBUS_SESSION_BUS_ADDRESS": "x"})
    assert env["TMPDIR"] == fence.folder
    assert "DBUS_SESSION_BUS_ADDRESS" not in env
    assert fence.holds("/ws/inner")
    assert not fence.holds("/wsx")
    leave_unreadable(Path(fence.folder))
    await fence.aclose()
    assert list((data / "fences").iterdir()) == []


def leave_unreadable(folder: Path) -> None:
    unreadable = folder / "closed"
    unreadable.mkdir()
    (unreadable / "file").touch()
    unreadable.chmod(0)


def test_what_a_killed_owner_left_is_removed_by_the_next(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; "
        "from dragoman.host.fence.fence import PrivateFolder; "
        "folder = PrivateFolder(Path(sys.argv[1])); Path(folder.path, 'x').touch(); "
        "print(folder.path, flush=True); os.kill(os.getpid(), 9)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "fences")]
    left = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    assert Path(left, "x").exists()
    ours = PrivateFolder(tmp_path / "fences")
    assert not Path(left).exists()
    others = PrivateFolder(tmp_path / "fences")
    assert Path(ours.path).exists()
    for folder in (ours, others):
        folder.close()
    assert list((tmp_path / "fences").iterdir()) == []


def test_only_what_is_a_socket_by_its_name_here_is_one_to_hide(tmp_path: Path) -> None:
    """A process may have another file by that name, in files of its own."""
    there, replaced = str(tmp_path / "there.sock"), str(tmp_path / "replaced.sock")
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as other:
        one.bind(there)
        other.bind(replaced)
        found = sockets_of_others()
        assert {there, replaced} <= set(found)
        os.unlink(replaced)
        Path(replaced).write_text("a file")
        assert there in sockets_of_others()
        assert replaced not in sockets_of_others()

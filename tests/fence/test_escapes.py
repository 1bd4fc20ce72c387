"""Nothing gets out of a fence, as root or as an ordinary user, and without one everything does.

Each kind of user makes two runs of `programs/guard.py`, with a fence and without; each attempt of
`programs/escapes.py` is a case.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support import ordinary_user

PROGRAMS = Path(__file__).parent / "programs"


def attempts(program: str) -> list[tuple[str, str]]:
    """Who can make them, and their names."""
    text = (PROGRAMS / program).read_text()
    return re.findall(r"^@(escape|root_only|user_only)\ndef (\w+)", text, re.MULTILINE)


def cases(found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    users = (("root", "user_only"), ("ordinary", "root_only"))
    return [(user, name) for user, other in users for kind, name in found if kind != other]


ESCAPES = attempts("escapes.py")
CASES = cases(ESCAPES)
NETWORK_CASES = cases(attempts("network_escapes.py"))
SECONDS = 120
"""Only a failure takes that long."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a fence needs Linux")


@contextmanager
def playground() -> Generator[Path]:
    """A folder outside `/tmp`, which is private inside a fence."""
    places = ["/srv", "/opt", "/var/lib", str(Path.home())]
    parent = next(place for place in places if os.access(place, os.W_OK))
    folder = Path(tempfile.mkdtemp(prefix="df-", dir=parent))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@functools.cache
def outcomes(user: str, kind: str) -> dict[str, str]:
    with playground() as folder:
        words = [sys.executable, str(PROGRAMS / "guard.py"), str(folder), kind]
        if user == "ordinary" and os.geteuid() == 0:
            hand_over(folder)
            words = ordinary_user.command(words)
        done = subprocess.run(
            words, capture_output=True, text=True, check=False, timeout=SECONDS, cwd="/"
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return dict(line.split(" ", 1) for line in done.stdout.splitlines())


def hand_over(folder: Path) -> None:
    """With a shell in it that makes root of everybody, and a file that only root may write."""
    shutil.copy("/bin/bash", folder / "rootly")
    (folder / "rootly").chmod(0o4755)
    (folder / "of-root").write_text("as it was\n")
    os.chown(folder, ordinary_user.USER, ordinary_user.USER)


@pytest.fixture
def user(request: pytest.FixtureRequest) -> str:
    if request.param == "root" and os.geteuid() != 0:
        pytest.skip("the tests do not run as root")
    if request.param == "ordinary" and (reason := _not_ordinary()):
        pytest.skip(reason)
    return request.param


@functools.cache
def _not_ordinary() -> str | None:
    return ordinary_user.reason_not_to()


@pytest.mark.parametrize(("user", "name"), CASES, indirect=["user"])
def test_nothing_gets_out(user: str, name: str) -> None:
    control = outcomes(user, "open")[name]
    if control.startswith("impossible"):
        pytest.skip(control)
    if name == "by_set_user_id" and os.geteuid() != 0:
        pytest.skip("nobody here can make a set-user-id program")
    assert control == "escaped"
    assert outcomes(user, "fenced")[name].startswith("held: ")


@pytest.mark.parametrize("network", ["none", "listed"])
@pytest.mark.parametrize(("user", "name"), NETWORK_CASES, indirect=["user"])
def test_nothing_is_reached_that_is_not_listed(user: str, name: str, network: str) -> None:
    control = outcomes(user, "online")[name]
    if control.startswith("impossible"):
        pytest.skip(control)
    assert control == "escaped"
    assert outcomes(user, network)[name].startswith("held: ")


@pytest.mark.parametrize("user", ["root", "ordinary"], indirect=True)
def test_what_is_listed_is_reached(user: str) -> None:
    assert outcomes(user, "listed")["reaching_what_is_listed"] == "escaped"
    assert outcomes(user, "none")["reaching_what_is_listed"].startswith("held: ")


def test_there_are_enough_attempts() -> None:
    assert len(ESCAPES) >= 60

"""Nothing gets out of a fence, as root or as an ordinary user, and without one everything does.

Each kind of user makes runs of `programs/guard.py`, with a fence of each kind and without; each
attempt in `programs` is a case.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
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


KINDS = ("file", "process", "later", "kernel")
ESCAPES = [each for kind in KINDS for each in attempts(f"{kind}_escapes.py")]
CASES = cases(ESCAPES)
NETWORK_CASES = cases(attempts("network_escapes.py"))
LANDLOCK_GAPS = {
    "modes, times and attributes of files are not governed": {
        "by_mode",
        "by_times",
        "by_attribute",
        "by_flags_of_a_file",
    },
    "nothing is covered": {
        "by_reading_keys",
        "by_reading_keys_through_a_link",
        "by_reading_keys_through_the_root",
        "by_reading_keys_through_another_mount",
        "by_reading_cloud_credentials",
        "by_reading_a_browser",
        "by_reading_passwords_in_a_file",
        "by_reading_another_agent",
        "by_reading_passwords_of_the_system",
        "by_reading_the_data",
        "by_reading_the_settings",
        "by_moving_what_is_above_hidden_keys",
    },
    "nothing is protected in a folder that may be written": {
        "by_hook",
        "by_new_hook",
        "by_settings_of_git",
        "by_replacing_the_settings_of_git",
        "by_git_itself",
        "by_moving_the_repository",
        "by_exchanging_the_repository",
        "by_moving_the_hooks",
        "by_deleting_the_hooks",
        "by_another_name_of_the_hooks",
        "by_hook_of_a_submodule",
        "by_file_of_a_worktree",
        "by_repository_of_a_worktree",
        "by_hooks_of_a_worktree",
        "by_environment_file",
        "by_settings_of_an_editor",
        "by_moving_the_settings_of_an_editor",
        "by_settings_of_an_agent",
        "by_workflow",
        "by_moving_the_workflows",
        "by_deeper_settings_of_an_agent",
        "by_another_name_of_the_settings_of_git",
        "by_exchanging_a_protected_file",
    },
    "other processes and what they share are there": {
        "by_limits_of_another_process",
        "by_priority_of_another_process",
        "by_shared_memory",
        "by_terminal_of_another",
        "by_keys_of_the_user",
        "by_handle_of_another_process",
        "by_queue_of_messages",
        "by_semaphore",
    },
    "sockets of other programs are there": {
        "by_socket_at_home",
        "by_socket_of_gpg",
        "by_socket_of_docker",
        "by_socket_in_the_temporary_folder",
        "by_manager_of_services",
        "by_socket_of_the_system",
        "by_socket_in_another_network",
        "by_datagram_into_another_network",
    },
}
"""What a fence without namespaces does not hold; docs/explanation/fence.md says so."""
WRITE_EVERY_FILE = struct.pack("<5I", 0x02000001, 1 << 1, 0, 0, 0)
"""As an attribute of a program: whoever runs it has this right."""
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
        if os.geteuid() == 0:
            make_device(folder)
            words = mounted_twice(folder, words)
        done = subprocess.run(
            words, capture_output=True, text=True, check=False, timeout=SECONDS, cwd="/"
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return dict(line.split(" ", 1) for line in done.stdout.splitlines())


def make_device(folder: Path) -> None:
    """Of the kind of `/dev/null`."""
    with suppress(OSError):  # a container refuses it
        os.mknod(folder / "device", stat.S_IFCHR, os.makedev(1, 3))
        (folder / "device").chmod(0o666)


def mounted_twice(folder: Path, words: list[str]) -> list[str]:
    """To run these words where the home is to be found by another name as well."""
    for name in ("home", "again"):
        (folder / name).mkdir()
        owner = folder.stat()
        os.chown(folder / name, owner.st_uid, owner.st_gid)
    line = 'mount --bind "$1/home" "$1/again" && shift && exec "$@"'
    unshared = ["unshare", "--mount", "--propagation", "private", "sh", "-c", line]
    return [*unshared, "sh", str(folder), *words]


def hand_over(folder: Path) -> None:
    """With a shell in it that makes root of everybody, one that may write every file, and a file
    that only root may write."""
    for name in ("rootly", "able"):
        shutil.copy("/bin/bash", folder / name)
    (folder / "rootly").chmod(0o4755)
    with suppress(OSError):  # a file system without attributes
        os.setxattr(folder / "able", "security.capability", WRITE_EVERY_FILE)
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


@pytest.mark.parametrize(("user", "name"), CASES, indirect=["user"])
def test_without_namespaces_only_what_is_known_gets_out(user: str, name: str) -> None:
    if outcomes(user, "open")[name].startswith("impossible"):
        pytest.skip("it cannot be tried here")
    known = any(name in names for names in LANDLOCK_GAPS.values())
    assert known or outcomes(user, "landlock")[name].startswith("held: ")


@pytest.mark.parametrize("network", ["none", "listed", "landlock-none"])
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
    for network in ("none", "landlock-none"):
        assert outcomes(user, network)["reaching_what_is_listed"].startswith("held: ")


@pytest.mark.parametrize(
    ("user", "works"), [("ordinary", True), ("root", False)], indirect=["user"]
)
def test_an_agents_own_sandbox_works_inside_unless_it_is_root(user: str, works: bool) -> None:
    control = outcomes(user, "open")["starting_its_own_sandbox"]
    if control.startswith("impossible"):
        pytest.skip(control)
    assert control == "escaped"
    assert (outcomes(user, "fenced")["starting_its_own_sandbox"] == "escaped") is works


def test_there_are_enough_attempts() -> None:
    assert len(ESCAPES) >= 60

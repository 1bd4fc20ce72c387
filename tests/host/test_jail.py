from __future__ import annotations

import errno
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from host.inside import legitimate
from host.trees import INSIDE, SECRET, Escape, Tree, chain, escapes, plant

from dragoman.errors import InternalError, InvalidParams, RemoteError, ResourceNotFound
from dragoman.host.workspace import held_directory
from dragoman.host.workspace.atomic import existing, read_up_to, replace
from dragoman.host.workspace.jail import (
    Jail,
    Resolved,
    check_roots,
    found,
    real_file,
    real_path,
    resolve,
)
from dragoman.host.workspace.roots import Workspace

WRITTEN = b"written by the agent"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return plant(tmp_path)


@pytest.fixture
def jail(tree: Tree) -> Jail:
    return Jail(tree.roots, forbidden=(str(tree.data),))


def read(jail: Jail, path: str) -> str:
    descriptor = jail.open_file(path)
    try:
        return read_up_to(descriptor, 1 << 20).decode()
    finally:
        os.close(descriptor)


def write(jail: Jail, path: str) -> Path:
    with jail.target(path, create=True) as target:
        replace(target, WRITTEN, existing(target, 1 << 20))
        return Path(target.path)


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


# Each says whether it got out, and is refused with a RemoteError where the jail holds.


def escaped_by_reading(tree: Tree, jail: Jail, escape: Escape) -> bool:
    return read(jail, escape.file) != INSIDE and escape.kind != "hard link"


def escaped_by_writing(tree: Tree, jail: Jail, escape: Escape) -> bool:
    before = tree.snapshot()
    with suppress(RemoteError):
        real = write(jail, escape.file)
        # A name that only looks like a way out may be an ordinary name inside.
        assert escape.kind in ("look-alike", "hard link"), escape
        assert any(real.is_relative_to(root) for root in tree.roots), escape
    return tree.snapshot() != before


def escaped_by_working_directory(tree: Tree, jail: Jail, escape: Escape) -> bool:
    descriptor = jail.open_directory(escape.directory)
    try:
        return tree.holds_guarded(descriptor)
    finally:
        os.close(descriptor)


def escaped_by_attaching(tree: Tree, jail: Jail, escape: Escape) -> bool:
    """An attachment is a file of any content, or a directory taken for one."""
    if escape.kind == "hard link":
        return False
    for path in (escape.file, escape.directory, f"{escape.directory}/secret.txt"):
        with suppress(RemoteError):
            descriptor = jail.open_file(path)
            content = read_up_to(descriptor, 1 << 20)
            os.close(descriptor)
            return content not in (INSIDE.encode(), WRITTEN)
    return False


FORMS: dict[str, Callable[[Tree, Jail, Escape], bool]] = {
    "read": escaped_by_reading,
    "write": escaped_by_writing,
    "working directory": escaped_by_working_directory,
    "attachment": escaped_by_attaching,
}


@pytest.mark.usefixtures("opener")
@pytest.mark.parametrize("form", FORMS)
def test_none_of_300_escapes_gets_out(tree: Tree, jail: Jail, form: str) -> None:
    tries = escapes(tree)
    before = open_descriptors()
    escaped: list[Escape] = []
    for escape in tries:
        with suppress(RemoteError):
            if FORMS[form](tree, jail, escape):
                escaped.append(escape)
    assert escaped == []
    assert len(tries) >= 300
    assert open_descriptors() == before


def test_without_a_jail_most_of_those_escapes_succeed(tree: Tree) -> None:
    """The control: the list is worth its number only if the system would go there."""
    plain = [escape for escape in escapes(tree) if escape.is_plain]
    stolen = [escape for escape in plain if Path(escape.file).read_text() == SECRET]
    entered = [escape for escape in plain if os.path.isdir(escape.directory)]
    assert len(stolen) == len(entered) == len(plain) >= 200


@pytest.mark.usefixtures("opener")
def test_none_of_60_legitimate_paths_is_refused(tree: Tree, jail: Jail) -> None:
    paths = legitimate(tree)
    assert len(paths) >= 60
    for path, _ in paths:
        assert read(jail, path) == INSIDE, path
        directory = jail.open_directory(os.path.dirname(path))
        assert not tree.holds_guarded(directory), path
        os.close(directory)
    for path, real in paths:
        assert write(jail, path) == real
        assert real.read_bytes() == WRITTEN, path
    assert (tree.outside / "hard").read_text() == INSIDE


REFUSALS: dict[str, tuple[type[RemoteError], str]] = {
    "{outside}/secret.txt": (InvalidParams, "outside the workspace"),
    "{root}/../outside/secret.txt": (InvalidParams, "outside the workspace"),
    "{root}/way-out/secret.txt": (InvalidParams, "outside the workspace"),
    "{root}/loop": (InvalidParams, "too many symbolic links, or one that changed just now"),
    "{root}/sub": (InvalidParams, "a directory, not a file"),
    "{root}": (InvalidParams, "a directory, not a file"),
    "{root}/inside.txt/": (InvalidParams, "a directory, not a file"),
    "{root}/fifo": (InvalidParams, "not a regular file"),
    "{root}/sub/own-data/secret.txt": (InvalidParams, "closed to agents"),
    "inside.txt": (InvalidParams, "not an absolute path"),
    "{root}/\0": (InvalidParams, "not a valid path"),
    "{root}/missing": (ResourceNotFound, "no such file or directory"),
    "{root}/missing/missing": (ResourceNotFound, "no such file or directory"),
    "{root}/inside.txt/x": (ResourceNotFound, "a part of the path is not a directory"),
    "{root}/" + "x" * 300: (InternalError, "file name too long"),
    "{root}" + "/x" * 300: (InvalidParams, "not a valid path"),
}


@pytest.mark.usefixtures("opener")
@pytest.mark.parametrize("form", REFUSALS)
def test_a_refusal_has_its_code_the_path_and_the_reason(tree: Tree, jail: Jail, form: str) -> None:
    (tree.root / "way-out").symlink_to(tree.outside)
    (tree.root / "loop").symlink_to("loop")
    os.mkfifo(tree.root / "fifo")
    path = form.format(root=tree.root, outside=tree.outside)
    kind, reason = REFUSALS[form]
    with pytest.raises(kind) as caught:
        jail.open_file(path)
    assert caught.value.data == {"path": path, "reason": reason}
    assert caught.value.message == f"{path}: {reason}"


def test_a_path_that_is_not_text_can_still_be_answered(jail: Jail) -> None:
    with pytest.raises(InvalidParams) as caught:
        jail.open_file("/\ud800")
    assert caught.value.data["path"] == "/\\ud800"


def test_opening_a_fifo_never_blocks(tree: Tree, jail: Jail) -> None:
    os.mkfifo(tree.root / "fifo")

    def attempt() -> None:
        with suppress(InvalidParams):
            jail.open_file(f"{tree.root}/fifo")
        with suppress(InvalidParams):
            write(jail, f"{tree.root}/fifo")

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()


@pytest.mark.usefixtures("opener")
def test_a_link_put_in_after_the_path_was_resolved_is_refused(tree: Tree, jail: Jail) -> None:
    """What was judged is what is opened, even where the new target is inside as well."""
    judged = real_path(f"{tree.root}/link-in/deeper/inside.txt")
    assert judged == f"{tree.root}/sub/deeper/inside.txt"
    (tree.root / "sub" / "deeper").rename(tree.root / "elsewhere")
    (tree.root / "sub" / "deeper").symlink_to("../elsewhere")
    with pytest.raises((InvalidParams, ResourceNotFound)):
        jail.open_file(judged)
    with pytest.raises((InvalidParams, ResourceNotFound)):
        write(jail, judged)
    assert read(jail, f"{tree.root}/sub/deeper/inside.txt") == INSIDE


@pytest.mark.usefixtures("opener")
def test_a_file_replaced_by_a_link_after_it_was_resolved_is_refused(tree: Tree, jail: Jail) -> None:
    judged = real_path(f"{tree.root}/inside.txt")
    (tree.root / "inside.txt").unlink()
    (tree.root / "inside.txt").symlink_to("sub/inside.txt")
    with pytest.raises(InvalidParams):
        jail.open_file(judged)
    with pytest.raises(InvalidParams):
        write(jail, judged)
    assert (tree.root / "sub" / "inside.txt").read_text() == INSIDE


@pytest.mark.usefixtures("opener")
@pytest.mark.parametrize("which", ["root", "extra"])
def test_a_root_that_becomes_a_link_leads_nowhere(tree: Tree, jail: Jail, which: str) -> None:
    path = tree.base / which
    path.rename(tree.base / "moved")
    path.symlink_to(tree.outside)
    with pytest.raises(InvalidParams, match="was moved or replaced after the session started"):
        jail.open_file(f"{path}/secret.txt")
    with pytest.raises(InvalidParams, match="outside"):
        write(jail, f"{path}/new.txt")


@pytest.mark.usefixtures("opener")
def test_a_root_inside_another_that_becomes_a_link_leads_nowhere(tree: Tree) -> None:
    jail = Jail((str(tree.root), str(tree.root / "sub" / "deeper")))
    (tree.root / "sub").rename(tree.root / "moved")
    (tree.root / "sub").symlink_to(tree.outside)
    (tree.outside / "deeper").mkdir()
    (tree.outside / "deeper" / "secret.txt").write_text(SECRET)
    with pytest.raises(InvalidParams, match="outside"):
        jail.open_file(f"{tree.root}/sub/deeper/secret.txt")


@pytest.mark.usefixtures("opener")
def test_a_root_may_be_named_by_a_link(tree: Tree) -> None:
    alias = tree.base / "alias"
    alias.symlink_to(tree.root)
    jail = Jail((str(alias),))
    for name in (alias, tree.root):
        assert read(jail, f"{name}/sub/inside.txt") == INSIDE
        assert write(jail, f"{name}/new/file.txt") == tree.root / "new" / "file.txt"


@pytest.mark.usefixtures("opener")
def test_the_top_of_the_file_system_may_be_a_root_but_not_proc(tree: Tree) -> None:
    jail = Jail(("/",))
    assert read(jail, f"{tree.outside}/secret.txt") == SECRET
    os.close(jail.open_directory("/"))
    closed = ("/proc/self/environ", "/proc/1/status", f"/proc/self/root{tree.root}/x")
    for path in (*closed, "/proc/self/fd/0", "/dev/fd/0", "/dev/stdin"):
        with pytest.raises(InvalidParams, match="closed to agents"):
            jail.open_file(path)
    with pytest.raises(InvalidParams, match="closed to agents"):
        jail.open_directory("/proc/sys")


def data_directories(tree: Tree) -> Iterator[tuple[str, Jail]]:
    """Ways to say which directory is ours."""
    link = tree.base / "data-link"
    link.symlink_to(tree.data)
    for name in (str(tree.data), f"{tree.data}/", str(link), f"{tree.root}/link-in/own-data"):
        yield name, Jail(tree.roots, forbidden=(name,))


@pytest.mark.usefixtures("opener")
def test_our_own_data_is_closed_however_it_is_named(tree: Tree) -> None:
    for name, jail in data_directories(tree):
        for path in (f"{tree.data}/secret.txt", f"{tree.data}/deep/secret.txt"):
            with pytest.raises(InvalidParams, match="closed to agents"):
                read(jail, path)
            with pytest.raises(InvalidParams, match="closed to agents"):
                write(jail, path)
        with pytest.raises(InvalidParams, match="closed to agents"):
            jail.open_directory(str(tree.data))
        assert read(jail, f"{tree.root}/sub/inside.txt") == INSIDE, name


@pytest.mark.usefixtures("opener")
def test_a_workspace_inside_our_own_data_is_closed(tree: Tree) -> None:
    jail = Jail((str(tree.data / "deep"),), forbidden=(str(tree.data),))
    with pytest.raises(InvalidParams, match="closed to agents"):
        jail.open_file(f"{tree.data}/deep/secret.txt")


@pytest.mark.usefixtures("opener")
def test_our_own_data_is_closed_before_it_exists(tree: Tree) -> None:
    future = tree.root / "home" / "share" / "Dragoman"
    jail = Jail(tree.roots, forbidden=(str(future),))
    for path in (future / "policy.json", future / "a" / "b", future.with_name("dragoman") / "x"):
        with pytest.raises(InvalidParams, match="closed to agents"):
            write(jail, str(path))
    assert not (tree.root / "home").exists()
    assert write(jail, f"{future.parent}/other/file.txt").exists()
    future.mkdir()
    with pytest.raises(InvalidParams, match="closed to agents"):
        write(jail, f"{future}/policy.json")


@pytest.mark.usefixtures("opener")
def test_nothing_is_put_in_the_place_of_our_own_data(tree: Tree) -> None:
    future = tree.root / "home" / "share" / "Dragoman"
    jail = Jail(tree.roots, forbidden=(str(future),))
    for path in (
        future,
        future.parent,
        future.parent.parent,
        tree.root / "home" / "share" / "DRAGOMAN",
    ):
        with pytest.raises(InvalidParams, match="closed to agents"):
            write(jail, str(path))
    future.parent.mkdir(parents=True)
    future.symlink_to(tree.root / "elsewhere")
    for path in (tree.root / "elsewhere", tree.root / "elsewhere" / "policy.json"):
        with pytest.raises(InvalidParams, match="closed to agents"):
            write(jail, str(path))


@pytest.mark.usefixtures("opener")
def test_our_own_data_is_closed_after_it_was_moved(tree: Tree, jail: Jail) -> None:
    tree.data.rename(tree.root / "moved")
    for place in ("moved", "moved/deep"):
        for later in (jail, Jail(tree.roots, forbidden=(str(tree.data),))):
            with pytest.raises(InvalidParams, match="closed to agents"):
                read(later, f"{tree.root}/{place}/secret.txt")
    tree.data.mkdir()
    (tree.data / "new.txt").write_text(SECRET)
    for path in (tree.data / "new.txt", tree.root / "moved" / "secret.txt"):
        with pytest.raises(InvalidParams, match="closed to agents"):
            read(jail, str(path))


MOUNTED = """
import sys
from dragoman.errors import InvalidParams
from dragoman.host.workspace.jail import Jail
root, data = sys.argv[1:]
jail = Jail((root,), forbidden=(data,))
for path in ("mounted/secret.txt", "mounted/deep/secret.txt", "above/data/secret.txt"):
    try:
        jail.open_file(f"{root}/{path}")
    except InvalidParams as error:
        assert "closed to agents" in str(error), error
        print("closed")
"""


def test_our_own_data_is_closed_where_it_is_mounted_again(tmp_path: Path) -> None:
    root, data = tmp_path / "root", tmp_path / "up" / "data"
    for folder in (root / "mounted", root / "above", data / "deep"):
        folder.mkdir(parents=True)
    for folder in (data, data / "deep"):
        (folder / "secret.txt").write_text(SECRET)
    mount = f"mount --bind {data} {root}/mounted && mount --bind {data.parent} {root}/above"
    check = shlex.join([sys.executable, "-c", MOUNTED, str(root), str(data)])
    try:
        done = subprocess.run(
            ["unshare", "-m", "sh", "-c", f"({mount}) 2>/dev/null || exit 77; {check}"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except FileNotFoundError:
        pytest.skip("there is no unshare")
    if done.returncode in (1, 77) and "Traceback" not in done.stderr:
        pytest.skip("mounting is not allowed here")
    assert (done.stdout.split(), done.stderr) == (["closed"] * 3, "")


@pytest.mark.usefixtures("opener")
@pytest.mark.parametrize("how", ["folder", "link", "gone"])
def test_a_root_is_the_folder_that_it_was(tree: Tree, how: str) -> None:
    workspace = found(Workspace("s", str(tree.root), (str(tree.extra),)))
    tree.root.rename(tree.base / "moved")
    if how == "folder":
        tree.root.mkdir()
        (tree.root / "file.txt").write_text(SECRET)
    elif how == "link":
        tree.root.symlink_to(tree.outside)
    jail = Jail(workspace.places)
    for attempt in (
        lambda: jail.open_file(f"{tree.root}/file.txt"),
        lambda: jail.open_directory(str(tree.root)),
        lambda: check_roots(workspace),
    ):
        with pytest.raises(InvalidParams, match="was moved or replaced after the session started"):
            attempt()
    with pytest.raises(InvalidParams):
        write(jail, f"{tree.root}/new/file.txt")
    assert read(jail, f"{tree.extra}/inside.txt") == INSIDE


@pytest.mark.usefixtures("opener")
def test_directories_are_made_beneath_the_root_and_unmade_when_the_write_fails(
    tree: Tree, jail: Jail
) -> None:
    made: list[str] = []

    def fail() -> None:
        with jail.target(f"{tree.root}/new/deep/er/file.txt", create=True) as target:
            made.extend(Path(path).name for path in target.made)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert made == ["new", "deep", "er"]
    assert not (tree.root / "new").exists()
    with pytest.raises(InternalError), jail.target(f"{tree.root}/new/{'x' * 300}/f", create=True):
        pass
    assert not (tree.root / "new").exists()


@pytest.mark.usefixtures("opener")
def test_only_empty_directories_are_removed(tree: Tree, jail: Jail) -> None:
    (tree.root / "empty").mkdir()
    paths = [f"{tree.root}/sub", f"{tree.root}/empty", f"{tree.root}/missing", str(tree.outside)]
    assert jail.remove_directories(paths) == [f"{tree.root}/empty"]
    assert (tree.root / "sub").exists()


def test_resolving_follows_what_the_kernel_would_and_gives_up_on_long_chains(tree: Tree) -> None:
    assert resolve(f"{tree.root}/link-in/../x//./y") == f"{tree.root}/x/y"
    assert resolve("/../..") == "/"
    assert resolve("/proc/self/root/etc") == "/proc/self/root/etc"
    assert isinstance(resolve("/"), Resolved)
    (tree.root / "loop").symlink_to("loop")
    chain(tree.root / "short", tree.root / "inside.txt", 40, is_relative=True)
    chain(tree.root / "long", tree.root / "inside.txt", 41, is_relative=True)
    assert resolve(f"{tree.root}/short") == f"{tree.root}/inside.txt"
    for name in ("loop", "long"):
        with pytest.raises(InvalidParams, match="too many"):
            real_path(f"{tree.root}/{name}")


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.EPERM])
def test_the_walk_stands_in_where_openat2_is_missing_or_filtered(
    monkeypatch: pytest.MonkeyPatch, jail: Jail, tree: Tree, code: int
) -> None:
    def refused(path: str) -> int:
        raise OSError(code, os.strerror(code), path)

    monkeypatch.setattr(held_directory, "_openat2", refused)
    held_directory.has_openat2.cache_clear()
    try:
        assert not held_directory.has_openat2()
        assert read(jail, f"{tree.root}/sub/inside.txt") == INSIDE
    finally:
        held_directory.has_openat2.cache_clear()


def test_a_system_that_cannot_confine_files_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.host.workspace.jail.SUPPORTED", False)
    with pytest.raises(InternalError, match="file access is unsupported"):
        Jail(("/",))


@pytest.mark.parametrize(
    ("start", "reason"), [("/", "longer than 4096 characters"), ("", "not an absolute path")]
)
def test_a_path_of_any_length_is_refused_in_few_words(start: str, reason: str) -> None:
    with pytest.raises(InvalidParams) as refused:
        real_file(start + "\ud800x" * 1_000_000)
    assert refused.value.data["reason"] == reason
    assert len(str(refused.value)) + len(repr(refused.value.data)) < 100_000

"""A workspace on disk with something beside it to steal, and paths that try to get there."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SECRET = "SECRET"
INSIDE = "inside\n"


@dataclass(frozen=True)
class Tree:
    """`root` and `extra` may be used; `outside`, `rootling` and `data` may not."""

    base: Path

    @property
    def root(self) -> Path:
        return self.base / "root"

    @property
    def extra(self) -> Path:
        return self.base / "extra"

    @property
    def outside(self) -> Path:
        return self.base / "outside"

    @property
    def rootling(self) -> Path:
        return self.base / "rootling"

    @property
    def data(self) -> Path:
        return self.root / "sub" / "own-data"

    @property
    def roots(self) -> tuple[str, str]:
        return str(self.root), str(self.extra)

    @property
    def guarded(self) -> tuple[Path, ...]:
        return self.outside, self.rootling, self.data

    def snapshot(self) -> dict[str, bytes]:
        """Every name and content that no request may change."""
        found = {str(path): b"" for path in self.base.iterdir()}
        for directory in self.guarded:
            for path in directory.rglob("*"):
                found[str(path)] = path.read_bytes() if path.is_file() else b""
        return found

    def holds_guarded(self, directory: int) -> bool:
        """Whether an open directory is, or is in, one that is out of bounds."""
        where = Path(os.readlink(f"/proc/self/fd/{directory}"))
        if any(where.is_relative_to(guarded) for guarded in self.guarded):
            return True
        return not any(where.is_relative_to(root) for root in self.roots)


def plant(base: Path) -> Tree:
    tree = Tree(base)
    for directory in (tree.root / "sub" / "deeper", tree.extra, tree.data / "deep"):
        directory.mkdir(parents=True)
        (directory / "inside.txt").write_text(INSIDE)
    (tree.root / "inside.txt").write_text(INSIDE)
    (tree.root / "sub" / "inside.txt").write_text(INSIDE)
    for directory in tree.guarded:
        (directory / "deep").mkdir(parents=True, exist_ok=True)
        (directory / "secret.txt").write_text(SECRET)
        (directory / "deep" / "secret.txt").write_text(SECRET)
    (tree.root / "link-in").symlink_to("sub")
    return tree


@dataclass(frozen=True)
class Escape:
    """A way out: by a file, and by a directory."""

    kind: str
    file: str
    directory: str
    is_plain: bool = True
    """Whether the system itself, asked without a jail, would go there."""


def escapes(tree: Tree) -> list[Escape]:
    """At least 300, each made on disk where it needs to be. The tree is theirs from then on."""
    kinds: tuple[Callable[[Tree], Iterator[Escape]], ...] = (
        _dot_dots,
        _absolute,
        _links,
        _broken_links,
        _proc,
        _special_files,
        _odd_strings,
        _look_alikes,
        _own_data,
        _hard_links,
    )
    return [escape for kind in kinds for escape in kind(tree)]


def _dot_dots(tree: Tree) -> Iterator[Escape]:
    starts = {"": 1, "sub": 2, "sub/deeper": 3, "link-in": 2, "missing": 2, "inside.txt": 2}
    for start, depth in starts.items():
        exists = start not in ("missing", "inside.txt")
        for style in ("../", "..//", ".././", "./../"):
            for target in (tree.outside, tree.rootling):
                way = f"{tree.root}/{start}/{style * depth}{target.name}"
                yield Escape("dot-dot", f"{way}/secret.txt", way, exists)
                top = f"{tree.root}/{start}/{style * 40}{str(target)[1:]}"
                yield Escape("dot-dot to the top", f"{top}/deep/secret.txt", top, exists)


def _absolute(tree: Tree) -> Iterator[Escape]:
    root = str(tree.root)
    for target in (str(tree.outside), str(tree.rootling), f"{tree.outside}/deep"):
        for way in (
            target,
            f"/{target}",
            f"//{target}",
            target.replace("/", "//"),
            target.replace("/", "/./"),
            f"{target}/../{target.rpartition('/')[2]}",
            f"{root}/../{target.removeprefix(str(tree.base))}",
        ):
            yield Escape("absolute", f"{way}/secret.txt", way)
    yield Escape("above", f"{tree.base}/outside/secret.txt", str(tree.base))
    yield Escape("upper case", f"{root.upper()}/inside.txt", root.upper(), is_plain=False)
    yield Escape("title case", f"{root.title()}/inside.txt", root.title(), is_plain=False)


def _links(tree: Tree) -> Iterator[Escape]:
    number = 0
    for place in (tree.root, tree.root / "sub" / "deeper", tree.extra):
        for target in (tree.outside, tree.rootling / "deep", tree.base):
            for is_relative in (False, True):
                for hops in (1, 2, 5, 39):
                    number += 1
                    leaf = "outside/secret.txt" if target == tree.base else "secret.txt"
                    to_directory = place / f"way-{number}"
                    to_file = place / f"file-{number}.txt"
                    chain(to_directory, target, hops, is_relative=is_relative)
                    chain(to_file, target / leaf, hops, is_relative=is_relative)
                    yield Escape("link", f"{to_directory}/{leaf}", str(to_directory))
                    yield Escape("link to a file", str(to_file), f"{to_directory}/.")
    chain(tree.root / "long", tree.outside, 60, is_relative=True)
    yield Escape("long chain", f"{tree.root}/long/secret.txt", f"{tree.root}/long", is_plain=False)
    (tree.root / "loop").symlink_to("pool")
    (tree.root / "pool").symlink_to("loop")
    yield Escape("loop", f"{tree.root}/loop", f"{tree.root}/pool", is_plain=False)


def chain(link: Path, target: Path, hops: int, *, is_relative: bool) -> None:
    """`hops` links, each to the next, the last one to the target."""
    for hop in range(hops, 0, -1):
        name = link if hop == 1 else link.with_name(f".{link.name}-{hop}")
        goal = os.path.relpath(target, link.parent) if is_relative else str(target)
        name.symlink_to(goal)
        target = name


def _broken_links(tree: Tree) -> Iterator[Escape]:
    for number, target in enumerate(
        (
            "../outside/new.txt",
            str(tree.outside / "new.txt"),
            "../outside/new/deep",
            str(tree.outside / "new"),
            "sub/../../outside/new",
            "link-in/../../outside/new",
        )
    ):
        link = tree.root / f"broken-{number}"
        link.symlink_to(target)
        yield Escape("broken link", str(link), str(link), is_plain=False)
        yield Escape("beneath a broken link", f"{link}/new.txt", f"{link}/new", is_plain=False)


def _proc(tree: Tree) -> Iterator[Escape]:
    pid = os.getpid()
    held = os.open(tree.outside, os.O_RDONLY)  # ends with the process that runs the tests
    for top in ("self", "thread-self", str(pid), f"self/task/{pid}"):
        for link in (f"root{tree.outside}", f"fd/{held}", f"cwd/{'../' * 40}{tree.outside}"):
            way = f"/proc/{top}/{link}"
            yield Escape("proc", f"{way}/secret.txt", way)
    yield Escape("fd", f"/dev/fd/{held}/secret.txt", f"/dev/fd/{held}")
    yield Escape("inside by proc", f"/proc/self/root{tree.root}/inside.txt", "/proc/self", False)
    for number, goal in enumerate(("/proc/self/root", f"/proc/self/fd/{held}", "/proc/self/cwd")):
        link = tree.root / f"proc-{number}"
        link.symlink_to(goal)
        leaf = "secret.txt" if number == 1 else f"{'../' * 40}{tree.outside}/secret.txt"
        yield Escape("link to proc", f"{link}/{leaf}", str(link))
    for name in ("environ", "mem", "maps", "cmdline", "status"):
        yield Escape("proc file", f"/proc/self/{name}", f"/proc/{pid}", is_plain=False)


def _special_files(tree: Tree) -> Iterator[Escape]:
    fifo, listening = tree.root / "fifo", tree.root / "socket"
    os.mkfifo(fifo)
    with _short_way(tree.root) as here, socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{here}/socket")
    for number, device in enumerate(("/dev/null", "/dev/zero", "/dev/tty", "/dev/stdin")):
        (tree.root / f"device-{number}").symlink_to(device)
        path = f"{tree.root}/device-{number}"
        yield Escape("device", path, path, is_plain=False)
        yield Escape("device", device, device, is_plain=False)
    for path in (str(fifo), str(listening)):
        yield Escape("special file", path, path, is_plain=False)


@contextmanager
def _short_way(directory: Path) -> Generator[str, None, None]:
    """A name for `directory` that fits into a socket's address."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _odd_strings(tree: Tree) -> Iterator[Escape]:
    root = tree.root
    for text in (
        "",
        ".",
        "..",
        "~",
        "inside.txt",
        "./inside.txt",
        "../outside/secret.txt",
        "~/secret.txt",
        f"file://{tree.outside}/secret.txt",
        "C:\\secret.txt",
        "\\\\server\\secret.txt",
        "\0",
        f"{root}/\0",
        f"{root}/inside.txt\0",
        f"{root}/inside.txt\0/../../outside/secret.txt",
        f"{tree.outside}/secret.txt\0{root}",
        f"{root}/\ud800",
        f"{root}/../outside/\udc80",
        f"{root}/{'x' * 5000}",
        f"{root}{'/x' * 3000}",
    ):
        yield Escape("odd string", text, text, is_plain=False)


def _look_alikes(tree: Tree) -> Iterator[Escape]:
    for dots in (
        "\u2025",
        "\uff0e\uff0e",
        "\u2024\u2024",
        ".\u200b.",
        "..\u200d",
        "%2e%2e",
        "..%2f",
        "..\\",
        "\u202e..",
        ".. ",
        " ..",
        "...",
        "..\n",
        "..;",
        "\u3002\u3002",
        ".\u0307.",
    ):
        way = f"{tree.root}/{dots}/outside"
        yield Escape("look-alike", f"{way}/secret.txt", way, is_plain=False)


def _own_data(tree: Tree) -> Iterator[Escape]:
    (tree.root / "to-data").symlink_to("sub/own-data")
    (tree.extra / "to-data").symlink_to(tree.data / "deep")
    (tree.root / "to-secret.txt").symlink_to(tree.data / "secret.txt")
    for way in (
        str(tree.data),
        f"{tree.data}/deep",
        f"{tree.root}/sub//own-data/./deep",
        f"{tree.root}/link-in/own-data",
        f"{tree.root}/sub/deeper/../own-data",
        f"{tree.root}/to-data",
        f"{tree.root}/to-data/deep",
        f"{tree.extra}/to-data",
        f"{tree.extra}/../root/sub/own-data",
    ):
        yield Escape("own data", f"{way}/secret.txt", way)
        yield Escape("new in own data", f"{way}/new.txt", f"{way}/new", is_plain=False)
    yield Escape("link to own data", f"{tree.root}/to-secret.txt", f"{tree.root}/to-data")


def _hard_links(tree: Tree) -> Iterator[Escape]:
    """Readable by the contract; a write must leave the other name alone."""
    for place in (tree.root, tree.root / "sub", tree.extra):
        link = place / "hard.txt"
        link.hardlink_to(tree.outside / "secret.txt")
        yield Escape("hard link", str(link), str(link), is_plain=False)

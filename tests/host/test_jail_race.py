"""A file that is inside when it is looked at and a link to the outside when it is opened."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from dragoman.errors import RemoteError
from dragoman.host.workspace.atomic import existing, read_up_to, replace
from dragoman.host.workspace.jail import Jail

SWAPPER = Path(__file__).parent / "programs" / "swapper.py"
SEED = 20_240_601
CONTROL_SECONDS = 30
# By its letters inside, as what the swapper does to it.
PATHS = (
    "dir/file.txt",
    "file.txt",
    "dir/deep/file.txt",
    "dir/../dir/file.txt",
    "sub/link/file.txt",
)

# What came of one try: "inside", "refused" or "ESCAPED".
Attempt: TypeAlias = Callable[[str], str]


class Arena:
    """`root` may be used; `dir` and `file.txt` in it are links to `outside` half of the time."""

    def __init__(self, base: Path) -> None:
        self.root, self.outside = base / "root", base / "outside"
        for top, content in ((self.root / "dir", "inside"), (self.outside, "outside")):
            (top / "deep").mkdir(parents=True)
            (top / "file.txt").write_text(content)
            (top / "deep" / "file.txt").write_text(content)
        (self.root / "file.txt").write_text("inside")
        (self.root / ".dir").symlink_to("../outside")
        (self.root / ".file").symlink_to(self.outside / "file.txt")
        (self.root / "sub").mkdir()
        (self.root / "sub" / "link").symlink_to("../dir")

    @contextmanager
    def attacked(self) -> Generator[None, None, None]:
        pairs = [self.root / name for name in ("dir", ".dir", "file.txt", ".file")]
        with subprocess.Popen(
            [sys.executable, "-S", str(SWAPPER), *map(str, pairs)], stdout=subprocess.PIPE
        ) as swapper:
            assert swapper.stdout is not None
            swapper.stdout.readline()
            try:
                yield
                assert swapper.poll() is None, "the attacker gave up"
            finally:
                swapper.kill()

    def outside_is_untouched(self) -> bool:
        names = sorted(str(path.relative_to(self.outside)) for path in self.outside.rglob("*"))
        contents = {path.read_text() for path in self.outside.rglob("*.txt")}
        return names == ["deep", "deep/file.txt", "file.txt"] and contents == {"outside"}

    def race(self, attempt: Attempt, tries: int) -> Counter[str]:
        """What came of all tries; both endings must have been possible, so that there are more
        where a busy machine did not let the attacker have its turn."""
        chosen, enough = random.Random(SEED), tries / 100
        counts: Counter[str] = Counter()
        end = time.monotonic() + CONTROL_SECONDS
        with self.attacked():
            while counts.total() < tries or (
                min(counts["inside"], counts["refused"]) <= enough and time.monotonic() < end
            ):
                counts[self._outcome(attempt, chosen)] += 1
        assert min(counts["inside"], counts["refused"]) > enough, counts
        return counts

    def _outcome(self, attempt: Attempt, chosen: random.Random) -> str:
        try:
            return attempt(f"{self.root}/{chosen.choice(PATHS)}")
        except (RemoteError, OSError):
            return "refused"

    def reading(self, opening: Callable[[str], int]) -> Attempt:
        def attempt(path: str) -> str:
            descriptor = opening(path)
            content = read_up_to(descriptor, 100)
            os.close(descriptor)
            return "ESCAPED" if content == b"outside" else "inside"

        return attempt

    def entering(self, jail: Jail) -> Attempt:
        outside = {
            (s.st_dev, s.st_ino) for s in map(os.stat, (self.outside, self.outside / "deep"))
        }

        def attempt(path: str) -> str:
            descriptor = jail.open_directory(os.path.dirname(path))
            status = os.fstat(descriptor)
            os.close(descriptor)
            return "ESCAPED" if (status.st_dev, status.st_ino) in outside else "inside"

        return attempt

    def writing(self, jail: Jail) -> Attempt:
        def attempt(path: str) -> str:
            with jail.target(path, create=True) as target:
                replace(target, b"inside", existing(target, 100))
            return "inside"

        return attempt

    def checking_first(self, path: str) -> int:
        """The control: what a jail without the kernel's help does."""
        if not os.path.realpath(path).startswith(f"{self.root}/"):
            raise PermissionError(path)
        return os.open(path, os.O_RDONLY)


@pytest.fixture
def arena(tmp_path: Path) -> Arena:
    return Arena(tmp_path)


def assert_no_escape(arena: Arena, attempt: Attempt, tries: int) -> None:
    counts = arena.race(attempt, tries)
    assert counts["ESCAPED"] == 0, f"seed {SEED}: {counts}"
    assert counts.total() >= tries
    assert arena.outside_is_untouched(), f"seed {SEED}"


def test_checking_before_opening_loses_the_race(arena: Arena) -> None:
    attempt = arena.reading(arena.checking_first)
    end = time.monotonic() + CONTROL_SECONDS
    escaped = 0
    while not escaped and time.monotonic() < end:
        escaped = arena.race(attempt, 2_000)["ESCAPED"]
    assert escaped, f"the harness is too slow to be worth anything (seed {SEED})"


@pytest.mark.usefixtures("opener")
def test_no_read_escapes_by_a_rename(arena: Arena) -> None:
    jail = Jail((str(arena.root),))
    assert_no_escape(arena, arena.reading(jail.open_file), 5_000)


@pytest.mark.usefixtures("opener")
def test_no_working_directory_escapes_by_a_rename(arena: Arena) -> None:
    assert_no_escape(arena, arena.entering(Jail((str(arena.root),))), 5_000)


@pytest.mark.usefixtures("opener")
def test_no_write_escapes_by_a_rename(arena: Arena) -> None:
    assert_no_escape(arena, arena.writing(Jail((str(arena.root),))), 400)


@pytest.mark.soak
@pytest.mark.usefixtures("opener")
def test_no_read_escapes_by_a_rename_in_100_000_tries(arena: Arena) -> None:
    jail = Jail((str(arena.root),))
    assert_no_escape(arena, arena.reading(jail.open_file), 100_000)


@pytest.mark.soak
@pytest.mark.usefixtures("opener")
def test_no_working_directory_escapes_by_a_rename_in_100_000_tries(arena: Arena) -> None:
    assert_no_escape(arena, arena.entering(Jail((str(arena.root),))), 100_000)


@pytest.mark.soak
@pytest.mark.usefixtures("opener")
def test_no_write_escapes_by_a_rename_in_20_000_tries(arena: Arena) -> None:
    assert_no_escape(arena, arena.writing(Jail((str(arena.root),))), 20_000)

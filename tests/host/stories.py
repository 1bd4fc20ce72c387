"""A person and an agent who work in one folder, and what of it a restore may change.

Whatever either of them writes has a number of its own, so that it can be looked for.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import sys
import threading
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType

import msgspec
from support.folders import Watched, contents

from dragoman.errors import RevertConflict
from dragoman.host.snapshots.git_output import PROGRAM
from dragoman.host.snapshots.snapshots import Reverted, Undo, undo_of
from dragoman.host.snapshots.undo_plan import Choice, Choices
from dragoman.session.events import WorkspaceSnapshot

State = Mapping[str, object]
"""What `contents` finds."""
NAMES = ("one", "two", "tool", "d/three", "d/e/four", "d", "d/e", "new", "f/g", "one/inside")
_DOING = ("journal.py", "atomic.py", "jail.py")
_TRACED = (*_DOING, "undo_plan.py", "shadow.py", "snapshots.py")
_MOST_ANSWERS = 12


def tokens(entry: object) -> set[bytes]:
    """What can be looked for in a file or a link: its lines."""
    match entry:
        case (bytes() as content, bool()):
            return set(content.splitlines())
        case str(link):
            return {link.removeprefix("-> ").encode()}
        case _:
            return set()


def persons(entry: object) -> set[bytes]:
    return {each for each in tokens(entry) if b"person" in each}


def must_be(found: State, wanted: State, why: str) -> None:
    nothing = "nothing"
    for name in sorted({*found, *wanted}):
        there, expected = found.get(name, nothing), wanted.get(name, nothing)
        assert there == expected, f"{why}: {name} is {there}, not {expected}"


def files(state: State) -> dict[str, object]:
    """Without folders, and without the names under which files are put in place."""
    return {
        name: entry
        for name, entry in state.items()
        if entry is not None and not Path(name).name.startswith(".dragoman-")
    }


class Effect(msgspec.Struct):
    """What a step did to a file: what is in it since, and whether its kind or mode changed."""

    added: set[bytes]
    removed_it: bool
    changed_mode: bool


def effects(before: State, after: State) -> dict[str, Effect]:
    found: dict[str, Effect] = {}
    for name in {*before, *after}:
        old, new = before.get(name), after.get(name)
        if old != new:
            is_mode = _mode(old) != _mode(new)
            added = tokens(new) - tokens(old)
            found[name] = Effect(added, old is not None and new is None, is_mode)
    return found


def _mode(entry: object) -> object:
    match entry:
        case (bytes(), bool() as is_program):
            return is_program
        case _:
            return None


class Hand:
    """Does things in a folder, as a person with an editor and a shell does, or an agent."""

    def __init__(self, who: str, folder: Path, dice: random.Random) -> None:
        self.who = who
        self.folder = folder
        self.dice = dice
        self._number = 0

    def act(self) -> None:
        act = self.dice.choice(
            (
                *(self._edit, self._edit, self._edit, self._save, self._new, self._rename),
                *(self._delete, self._chmod, self._link, self._binary, self._folder),
            )
        )
        act()

    @property
    def _line(self) -> str:
        self._number += 1
        return f"{self.who} {self._number}"

    def _any(self) -> Path | None:
        there = [self.folder / name for name in sorted(files(contents(self.folder)))]
        return self.dice.choice(there) if there else None

    def _edit(self) -> None:
        """A line more, or another one instead."""
        file = self._any()
        if file is None or file.is_symlink():
            return
        lines = file.read_bytes().splitlines(keepends=True)
        at = self.dice.randint(0, len(lines))
        lines[at : at + self.dice.randint(0, 1)] = [f"{self._line}\n".encode()]
        self._write(file, b"".join(lines))

    def _write(self, file: Path, content: bytes) -> None:
        """In place, or as most editors do."""
        if self.dice.random() < 0.5:
            file.write_bytes(content)
        else:
            mode = file.stat().st_mode if file.exists() else 0o644
            (new := file.with_name("saved~")).write_bytes(content)
            new.chmod(mode)
            new.replace(file)

    def _save(self) -> None:
        if (file := self._any()) is not None and not file.is_symlink():
            self._write(file, "".join(f"{self._line}\n" for _ in range(3)).encode())

    def _free(self) -> Path:
        """A place for a file: whatever is in the way goes."""
        path = self.folder / self.dice.choice(NAMES)
        for above in reversed(path.relative_to(self.folder).parents):
            if (self.folder / above).is_symlink() or (self.folder / above).is_file():
                (self.folder / above).unlink()
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        return path

    def _new(self) -> None:
        file = self._free()
        file.unlink(missing_ok=True)
        file.write_text(f"{self._line}\n{self._line}\n")

    def _rename(self) -> None:
        if (file := self._any()) is not None:
            aside = file.rename(self.folder / "aside~")
            aside.rename(self._free())

    def _delete(self) -> None:
        if (file := self._any()) is not None:
            file.unlink()

    def _chmod(self) -> None:
        file = self._any()
        if file is not None and not file.is_symlink():
            file.chmod(file.stat().st_mode ^ 0o111)

    def _link(self) -> None:
        file = self._free()
        file.unlink(missing_ok=True)
        file.symlink_to(f"{self._line.replace(' ', '-')}")

    def _binary(self) -> None:
        file = self._free()
        file.unlink(missing_ok=True)
        file.write_bytes(b"\0" + self._line.encode())

    def _folder(self) -> None:
        empty = self.folder / self.dice.choice(("void", "d/void"))
        if empty.is_dir():
            empty.rmdir()
        elif empty.parent.is_dir():
            empty.mkdir()


class Interruption:
    """Has someone act between any two lines of a restore; `touched` is what was changed."""

    def __init__(
        self,
        folder: Path,
        act: Callable[[], None],
        line: int | None,
        where: tuple[str, ...] = _TRACED,
    ) -> None:
        self.touched: dict[str, object] = {}
        self.happened = False
        self._folder = folder
        self._act = act
        self._left = line
        self._where = where
        self._mutex = threading.Lock()

    def trace(self, frame: FrameType, event: str, _: object) -> object:
        if self._left is None or not frame.f_code.co_filename.endswith(self._where):
            return None
        if event == "line":
            with self._mutex:
                self._left -= 1
                is_now = self._left == 0
                self._left = None if is_now else self._left
            if is_now:
                self._happen()
        return self.trace

    def _happen(self) -> None:
        self.happened = True
        before = contents(self._folder)
        self._act()
        after = contents(self._folder)
        for name in {*files(before), *files(after)}:
            if before.get(name) != after.get(name):
                self.touched[name] = after.get(name)

    @contextmanager
    def at_work(self) -> Generator[None]:
        if self._left is None:
            yield
            return
        threading.settrace(self.trace)  # type: ignore[arg-type]
        sys.settrace(self.trace)  # type: ignore[arg-type]
        # Only a thread that is started from now on is traced.
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor())
        try:
            yield
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            loop.set_default_executor(ThreadPoolExecutor())


class Asked(msgspec.Struct):
    """What of the past is to be undone: `may` says what of a file may go."""

    undo: Callable[..., Undo]
    may: dict[str, Effect]


class Story:
    """Random turns of an agent, edits of a person before, in and after them and during restores,
    and restores of every kind, with every kind of answer to a conflict."""

    def __init__(self, seed: int, watched: Watched) -> None:
        self.dice = random.Random(seed)
        self.watched = watched
        self.folder = watched.folder
        self.person = Hand("person", self.folder, self.dice)
        self.agent = Hand("agent", self.folder, self.dice)
        self.effects: dict[str, dict[str, Effect]] = {}
        self.restores = self.conflicts = self.interruptions = self.redone = 0
        self._turns = 0

    async def go_on(self) -> None:
        kind = self.dice.choice(("person", "turn", "turn", "restore", "restore", "restore"))
        if kind == "person":
            self.person.act()
        elif kind == "turn" or not self.watched.timeline.steps:
            await self.turn()
        elif (asked := await self._asked()) is not None:
            await self.restore(asked)

    async def turn(self) -> None:
        self._turns += 1
        turn = f"turn-{self._turns}"
        before = contents(self.folder)

        def act(_: Path) -> None:
            for _act in range(self.dice.randint(1, 4)):
                if self.dice.random() < 0.2:
                    self.person.act()
                self.agent.act()

        await self.watched.turn(turn, act)
        self.effects[turn] = effects(before, contents(self.folder))

    # ── what is undone ────────────────────────────────────────────────────────────────────────

    async def _asked(self) -> Asked | None:
        timeline = self.watched.timeline
        steps = [each.id for each in timeline.steps]
        step = self.dice.choice(steps)
        match self.dice.choice(("step", "step", "session", "rewind", "file", "hunk")):
            case "step":
                return Asked(partial(undo_of, timeline, step), self._may([step]))
            case "session":
                turns = [each.id for each in timeline.steps if each.kind == "turn"]
                return Asked(partial(undo_of, timeline, None), self._may(turns))
            case "rewind":
                since = steps[steps.index(step) :]
                return Asked(partial(undo_of, timeline, step, since=True), self._may(since))
            case "file":
                changed = [each.path for each in (await self.watched.changes(step)).files]
                if not changed:
                    return None
                paths = [self.dice.choice(changed)]
                return Asked(partial(undo_of, timeline, step, paths=paths), self._may([step]))
            case _:
                return await self._asked_hunk(step)

    async def _asked_hunk(self, step: str) -> Asked | None:
        found = (await self.watched.changes(step)).files
        hunks = [(file, hunk) for file in found for hunk in file.hunks if "other" not in hunk.by]
        if not hunks:
            return None
        file, hunk = self.dice.choice(hunks)
        lines = {each[1:].encode() for each in hunk.lines if each.startswith("+")}
        name = str(Path(file.path).relative_to(self.folder))
        may = {name: Effect(lines, file.status == "deleted", changed_mode=False)}
        timeline = self.watched.timeline
        return Asked(partial(undo_of, timeline, step, hunks=[hunk.id]), may)

    def _may(self, steps: Iterable[str]) -> dict[str, Effect]:
        found: dict[str, Effect] = {}
        for step in steps:
            for name, effect in self.effects.get(step, {}).items():
                known = found.setdefault(name, Effect(set(), False, False))
                known.added |= effect.added
                known.removed_it |= effect.removed_it
                known.changed_mode |= effect.changed_mode
        return found

    # ── undoing it ────────────────────────────────────────────────────────────────────────────

    async def restore(self, asked: Asked) -> None:
        """With an answer to every conflict, until it is done."""
        chosen: dict[str, Choice] = {}
        force = False
        for number in range(_MOST_ANSWERS):
            line = self.dice.randint(1, 900) if self.dice.random() < 0.5 and number < 3 else None
            choices = Choices(dict(chosen), force)
            conflict = await self._try(asked, choices, line)
            if conflict is None:
                return
            self.conflicts += 1
            if "no such change now: look at the changes again" in conflict.reasons.values():
                return
            force = force or self.dice.random() < 0.2
            for path in conflict.reasons:
                is_forced = number < 3 and self.dice.random() < 0.5
                chosen[path] = "restore" if is_forced else "keep"
        raise AssertionError("no answer to the conflicts is enough")

    async def _try(self, asked: Asked, choices: Choices, line: int | None) -> RevertConflict | None:
        where = self.dice.choice((_TRACED, _DOING))
        interruption = Interruption(self.folder, self.person.act, line, where)
        before, known = contents(self.folder), len(self.watched.events)
        done, conflict = Reverted(), None
        with interruption.at_work():
            try:
                done = await self.watched.restore(
                    asked.undo(choices=choices.by_path, force=choices.force)
                )
            except RevertConflict as raised:
                conflict = raised
        self.interruptions += interruption.happened
        expected = files(before) | interruption.touched
        expected = {name: entry for name, entry in expected.items() if entry is not None}
        # A file that a person puts where a folder was just taken away is in the way of its files:
        # the restore has deleted those, and undoing it may bring them back. One in a new folder,
        # where a file was just taken away, is in the way of that.
        there = expected
        placed = {name for name, entry in interruption.touched.items() if entry is not None}
        expected = {
            name: entry
            for name, entry in expected.items()
            if name in placed or not any(str(above) in expected for above in Path(name).parents)
        }
        after = contents(self.folder)
        self._check_names(after)
        if conflict is not None:
            covered = {str(above) for name in placed for above in Path(name).parents} & {*expected}
            assert {str(self.folder / name) for name in covered} <= {*conflict.reasons}
            expected = {name: entry for name, entry in expected.items() if name not in covered}
            must_be(files(after), expected, "refused")
            if not interruption.happened:
                must_be(after, before, "refused")
            return conflict
        if done.restore_id is None:
            must_be(files(after), expected, "nothing was done")
            return None
        self.restores += 1
        self.effects[done.restore_id] = effects(there, files(after))
        self._check(asked, choices, expected, files(after), done)
        await self._check_kept(expected, files(after), known)
        if not interruption.happened and self.dice.random() < 0.5:
            await self._redo(done.restore_id, before)
        return None

    async def _redo(self, restore_id: str, before: State) -> None:
        """Undone at once, all is as it was."""
        undo = undo_of(self.watched.timeline, restore_id)
        after = contents(self.folder)
        done = await self.watched.restore(undo)
        must_be(contents(self.folder), before, "undone at once")
        self.redone += 1
        if done.restore_id is not None:
            self.effects[done.restore_id] = effects(files(after), files(before))

    # ── what must be where ────────────────────────────────────────────────────────────────────

    def _check_names(self, after: State) -> None:
        """Nothing of ours is left in the folder."""
        assert [each for each in after if Path(each).name.startswith(".dragoman-")] == []

    def _check(
        self, asked: Asked, choices: Choices, before: State, after: State, done: Reverted
    ) -> None:
        told = {str(Path(each).relative_to(self.folder)) for each in done.paths}
        for name in {*before, *after}:
            old, new = before.get(name), after.get(name)
            if old == new:
                continue
            assert name in told, f"{name} was changed, and nobody was told"
            may = asked.may.get(name, Effect(set(), False, False))
            choice = choices.of(str(self.folder / name))
            assert choices.by_path.get(str(self.folder / name)) != "keep"
            if choice == "restore":
                continue
            lost = persons(old) - persons(new) - may.added
            assert not lost, f"{name}: {lost} is lost"
            assert old is not None or may.removed_it, f"{name} was deleted by a person, and is back"
            if (mode := _mode(old)) is not None and _mode(new) is not None:
                assert mode == _mode(new) or may.changed_mode, f"{name}: its mode changed"

    async def _check_kept(self, before: State, after: State, known: int) -> None:
        """Whatever the restore changed is in the snapshot before it, byte for byte."""
        events = [
            each for each in self.watched.events[known:] if isinstance(each, WorkspaceSnapshot)
        ]
        [start] = [each for each in events if each.moment == "restore_start"]
        shadow = self.watched.snapshots.shadow(str(self.folder))
        gone = {
            os.fsencode(name): entry for name, entry in before.items() if after.get(name) != entry
        }
        there = await shadow.blobs_at(start.roots[0].tree or "", list(gone))
        for name, entry in gone.items():
            content = await shadow.git("cat-file", "blob", there[name].id)
            match entry:
                case (bytes() as wanted, bool() as is_program):
                    assert (content, there[name].mode == PROGRAM) == (wanted, is_program)
                case link:
                    assert f"-> {os.fsdecode(content)}" == link


def begin(folder: Path, seed: int, kept: Collection[str] = ()) -> None:
    """A folder like any other."""
    for each in folder.iterdir():
        if each.name not in kept:
            shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()
    (folder / "d" / "e").mkdir(parents=True)
    (folder / "void").mkdir()
    for name in ("one", "two", "tool", "d/three", "d/e/four"):
        (folder / name).write_text("".join(f"{name} {seed} {n}\n" for n in range(8)))
    (folder / "tool").chmod(0o755)
    (folder / "binary").write_bytes(bytes(range(256)))
    (folder / "link").symlink_to("one")

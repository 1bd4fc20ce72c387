"""The rules that "always" answers made, kept in one private file until they are revoked.

The file is 0600 in a directory of 0700, replaced whole and atomically; changes from several
processes wait for each other. A file that others could have written is not believed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

import msgspec

from dragoman.errors import ConfigError
from dragoman.host.matching import Rule

if sys.platform != "win32":
    import fcntl


class StoredRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """A rule, when it was made and when it last decided something."""

    rule: Rule
    created_at: float
    used_at: float | None = None


_Rules: TypeAlias = tuple[StoredRule, ...]


class _Content(msgspec.Struct, frozen=True):
    version: int
    rules: tuple[StoredRule, ...]


_VERSION = 1


class RuleFile:
    """The file of stored rules. It is read anew each time: another process may have changed it."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self._clock = clock

    def list(self) -> Sequence[Rule]:
        """The rules alone."""
        return [stored.rule for stored in self.load()]

    def load(self) -> tuple[StoredRule, ...]:
        """All that is stored, expired rules too; nothing when there is no file yet."""
        try:
            with open(self.path, "rb") as file:
                self._must_be_ours(os.fstat(file.fileno()))
                return self._decoded(file.read())
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise ConfigError(str(self.path), "", f"a readable file ({error.strerror})") from error

    def add(self, rule: Rule) -> None:
        """Store a rule; one with the same id is replaced."""
        if not rule.id or rule.scope == "once" or rule.anywhere:
            raise ValueError("a stored rule has an id, lasts, and is no flag")
        self._change(lambda rules: (*_without(rules, rule.id), StoredRule(rule, self._clock())))

    def revoke(self, rule_id: str) -> bool:
        """Forget a rule; whether there was one."""
        return self._change(lambda rules: _without(rules, rule_id))

    def used(self, rule_id: str) -> None:
        """Remember that the rule has just decided something; a revoked one stays revoked."""
        now = self._clock()
        self._change(lambda rules: tuple(_touched(each, rule_id, now) for each in rules))

    def _change(self, change: Callable[[_Rules], _Rules]) -> bool:
        with self._locked():
            before = self.load()
            after = change(before)
            if after != before:
                self._save(after)
            return after != before

    @contextmanager
    def _locked(self) -> Generator[None]:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if sys.platform != "win32":
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _save(self, rules: tuple[StoredRule, ...]) -> None:
        content = msgspec.json.format(msgspec.json.encode(_Content(_VERSION, rules)), indent=2)
        temporary = f"{self.path}.new"
        try:
            _write_private(temporary, content + b"\n")
            os.replace(temporary, self.path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        _sync(self.path.parent)

    def _decoded(self, content: bytes) -> tuple[StoredRule, ...]:
        try:
            stored = msgspec.json.decode(content, type=_Content)
        except msgspec.DecodeError as error:
            raise ConfigError(str(self.path), "", f"stored rules ({error})") from error
        if stored.version != _VERSION:
            raise ConfigError(str(self.path), "version", f"{_VERSION}")
        if any(each.rule.anywhere for each in stored.rules):
            raise ConfigError(
                str(self.path), "rules", "no rule with anywhere; that is --yolo alone"
            )
        return stored.rules

    def _must_be_ours(self, status: os.stat_result) -> None:
        if sys.platform == "win32":
            return
        if status.st_uid != os.getuid() or status.st_mode & 0o022:
            raise ConfigError(str(self.path), "", "a file that only you can write (mode 0600)")


def _without(rules: _Rules, rule_id: str) -> _Rules:
    return tuple(each for each in rules if each.rule.id != rule_id)


def _touched(stored: StoredRule, rule_id: str, now: float) -> StoredRule:
    if stored.rule.id != rule_id:
        return stored
    return msgspec.structs.replace(stored, used_at=now)


def _write_private(path: str, content: bytes) -> None:
    # A leftover of a crash is nobody's: the lock is ours.
    with suppress(FileNotFoundError):
        os.unlink(path)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(descriptor)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

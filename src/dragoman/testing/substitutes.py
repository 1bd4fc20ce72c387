"""What stands for something else when a recording is played: folders, and ids of terminals.

A recorded workspace is rarely there any more, and terminals get their ids from the live client.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec


class _Folder(msgspec.Struct):
    cwd: str | None = None


class _Terminal(msgspec.Struct, rename="camel"):
    terminal_id: str | None = None


class _Created(msgspec.Struct):
    result: _Terminal | None = None


class Substitutes:
    """Learns from what the client sends, and applies it to what the agent sent."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}
        self._terminals: dict[str, str] = {}

    def learn_folder(self, recorded: msgspec.Raw, live: msgspec.Raw) -> None:
        """The params of a request then, and now."""
        before, now = _read(recorded, _Folder).cwd, _read(live, _Folder).cwd
        if before and now and before != now and before != "/":
            self._folders[before] = now

    def learn_terminal(self, recorded: bytes, live: bytes) -> None:
        """The reply of the client then, and now."""
        before, now = _read(recorded, _Created).result, _read(live, _Created).result
        if before is None or now is None or before.terminal_id is None or now.terminal_id is None:
            return
        self._terminals[before.terminal_id] = now.terminal_id

    def apply(self, frame: bytes) -> bytes:
        """The frame for the live client; byte for byte the same where nothing has to change."""
        if not (self._folders or self._terminals):
            return frame
        try:
            before = msgspec.json.decode(frame)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return frame
        now = self._replaced(before)
        return frame if now == before else msgspec.json.encode(now)

    def _replaced(self, value: Any) -> Any:
        match value:
            case str():
                return self._in_text(value)
            case [*items]:
                return [self._replaced(item) for item in items]
            case {**members}:
                return {name: self._member(name, item) for name, item in members.items()}
            case _:
                return value

    def _member(self, name: str, value: Any) -> Any:
        if name == "terminalId" and isinstance(value, str):
            return self._terminals.get(value, value)
        return self._replaced(value)

    def _in_text(self, text: str) -> str:
        for before, now in self._folders.items():
            if before in text:
                text = re.sub(_path(before), _always(now), text)
        return text


def _path(folder: str) -> str:
    """The folder as a whole, alone or in front of what is beneath it."""
    return rf"(?<![\w.-]){re.escape(folder)}(?![\w.-])"


def _always(text: str) -> Callable[[re.Match[str]], str]:
    return lambda _: text


def _read(json: bytes | msgspec.Raw, type_: Any) -> Any:
    try:
        return msgspec.json.decode(json, type=type_)
    except msgspec.DecodeError:
        return type_()

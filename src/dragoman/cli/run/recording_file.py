"""A file with what happened, given by its path: a recording of frames, or an exported session.

One that is neither is refused with a word on how to make the right one.
"""

from __future__ import annotations

import msgspec

from dragoman.cli.exit_codes import UsageError
from dragoman.errors import ConfigError
from dragoman.store.archive import Archive, read_archive
from dragoman.store.mirror_lines import is_header
from dragoman.testing.recording import Recording, load_recording

HOW = 'dragoman --record recording.jsonl "…" makes a recording'


class _Frame(msgspec.Struct):
    jsonrpc: str


def recorded_or_exported(path: str) -> Recording | Archive:
    """Raises UsageError, ConfigError."""
    try:
        with open(path, "rb") as file:
            first = file.readline()
            if is_header(first):
                file.seek(0)
                return read_archive(file, path)
        return _recorded(path, first)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {(error.strerror or 'error').lower()}") from error


def recorded(path: str, *, but: str) -> Recording:
    """Frames alone; `but` says what can be done with an exported session instead, or why it will
    not do. Raises UsageError, ConfigError."""
    found = recorded_or_exported(path)
    if isinstance(found, Archive):
        raise UsageError(f"{path}: an exported session has no frames; {but}; {HOW}")
    return found


def _recorded(path: str, first: bytes) -> Recording:
    if _is_frame(first):
        what = "these are frames as -o jsonl prints them, without their times and directions"
        raise UsageError(f"{path}: {what}; {HOW}")
    try:
        recording = load_recording(path)
    except ConfigError as error:
        raise ConfigError(error.file, error.place, f"{error.expected}; {HOW}") from error
    if not recording.frames:
        raise ConfigError(path, "", f"a recording with at least one frame; {HOW}")
    return recording


def _is_frame(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=_Frame)
    except msgspec.DecodeError:
        return False
    return True

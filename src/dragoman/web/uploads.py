"""Prompts over HTTP, and the files that were uploaded for them.

Each has a folder of its own, so that it keeps its name; a note in it names the sessions that it was
sent in, and their stores. It is deleted with the last of them, and after a week in any case; the
oldest are deleted sooner when all of them together become too large.
"""

from __future__ import annotations

import asyncio
import base64
import errno
import logging
import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from dragoman.client.sessions.prompts import check_size, content_of, find_mentions
from dragoman.data_directory import make_private, private_file
from dragoman.errors import CommandRefused, SessionNotContinued, StoreAway
from dragoman.host.workspace.regular_file import read_regular
from dragoman.hub.cluster import commands as c
from dragoman.hub.opener import OnReset
from dragoman.session.content import Audio, Content, Image, Resource, ResourceLink, Text
from dragoman.store.base import Store
from dragoman.store.records import Kin
from dragoman.web.failures import RequestFailed
from dragoman.web.shapes.session_shapes import PromptBody

if TYPE_CHECKING:
    from dragoman.web.context import Server

logger = logging.getLogger("dragoman.web")

MAX_BYTES = 10 * 1024 * 1024
MAX_TOTAL_BYTES = 1024 * 1024 * 1024
KEPT_SECONDS = 7 * 24 * 3600.0
CLEAN_SECONDS = 600.0
"""How soon uploads follow a session that another process deleted."""

_SESSIONS = ".sessions"
_LONGEST_NOTE = 1024 * 1024
_CLOCKS_DIFFER = 24 * 3600.0
"""By how much those of hosts may, which share a store."""
_UNSAFE = re.compile(r"[^\w.\- ]+")
_LONGEST_NAME = 100
_MOST_BYTES = 200
"""Of a name, to which some more are added: file systems count 255 of them."""
_LONGEST_TYPE = 64 * 1024
_TEXT_TYPES = ("application/json", "application/xml", "application/javascript")


@dataclass(frozen=True, slots=True)
class Uploaded:
    path: Path
    mime_type: str
    size: int


class Uploads:
    """The uploads in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def keep(self, data: bytes, name: str, mime_type: str) -> Uploaded:
        """Raises Failure when there is no room."""
        path = self.new_folder() / _safe(name)
        self.write(path, data, mime_type)
        return Uploaded(path, mime_type, len(data))

    def new_folder(self) -> Path:
        """The path of a folder that is not there yet."""
        return self.folder / os.urandom(16).hex()

    def write(self, path: Path, data: bytes, mime_type: str) -> None:
        """A file in a folder that `new_folder` gave. Raises Failure when there is no room."""
        try:
            self.clean(time.time())
            self._write(path, data, mime_type)
        except OSError as error:
            shutil.rmtree(path.parent, ignore_errors=True)
            is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            status, code = (507, "store_full") if is_full else (503, "store_failed")
            reason = (error.strerror or str(error)).lower()
            raise RequestFailed(status, code, f"the file could not be saved: {reason}") from error

    def _write(self, path: Path, data: bytes, mime_type: str) -> None:
        make_private(self.folder)
        make_private(path.parent)
        # The note is there from the start: how old a folder is does not change when it is sent.
        (path.parent / _SESSIONS).touch(0o600)
        for name, content in ((path, data), (_type_of(path), mime_type.encode())):
            descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with open(descriptor, "wb") as file:
                file.write(content)

    def content(self, uri: str, *, audio: bool = True) -> Content:
        """An upload as the best there is for a prompt; agents that do not take it get a link, also
        for sounds where `audio` says that this one does not.

        Raises Failure for what was never uploaded, or is gone.
        """
        path = self._path(uri)
        try:
            data = read_regular(path, MAX_BYTES)
            mime_type = read_regular(_type_of(path), _LONGEST_TYPE).decode()
        except OSError:
            raise RequestFailed(400, "unknown_upload", "no such upload") from None
        if mime_type.startswith("audio/") and not audio:
            return ResourceLink(uri, path.name, mime_type, size=len(data))
        return _content(data, mime_type, uri, path.name)

    def _path(self, uri: str) -> Path:
        address = urlsplit(uri)
        path = Path(unquote(address.path))
        is_ours = path.parent.parent == self.folder and ".." not in path.parts
        if address.scheme != "file" or not is_ours or path.name.startswith("."):
            raise RequestFailed(400, "unknown_upload", "not the address of an upload")
        return path

    def note_sent(self, uri: str, store_id: str, session_id: str) -> None:
        """That an upload was sent in a prompt of the session. Raises Failure for no upload."""
        self.note(self._path(uri).parent, store_id, session_id)

    def note(self, folder: Path, store_id: str, session_id: str) -> None:
        """The same for all that is in a folder."""
        with suppress(OSError), open(folder / _SESSIONS, "a", opener=private_file) as file:
            file.write(f"{store_id} {session_id}\n")

    def sent_only_in(self, store_id: str) -> dict[Path, set[str]]:
        """The folders of uploads that were sent in sessions of this store alone, and these."""
        found: dict[Path, set[str]] = {}
        for folder in self.folder.iterdir() if self.folder.is_dir() else ():
            with suppress(OSError):
                note = read_regular(folder / _SESSIONS, _LONGEST_NOTE).decode("ascii", "replace")
                notes = [line.partition(" ") for line in note.splitlines()]
                if notes and all(store == store_id for store, _, _ in notes):
                    found[folder] = {session_id for _, _, session_id in notes}
        return found

    def delete(self, folders: Sequence[Path], spared: float) -> None:
        """Except those that were there at the moment `spared`."""
        for folder in folders:
            if _changed_at(folder) > spared:
                shutil.rmtree(folder, ignore_errors=True)

    def clean(self, now: float) -> None:
        """Delete what is old, and the oldest of what is too much."""
        if not self.folder.is_dir():
            return
        room = MAX_TOTAL_BYTES
        for folder in sorted(self.folder.iterdir(), key=_changed_at, reverse=True):
            room -= _size(folder)
            if room < 0 or now - _changed_at(folder) > KEPT_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


async def keep_clean(uploads: Uploads, store: Store) -> None:
    """Never ends, whatever goes wrong."""
    while True:
        try:
            await asyncio.to_thread(uploads.clean, time.time())
            await delete_with_sessions(uploads, store)
        except StoreAway:
            pass  # said once, by the store
        except Exception as error:
            logger.warning("uploads could not be cleaned up: %s", error)
        await asyncio.sleep(CLEAN_SECONDS)


async def delete_with_sessions(uploads: Uploads, store: Store) -> None:
    """Delete what was sent only in sessions of this store that are gone, unless a fork may have it.
    Raises StoreError."""
    sent = await asyncio.to_thread(uploads.sent_only_in, store.id)
    if not sent:
        return
    sessions = {each.id: each for each in await store.kin()}
    left = [folder for folder, ids in sent.items() if ids.isdisjoint(sessions)]
    spared = _last_orphan(sessions) + (0.0 if store.is_local else _CLOCKS_DIFFER)
    await asyncio.to_thread(uploads.delete, left, spared)


def _last_orphan(sessions: Mapping[str, Kin]) -> float:
    """When the last fork was made whose parent is gone. Nobody knows what was before that parent,
    so such a fork may have anything that was sent before it was made."""
    forks = (each for each in sessions.values() if each.parent is not None)
    return max((fork.created_at for fork in forks if fork.parent not in sessions), default=0.0)


def _type_of(path: Path) -> Path:
    """Where the type of an upload stands."""
    return path.with_name(f".{path.name}.type")


def _size(folder: Path) -> int:
    """Another server may be deleting it."""
    try:
        return sum(file.stat().st_size for file in folder.iterdir())
    except OSError:
        return 0


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _safe(name: str) -> str:
    plain = _UNSAFE.sub("-", os.path.basename(name.replace("\\", "/"))).strip(". -")
    end = plain[-_LONGEST_NAME:].encode()[-_MOST_BYTES:].decode(errors="ignore")
    return end.lstrip(". -") or "attachment"


def _content(data: bytes, mime_type: str, uri: str, name: str) -> Content:
    encoded = base64.b64encode(data).decode()
    if mime_type.startswith("image/"):
        return Image(encoded, mime_type, uri=uri)
    if mime_type.startswith("audio/"):
        return Audio(encoded, mime_type)
    if mime_type.startswith("text/") or mime_type in _TEXT_TYPES:
        try:
            return Resource(uri, content=data.decode(), mime_type=mime_type)
        except UnicodeDecodeError:
            pass
    return ResourceLink(uri, name, mime_type, size=len(data))


async def prompt_content(server: Server, session_id: str, body: PromptBody) -> str | list[Content]:
    """What to send. Raises Failure for a block that cannot be sent, PromptTooLarge,
    UnknownSession."""
    if body.text is None and not body.content:
        raise RequestFailed(400, "invalid", "a prompt needs `text` or `content`")
    if not body.content:
        return body.text or ""
    parts: list[Content] = []
    if body.text is not None:
        parts.append(Text(body.text))
        record = await server.hub.record(session_id)
        if record.cwd and server.hub.hosts.has(record):  # else the files are on another machine
            parts += find_mentions(body.text, record.cwd).links
    for number, block in enumerate(body.content):
        parts.append(await _part(server, session_id, number, block))
    check_size(parts)
    return parts


async def note_uploads(server: Server, session_id: str, body: PromptBody) -> None:
    """That they were sent in the session: they are deleted with it. Not before a prompt was
    accepted, since one that is refused can be sent again elsewhere."""
    for block in body.content or ():
        match block:
            case {"type": "upload", "uri": str(uri)}:
                store_id = server.hub.store.id
                await asyncio.to_thread(server.uploads.note_sent, uri, store_id, session_id)
            case _:
                pass


async def start_again(
    server: Server,
    session_id: str,
    error: SessionNotContinued | CommandRefused,
    on_reset: OnReset,
) -> None:
    """Have a session that its agent has forgotten continue without that memory, if that is wanted;
    else, and for any other `error`, raises it. Where another process runs it, that is not ours to
    do: raises SessionOwned, SessionElsewhere."""
    is_forgotten = isinstance(error, SessionNotContinued) or error.code == "not_continued"
    if on_reset != "new" or not is_forgotten:
        raise error
    if session_id in server.hub.live:
        await server.hub.send(session_id, c.Close())
    await server.hub.open(session_id, on_reset="new")


async def _part(server: Server, session_id: str, number: int, block: dict[str, Any]) -> Content:
    match block:
        case {"type": "upload", "uri": str(uri)}:
            live = server.hub.live.get(session_id)
            audio = live is None or live.agent.client.capabilities.audio
            return await asyncio.to_thread(server.uploads.content, uri, audio=audio)
        case _:
            return _converted(number, block)


def _converted(number: int, block: dict[str, Any]) -> Content:
    try:
        return content_of(block)
    except ValueError as error:
        raise RequestFailed(400, "invalid", f"content[{number}]: {error}") from None

"""Files of an agent through its editor: reads see unsaved text, writes land in open buffers.

What an agent may read and write was decided before, and here the jail has its say as for every
file. Only then is the editor asked; a session without an editor that serves files has the disk.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from dragoman.editor.open_editors import EditorSession, OpenEditors
from dragoman.errors import ConnectionLost, InvalidParams, RemoteError, ResourceNotFound
from dragoman.host.workspace.changes import Change
from dragoman.host.workspace.files import MAX_BYTES, Changed, Found, LocalFiles
from dragoman.host.workspace.jail import refusal
from dragoman.host.workspace.roots import Workspace
from dragoman.schema import codec, v1


class EditorFiles(LocalFiles):
    """Those of the editor that has the session open, else those on the disk. Never both: a write
    that the editor refuses is refused."""

    def __init__(self, editors: OpenEditors, **options: Any) -> None:
        super().__init__(**options)
        self._editors = editors

    async def read_text_file(
        self, workspace: Workspace, path: str, *, line: int | None = None, limit: int | None = None
    ) -> str:
        """A file that the editor does not know is read from the disk."""
        on_disk, missing = None, None
        try:
            on_disk = await super().read_text_file(workspace, path, line=line, limit=limit)
        except ResourceNotFound as error:
            missing = error  # the editor may have it without having saved it
        served = self._editors.of(workspace.session_id)
        if served is not None and served.link.offers.reads:
            try:
                return await _read(served, path, line, limit)
            except (RemoteError, ConnectionLost):
                pass
        if on_disk is None:
            raise missing or ResourceNotFound(path)
        return on_disk

    async def write_text_file(
        self,
        workspace: Workspace,
        path: str,
        content: str,
        *,
        written: Callable[[str | None, bool], None] | None = None,
        expected: Found | None = None,
        within: AbstractContextManager[None] | None = None,
    ) -> None:
        served = self._editors.of(workspace.session_id)
        if served is None or not served.link.offers.writes:
            return await super().write_text_file(
                workspace, path, content, written=written, expected=expected, within=within
            )
        after = _encoded(path, content)
        before = await self._whole_text(workspace, path)
        if expected is not None and not self._is_as_asked(workspace, path, expected, before):
            raise Changed("was changed while the question waited")
        changes = self.changes(workspace)
        with within or nullcontext(), self.target(workspace, path) as target:
            request = v1.WriteTextFileRequest(
                session_id=served.session_id, path=str(path), content=str(content)
            )
            await served.link.call("fs/write_text_file", request)
            old = None if before is None else before.encode()
            existed = before is not None
            change = Change(target.path, old, after, existed=existed, turn=changes.turn)
            changes.record(change, target.made)
        if written is not None:
            written(before, before is None)
        return None

    async def _whole_text(self, workspace: Workspace, path: str) -> str | None:
        try:
            return await self.read_text_file(workspace, path)
        except ResourceNotFound:
            return None
        except RemoteError:
            return ""  # there is a file, but no text of it can be shown

    def _is_as_asked(
        self, workspace: Workspace, path: str, expected: Found, now: str | None
    ) -> bool:
        if expected.unseen:
            return expected.mark == self.mark(workspace, path)
        return expected.text == now


async def _read(served: EditorSession, path: str, line: int | None, limit: int | None) -> str:
    request = v1.ReadTextFileRequest(
        session_id=served.session_id, path=str(path), line=line, limit=limit
    )
    raw = await served.link.call("fs/read_text_file", request)
    text = codec.decode(raw, v1.ReadTextFileResponse).content
    _encoded(path, text)
    return text


def _encoded(path: str, text: str) -> bytes:
    """Raises InvalidParams for what is too large, or not Unicode."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise refusal(InvalidParams, path, "not text") from None
    if len(data) > MAX_BYTES:
        raise refusal(InvalidParams, path, "too large", size=len(data), limit=MAX_BYTES)
    return data

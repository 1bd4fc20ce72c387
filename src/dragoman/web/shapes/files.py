"""Files around a session: found, changed, uploaded; and the frames to its agent."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from dragoman.web.shapes.base import Cursor, Shape


class FilesQuery(Shape):
    q: str = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50


class FoundFile(Shape):
    """`path` as it can be mentioned: beneath the session's folder, or whole."""

    path: str
    kind: Literal["file", "folder"]


class Files(Shape):
    """`complete` says that no folder was left out for want of time or room."""

    files: list[FoundFile]
    complete: bool


class ChangesQuery(Shape):
    turn_id: str | None = None


class FileChange(Shape):
    """A file before and after. What the `host` wrote is certain and can be reverted; what an
    `agent` wrote by itself is as it told us; what is `imported` stands in a file that told of the
    session, and may never have happened. Contents that are too large are left out."""

    path: str
    source: Literal["host", "agent", "imported"]
    existed: bool
    diff: str
    before: str | None = None
    after: str | None = None


class FileChanges(Shape):
    """`complete` says that no file was left out for want of room."""

    changes: list[FileChange]
    complete: bool = True


class FramesQuery(Shape):
    after: Cursor = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=2_000)] = 500


class FrameShape(Shape):
    """A frame as it travelled, without secrets; of a large one only the beginning."""

    seq: int
    at: datetime
    direction: Literal["sent", "received"]
    size: int
    text: str
    cut: bool = False


class FrameList(Shape):
    """`last` is the cursor for `after`; `lost` says that older ones were not kept."""

    frames: list[FrameShape]
    last: int
    lost: bool


class UploadQuery(Shape):
    name: Annotated[str, msgspec.Meta(max_length=255)] = ""


class Upload(Shape):
    """A file for a prompt: `{"type": "upload", "uri": …}` there, or a resource link."""

    uri: str
    name: str
    mime_type: str
    size: int

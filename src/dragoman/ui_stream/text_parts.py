"""Messages and thoughts as parts: which text part is open, and what else content becomes."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Literal, TypeAlias

from dragoman.session import content as c
from dragoman.ui_stream import acp_json
from dragoman.ui_stream.chunks import (
    Chunk,
    Data,
    File,
    Json,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningFile,
    ReasoningStart,
    Sdk,
    SourceDocument,
    SourceUrl,
    TextDelta,
    TextEnd,
    TextStart,
)

Kind: TypeAlias = Literal["text", "reasoning"]
ANY_TYPE = "application/octet-stream"


class OpenText:
    """The one text or reasoning part that deltas go to."""

    def __init__(self) -> None:
        self._kind: Kind = "text"
        self._message_id: str | None = None
        self._id: str | None = None
        self._count = 0

    def continues(self, kind: Kind, message_id: str | None) -> bool:
        is_same = self._kind == kind and self._message_id == message_id
        return self._id is not None and is_same

    def start(self, kind: Kind, message_id: str | None, metadata: Json | None) -> Chunk:
        self._count += 1
        self._kind, self._message_id, self._id = kind, message_id, f"{kind}-{self._count}"
        if kind == "text":
            return TextStart(id=self._id, provider_metadata=metadata)
        return ReasoningStart(id=self._id, provider_metadata=metadata)

    def delta(self, text: str) -> Chunk:
        assert self._id is not None
        if self._kind == "text":
            return TextDelta(id=self._id, delta=text)
        return ReasoningDelta(id=self._id, delta=text)

    def end(self) -> Iterator[Chunk]:
        if self._id is None:
            return
        yield TextEnd(id=self._id) if self._kind == "text" else ReasoningEnd(id=self._id)
        self._id = None


def part_of(content: c.Content, kind: Kind, sdk: Sdk) -> Chunk:
    """The part for content that is not plain text."""
    match content:
        case c.ResourceLink():
            return _source(content)
        case c.Image() | c.Audio() | c.Resource():
            url, media_type, metadata = file_of(content)
            file = ReasoningFile if kind == "reasoning" and sdk == 7 else File
            return file(url=url, media_type=media_type, provider_metadata=metadata)
        case _:
            return Data(type="data-acp-content", data=acp_json.content(content))


def file_of(content: c.Image | c.Audio | c.Resource) -> tuple[str, str, Json | None]:
    """Address, media type and what else is known of a file."""
    match content:
        case c.Resource():
            media_type = content.mime_type or ("text/plain" if content.blob is None else ANY_TYPE)
            data = content.blob
            if data is None:
                data = base64.b64encode((content.content or "").encode()).decode()
            return data_url(media_type, data), media_type, {"acp": {"uri": content.uri}}
        case c.Image(uri=str(uri)) if not content.data:
            return uri, content.mime_type, None
        case _:
            uri = content.uri if isinstance(content, c.Image) else None
            metadata = None if uri is None else {"acp": {"uri": uri}}
            return data_url(content.mime_type, content.data), content.mime_type, metadata


def data_url(media_type: str, data: str) -> str:
    return f"data:{media_type};base64,{data}"


def _source(link: c.ResourceLink) -> Chunk:
    title = link.title or link.name
    if is_web(link.uri):
        return SourceUrl(source_id=link.uri, url=link.uri, title=title or None)
    return SourceDocument(
        source_id=link.uri,
        media_type=link.mime_type or ANY_TYPE,
        title=title,
        filename=link.name or None,
        provider_metadata={"acp": {"uri": link.uri}},
    )


def is_web(uri: str) -> bool:
    return uri.lower().startswith(("http://", "https://"))

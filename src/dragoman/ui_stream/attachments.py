"""Files of a user message as content: inline where the agent takes that, else as a file and a link.

Only data and web addresses are read; `file:` and all other schemes would let a page reach what
is not its own.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from typing import Any
from urllib.parse import quote, unquote_to_bytes, urlsplit

import msgspec

from dragoman.client.capabilities import AgentCapabilities
from dragoman.session.content import Audio, Content, Image, Resource, ResourceLink
from dragoman.ui_stream.text_parts import ANY_TYPE, is_web

_unsafe = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 80
_TEXT_TYPES = ("application/json", "application/xml", "application/javascript")


class UnusableFile(ValueError):
    """A file part that cannot be read."""


class Attachment(msgspec.Struct, frozen=True):
    """A file to be written, under this name, before the prompt with its link is sent."""

    name: str
    data: bytes
    mime_type: str


class FileReader:
    """Reads the files of one message; `attachments` are those that have to be written."""

    def __init__(self, agent: AgentCapabilities, folder: str) -> None:
        self.attachments: list[Attachment] = []
        self._agent = agent
        self._folder = folder

    def read(self, url: str, media_type: Any, filename: Any) -> Content:
        told = media_type if isinstance(media_type, str) else ""
        name = filename if isinstance(filename, str) else ""
        if is_web(url):
            return ResourceLink(url, name or _last_word(url), told or None)
        scheme, _, rest = url.partition(":")
        if scheme.lower() != "data":
            raise UnusableFile(f"an address that begins with {scheme[:20]!r} is not taken")
        found, data = _data_of(rest)
        return self._inline(data, found or told or ANY_TYPE, name)

    def _inline(self, data: bytes, mime_type: str, name: str) -> Content:
        if mime_type.startswith("image/") and self._agent.image:
            return Image(_base64(data), mime_type)
        if mime_type.startswith("audio/") and self._agent.audio:
            return Audio(_base64(data), mime_type)
        stored = _name(data, name)
        if self._agent.embedded_context:
            return _resource(data, mime_type, f"attachment:{quote(name or stored)}")
        self.attachments.append(Attachment(stored, data, mime_type))
        uri = f"{self._folder}{quote(stored)}"
        return ResourceLink(uri, name or stored, mime_type, size=len(data))


def _data_of(rest: str) -> tuple[str, bytes]:
    """The media type, "" where none is given, and the bytes behind `data:`."""
    header, comma, body = rest.partition(",")
    if not comma:
        raise UnusableFile("a data address has no comma")
    media_type, *parameters = (word.strip() for word in header.split(";"))
    if "base64" not in [word.lower() for word in parameters]:
        return media_type.lower(), unquote_to_bytes(body)
    try:
        return media_type.lower(), base64.b64decode(unquote_to_bytes(body), validate=True)
    except binascii.Error as error:
        raise UnusableFile(f"the data is not base64: {error}") from None


def _resource(data: bytes, mime_type: str, uri: str) -> Resource:
    is_text = mime_type.startswith("text/") or mime_type in _TEXT_TYPES
    if is_text:
        try:
            return Resource(uri, content=data.decode(), mime_type=mime_type)
        except UnicodeDecodeError:
            pass
    return Resource(uri, blob=_base64(data), mime_type=mime_type)


def _name(data: bytes, name: str) -> str:
    """A file name of our own making: what is in it decides, so that nothing is overwritten."""
    plain = _unsafe.sub("-", name).strip(".-")[-_LONGEST_NAME:].strip(".-") or "attachment"
    return f"{hashlib.sha256(data).hexdigest()[:12]}-{plain}"


def _last_word(url: str) -> str:
    return urlsplit(url).path.rstrip("/").rpartition("/")[2] or url


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()

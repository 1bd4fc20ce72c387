"""A prompt prepared for one agent: its content blocks, `@` mentions, and limits."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from dragoman.client.capabilities import AgentCapabilities
from dragoman.errors import PromptTooLarge
from dragoman.lazy_pattern import lazy_pattern
from dragoman.session.content import (
    Audio,
    Content,
    Image,
    Resource,
    ResourceLink,
    Text,
    UnknownContent,
)

if TYPE_CHECKING:
    from pathlib import Path

MAX_ATTACHMENT_BYTES = 10 * 1024 * 1024
MAX_PROMPT_BYTES = 32 * 1024 * 1024
"""Of attachments, together."""
MAX_JSON_BYTES = 48 * 1024 * 1024
"""Of all of it: less than a recording takes at once, or a frame to the agent has room for."""

Part: TypeAlias = str | Content | Mapping[str, Any]
PromptInput: TypeAlias = Part | Sequence[Part]
"""Text, in which mentions become links; content; or ACP blocks as dicts."""


def prepare(
    prompt: PromptInput, agent: AgentCapabilities, cwd: str, *, files_are_here: bool = True
) -> tuple[list[Content], list[str]]:
    """The content to send, and a sentence for each thing in it that had to change or is missing.

    Of files that are not here nobody can tell that they are missing.

    Raises ValueError for a prompt with nothing in it, with text that is not Unicode, or with a
    block that is none of ACP's, PromptTooLarge for one that cannot be sent at once, and TypeError
    for invalid content.
    """
    warnings: list[str] = []
    parts = _parts(prompt)
    if isinstance(prompt, str):
        mentions = find_mentions(prompt, cwd)
        warnings += mentions.notices(cwd if files_are_here else None)
        parts += mentions.links
    content: list[Content] = []
    total = 0
    check_size(parts)
    for part in parts:
        why = _unfit(part, agent, total)
        fit = part if why is None else _instead(part, why)
        if why is not None:
            warnings.append(_warning(fit, why))
        total += _size(fit)
        content.append(fit)
    if not any(not isinstance(part, Text) or part.text.strip() for part in content):
        raise ValueError("the prompt is empty")
    return content, warnings


def check_size(content: Sequence[Content]) -> None:
    """Raises PromptTooLarge for what is too much as JSON, where a control character takes six
    bytes, and ValueError for what is not text: bytes of a command line that are not UTF-8 come to
    us as lone surrogates."""
    try:
        size = len(msgspec.json.encode(content))
    except UnicodeEncodeError as error:
        raise ValueError(f"the prompt is not Unicode text: {error.reason}") from None
    if size > MAX_JSON_BYTES:
        raise PromptTooLarge(size, MAX_JSON_BYTES)


def _parts(prompt: PromptInput) -> list[Content]:
    if isinstance(prompt, str):
        return [Text(prompt)]
    return [_content(part) for part in (prompt if isinstance(prompt, Sequence) else [prompt])]


def _content(part: Part) -> Content:
    match part:
        case str():
            return Text(part)
        case Mapping():
            return content_of(part)
        case Text() | Image() | Audio() | ResourceLink() | Resource() | UnknownContent():
            return part
        case _:
            raise TypeError(f"expected text or content in a prompt, not {type(part).__name__}")


def _unfit(part: Content, agent: AgentCapabilities, total: int) -> str | None:
    """Why this agent cannot be sent this part as it is."""
    match part:
        case Image() if not agent.image:
            return "the agent does not accept images"
        case Audio() if not agent.audio:
            return "the agent does not accept audio"
        case Resource() if not agent.embedded_context:
            return "the agent does not accept embedded resources"
        case Image() | Audio() | Resource() if _size(part) > MAX_ATTACHMENT_BYTES:
            return f"larger than {MAX_ATTACHMENT_BYTES} bytes"
        case Image() | Audio() | Resource() if total + _size(part) > MAX_PROMPT_BYTES:
            return f"the attachments together are larger than {MAX_PROMPT_BYTES} bytes"
        case _:
            return None


def _instead(part: Content, why: str) -> Content:
    """A link where there is an address, else a note in the text, so that the agent knows too."""
    uri = getattr(part, "uri", None)
    if uri is not None:
        name = uri.rstrip("/").rpartition("/")[2] or uri
        return ResourceLink(uri, name, getattr(part, "mime_type", None))
    return Text(f"[{_kind(part)} left out: {why}]")


def _warning(instead: Content, why: str) -> str:
    if isinstance(instead, ResourceLink):
        return f"{instead.name} was sent as a link: {why}"
    return f"an attachment was left out: {why}"


def _kind(part: Content) -> str:
    return type(part).__name__.lower()


def _size(part: Content) -> int:
    match part:
        case Image() | Audio():
            return _decoded_size(part.data)
        case Resource():
            return _decoded_size(part.blob) if part.blob else len((part.content or "").encode())
        case _:
            return 0


def _decoded_size(base64: str) -> int:
    return len(base64) * 3 // 4 - base64[-2:].count("=")


_WORDS = {"mime_type": "mimeType", "_meta": "meta"}
_RESOURCE_WORDS = _WORDS | {"text": "content", "_meta": "resourceMeta"}


def content_of(block: Mapping[str, Any]) -> Content:
    """Raises ValueError for what cannot be sent."""
    if block.get("type") == "unknown":
        raise ValueError("expected a known type")
    try:
        return msgspec.convert(_in_our_words(block), Content)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None


def _in_our_words(block: Mapping[str, Any]) -> dict[str, Any]:
    plain = _renamed(block, _WORDS)
    match plain:
        case {"type": "resource", "resource": {"uri": str()}}:
            return _renamed(plain.pop("resource"), _RESOURCE_WORDS) | plain
        case _:
            return plain


def _renamed(fields: Mapping[str, Any], words: dict[str, str]) -> dict[str, Any]:
    return {words.get(key, key): value for key, value in fields.items()}


# Punctuation that is in prose and hardly in a name; what it is in can be quoted.
_PROSE = (
    "\u2018\u2019\u201c\u201d\u00ab\u00bb\u2026\u2014"
    "\u3001\u3002\u300c\u300d\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f"
)
# Not after a word character: an e-mail address is not a mention. A list of mentions is several.
_MENTION = lazy_pattern(
    r"""(?<![\w@/.+-])@(?:"(?P<quoted>[^"\n]+)"|"""
    rf"""(?P<bare>(?!@)(?:(?![,;|]@)[^\s"'`<>{_PROSE}])+))"""
)
_TRAILING = ".,;:!?*|"
_BRACKETS = ("()", "[]", "{}")
_URL = lazy_pattern(r"https?://[^\s]+\Z", re.IGNORECASE)


MAX_LINKS = 256
MAX_LOOKED_UP = 4096
"""Mentions in one text: each costs a look at the file system, and a text has room for millions."""
_MAX_NAME = 4096


class Mentions(msgspec.Struct, frozen=True):
    """What a text mentions: a link for each thing, once, in order."""

    links: list[ResourceLink]
    is_whole: bool = True
    """Whether all of the text was looked at."""

    def notices(self, cwd: str | None) -> list[str]:
        """A sentence for each file that is not there, whose link is sent anyway, and one for
        what was not looked up; `cwd` is None where the files are on another machine."""
        return [*(self._missing(cwd) if cwd is not None else ()), *self._left_out()]

    def _missing(self, cwd: str) -> Iterator[str]:
        for link in self.links:
            if not _URL.match(link.uri) and not os.path.exists(_path(link.name, cwd)):
                name = f'"{link.name}"' if " " in link.name else link.name
                yield f"@{name}: no such file; sent as a link anyway"

    def _left_out(self) -> Iterator[str]:
        if not self.is_whole:
            yield (
                f"further mentions were not looked up: a prompt has at most {MAX_LINKS} links, and "
                f"at most {MAX_LOOKED_UP} mentions are read; its text is sent as typed"
            )


def find_mentions(text: str, cwd: str) -> Mentions:
    links: dict[str, ResourceLink] = {}
    known: set[str] = set()
    for number, match in enumerate(_MENTION.finditer(text)):
        if number >= MAX_LOOKED_UP:
            return Mentions(list(links.values()), is_whole=False)
        if match[0] in known:
            continue
        known.add(match[0])
        link = _link(match["quoted"], match["bare"], cwd)
        if link is None or link.uri in links:
            continue
        if len(links) >= MAX_LINKS:
            return Mentions(list(links.values()), is_whole=False)
        links[link.uri] = link
    return Mentions(list(links.values()))


def _link(quoted: str | None, bare: str | None, cwd: str) -> ResourceLink | None:
    name = quoted if quoted is not None else _without_punctuation(bare or "", cwd)
    if _URL.match(name):
        return ResourceLink(name, name, _mime_type(_path_of(name)))
    if not name or len(name) > _MAX_NAME:
        return None
    path = _path(name, cwd)
    # `@alice` is a person unless there is such a file; `@src/x` and `@x.py` are paths anyway.
    if quoted is None and not ({"/", "."} & set(name)) and not os.path.exists(path):
        return None
    return ResourceLink(path.as_uri(), name, _mime_type(path.name))


def _without_punctuation(name: str, cwd: str) -> str:
    """A bracket that opens in the name belongs to it, and so does whatever is that of a file."""
    surplus = {close: name.count(close) - name.count(begin) for begin, close in _BRACKETS}
    end = len(name)
    while end and (name[end - 1] in _TRAILING or surplus.get(name[end - 1], 0) > 0):
        if name[end - 1] in surplus:
            surplus[name[end - 1]] -= 1
        end -= 1
    if (
        not end
        or end == len(name)
        or len(name) > _MAX_NAME
        or _URL.match(name)
        or name.endswith(("/.", "/.."))
    ):
        return name[:end]
    return name if os.path.exists(_path(name, cwd)) else name[:end]


def _path_of(url: str) -> str:
    from urllib.parse import urlsplit

    try:
        return urlsplit(url).path
    except ValueError:
        return ""


def _path(name: str, cwd: str) -> Path:
    from pathlib import Path

    return Path(os.path.normpath(Path(cwd, os.path.expanduser(name))))


def _mime_type(name: str) -> str | None:
    import mimetypes  # most prompts mention nothing

    return mimetypes.guess_type(name)[0]

"""A prompt made ready for one agent: only what it takes, within limits, nothing lost silently."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from dragoman.client.blocks import content_of
from dragoman.client.capabilities import AgentCapabilities
from dragoman.client.mentions import find_mentions
from dragoman.errors import PromptTooLarge
from dragoman.session.content import (
    Audio,
    Content,
    Image,
    Resource,
    ResourceLink,
    Text,
    UnknownContent,
)

MAX_ATTACHMENT_BYTES = 10 * 1024 * 1024
MAX_PROMPT_BYTES = 32 * 1024 * 1024
"""Of attachments, together."""
MAX_JSON_BYTES = 48 * 1024 * 1024
"""Of all of it: less than a recording takes at once, or a frame to the agent has room for."""

Part: TypeAlias = str | Content | Mapping[str, Any]
PromptInput: TypeAlias = Part | Sequence[Part]
"""Text, whose mentions become links; content; or blocks as ACP writes them."""


def prepare(
    prompt: PromptInput, agent: AgentCapabilities, cwd: str, *, files_are_here: bool = True
) -> tuple[list[Content], list[str]]:
    """The content to send, and a sentence for each thing in it that had to change or is missing.

    Of files that are not here nobody can tell that they are missing.

    Raises ValueError for a prompt with nothing in it, with text that is not Unicode, or with a
    block that is none of ACP's, PromptTooLarge for one that cannot be sent at once, and TypeError
    for what is no content at all.
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
    bytes, and ValueError for what is no text: bytes of a command line that are not UTF-8 come to
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
            return "the agent takes no images"
        case Audio() if not agent.audio:
            return "the agent takes no audio"
        case Resource() if not agent.embedded_context:
            return "the agent takes no embedded resources"
        case Image() | Audio() | Resource() if _size(part) > MAX_ATTACHMENT_BYTES:
            return f"it is larger than {MAX_ATTACHMENT_BYTES} bytes"
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

"""Decodes what `useChat` sends: a whole chat, read as a prompt with its files, or as answers.

Only the last user message is for the agent, which has the history itself. Nothing is dropped: a
part that cannot be passed on is an error. No I/O: files to be written are handed to the caller.

Only data and web addresses are read; `file:` and all other schemes would let a page reach what
is not its own.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal
from urllib.parse import quote, unquote_to_bytes, urlsplit

import msgspec

from dragoman.client.capabilities import AgentCapabilities
from dragoman.errors import UnusableRequest
from dragoman.session.content import Audio, Content, Image, Resource, ResourceLink, Text
from dragoman.session.facts import PermissionOption, SystemPrompt
from dragoman.session.permission_options import choose_option
from dragoman.ui_stream.chunks import Json
from dragoman.ui_stream.message_parts import ANY_TYPE, is_web

_chat_id = re.compile(r"[A-Za-z0-9_-]{1,128}")
_ALLOWING = ("allow_once", "allow_always")
_REFUSING = ("reject_once", "reject_always")


# ── the body ──────────────────────────────────────────────────────────────────────────────────


class ElicitationReply(msgspec.Struct, rename="camel"):
    """The answer to an elicitation, in `acp.elicitation`."""

    request_id: str
    action: str
    content: Json | None = None


class PermissionReply(msgspec.Struct, rename="camel"):
    """The answer to a permission from a page without approvals, in `acp.permission`."""

    request_id: str
    option_id: str
    confirmed: bool = False


class AcpOptions(msgspec.Struct, rename="camel"):
    """What a page may send in addition to the chat, in `acp`."""

    option_id: str | None = None
    agent: str | None = None
    cwd: str | None = None
    elicitation: ElicitationReply | None = None
    permission: PermissionReply | None = None
    on_reset: Literal["fail", "new"] = "fail"
    """What to do when the agent no longer remembers the session."""
    system_prompt: str | SystemPrompt | None = None
    """The system prompt of the session that a new chat starts; a text is added to the agent's own
    instructions."""

    @property
    def answers(self) -> bool:
        """Whether the request contains an answer, whatever the last message is."""
        return self.elicitation is not None or self.permission is not None


class _Message(msgspec.Struct):
    role: str
    parts: list[Json]
    id: str = ""


class _Body(msgspec.Struct, rename="camel"):
    id: str
    messages: list[_Message]
    trigger: str = "submit-message"
    message_id: str | None = None
    acp: AcpOptions | None = None


class Answer(msgspec.Struct, frozen=True):
    """The page's answer to an approval request; `option_id` is the one it asks for."""

    request_id: str
    approved: bool
    reason: str | None = None
    option_id: str | None = None

    def choose(self, options: Sequence[PermissionOption]) -> str | None:
        """The id of the chosen option; None if the request can only be cancelled.

        A named option counts only if it agrees with `approved`. A yes that fits no option, or more
        than one, counts as a no: nothing falls back to an allow.
        """
        known = {option.id: option.kind for option in options}
        named = self._named(known)
        if named is not None and _agrees(known.get(named), self.approved):
            return named
        allowed = choose_option(options, "allow") if self.approved and named is None else None
        return allowed or choose_option(options, "deny")

    def _named(self, known: dict[str, str]) -> str | None:
        """A reason is prose unless it is exactly an option's id."""
        if self.option_id is not None:
            return self.option_id
        return self.reason if self.reason in known else None


def _agrees(kind: str | None, approved: bool) -> bool:
    if kind is None:
        return False
    return kind not in _REFUSING if approved else kind in _REFUSING


class ChatRequest(msgspec.Struct):
    """A request of `useChat`; `parts` are those of the last user message, empty for answers."""

    chat_id: str
    trigger: str
    message_id: str | None
    parts: list[Json]
    answers: dict[str, Answer]
    acp: AcpOptions

    @property
    def approvals(self) -> dict[str, bool]:
        """What the page shows as answered, for `Encoder.resume`."""
        return {key: answer.approved for key, answer in self.answers.items()}

    def prompt(
        self, agent: AgentCapabilities, folder: str
    ) -> tuple[list[Content], list[Attachment]]:
        """The prompt for an agent with these capabilities, and the files to write first.

        `folder` is the address of the folder to write them to, with a slash at its end. Raises
        UnusableRequest for what cannot be sent.
        """
        reader = FileReader(agent, folder)
        content = list(self._content(reader))
        if not content:
            raise UnusableRequest("messages", "the last message says nothing")
        return content, reader.attachments

    def _content(self, reader: FileReader) -> Iterator[Content]:
        for number, part in enumerate(self.parts):
            place = f"messages[-1].parts[{number}]"
            match part:
                case {"type": "text", "text": str(text)}:
                    if text:
                        yield Text(text)
                case {"type": "file", "url": str(url)}:
                    try:
                        yield reader.read(url, part.get("mediaType"), part.get("filename"))
                    except UnusableFile as error:
                        raise UnusableRequest(place, str(error)) from None
                case _:
                    kind = part.get("type")
                    raise UnusableRequest(place, f"a part of type {kind!r} cannot be sent")


def decode(body: bytes) -> ChatRequest:
    """Read a request of `useChat`. Raises UnusableRequest for anything else."""
    try:
        read = msgspec.json.decode(body, type=_Body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UnusableRequest("body", str(error)) from None
    if _chat_id.fullmatch(read.id) is None:
        raise UnusableRequest("id", "expected letters, digits, _ and -, at most 128 of them")
    if not read.messages:
        raise UnusableRequest("messages", "there are none")
    last = read.messages[-1]
    acp = read.acp or AcpOptions()
    if not acp.answers:
        _check_last(last)
    return ChatRequest(
        chat_id=read.id,
        trigger=read.trigger,
        message_id=read.message_id,
        parts=last.parts if last.role == "user" else [],
        answers=_answers(read.messages, acp.option_id),
        acp=acp,
    )


def _check_last(message: _Message) -> None:
    """It is a prompt, or the assistant's with answers in it."""
    if message.role not in ("user", "assistant"):
        reason = f"expected a message from the user or the assistant, not {message.role!r}"
        raise UnusableRequest("messages[-1].role", reason)
    if message.role == "user" and not message.parts:
        raise UnusableRequest("messages[-1].parts", "there is nothing in the message")


def _answers(messages: list[_Message], option_id: str | None) -> dict[str, Answer]:
    """Every approval that was answered and has no outcome yet."""
    found: dict[str, Answer] = {}
    for part in (p for message in messages if message.role == "assistant" for p in message.parts):
        if part.get("state") == "approval-responded":
            answer = _answer(part.get("approval"), option_id)
            found[answer.request_id] = answer
    return found


def _answer(approval: Any, option_id: str | None) -> Answer:
    match approval:
        case {"id": str(request_id), "approved": bool(approved)}:
            reason: Any = approval.get("reason")
            prose = reason if isinstance(reason, str) else None
            return Answer(request_id, approved, prose, option_id)
        case _:
            raise UnusableRequest("messages", "an approval needs its id, and true or false")


_unsafe = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 80
_TEXT_TYPES = ("application/json", "application/xml", "application/javascript")


class UnusableFile(ValueError):
    """A file part that cannot be read."""


class Attachment(msgspec.Struct, frozen=True):
    """A file to write, under this name, before the prompt that links to it is sent."""

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
            raise UnusableFile(f"an address that begins with {scheme[:20]!r} is not accepted")
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

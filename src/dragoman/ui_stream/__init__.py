"""Any agent behind `useChat`: sessions as AI SDK UI message streams, and chats as prompts.

    encoder = Encoder(session.id)
    for chunk in encoder.feed(event, pending=session.state.pending):
        send(encode(chunk))

Pure: no server is needed, and none is known here. `Encoder` turns the events of a turn into
chunks, `messages` a stored session into UI messages, `decode` a request into a prompt or answers.
"""

from __future__ import annotations

from dragoman.errors import UnusableRequest
from dragoman.ui_stream.chunks import DONE, HEADERS, KEEP_ALIVE, Chunk, encode
from dragoman.ui_stream.decoder import (
    AcpOptions,
    Answer,
    Attachment,
    ChatRequest,
    ElicitationReply,
    PermissionReply,
    decode,
)
from dragoman.ui_stream.encoder import Encoder
from dragoman.ui_stream.message_history import UIMessage, messages

__all__ = [
    "DONE",
    "HEADERS",
    "KEEP_ALIVE",
    "AcpOptions",
    "Answer",
    "Attachment",
    "ChatRequest",
    "Chunk",
    "ElicitationReply",
    "Encoder",
    "PermissionReply",
    "UIMessage",
    "UnusableRequest",
    "decode",
    "encode",
    "messages",
]

"""The prompt of a run: text from an argument, a file or standard input, and attachments."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from dragoman.cli.exit_codes import UsageError, tell
from dragoman.client.prompts import MAX_ATTACHMENT_BYTES, MAX_JSON_BYTES, check_size
from dragoman.session.content import Audio, Content, Image, Resource, ResourceLink, Text

PIPE_SECONDS = 1.0
"""How long to wait for the first byte of a pipe that comes along with a prompt."""


def is_wanted(options: argparse.Namespace) -> bool:
    """Lists alone need no prompt, and then standard input is not read."""
    lists = options.list_caps or options.list_modes or options.list_commands
    return not lists or options.prompt is not None or options.file is not None


def prompt(options: argparse.Namespace) -> list[Content]:
    """The text, and what is attached. Raises UsageError, PromptTooLarge."""
    said = [Text(_text(options)), *map(attachment, options.attach)]
    check_size(said)  # before an agent is started for it
    return said


def _text(options: argparse.Namespace) -> str:
    if options.prompt is not None and options.file not in (None, "-"):
        raise UsageError("pass the prompt as an argument or with --file, not both")
    if options.prompt not in (None, "-"):
        # What the shell passed on may hold bytes that are not text; the wire carries text only.
        text = os.fsencode(options.prompt).decode("utf-8", "replace")
        text = _joined(text, _piped(patient=options.file == "-"))
    elif options.file not in (None, "-"):
        text = _decoded(_read_file(options.file, MAX_JSON_BYTES + 1), options.file)
    else:
        text = _read_standard_input()
    if not text.strip():
        raise UsageError("the prompt is empty; pass it as an argument, with --file, or by a pipe")
    return text


def _joined(text: str, piped: str) -> str:
    return f"{text}\n\n{piped}" if text.strip() and piped.strip() else text


def _piped(*, patient: bool) -> str:
    """What is piped in with a prompt, as in `git diff | dragoman "review this"`.

    A program that starts us may leave us a pipe that nobody ever writes to, so unless it was asked
    for, it is not waited for longer than a moment.
    """
    import select
    import stat

    try:
        kind = os.fstat(0).st_mode
    except OSError:
        return ""  # it is closed
    if not (stat.S_ISFIFO(kind) or stat.S_ISREG(kind) or stat.S_ISSOCK(kind)):
        return ""
    if not patient and not select.select([0], [], [], PIPE_SECONDS)[0]:
        tell(
            f"standard input is not part of the prompt: nothing arrived within {PIPE_SECONDS:.0f} s"
            " (`-f -` waits for it, `</dev/null` says that there is none)"
        )
        return ""
    return _from_standard_input()


def _read_standard_input() -> str:
    if sys.stdin.isatty():
        tell("reading the prompt; end it with Ctrl-D")
    return _from_standard_input()


def _from_standard_input() -> str:
    return _decoded(sys.stdin.buffer.read(MAX_JSON_BYTES + 1), "standard input")


def _decoded(data: bytes, source: str) -> str:
    """Of a file without an end not more is read than can be sent. Raises UsageError."""
    if len(data) > MAX_JSON_BYTES:
        raise UsageError(
            f"{source} has more than {MAX_JSON_BYTES >> 20} MiB, the most that a prompt may have; "
            "mention a large file in the prompt (@PATH) for the agent to read"
        )
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        if b"\0" in data:
            raise UsageError(
                f"{source} is not text; --attach FILE sends a file as it is"
            ) from error
        tell(f"{source} is not valid UTF-8; invalid bytes are sent as \ufffd")
        return data.decode("utf-8", "replace")


def attachment(path: str) -> Content:
    """A file as content: an image, a sound, or a resource; a link if it is too large to be sent.

    Raises UsageError for one that cannot be read.
    """
    import mimetypes
    from base64 import b64encode

    mime_type = mimetypes.guess_type(path)[0]
    uri = Path(path).absolute().as_uri()
    data = _read_file(path, MAX_ATTACHMENT_BYTES + 1)
    if len(data) > MAX_ATTACHMENT_BYTES:
        tell(f"{path} is larger than {MAX_ATTACHMENT_BYTES >> 20} MiB and is attached as a link")
        return ResourceLink(uri, os.path.basename(path), mime_type)
    match (mime_type or "").partition("/")[0]:
        case "image":
            return Image(b64encode(data).decode(), mime_type or "", uri)
        case "audio":
            return Audio(b64encode(data).decode(), mime_type or "")
        case _:
            return _resource(uri, data, mime_type)


def _resource(uri: str, data: bytes, mime_type: str | None) -> Resource:
    from base64 import b64encode

    try:
        return Resource(uri, content=data.decode(), mime_type=mime_type)
    except UnicodeDecodeError:
        return Resource(uri, blob=b64encode(data).decode(), mime_type=mime_type)


def _read_file(path: str, most: int) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(most)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{path} cannot be read: {reason.lower()}") from error

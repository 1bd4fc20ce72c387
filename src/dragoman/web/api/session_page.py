"""A session as one HTML file, drawn as the page draws it. It loads nothing and sends nothing."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from dragoman.errors import DragomanError
from dragoman.redactor.event_redactor import redacted_events
from dragoman.redactor.text_redactor import Redactor
from dragoman.safe_text import sanitise
from dragoman.store.records import SessionRecord

VIEWER = Path(__file__).parents[1] / "static" / "viewer"

_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta name="robots" content="noindex">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<div id="root"></div>
<noscript>This session is drawn by a script in this file. Please allow scripts.</noscript>
"""


NOT_BUILT = "the viewer of exported sessions was not built; run `make run` where Node is installed"


def session_page(
    record: SessionRecord, bodies: Sequence[bytes], redactor: Redactor | None
) -> Iterator[bytes]:
    """The file, in pieces. Raises DragomanError where the viewer was not built.

    The script runs because the policy names its hash; no other can, and there is nothing that it
    could reach. Without a redactor, everything is in the file as it is recorded.
    """
    try:
        script = (VIEWER / "viewer.js").read_text("utf-8").replace("</script", r"<\\/script")
        style = (VIEWER / "viewer.css").read_text("utf-8").replace("</style", r"<\\/style")
    except FileNotFoundError:
        raise DragomanError(NOT_BUILT) from None
    script = script.replace("<!--", r"<\\!--")
    title = _title(record, redactor)
    events = list(bodies if redactor is None else redacted_events(lambda: bodies, redactor))
    page = _PAGE.format(policy=_policy(script), title=html.escape(title), style=style)
    yield page.encode()
    yield b'<script type="application/json" id="session">'
    yield _inert(_head(record, title, redactor))
    for number, event in enumerate(events):
        yield (b"," if number else b"") + _inert(event)
    yield b"]}</script>\n<script>"
    yield script.encode()
    yield b"</script>\n</body>\n</html>\n"


def _title(record: SessionRecord, redactor: Redactor | None) -> str:
    title = sanitise(record.name or record.title or record.id, newlines=False)
    return title if redactor is None else redactor.redacted(title)


def _policy(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data: blob:; media-src data: blob:; font-src data:; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'"
    )


def _head(record: SessionRecord, title: str, redactor: Redactor | None) -> bytes:
    cwd = record.cwd if redactor is None else redactor.redacted(record.cwd)
    session = {
        "id": record.id,
        "title": title,
        "agent": record.agent,
        "cwd": cwd,
        "createdAt": record.created_at,
    }
    removed = None if redactor is None else dict(redactor.counts.most_common())
    head = msgspec.json.encode({"session": session, "removed": removed, "events": []})
    return head.removesuffix(b"]}")


def _inert(json: bytes) -> bytes:
    """Nothing in a text ends the element that it is in."""
    return json.replace(b"<", b"\\u003c").replace(b">", b"\\u003e")

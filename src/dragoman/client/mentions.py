"""`@path` and `@https://…` in a prompt, as resource links; the text stays as typed."""

from __future__ import annotations

import os
import re
from pathlib import Path

from dragoman.session.content import ResourceLink

# Not behind a word character: an e-mail address is no mention. A list of mentions is several.
_MENTION = re.compile(
    r"""(?<![\w@/.+-])@(?:"(?P<quoted>[^"\n]+)"|(?P<bare>(?!@)(?:(?![,;|]@)[^\s"'`<>])+))"""
)
_TRAILING = ".,;:!?)]}>'\"`"
_URL = re.compile(r"https?://[^\s]+\Z", re.IGNORECASE)


def find_mentions(text: str, cwd: str) -> list[ResourceLink]:
    """A link for each thing mentioned, once, in order."""
    links: dict[str, ResourceLink] = {}
    for match in _MENTION.finditer(text):
        link = _link(match["quoted"], match["bare"], cwd)
        if link is not None:
            links.setdefault(link.uri, link)
    return list(links.values())


def missing_mentions(text: str, cwd: str) -> list[str]:
    """A sentence for each file mentioned that is not there; the mention is sent all the same."""
    return [
        f"@{link.name} is sent as typed, though there is no such file"
        for link in find_mentions(text, cwd)
        if not _URL.match(link.uri) and not os.path.exists(_path(link.name, cwd))
    ]


def _link(quoted: str | None, bare: str | None, cwd: str) -> ResourceLink | None:
    name = quoted if quoted is not None else (bare or "").rstrip(_TRAILING)
    if _URL.match(name):
        return ResourceLink(name, name, _mime_type(name))
    if not name:
        return None
    path = _path(name, cwd)
    # `@alice` is a person unless there is such a file; `@src/x` and `@x.py` are paths anyway.
    if quoted is None and not ({"/", "."} & set(name)) and not os.path.exists(path):
        return None
    return ResourceLink(path.as_uri(), name, _mime_type(path.name))


def _path(name: str, cwd: str) -> Path:
    return Path(os.path.normpath(Path(cwd, os.path.expanduser(name))))


def _mime_type(name: str) -> str | None:
    import mimetypes  # most prompts mention nothing

    return mimetypes.guess_type(name)[0]

"""`@path` and `@https://…` in a prompt, as resource links; the text stays as typed."""

from __future__ import annotations

import os
import re
from pathlib import Path

from dragoman.session.content import ResourceLink

# Punctuation that stands in prose and hardly in a name; what it does stand in can be quoted.
_PROSE = (
    "\u2018\u2019\u201c\u201d\u00ab\u00bb\u2026\u2014"
    "\u3001\u3002\u300c\u300d\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f"
)
# Not behind a word character: an e-mail address is no mention. A list of mentions is several.
_MENTION = re.compile(
    r"""(?<![\w@/.+-])@(?:"(?P<quoted>[^"\n]+)"|"""
    rf"""(?P<bare>(?!@)(?:(?![,;|]@)[^\s"'`<>{_PROSE}])+))"""
)
_TRAILING = ".,;:!?*|"
_BRACKETS = ("()", "[]", "{}")
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
    """A sentence for each file mentioned that is not there; its link is sent all the same."""
    return [
        f"@{link.name}: no such file; sent as a link anyway"
        for link in find_mentions(text, cwd)
        if not _URL.match(link.uri) and not os.path.exists(_path(link.name, cwd))
    ]


def _link(quoted: str | None, bare: str | None, cwd: str) -> ResourceLink | None:
    name = quoted if quoted is not None else _without_punctuation(bare or "", cwd)
    if _URL.match(name):
        return ResourceLink(name, name, _mime_type(_path_of(name)))
    if not name:
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
    if not end or end == len(name) or _URL.match(name) or name.endswith(("/.", "/..")):
        return name[:end]
    return name if os.path.exists(_path(name, cwd)) else name[:end]


def _path_of(url: str) -> str:
    from urllib.parse import urlsplit

    try:
        return urlsplit(url).path
    except ValueError:
        return ""


def _path(name: str, cwd: str) -> Path:
    return Path(os.path.normpath(Path(cwd, os.path.expanduser(name))))


def _mime_type(name: str) -> str | None:
    import mimetypes  # most prompts mention nothing

    return mimetypes.guess_type(name)[0]

"""`@path` and `@https://…` in a prompt, as resource links; the text stays as typed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

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
        """A sentence for each file that is not there, whose link is sent all the same, and one for
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
    return Path(os.path.normpath(Path(cwd, os.path.expanduser(name))))


def _mime_type(name: str) -> str | None:
    import mimetypes  # most prompts mention nothing

    return mimetypes.guess_type(name)[0]

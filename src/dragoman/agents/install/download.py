"""Fetches a file over https, never over anything less, not even by a redirect, and with a bound."""

from __future__ import annotations

import hashlib
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPException, HTTPMessage, HTTPResponse
from pathlib import Path
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

from dragoman._version import __version__
from dragoman.errors import DownloadFailed

MAX_TEXT_BYTES = 16 << 20
MAX_ARCHIVE_BYTES = 1 << 30
_SECONDS = 60
_CHUNK = 1 << 20


def fetch_text(url: str, *, most: int = MAX_TEXT_BYTES) -> str:
    """Fetch a small text. Raises DownloadFailed."""
    try:
        return b"".join(_pieces(url, most)).decode()
    except UnicodeDecodeError as error:
        raise DownloadFailed(url, "not UTF-8 text") from error


def download(
    url: str, path: Path, *, sha256: str | None = None, most: int = MAX_ARCHIVE_BYTES
) -> None:
    """Fetch into a new file and verify its checksum, if one is given.

    Raises DownloadFailed, after deleting the file.
    """
    digest = hashlib.sha256()
    try:
        with path.open("xb") as file:
            for piece in _pieces(url, most):
                digest.update(piece)
                file.write(piece)
        if sha256 is not None and digest.hexdigest() != sha256.lower():
            raise DownloadFailed(url, f"SHA-256 is {digest.hexdigest()}, expected {sha256}")
    except BaseException:
        with suppress(FileNotFoundError):
            path.unlink()
        raise


def _pieces(url: str, most: int) -> Iterator[bytes]:
    _must_be_https(url, url)
    request = urllib.request.Request(url, headers={"User-Agent": f"dragoman/{__version__}"})
    try:
        with _opener().open(request, timeout=_SECONDS) as response:
            yield from _read(url, response, most)
    except HTTPError as error:
        raise DownloadFailed(url, f"the server replied with HTTP status {error.code}") from error
    except URLError as error:
        raise DownloadFailed(url, f"{error.reason}") from error
    except (OSError, HTTPException) as error:
        raise DownloadFailed(url, str(error) or type(error).__name__) from error


def _read(url: str, response: HTTPResponse, most: int) -> Iterator[bytes]:
    expected = response.headers.get("Content-Length")
    size = 0
    while piece := response.read(_CHUNK):
        size += len(piece)
        if size > most:
            raise DownloadFailed(url, f"larger than {most} bytes")
        yield piece
    if expected is not None and expected.isdecimal() and int(expected) != size:
        raise DownloadFailed(url, f"incomplete: {size} of {expected} bytes")


def _opener() -> urllib.request.OpenerDirector:
    """An opener that supports only https."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.UnknownHandler(),
        _OnlyToHttps(),
    ):
        opener.add_handler(handler)
    return opener


class _OnlyToHttps(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        _must_be_https(newurl, req.full_url)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _must_be_https(url: str, asked: str) -> None:
    if urlsplit(url).scheme.lower() != "https":
        raise DownloadFailed(asked, f"only https is allowed: {url}")

"""What a program asks of the proxy: a tunnel, or one HTTP request to be passed on. Pure."""

from __future__ import annotations

import re

import msgspec

_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([\x21-\x7e]+) (HTTP/1\.[01])")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n\0]*?)[ \t]*")
_ADDRESS = re.compile(rb"http://([^/?#]*)([^#]*)", re.IGNORECASE)
_HOST = re.compile(rb"(\[[0-9A-Fa-f:.]+\]|[^:@\[\]]+)(?::([0-9]{1,5}))?")
_HOP_BY_HOP = frozenset(
    (b"connection", b"proxy-connection", b"keep-alive", b"proxy-authorization", b"te", b"upgrade")
)
_FRAMING = frozenset((b"content-length", b"transfer-encoding"))


class ProxiedRequest(msgspec.Struct, frozen=True):
    """Where to, and the head to send there; `head` is None for a tunnel."""

    host: str
    port: int
    head: bytes | None = None
    length: int = 0
    """How many bytes follow the head."""
    is_chunked: bool = False
    """They follow in chunks, as many as there are."""


def read_request(head: bytes) -> ProxiedRequest:
    """`head` ends with an empty line. Raises ValueError for what no proxy can pass on."""
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    line = _LINE.fullmatch(first)
    if line is None:
        raise ValueError("this is not an HTTP request")
    method, target, version = line.groups()
    if method == b"CONNECT":
        host, port = _host_of(target)
        if port is None:
            raise ValueError("CONNECT needs a port")
        return ProxiedRequest(host, port)
    address = _ADDRESS.fullmatch(target)
    if address is None:
        raise ValueError("this is a proxy: it takes CONNECT, and requests with an http:// address")
    authority, path = address.groups()
    host, port = _host_of(authority)
    fields = [_field(each) for each in lines]
    length, is_chunked = _body(fields)
    return ProxiedRequest(
        host, port or 80, _head(method, authority, path, version, fields), length, is_chunked
    )


def _host_of(authority: bytes) -> tuple[str, int | None]:
    found = _HOST.fullmatch(authority)
    if found is None or (found[2] and not 0 < int(found[2]) < 65536):
        raise ValueError("the address has no host that can be read")
    return found[1].decode("ascii"), int(found[2]) if found[2] else None


def _field(line: bytes) -> tuple[bytes, bytes]:
    found = _FIELD.fullmatch(line)
    if found is None:
        raise ValueError("a header cannot be read")
    return found[1], found[2]


def _body(fields: list[tuple[bytes, bytes]]) -> tuple[int, bool]:
    """A request that says two things about its length could mean another one to the server."""
    lengths = {value for name, value in fields if name.lower() == b"content-length"}
    codings = [value.lower() for name, value in fields if name.lower() == b"transfer-encoding"]
    if len(lengths) + len(codings) > 1:
        raise ValueError("the length of the body is given twice")
    if codings and codings != [b"chunked"]:
        raise ValueError("the transfer encoding is not known")
    length = next(iter(lengths), b"0")
    if not length.isdigit() or len(length) > 18:
        raise ValueError("the length of the body is not a number")
    return int(length), bool(codings)


def _head(
    method: bytes, authority: bytes, path: bytes, version: bytes, fields: list[tuple[bytes, bytes]]
) -> bytes:
    """For the server itself. The host is that of the address, whatever a header says."""
    options = (value.lower().split(b",") for name, value in fields if name.lower() == b"connection")
    named = {each.strip() for found in options for each in found} - _FRAMING
    dropped = _HOP_BY_HOP | named | {b"host"}
    target = path if path.startswith(b"/") else b"/" + path
    kept = [b"%s: %s" % each for each in fields if each[0].lower() not in dropped]
    lines = [b"%s %s %s" % (method, target, version), b"Host: " + authority, *kept]
    return b"\r\n".join((*lines, b"Connection: close", b"", b""))
